//! What a replay found.

use serde::Serialize;

use crate::domain::TeRefusal;

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Lines read, but the head.
    pub lines: u64,
    /// Accesses among them.
    pub accesses: u64,
    /// Lines that the recorder lost.
    pub lost: u64,
    /// Whether the recording has its last line.
    pub ended: bool,
    /// Whether it tells how everybody began.
    pub begun: bool,
    /// What the proposed policy refuses and the base does not.
    pub refused: Vec<Group>,
    /// What the base refuses and the proposed policy does not.
    pub allowed: Vec<Group>,
    /// The subjects that fall under the proposed policy and not under the base.
    pub falls: Vec<Fall>,
    /// Refusals and falls of kinds that there was no room for.
    pub beyond: u64,
    /// Whether anybody fell with what it reads: channels are followed by what was seen of them.
    pub channels: bool,
    /// Whether a mapping stood in the way of a fall: unmapping is not recorded.
    pub mappings: bool,
    /// Whether memory without a name was used, which is not followed.
    pub unnamed: bool,
    /// Accesses that profiles allow the file's owner only, or let its owner execute otherwise.
    pub unsure: u64,
    /// Accesses to what the recording does not tell the label of under a SELinux policy: they are let through.
    pub unlabelled: u64,
    /// Whether anybody was in a domain of the proposed policy.
    pub domains: bool,
}

/// Refusals of one kind: program, operation, object and reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The program's name.
    pub program: String,
    /// The first process.
    pub pid: u32,
    /// The operation.
    pub op: String,
    /// The object manager.
    pub class: String,
    /// The object: a path, an address, a process.
    pub object: String,
    /// The subject's level; none where a profile refuses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub level: String,
    /// The object's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object_level: String,
    /// The profile that refuses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Why a rule alone did not decide.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What a SELinux policy refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub te: Option<Denied>,
    /// Where the rule stands: `FILE:LINE`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The rule.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// How often.
    pub count: u64,
    /// The first time, nanoseconds of `CLOCK_BOOTTIME` of the recorded machine.
    pub time: u64,
    /// How the first one came to its level, newest first.
    pub why: Vec<Link>,
}

/// What a SELinux policy refuses, and what would fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denied {
    /// The context of the process that asked.
    pub context: String,
    /// That of what it was about.
    pub object_context: String,
    /// The class.
    pub class: String,
    /// The permissions that are not allowed.
    pub permissions: Vec<String>,
    /// Rules that would allow them, booleans that would have to be set, or what refuses them whatever rules say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
}

impl From<&TeRefusal> for Denied {
    fn from(refusal: &TeRefusal) -> Denied {
        Denied {
            context: refusal.source.clone(),
            object_context: refusal.target.clone(),
            class: refusal.class.clone(),
            permissions: refusal.permissions.clone(),
            fix: Vec::new(),
        }
    }
}

/// A fall that led to a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The level it fell to.
    pub level: String,
    /// The operation.
    pub op: String,
    /// The object.
    pub object: String,
    /// Whose fall.
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// When.
    pub time: u64,
}

/// Falls of one kind: program, operation and object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fall {
    /// The program's name.
    pub program: String,
    /// The first process.
    pub pid: u32,
    /// From which level.
    pub from: String,
    /// To which.
    pub level: String,
    /// By which operation.
    pub op: String,
    /// On what.
    pub object: String,
    /// How often.
    pub count: u64,
    /// The first time.
    pub time: u64,
    /// Whether by what it held when recording began.
    pub beginning: bool,
}
