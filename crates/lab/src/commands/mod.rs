//! The commands that are more than a call, a file each.

pub mod bench;
pub mod list;
pub mod run;
