//! An audit record: a line of the log. docs/reference/audit-log.md is its schema.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::{Deserialize, Serialize};
use tidegate_monitor::{Kind, Op, Reason};

use crate::capability::CapsRecord;

/// A line of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The record's number since the monitor was loaded; 0: the daemon's own.
    pub id: u64,
    /// When, in UTC.
    pub time: String,
    /// `denied`, `would`, `audited`, `demoted`, `started`, `promoted`, `table-full`, or
    /// the daemon's own `dropped` and `lost`, or `user-denied`, `user-would` and `user-audited`,
    /// which object managers sent.
    pub kind: String,
    /// The operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The object manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Why a rule alone did not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<SubjectRecord>,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRecord>,
    /// What was asked of a profile, in AppArmor's letters or words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What of that it does not allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// The capability that was asked for, of a profile or of a level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The family of the socket that a profile was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The signal that a profile was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The subject's context, where a SELinux policy decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scontext: Option<String>,
    /// The object's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcontext: Option<String>,
    /// The object's class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tclass: Option<String>,
    /// Where capability files decided: the subject that did not give it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caps: Option<CapsRecord>,
    /// Of an object manager's record: what only such have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerRecord>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRecord>,
    /// The record that made the subject what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev: Option<u64>,
    /// The policy's sequence number.
    pub seqno: u32,
    /// Records that this one stands for (`dropped`, `lost`), or that an object manager's user sent
    /// before it and that were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// The subject: the process that did it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectRecord {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Real user id.
    pub uid: u32,
    /// The program's name.
    pub comm: String,
    /// The program's file, if the process was still there to be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Its level, after what happened.
    pub level: String,
    /// And before, if it was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The profile that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What it was done to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectRecord {
    /// Its level.
    pub level: String,
    /// A file's canonical path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A file's device, `major:minor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// A file's inode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// A network's address, and its port if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Another process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its profile, if it was still there to be asked; `unconfined`, if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What an object manager's record has besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManagerRecord {
    /// The record's number since the daemon started: `why @uN` explains it.
    pub number: u64,
    /// The object manager's own context, if it is governed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What it was about, in the object manager's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// What a process without a profile is called.
pub const UNCONFINED: &str = "unconfined";

/// The rule that decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleRecord {
    /// `FILE:LINE`, or `built-in`.
    pub place: String,
    /// The statement.
    pub text: String,
}

impl Record {
    /// One of the daemon's own.
    pub fn own(kind: &str, count: u64) -> Record {
        let time = format!("{:.6}", Timestamp::now());
        Record {
            time,
            kind: kind.into(),
            count: Some(count),
            ..Record::default()
        }
    }

    /// Whether it is a refusal, done or only recorded.
    pub fn is_denial(&self) -> bool {
        self.kind == Kind::Denied.word() || self.kind == Kind::Would.word()
    }

    /// Whether it is an object manager's refusal, done or only recorded.
    pub fn is_managers_denial(&self) -> bool {
        ["user-denied", "user-would"].contains(&self.kind.as_str())
    }

    /// The time of day where the reader is.
    pub fn clock(&self) -> String {
        match self.time.parse::<Timestamp>() {
            Ok(time) => Zoned::new(time, TimeZone::system())
                .strftime("%H:%M:%S")
                .to_string(),
            Err(_) => self.time.clone(),
        }
    }

    /// The operation, if this build knows it.
    pub fn op(&self) -> Option<Op> {
        Op::ALL
            .into_iter()
            .find(|o| Some(o.word()) == self.op.as_deref())
    }

    /// Why a rule alone did not decide, if this build knows it.
    pub fn reason(&self) -> Option<Reason> {
        Reason::ALL
            .into_iter()
            .find(|r| Some(r.word()) == self.reason.as_deref())
    }
}
