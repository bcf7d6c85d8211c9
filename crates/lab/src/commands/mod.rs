//! The commands that are more than a call, a file each.

use std::path::PathBuf;

pub mod bench;
pub mod list;
pub mod run;

/// The program to measure: the one that is named, else the one beside this, else the one in PATH.
fn measured(named: Option<PathBuf>) -> PathBuf {
    const NAME: &str = "tidegate";
    let beside = std::env::current_exe().map(|me| me.with_file_name(NAME));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join(NAME));
    let found = || beside.into_iter().chain(in_path).find(|f| f.is_file());
    named.or_else(found).unwrap_or_else(|| NAME.into())
}
