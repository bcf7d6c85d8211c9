//! Exit codes (docs/reference/exit-codes.md) and the one way a command fails.

use std::fmt;
use std::process::ExitCode;

use miette::Report;

use crate::doctor::Check;
use crate::output::tell;

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

/// Why a command ends early: one error, one code.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub code: Code,
    /// What standard error is told.
    pub message: Message,
}

/// What went wrong.
#[derive(Debug)]
pub enum Message {
    /// In words.
    Words(String),
    /// With the place in the policy.
    Diagnosis(Report),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Words(words) => f.write_str(words),
            Message::Diagnosis(report) => report.fmt(f),
        }
    }
}

/// What a command gives back.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// An error in one line.
    pub fn new(code: Code, message: impl fmt::Display) -> Failure {
        Failure {
            code,
            message: Message::Words(message.to_string()),
        }
    }

    /// An error in a policy.
    pub fn policy(report: Report) -> Failure {
        Failure {
            code: Code::Policy,
            message: Message::Diagnosis(report),
        }
    }

    /// Tells standard error.
    pub fn tell(&self) {
        match &self.message {
            Message::Words(words) => tell!("tidegate: {words}"),
            Message::Diagnosis(report) => tell!("{report:?}"),
        }
    }

    /// This machine lacks something.
    pub fn cannot_enforce(lacks: &Check) -> Failure {
        Failure::new(
            Code::CannotEnforce,
            format!(
                "this machine cannot enforce ({}: {}); `tidegate doctor` tells how to mend it, \
                 `make run` shows Tidegate in a VM",
                lacks.what, lacks.found
            ),
        )
    }

    /// A level that the policy in force does not have; it has these, the lowest first.
    pub fn no_level(name: &str, levels: &[String]) -> Failure {
        let known: Vec<_> = levels.iter().rev().map(String::as_str).collect();
        let known = known.join(" > ");
        Failure::new(
            Code::Usage,
            format!("there is no level `{name}`: the levels are {known}"),
        )
    }

    /// A failed system call; `what` reads on after `cannot`.
    pub fn io(what: impl fmt::Display, e: impl Into<std::io::Error>) -> Failure {
        let e = e.into();
        let code = match e.kind() {
            std::io::ErrorKind::PermissionDenied => Code::NotPermitted,
            std::io::ErrorKind::NotFound => Code::Usage,
            _ => Code::Internal,
        };
        Failure::new(code, format!("cannot {what}: {e}"))
    }
}

impl From<tidegate_monitor::Error> for Failure {
    fn from(e: tidegate_monitor::Error) -> Failure {
        use tidegate_monitor::Error;
        let code = match &e {
            Error::Running => Code::Running,
            Error::NotRunning => Code::NotRunning,
            Error::NotPermitted(_) | Error::NewPrivileges => Code::NotPermitted,
            Error::Unsupported(_) | Error::Load { .. } | Error::Hook { .. } => Code::CannotEnforce,
            Error::Foreign(_) => Code::Foreign,
            Error::LevelsDiffer { .. } => Code::Policy,
            Error::Fixed(_) | Error::Mapped(_) | Error::Capabilities(_) => Code::No,
            _ => Code::Internal,
        };
        Failure::new(code, e)
    }
}
