//! What kind of failure an answer tells, and a command's exit status (docs/reference/exit-codes.md).

use std::process::ExitCode;

/// What a command's exit status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The question was answered with no.
    No = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The policy, map or bundle is wrong.
    Policy = 3,
    /// This machine cannot enforce.
    CannotEnforce = 4,
    /// Tidegate, or its daemon, is not running.
    NotRunning = 5,
    /// It is running already.
    Running = 6,
    /// Not permitted.
    NotPermitted = 7,
    /// Anything else that went wrong.
    Internal = 8,
    /// The monitor in the kernel is another version's.
    Foreign = 9,
    /// It is done, but for profiles that cannot be used.
    Partly = 10,
}

impl Code {
    /// The code a number stands for, as a daemon reports it.
    pub fn from_number(n: u8) -> Code {
        match n {
            1 => Code::No,
            2 => Code::Usage,
            3 => Code::Policy,
            4 => Code::CannotEnforce,
            5 => Code::NotRunning,
            6 => Code::Running,
            7 => Code::NotPermitted,
            9 => Code::Foreign,
            _ => Code::Internal,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}
