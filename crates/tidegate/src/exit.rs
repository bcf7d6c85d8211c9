//! Exit codes (docs/reference/exit-codes.md) and the one way a command fails.

use std::fmt;

use miette::Report;
use tidegate_audit::printable;
use tidegated::DaemonError;

pub use tidegate_protocol::Code;

use crate::doctor::Check;
use crate::output::tell;

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
            Message::Words(words) => tell!("tidegate: {}", one_message(words)),
            Message::Diagnosis(report) => tell!("{report:?}"),
        }
    }

    /// This machine lacks something.
    pub fn cannot_enforce(lacks: &Check) -> Failure {
        Failure::new(
            Code::CannotEnforce,
            format!(
                "this machine cannot enforce ({}: {}); `tidegate doctor` tells how to fix it, \
                 `make run` in the source tree shows Tidegate in a virtual machine",
                lacks.what, lacks.found
            ),
        )
    }

    /// A level that the policy in force does not have; it has these, the lowest first.
    pub fn no_level(name: &str, levels: &[String]) -> Failure {
        DaemonError::no_level(name, levels).into()
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

/// Words with what others named, which begin no line that looks like another message.
fn one_message(words: &str) -> String {
    let lines: Vec<String> = words.lines().map(printable).collect();
    lines.join("\n  ")
}

impl From<DaemonError> for Failure {
    fn from(e: DaemonError) -> Failure {
        Failure::new(e.code(), e)
    }
}

impl From<tidegate_monitor::Error> for Failure {
    fn from(e: tidegate_monitor::Error) -> Failure {
        DaemonError::from(e).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_begins_no_message() {
        let words = "cannot read /tmp/a\ntidegate: all is well\u{202e}\u{1b}[1A";
        assert_eq!(
            one_message(words),
            "cannot read /tmp/a\n  tidegate: all is well\\u202e\\u001b[1A"
        );
    }
}
