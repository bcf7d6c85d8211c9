//! The commands that are more than a call, a file each.

pub mod list;
pub mod run;
