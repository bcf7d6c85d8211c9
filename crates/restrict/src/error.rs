//! What goes wrong, and what is refused.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tidegate_policy::caps::CapsErrors;
use tidegate_protocol::{Answer, AskError};

use crate::{NO, NOT_PERMITTED};

/// Why a process is not limited.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestrictError {
    /// The capability file is not to be had.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is wrong.
    #[error("{}", listed(.0))]
    File(#[from] CapsErrors),
    /// It has no such subject.
    #[error("the file has no subject `{name}`: it has {known}")]
    Subject {
        /// The name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// No daemon listens.
    #[error("the daemon is not running: `tidegate start` starts it")]
    NotRunning,
    /// The daemon is there, and this process may not connect to it.
    #[error("cannot connect to the daemon: {0}")]
    Connect(io::Error),
    /// Something that this process does for it failed.
    #[error("cannot {0}: {1}")]
    Memory(&'static str, io::Error),
    /// The daemon does not take it from this process: a thread has not given up new privileges.
    #[error("{0}")]
    NotPermitted(String),
    /// It cannot be as things are: the process shares its memory or its descriptors with another, is limited by 16 layers, or the
    /// user has too many sessions.
    #[error("{0}")]
    Limits(String),
    /// The daemon could not.
    #[error("the daemon: {0}")]
    Failed(String),
}

/// The errors of a file, a line each.
fn listed(errors: &CapsErrors) -> String {
    let errors = errors.findings.iter().filter(|it| it.is_error());
    let lines: Vec<String> = errors.map(ToString::to_string).collect();
    lines.join("\n")
}

/// What the daemon's answer comes to.
pub(crate) fn answered(answer: Result<Answer<()>, AskError>) -> Result<String, RestrictError> {
    match answer {
        Ok(Answer::Done { message, .. }) => Ok(message),
        Ok(Answer::Error { code, message }) => Err(match code {
            NO => RestrictError::Limits(message),
            NOT_PERMITTED => RestrictError::NotPermitted(message),
            _ => RestrictError::Failed(message),
        }),
        Ok(_) => Err(RestrictError::Failed("it gave another answer".into())),
        Err(AskError::NotRunning) => Err(RestrictError::NotRunning),
        Err(AskError::Connect(e)) => Err(RestrictError::Connect(e)),
        Err(e @ (AskError::Late(_) | AskError::Talk(_))) => {
            Err(RestrictError::Failed(e.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let of = |code| {
            let message = "words".into();
            answered(Ok(Answer::Error { code, message })).unwrap_err()
        };
        assert!(matches!(of(1), RestrictError::Limits(_)));
        assert!(matches!(of(7), RestrictError::NotPermitted(_)));
        assert_eq!(of(8).to_string(), "the daemon: words");
        let gone = answered(Err(AskError::NotRunning)).unwrap_err();
        assert!(gone.to_string().contains("tidegate start"));
        let closed = AskError::Connect(io::ErrorKind::PermissionDenied.into());
        let closed = answered(Err(closed)).unwrap_err();
        assert!(matches!(closed, RestrictError::Connect(_)));
        let other = answered(Ok(Answer::Booleans(Vec::new()))).unwrap_err();
        assert!(matches!(other, RestrictError::Failed(_)));
    }
}
