//! The scenarios, a file a topic.

mod dirs;
mod exec;
mod files;
mod ipc;
mod labels;
mod mmap;
mod net;
mod pipes;
mod tasks;
mod unix;

use std::io;

use crate::scenario::Scenario;

/// All topics.
pub const TOPICS: &[&[Scenario]] = &[
    files::SCENARIOS,
    dirs::SCENARIOS,
    labels::SCENARIOS,
    exec::SCENARIOS,
    mmap::SCENARIOS,
    pipes::SCENARIOS,
    unix::SCENARIOS,
    net::SCENARIOS,
    ipc::SCENARIOS,
    tasks::SCENARIOS,
];

/// What has to run before Tidegate starts.
pub fn before_start() -> io::Result<()> {
    Ok(())
}
