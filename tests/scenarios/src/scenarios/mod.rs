//! The scenarios, a file a topic.

mod dirs;
mod exec;
mod files;
mod labels;
mod mmap;

use std::io;

use crate::scenario::Scenario;

/// All topics.
pub const TOPICS: &[&[Scenario]] = &[
    files::SCENARIOS,
    dirs::SCENARIOS,
    labels::SCENARIOS,
    exec::SCENARIOS,
    mmap::SCENARIOS,
];

/// What has to run before Tidegate starts.
pub fn before_start() -> io::Result<()> {
    Ok(())
}
