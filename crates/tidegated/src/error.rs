//! Why the daemon cannot do what it was started or asked for.

use std::fmt::Display;
use std::io;

use thiserror::Error;
use tidegate_protocol::Code;

/// The result of what the daemon does.
pub type Outcome<T = ()> = Result<T, DaemonError>;

/// Why the daemon cannot do what it was started or asked for.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It refuses, or the state of things does not allow it.
    #[error("{message}")]
    Refused {
        /// The kind of failure.
        code: Code,
        /// One line for the administrator or the client.
        message: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The monitor in the kernel refuses, or is not there.
    #[error(transparent)]
    Monitor(#[from] tidegate_monitor::Error),
}

impl DaemonError {
    /// Returns an error of a kind, in one line.
    pub fn new(code: Code, message: impl Display) -> DaemonError {
        DaemonError::Refused {
            code,
            message: message.to_string(),
        }
    }

    /// Returns the error of a failed system call; `what` reads on after `cannot`.
    pub fn io(what: impl Display, source: impl Into<io::Error>) -> DaemonError {
        DaemonError::Io {
            what: what.to_string(),
            source: source.into(),
        }
    }

    /// Returns the error for a level that the policy in force does not have; it has these, the lowest first.
    pub fn no_level(name: &str, levels: &[String]) -> DaemonError {
        let known: Vec<_> = levels.iter().rev().map(String::as_str).collect();
        let known = known.join(" > ");
        DaemonError::new(
            Code::Usage,
            format!("there is no level `{name}`: the levels are {known}"),
        )
    }

    /// Returns the kind of failure, as answers and exit statuses tell it.
    pub fn code(&self) -> Code {
        use tidegate_monitor::Error;
        match self {
            DaemonError::Refused { code, .. } => *code,
            DaemonError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Code::NotPermitted,
                io::ErrorKind::NotFound => Code::Usage,
                _ => Code::Internal,
            },
            DaemonError::Monitor(error) => match error {
                Error::Running => Code::Running,
                Error::NotRunning => Code::NotRunning,
                Error::NotPermitted(_) | Error::NewPrivileges => Code::NotPermitted,
                Error::Unsupported(_) | Error::Load { .. } | Error::Hook { .. } => {
                    Code::CannotEnforce
                }
                Error::Foreign(_) => Code::Foreign,
                Error::LevelsDiffer { .. } => Code::Policy,
                Error::Fixed(_) | Error::Mapped(_) | Error::Blocked(_) | Error::Capabilities(_) => {
                    Code::No
                }
                _ => Code::Internal,
            },
        }
    }
}
