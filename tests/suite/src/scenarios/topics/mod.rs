//! The scenarios, a file a topic.

mod asynchronous;
mod bpffs;
mod commands;
mod dirs;
mod evasions;
mod exec;
mod files;
mod filesystems;
mod ipc;
mod kept;
mod labels;
mod life;
mod mmap;
mod mounts;
mod moves;
mod net;
mod other_doors;
mod pipes;
mod privilege;
mod revocation;
mod system;
mod tasks;
mod threads;
mod tracing;
mod tty;
mod under_way;
mod unix;
mod waits;

use std::io;
use std::process::{Command, Stdio};

use crate::scenarios::place;
use crate::scenarios::scenario::Scenario;

/// All topics.
pub const TOPICS: &[&[Scenario]] = &[
    files::SCENARIOS,
    dirs::SCENARIOS,
    moves::SCENARIOS,
    labels::SCENARIOS,
    exec::SCENARIOS,
    mmap::SCENARIOS,
    pipes::SCENARIOS,
    unix::SCENARIOS,
    net::SCENARIOS,
    ipc::SCENARIOS,
    tasks::SCENARIOS,
    tracing::SCENARIOS,
    system::SCENARIOS,
    privilege::SCENARIOS,
    bpffs::SCENARIOS,
    mounts::SCENARIOS,
    tty::SCENARIOS,
    revocation::SCENARIOS,
    asynchronous::SCENARIOS,
    threads::SCENARIOS,
    filesystems::SCENARIOS,
    evasions::SCENARIOS,
    under_way::SCENARIOS,
    waits::SCENARIOS,
    kept::SCENARIOS,
    other_doors::SCENARIOS,
    commands::SCENARIOS,
    life::SCENARIOS,
];

/// What has to run before Tidegate starts: processes with something open, which
/// make a file each once they have to ask before they may.
pub fn before_start() -> io::Result<()> {
    let program = format!("{}/scenarios", place::BIN);
    for (what, file) in [
        ("low", place::LOW),
        ("user", place::USER),
        ("none", place::SYSTEM),
    ] {
        let file = format!("{file}/squatted");
        std::fs::write(&file, "x")?;
        Command::new(&program)
            .args(["--helper", "squat", what, &file])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
    }
    Ok(())
}
