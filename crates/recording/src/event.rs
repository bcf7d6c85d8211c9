//! What a line brings about under a policy: refusals, and falls with their causes.

use std::rc::Rc;

use crate::domain::TeRefusal;
use crate::line::Act;

/// Why a rule could not be applied as it stands: `enum tg_reason` of kernel/abi/record.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The rule itself decided.
    Rule,
    /// No label could be found.
    NoLabel,
    /// A shared writable mapping stands in the way.
    Mapping,
    /// Somebody has it open.
    Busy,
    /// `lownoopen`.
    Noopen,
    /// A higher place for a lower object.
    Launder,
    /// No creator area.
    NoCreator,
    /// The operation belongs to the top level.
    TopOnly,
    /// Fell with a channel it reads.
    Channel,
    /// A directory whose new place has other rules.
    Tree,
    /// A lower place for one of several names.
    Names,
    /// No rule of a profile allows it.
    Profile,
    /// The profile that an execution leads to is not there.
    NoProfile,
    /// A SELinux policy.
    Te,
    /// What reaches into a trusted program.
    Trust,
}

impl Reason {
    /// Its word in audit records; `None` where a rule decided.
    pub fn word(self) -> Option<&'static str> {
        Some(match self {
            Reason::Rule => return None,
            Reason::NoLabel => "no-label",
            Reason::Mapping => "mapping",
            Reason::Busy => "busy",
            Reason::Noopen => "noopen",
            Reason::Launder => "launder",
            Reason::NoCreator => "no-creator",
            Reason::TopOnly => "top-only",
            Reason::Channel => "channel",
            Reason::Tree => "tree",
            Reason::Names => "names",
            Reason::Profile => "profile",
            Reason::NoProfile => "no-profile",
            Reason::Te => "te",
            Reason::Trust => "trust",
        })
    }
}

/// Why a subject has its level: a fall, and the one before.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// The operation; [`Act::Held`] for what it held at the beginning.
    pub act: Act,
    /// The object.
    pub object: Box<str>,
    /// The program of the process that did it.
    pub comm: Box<str>,
    /// Its thread group id.
    pub pid: u32,
    /// The level it fell to.
    pub level: u8,
    /// When, nanoseconds of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// What came before.
    pub prev: Option<Rc<Cause>>,
}

/// What would have been refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The operation, as an audit record would have named it.
    pub act: Act,
    /// Why a rule alone did not decide.
    pub reason: Reason,
    /// The object: a path, an address or a process.
    pub object: String,
    /// The object's level.
    pub level: u8,
    /// The rule: an index into the policy's rules.
    pub source: Option<u32>,
    /// The subject's level.
    pub subject: u8,
    /// Why it has it.
    pub cause: Option<Rc<Cause>>,
    /// The profile that refuses it, if one does: an index into the policy's profiles.
    pub profile: Option<u32>,
    /// What a SELinux policy refuses, if it does.
    pub te: Option<TeRefusal>,
}

/// What a line brings about under a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The operation would have been refused.
    Refused(Refusal),
    /// A subject falls: the one that does it, or one that reads what it writes.
    Fell {
        /// The process.
        pid: u32,
        /// From which level.
        from: u8,
        /// Why, and to which.
        cause: Rc<Cause>,
    },
}
