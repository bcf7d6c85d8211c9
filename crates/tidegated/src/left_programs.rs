//! The programs of the version whose monitor is in the kernel, left where a later version finds them.

use std::env;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{DaemonError, Outcome};
use crate::instance::directory;
use crate::paths;

/// Leaves this program and the command line, which lies beside it. What outlives a boot is at the top level; `/run` would be,
/// too, but is mounted noexec on many machines.
pub fn leave_programs() -> Outcome {
    directory(paths::STATE, 0o700)?;
    let me = env::current_exe().map_err(|e| DaemonError::io("find this program", e))?;
    // it is the one that was left, and so is what lies beside it
    if me == Path::new(paths::DAEMON) {
        return Ok(());
    }
    leave(&me.with_file_name("tidegate"), paths::PROGRAM)?;
    leave(Path::new("/proc/self/exe"), paths::DAEMON)
}

fn leave(program: &Path, to: &str) -> Outcome {
    let new = format!("{to}.new");
    let left = || -> io::Result<()> {
        let _ = fs::remove_file(&new);
        fs::copy(program, &new)?;
        fs::rename(&new, to)
    };
    left().map_err(|e| {
        // a part of it would keep the given levels from being written
        let _ = fs::remove_file(&new);
        DaemonError::io(format!("write {to}"), e)
    })
}
