//! The monitor of another version: after an upgrade what is in the kernel stays there until the
//! machine restarts, and only the program that put it there knows it.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tidegated::paths;

use crate::exit::Failure;

/// Becomes the program that was left, with the same arguments; what the command failed of
/// where that cannot be.
pub fn go_on(failure: Failure) -> Failure {
    if is_this(Path::new(paths::PROGRAM)) {
        return failure;
    }
    let error = Command::new(paths::PROGRAM)
        .arg0(env::args_os().next().unwrap_or_else(|| "tidegate".into()))
        .args(env::args_os().skip(1))
        .exec();
    Failure::new(
        failure.code,
        format!(
            "{}; its program {} cannot be run: {error}",
            failure.message,
            paths::PROGRAM
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
