//! What is said over the daemon's socket: one JSON line asked, one answered. The line is sent in one piece.
//!
//! With some questions a descriptor comes ([`Ask::takes_descriptor`]), in the same message (SCM_RIGHTS). With any other
//! question the daemon does not take one. What is a file's content is handed over as sealed memory ([`seal`]).
//!
//! A crate of its own, so that a program that only asks carries neither the daemon
//! nor the compiler.

mod client;
mod code;
mod metrics;
mod page;
mod sealed;
mod security;
mod session;

pub use client::{AskError, ask};
pub use code::Code;
pub use metrics::{Manager, Metrics, RecordCount};
pub use page::{PAGE, Page, PageStatus};
pub use sealed::{Sealed, seal};
pub use security::{Access, Question, Reply, Told, Verdict};
pub use session::{Lost, Session, Withdraw};

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The daemon's socket; 0666, its rule is `lowwrite`.
pub const SOCKET: &str = "/run/tidegate/tidegate.sock";

/// The socket of those who administer, so that nobody else is before them in its queue; 0600, at the top level as its directory is.
pub const ADMIN: &str = "/run/tidegate/admin.sock";

/// A file a level, there as long as the monitor is in the kernel: reading it is falling
/// to it.
pub const LEVELS: &str = "/run/tidegate/level";

/// Bytes a question may have, its newline counted.
pub const MAX_ASK: usize = 4096;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// The caller's level.
    Whoami,
    /// What is in force.
    Status,
    /// Every counter. Like [`Ask::Status`] for everybody: it has neither paths nor
    /// processes.
    Metrics,
    /// What led to a refusal or to a process's level; for others' than one's own
    /// it takes root.
    Why {
        /// Of which.
        of: WhyOf,
    },
    /// Confine the caller by a profile from its next execution on, unless one does so already.
    Confine {
        /// The profile's name.
        profile: String,
    },
    /// Bring the caller under the SELinux policy in force from its next execution on, unless that
    /// governs it already.
    Enter {
        /// In which context.
        context: String,
    },
    /// Limit the caller by a subject of the capability files whose bundle comes with the question,
    /// from its next execution on, or at once: a caller in no session begins one. A caller that is
    /// not root has `no_new_privs`.
    Capabilities {
        /// The subject's name; `None`: the first.
        subject: Option<String>,
        /// At once, for all its threads.
        now: bool,
    },
    /// Sessions of capability files; others' than one's own take root.
    Sessions,
    /// The booleans of the SELinux policy in force. For everybody.
    Booleans,
    /// What object managers ask.
    Security {
        /// The question.
        question: Question,
    },
    /// Take the monitor out of the kernel. Root at the top level only, like
    /// everything below.
    Stop,
    /// Put the bundle that comes with the question in force.
    Reload {
        /// Only record what it forbids.
        permissive: bool,
    },
    /// Set booleans of the SELinux policy in force, all in one step.
    SetBooleans {
        /// Their names and values.
        values: Vec<(String, bool)>,
    },
    /// Take capabilities back from the sessions that run.
    Withdraw {
        /// Which.
        what: Withdraw,
    },
    /// Give the object that comes with the question a level.
    Promote {
        /// The level's name; `None`: the top.
        level: Option<String>,
        /// What to call the object in the record.
        path: String,
    },
}

impl Ask {
    /// Whether a descriptor comes with it: a bundle in sealed memory, an object, a connection, or a process.
    pub fn takes_descriptor(&self) -> bool {
        match self {
            Ask::Capabilities { .. } | Ask::Reload { .. } | Ask::Promote { .. } => true,
            Ask::Security { question } => matches!(question, Question::Peer | Question::Process),
            _ => false,
        }
    }

    /// Whether it takes root at the top level.
    pub fn administers(&self) -> bool {
        matches!(
            self,
            Ask::Stop
                | Ask::Reload { .. }
                | Ask::SetBooleans { .. }
                | Ask::Withdraw { .. }
                | Ask::Promote { .. }
        )
    }

    /// How long its answer may take: an hour where the kernel may have to load or end a model's programs, or a large policy's
    /// tables are built. On a processor that is emulated, or has much else to do, that takes minutes; a daemon that dies meanwhile
    /// ends the wait.
    pub fn patience(&self) -> Duration {
        match self {
            Ask::Stop
            | Ask::Reload { .. }
            | Ask::SetBooleans { .. }
            | Ask::Capabilities { .. }
            | Ask::Withdraw { .. } => Duration::from_secs(3600),
            _ => Duration::from_secs(120),
        }
    }
}

/// What to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyOf {
    /// The newest refusal.
    Last,
    /// A record.
    Record(u64),
    /// A record of an object manager's, by its number.
    Manager(u64),
    /// A process's level.
    Process(u32),
}

/// An answer; `W` is the payload of [`Ask::Why`]; a client that never asks for it need not know it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer<W> {
    /// To [`Ask::Whoami`].
    You(You),
    /// To [`Ask::Status`].
    Status(Status),
    /// To [`Ask::Metrics`].
    Metrics(Box<Metrics>),
    /// To [`Ask::Why`].
    Why(W),
    /// To [`Ask::Confine`].
    Confined {
        /// The profile's limits, by the numbers of the resources: the caller sets them itself.
        limits: Vec<(u8, u64)>,
    },
    /// To [`Ask::Booleans`]: names and values.
    Booleans(Vec<(String, bool)>),
    /// To [`Ask::Security`].
    Security(Reply),
    /// To [`Ask::Sessions`].
    Sessions(Vec<Session>),
    /// To [`Ask::Withdraw`].
    Withdrawn {
        /// Sessions that it was taken from.
        sessions: usize,
        /// Those of them that have lost all that they had, as there is no room for parts of it any more.
        #[serde(default)]
        whole: usize,
        /// The processes that were killed, as they held what could not be taken from them.
        killed: Vec<Lost>,
    },
    /// It is done.
    Done {
        /// What standard output is told.
        message: String,
        /// What is not as it should be.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// It is not.
    Error {
        /// The exit code of the command that asked.
        code: u8,
        /// What standard error is told.
        message: String,
    },
}

/// The caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct You {
    /// Process id.
    pub pid: u32,
    /// The number of its level.
    pub number: u8,
    /// The name of its level.
    pub level: String,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The policy's name.
    pub policy: String,
    /// Level names, lowest first.
    pub levels: Vec<String>,
    /// What of the profiles could not be used and is not in force: the file and line, the names, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The options that named the policy, which a reload that names none reads again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The policy's sequence number.
    pub seqno: u32,
    /// Whether refusals are only recorded.
    pub permissive: bool,
    /// The daemon, if it runs.
    pub daemon: Option<u32>,
    /// Programs attached to hooks.
    pub attached: usize,
    /// Whether descriptors opened before a demotion are being refused.
    pub guard_armed: bool,
    /// Room in the table of given levels, and how much of it is used.
    pub given: Room,
    /// The same of the table of labels that a SELinux policy gave.
    pub labels: Room,
    /// Records written since the start.
    pub records: u64,
    /// Records that found no room on their way to the log, in the kernel or in the daemon.
    pub events_lost: u64,
    /// Objects whose label could not be stored.
    pub labels_failed: u64,
}

/// How full a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Entries.
    pub used: u64,
    /// Entries it has room for.
    pub max: u64,
}
