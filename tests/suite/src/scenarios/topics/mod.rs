//! The scenarios, a file a topic.

mod accounts;
mod asynchronous;
mod authority;
mod bpffs;
mod capabilities;
mod clones;
mod commands;
mod counted;
mod creations;
mod daemon_files;
mod descriptions;
mod detached;
mod dirs;
mod evasions;
mod exec;
mod families;
mod fifos;
mod files;
mod filesystems;
mod floods;
mod fuse_clients;
mod guard;
mod handed;
mod i386;
mod identity;
mod in_flight;
mod in_hand;
mod inherited;
mod ipc;
mod kept;
mod kept_sockets;
mod labels;
mod left_over;
mod life;
mod locks;
mod low_root;
mod machine;
mod memfds;
mod mmap;
mod mounts;
mod moved_ends;
mod moves;
mod names;
mod namespaces;
mod net;
mod net_shared;
mod networks;
mod odd_objects;
mod odd_sockets;
mod offered;
mod one_level;
mod other_addresses;
mod other_doors;
mod overlays;
mod own_addresses;
mod owners;
mod pipes;
mod privilege;
mod queues;
mod reached;
mod revocation;
mod ring_alone;
mod servers;
mod sessions;
mod socket_floods;
mod system;
mod taken;
mod tasks;
mod threads;
mod tracing;
mod trusted;
mod tty;
mod turns;
mod under_way;
mod unix;
mod unix_shared;
mod unlabelled;
mod waits;

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::scenarios::place;
use crate::scenarios::scenario::Scenario;
use crate::wait;

pub use authority::keeps;
pub use identity::ADOPTED;

/// All topics.
pub const TOPICS: &[&[Scenario]] = &[
    files::SCENARIOS,
    dirs::SCENARIOS,
    moves::SCENARIOS,
    labels::SCENARIOS,
    left_over::SCENARIOS,
    exec::SCENARIOS,
    mmap::SCENARIOS,
    pipes::SCENARIOS,
    fifos::SCENARIOS,
    memfds::SCENARIOS,
    unix::SCENARIOS,
    in_flight::SCENARIOS,
    net::SCENARIOS,
    families::SCENARIOS,
    authority::SCENARIOS,
    ipc::SCENARIOS,
    tasks::SCENARIOS,
    tracing::SCENARIOS,
    trusted::SCENARIOS,
    system::SCENARIOS,
    capabilities::SCENARIOS,
    bpffs::SCENARIOS,
    mounts::SCENARIOS,
    detached::SCENARIOS,
    tty::SCENARIOS,
    sessions::SCENARIOS,
    revocation::SCENARIOS,
    guard::SCENARIOS,
    asynchronous::SCENARIOS,
    threads::SCENARIOS,
    filesystems::SCENARIOS,
    overlays::SCENARIOS,
    evasions::SCENARIOS,
    socket_floods::SCENARIOS,
    accounts::SCENARIOS,
    under_way::SCENARIOS,
    moved_ends::SCENARIOS,
    in_hand::SCENARIOS,
    waits::SCENARIOS,
    kept::SCENARIOS,
    kept_sockets::SCENARIOS,
    other_doors::SCENARIOS,
    handed::SCENARIOS,
    locks::SCENARIOS,
    low_root::SCENARIOS,
    odd_objects::SCENARIOS,
    offered::SCENARIOS,
    odd_sockets::SCENARIOS,
    own_addresses::SCENARIOS,
    other_addresses::SCENARIOS,
    unlabelled::SCENARIOS,
    privilege::SCENARIOS,
    machine::SCENARIOS,
    i386::SCENARIOS,
    ring_alone::SCENARIOS,
    net_shared::SCENARIOS,
    unix_shared::SCENARIOS,
    networks::SCENARIOS,
    inherited::SCENARIOS,
    queues::SCENARIOS,
    taken::SCENARIOS,
    descriptions::SCENARIOS,
    clones::SCENARIOS,
    reached::SCENARIOS,
    one_level::SCENARIOS,
    namespaces::SCENARIOS,
    names::SCENARIOS,
    owners::SCENARIOS,
    creations::SCENARIOS,
    servers::SCENARIOS,
    floods::SCENARIOS,
    turns::SCENARIOS,
    counted::SCENARIOS,
    identity::SCENARIOS,
    fuse_clients::SCENARIOS,
    daemon_files::SCENARIOS,
    commands::SCENARIOS,
    life::SCENARIOS,
];

/// What has to run before Tidegate starts: processes with something open, which
/// make a file each once they have to ask before they may.
pub fn before_start() -> io::Result<()> {
    for (what, dir) in [
        ("low", place::LOW),
        ("user", place::USER),
        ("none", place::SYSTEM),
    ] {
        squatter("squat", what, dir)?;
    }
    for (what, _) in ADOPTED {
        let forges = squatter("squat-forged", what, place::LOW)?;
        let exe = format!("/proc/{}/exe", forges.id());
        // whether it has come to that, its scenario says
        wait::until(Duration::from_secs(60), || {
            let exe = fs::read_link(&exe);
            Ok::<_, io::Error>(exe.is_ok_and(|it| it.ends_with("trusted")))
        })?;
    }
    Ok(())
}

fn squatter(how: &str, what: &str, dir: &str) -> io::Result<Child> {
    let file = format!("{dir}/squatted");
    fs::write(&file, "x")?;
    Command::new(format!("{}/scenarios", place::BIN))
        .args(["--helper", how, what, &file])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
