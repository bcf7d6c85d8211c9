//! What can be wrong with what `apparmor_parser` wrote.

use miette::Diagnostic;
use thiserror::Error;

/// Why a compiled profile was not accepted. The reader stops at the first fault.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum UnpackError {
    /// Not what a profile has there.
    #[error("compiled profiles are malformed at byte {offset}: {what}")]
    #[diagnostic(code(profile::malformed))]
    Malformed {
        /// Where.
        offset: usize,
        /// What was being read.
        what: &'static str,
    },
    /// An automaton that no parser writes.
    #[error("an automaton is malformed at {0}")]
    #[diagnostic(code(profile::dfa))]
    Dfa(&'static str),
    /// A format of another time.
    #[error("compiled profiles have format {found}; 5 to {known} can be read")]
    #[diagnostic(
        code(profile::version),
        help("compile them with the apparmor_parser of AppArmor 3 or 4")
    )]
    Version {
        /// Theirs.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// Permissions or transitions that are not there, or contradict each other.
    #[error("profile `{profile}`: {what}")]
    #[diagnostic(code(profile::permissions))]
    Permissions {
        /// The profile.
        profile: String,
        /// What is wrong with them.
        what: &'static str,
    },
    /// A policy namespace.
    #[error("profile `{profile}` is in the policy namespace `{namespace}`")]
    #[diagnostic(
        code(profile::namespace),
        help("policy namespaces are not supported: give the profile a name without one")
    )]
    Namespace {
        /// The profile.
        profile: String,
        /// Its namespace.
        namespace: String,
    },
}
