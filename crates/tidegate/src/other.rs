//! The monitor of another version: after an upgrade what is in the kernel stays there until the
//! machine restarts, and only the program that put it there knows it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::daemon::directory;
use crate::exit::{Failure, Outcome};
use crate::places;

/// Leaves this program where a later version finds it. What outlives a boot is at the top
/// level; `/run` would be, too, but is mounted noexec on many machines.
pub fn leave_program() -> Outcome {
    let new = format!("{}.new", places::PROGRAM);
    let left = || -> io::Result<()> {
        let _ = fs::remove_file(&new);
        fs::copy("/proc/self/exe", &new)?;
        fs::rename(&new, places::PROGRAM)
    };
    directory(places::STATE, 0o700)?;
    left().map_err(|e| {
        // a part of it would keep the given levels from being written
        let _ = fs::remove_file(&new);
        Failure::io(format!("write {}", places::PROGRAM), e)
    })
}

/// Becomes the program that was left, with the same arguments; what the command failed of
/// where that cannot be.
pub fn go_on(failure: Failure) -> Failure {
    if is_this(Path::new(places::PROGRAM)) {
        return failure;
    }
    let error = Command::new(places::PROGRAM)
        .arg0(env::args_os().next().unwrap_or_else(|| "tidegate".into()))
        .args(env::args_os().skip(1))
        .exec();
    Failure::new(
        failure.code,
        format!(
            "{}; its program {} cannot be run: {error}",
            failure.message,
            places::PROGRAM
        ),
    )
}

/// Whether that is the program that runs.
fn is_this(program: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    file(program).is_some_and(|theirs| file(Path::new("/proc/self/exe")) == Some(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_knows_itself() {
        assert!(is_this(&env::current_exe().unwrap()));
        assert!(!is_this(Path::new("/proc/self/status")));
        assert!(!is_this(Path::new("/nonexistent")));
    }
}
