//! What can be wrong with a binary policy.

use miette::Diagnostic;
use thiserror::Error;

use super::{NEWEST, OLDEST};

/// Why a binary policy was not accepted. The reader stops at the first fault.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum PolicyDbError {
    /// Another kind of file.
    #[error("this is not a binary SELinux policy")]
    #[diagnostic(
        code(te::foreign),
        help(
            "a binary policy is /etc/selinux/NAME/policy/policy.N, or what `secilc` writes; the name of \
             a policy as text ends in `.cil`"
        )
    )]
    Foreign,
    /// A module, of which a policy is linked.
    #[error("this is a policy module, not a policy")]
    #[diagnostic(
        code(te::module),
        help(
            "`semodule` links modules to a policy; `/usr/libexec/selinux/hll/pp` turns one into CIL"
        )
    )]
    Module,
    /// A policy of Xen's security server, which has other classes and objects.
    #[error("this is a policy for Xen (XSM), not for Linux")]
    #[diagnostic(code(te::xen), help("compile it for the target `selinux`"))]
    Xen,
    /// A version of another time.
    #[error("the policy has version {0}; {OLDEST} to {NEWEST} can be read")]
    #[diagnostic(
        code(te::version),
        help("`secilc -c 33` and `checkpolicy -c 33` write version 33")
    )]
    Version(u32),
    /// More of something than a policy may have.
    #[error("{count} {what}, where at most {max} are allowed")]
    #[diagnostic(code(te::limit))]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// Not what a policy has there.
    #[error("the policy is malformed at byte {offset}: {what}")]
    #[diagnostic(code(te::malformed), help("compile or copy it anew"))]
    Malformed {
        /// Where.
        offset: usize,
        /// What was being read.
        what: &'static str,
    },
    /// A number that nothing has.
    #[error("{of} names {what} {number}, which the policy does not have")]
    #[diagnostic(code(te::number))]
    Number {
        /// What names it.
        of: String,
        /// What it would be.
        what: &'static str,
        /// Its number.
        number: usize,
    },
    /// A symbol, rule or context that no policy can have.
    #[error("{of}: {fault}")]
    #[diagnostic(code(te::fault))]
    Fault {
        /// Which.
        of: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// No class `process` with a transition: SELinux takes no such policy, as it could not tell
    /// a change of a process's role.
    #[error("the policy has no class `process` with the permission `transition`")]
    #[diagnostic(code(te::process))]
    Process,
    /// Bytes after the policy's end.
    #[error("{0} bytes follow the policy's end")]
    #[diagnostic(code(te::trailing), help("compile or copy it anew"))]
    Trailing(usize),
}
