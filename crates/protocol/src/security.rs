//! What object managers ask of the SELinux policy in force: the questions that libselinux asks by selinuxfs and by
//! sockets. Contexts are texts; permissions are bits of the policy in force, which comes along with their names.

use serde::{Deserialize, Serialize};

/// A question of an object manager's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// What a source may do to a target of a class (security_compute_av(3)).
    Access {
        /// The source's context.
        source: String,
        /// The target's.
        target: String,
        /// The class's name.
        class: String,
    },
    /// The context of something new (security_compute_create_name(3)).
    Create {
        /// The context of its maker.
        source: String,
        /// Where.
        target: String,
        /// Of which class.
        class: String,
        /// By which name, if it gets one.
        name: Option<String>,
    },
    /// The context of the member of a polyinstantiated object (security_compute_member(3)).
    Member {
        /// Whose.
        source: String,
        /// Of what.
        target: String,
        /// Of which class.
        class: String,
    },
    /// The context that an object is relabelled to (security_compute_relabel(3)).
    Relabel {
        /// The context of the one that it is for.
        source: String,
        /// What.
        target: String,
        /// Of which class.
        class: String,
    },
    /// Whether a context may be, and how it is written (security_canonicalize_context(3)).
    Context {
        /// The context.
        context: String,
    },
    /// The context of an initial SID, by its name (security_get_initial_context(3)).
    Initial {
        /// `unlabeled`, `kernel`, `security` and so on.
        name: String,
    },
    /// The permissions of a class, by their bits.
    Class {
        /// The class's name.
        class: String,
    },
    /// The context of the process at the other end of the connected Unix stream socket that comes
    /// with the question (getpeercon(3)).
    Peer,
    /// The context of the process whose pidfd comes with the question (getpidcon(3)).
    Process,
    /// The context of the caller (getcon(3)).
    Own,
    /// Tell the audit log what an object manager decided: SELinux's `USER_AVC`.
    Record(Told),
}

/// What an object manager decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// What came of it.
    pub verdict: Verdict,
    /// The source's context.
    pub source: String,
    /// The target's.
    pub target: String,
    /// The class's name.
    pub class: String,
    /// Names of the permissions that were asked for.
    pub request: String,
    /// And of those that are not allowed.
    pub denied: String,
    /// What it was about, in the object manager's words.
    pub about: String,
    /// Such that were left out before this one.
    pub missed: u64,
}

/// What came of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was refused.
    Denied,
    /// It would have been refused, were the source, or all, not permissive.
    Would,
    /// It was allowed, and the policy wants that known.
    Audited,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Question::Access`].
    Access(Access),
    /// A context.
    Context {
        /// Its text.
        context: String,
        /// Of a process: whether the policy governs it. One that it does not has the context of the initial SID `kernel`.
        governed: bool,
    },
    /// To [`Question::Class`].
    Class {
        /// The names of its permissions, by their bits.
        permissions: Vec<String>,
    },
    /// To [`Question::Record`].
    Recorded,
}

/// A decision: `struct av_decision`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// What is allowed.
    pub allowed: u32,
    /// What is recorded where it is allowed.
    pub auditallow: u32,
    /// What is recorded where it is refused.
    pub auditdeny: u32,
    /// Whether the source is permissive.
    pub permissive: bool,
    /// Names of the class's permissions, by their bits; none, if the policy does not know the class.
    pub permissions: Vec<String>,
    /// Whether permissions that are not among these are refused.
    pub deny_unknown: bool,
    /// The policy's number.
    pub seqno: u32,
    /// The number that the status page had when the decision was asked for: it holds while the page has this number.
    pub sequence: u32,
}
