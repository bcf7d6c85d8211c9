//! What goes wrong, and what is refused.

use std::io;

use thiserror::Error;

/// Why a question has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AvcError {
    /// No daemon listens.
    #[error("the daemon is not running: `tidegate start` starts it")]
    NotRunning,
    /// The policy does not have such a context or class.
    #[error("{0}")]
    Invalid(String),
    /// The caller may not.
    #[error("{0}")]
    NotPermitted(String),
    /// The daemon did not answer what was asked.
    #[error("the daemon: {0}")]
    Failed(String),
    /// The status page cannot be mapped.
    #[error("map {path}: {source}")]
    Page {
        /// Its path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// There is no room for another context or class.
    #[error("more than {0} {1} are in use: what makes them without end?")]
    Full(usize, &'static str),
}

/// Why an access is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Denied {
    /// The policy does not allow it.
    #[error("{source_context} may not {{ {permissions} }} {target_context}:{class}")]
    Refused {
        /// Names of the permissions that are missing.
        permissions: String,
        /// The source.
        source_context: String,
        /// The target.
        target_context: String,
        /// The class.
        class: String,
    },
    /// There is no decision, and without one nothing is allowed.
    #[error("no decision: {0}")]
    Undecided(#[from] AvcError),
}
