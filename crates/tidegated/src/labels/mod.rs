//! The levels and labels that no path rule gives back: kept over reboots, by the filesystems and files that have them.

mod crash_recovery;
mod file_handle;
pub mod filesystem;
mod format;
pub mod store;
