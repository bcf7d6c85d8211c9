//! `lab` and `bench`: they are `tidegate-lab`'s, a program of its own, so that what
//! enforces carries no plots and no virtual machines.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::exit::{Code, Failure, Outcome};

const PROGRAM: &str = "tidegate-lab";

/// Becomes the lab's program: the one beside this, else the one in PATH.
pub fn run(command: Option<&str>, args: &[OsString]) -> Outcome {
    let beside = std::env::current_exe()
        .ok()
        .map(|me| me.with_file_name(PROGRAM))
        .filter(|file| file.exists());
    let program = beside.unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(program).args(command).args(args).exec();
    if error.kind() == io::ErrorKind::NotFound {
        return Err(Failure::new(
            Code::Internal,
            format!(
                "{PROGRAM} is not installed: `make lab` builds it; put it beside tidegate or into PATH"
            ),
        ));
    }
    Err(Failure::io(format!("run {PROGRAM}"), error))
}
