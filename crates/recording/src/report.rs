//! What a replay found.

use serde::Serialize;

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
    /// Who falls under the proposed policy and not under the base.
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
