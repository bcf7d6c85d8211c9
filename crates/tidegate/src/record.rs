//! An audit record: a line of the log, and what it says in words.
//! docs/audit-log.md is its schema.

use std::fmt;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::{Deserialize, Serialize};
use tidegate_flask::Sid;
use tidegate_monitor::{Class, Event, Kind, Monitor, Op, Reason, boottime};
use tidegate_policy::Policy;

use crate::asked;
use crate::caps_record::{CapsRecord, OfCaps, told};
use crate::daemon::Policies;
use crate::output::printable;
use crate::program;

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
    /// Where capability files decided: who did not give it, and why.
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

/// Who did it.
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

/// The name of a level.
pub fn level_name(policy: Option<&Policy>, level: u8) -> String {
    policy
        .and_then(|p| p.levels.get(usize::from(level)))
        .map_or_else(|| format!("level {level}"), Clone::clone)
}

/// The name of a profile.
fn profile_name(policy: Option<&Policy>, id: u64) -> String {
    let found = policy.and_then(|policy| {
        let mut profiles = policy.profiles.profiles.iter();
        profiles.find(|p| tidegate_monitor::profile_id(&p.name) == id)
    });
    found.map_or_else(|| format!("profile {id:016x}"), |p| p.name.clone())
}

/// The context behind a SID.
fn context_name(policies: &Policies, sid: Sid) -> String {
    match sid.0 {
        // what is not governed is what the policy has for the kernel
        0 => "kernel".into(),
        word => policies
            .context(sid)
            .unwrap_or_else(|| format!("sid {word:016x}")),
    }
}

/// The time of an event, which the kernel counts from boot.
pub fn wall_clock(ns: u64) -> Timestamp {
    let ago = boottime().saturating_sub(ns);
    let ago = jiff::SignedDuration::from_nanos(ago.min(i64::MAX as u64) as i64);
    Timestamp::now()
        .checked_sub(ago)
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Record {
    /// What the kernel recorded, in the words of the policy it was decided under.
    pub fn of(event: &Event, policies: &Policies) -> Record {
        let policy = policies.get(event.seqno);
        let policy = policy.as_deref();
        let level = |n| level_name(policy, n);
        let rule = event.source.and_then(|s| policy?.rules.get(s as usize));
        // of what has neither name nor number there is a level at least
        let has_object = event.path.is_some()
            || event.address.is_some()
            || event.peer.is_some()
            || event.class == Some(Class::Ipc);
        let file = event.ino != 0;
        let number = event.request.and_then(|r| r.number);
        let detail = event.request.and_then(|r| r.detail);
        let is_capability = event.op == Some(Op::Capable);
        let asked = event.asked.map(|asked| asked::of_te(policy, &asked));
        let caps = event.caps.map(|asked| OfCaps::of(asked, policies));
        let names_object = caps
            .as_ref()
            .is_some_and(|caps| caps.object(event).is_some());
        Record {
            id: event.id,
            time: format!("{:.6}", wall_clock(event.time)),
            kind: event.kind.word().into(),
            op: event.op.map(|o| o.word().into()),
            class: event.class.map(|c| c.word().into()),
            reason: (event.reason != Reason::Rule).then(|| event.reason.word().into()),
            subject: Some(SubjectRecord {
                pid: event.pid,
                tid: event.tid,
                uid: event.uid,
                comm: event.comm.clone(),
                exe: None,
                level: level(event.to),
                was: (event.from != event.to).then(|| level(event.from)),
                profile: event.request.map(|r| profile_name(policy, r.profile)),
            }),
            request: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.request.clone()),
                (None, Some(caps)) => caps.words(caps.asked.asked),
                (None, None) => event.request.map(|r| asked::permissions(event.op, r.asked)),
            },
            denied: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.denied.clone()),
                (None, Some(caps)) => caps.words(caps.asked.denied),
                (None, None) => event
                    .request
                    .map(|r| asked::permissions(event.op, r.denied)),
            },
            capability: event
                .capability
                .or(number.filter(|_| is_capability))
                .map(asked::capability),
            family: number.filter(|_| !is_capability).map(asked::family),
            socket: detail
                .filter(|_| event.class == Some(Class::Socket))
                .and_then(asked::socket_type),
            signal: detail
                .filter(|_| event.op == Some(Op::Signal))
                .and_then(asked::signal),
            object: ((has_object && !names_object) || file).then(|| ObjectRecord {
                level: level(event.object),
                path: event.path.clone(),
                dev: file.then(|| format!("{}:{}", event.dev >> 20, event.dev & 0xf_ffff)),
                ino: file.then_some(event.ino),
                address: event.address.map(|(a, port)| match port {
                    0 => a.to_string(),
                    port => std::net::SocketAddr::new(a, port).to_string(),
                }),
                pid: event.peer,
                profile: None,
            }),
            scontext: event.asked.map(|a| context_name(policies, a.source)),
            tcontext: event.asked.map(|a| context_name(policies, a.target)),
            tclass: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.class.clone()),
                (None, Some(caps)) if caps.asked.denied != 0 => caps.class_word(),
                _ => None,
            },
            caps: caps.as_ref().map(|caps| caps.record(event)),
            manager: None,
            rule: rule.map(|r| RuleRecord {
                place: r.to_string(),
                text: r.text.clone(),
            }),
            prev: event.prev,
            seqno: event.seqno,
            count: None,
        }
    }

    /// The same, with the subject's program, and the profile of another process that a profile was
    /// asked about, while these still run.
    pub fn with_program(event: &Event, monitor: &Monitor, policies: &Policies) -> Record {
        let mut record = Record::of(event, policies);
        if let Some(subject) = &mut record.subject {
            subject.exe = program::of(event, monitor);
        }
        if let (Reason::Profile, Some(peer), Some(object)) =
            (event.reason, event.peer, &mut record.object)
        {
            let policy = policies.get(event.seqno);
            object.profile = program::profile_of(peer, monitor).map(|profile| match profile {
                Some(id) => profile_name(policy.as_deref(), id),
                None => UNCONFINED.into(),
            });
        }
        record
    }

    /// The same as it is written down: a refusal's with the program. To look for it takes the task's
    /// lock, right after a fall, when its next one may be one that cannot wait (limitations.md).
    pub fn written(event: &Event, monitor: &Monitor, policies: &Policies) -> Record {
        match event.kind {
            Kind::Denied | Kind::Would => Record::with_program(event, monitor, policies),
            _ => Record::of(event, policies),
        }
    }

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

    /// Who: `sh(412)`.
    fn who(&self) -> String {
        self.subject.as_ref().map_or_else(String::new, |s| {
            format!("{}({})", printable(&s.comm), s.pid)
        })
    }

    /// What was done, and to what: `read /etc/passwd`.
    pub fn deed(&self) -> String {
        format!("{}{}", self.verb(), self.what())
    }

    /// What was done.
    fn verb(&self) -> &'static str {
        match self.family {
            Some(_) => "use a socket of the family",
            None => self.op().map_or("", verb),
        }
    }

    /// What it was done to.
    fn what(&self) -> String {
        if let Some(name) = self.capability.as_ref().or(self.family.as_ref()) {
            let kind = self.socket.iter().map(|kind| format!(" {kind}"));
            return format!(" {name}{}", kind.collect::<String>());
        }
        let Some(o) = &self.object else {
            return String::new();
        };
        let thing = match (&o.path, &o.address, o.pid, o.ino) {
            (Some(path), ..) => printable(path),
            (_, Some(address), ..) => address.clone(),
            (_, _, Some(pid), _) => format!("process {pid}"),
            (_, _, _, Some(ino)) => {
                format!(
                    "inode {ino} of {}",
                    o.dev.as_deref().unwrap_or("a filesystem")
                )
            }
            _ => return String::new(),
        };
        format!(" {thing}")
    }
}

/// What an operation is called in `may not …` and `by …`.
pub fn verb(op: Op) -> &'static str {
    match op {
        Op::OpenRead => "read",
        Op::OpenWrite => "write",
        Op::Exec => "exec",
        Op::Mmap => "map",
        Op::ReceiveFd => "receive a descriptor of",
        Op::Create => "create",
        Op::Unlink => "remove",
        Op::Rename => "rename",
        Op::Link => "link",
        Op::Setattr => "change",
        Op::Xattr => "set attributes of",
        Op::Readlink => "follow",
        Op::WriteRevoked => "go on writing",
        Op::Connect => "connect",
        Op::Accept => "accept",
        Op::Receive => "receive from",
        Op::Send => "send to",
        Op::Socket => "open a raw socket",
        Op::Pipe => "sharing a channel with",
        Op::Ipc => "use an IPC object",
        Op::Signal => "signal",
        Op::Ptrace => "trace",
        Op::Sched => "reschedule",
        Op::Tty => "type into a terminal",
        Op::Mount => "change mounts",
        Op::Module => "load kernel code",
        Op::Bpf => "use bpf",
        Op::System => "change the system",
        Op::Key => "use another's keys",
        Op::Start => "holding at the start",
        Op::Lock => "lock",
        Op::Capable => "use the capability",
        Op::Getattr => "see attributes of",
        Op::Userns => "make a user namespace",
        Op::ChangeProfile => "change its profile to",
        Op::ChangeOnexec => "change its profile at an execution to",
        Op::ChangeHat => "change its hat to",
        Op::ReadRevoked => "go on reading",
    }
}

/// Why a rule alone did not decide.
pub fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::Rule => "",
        Reason::NoLabel => "no label could be found for it",
        Reason::Mapping => "a shared writable mapping stands in the way",
        Reason::Busy => "it could not be completed in time",
        Reason::Noopen => "it may not be opened from below",
        Reason::Launder => "a lower object may not get a higher name",
        Reason::NoCreator => "lower subjects may not create there",
        Reason::TopOnly => "it belongs to the top level",
        Reason::TableFull => "the table of given levels or labels is full",
        Reason::Async => "asynchronous I/O is under way",
        Reason::Channel => "it reads what a lower one writes",
        Reason::Tree => "the directory's rules would change for what is below it",
        Reason::Names => "under its other name its fall would be forgotten",
        Reason::Profile => "no rule of its profile allows that",
        Reason::Disconnected => "its profile sees no path to it",
        Reason::NoProfile => "there is no profile that it may change to",
        Reason::Source => "its source may have another name than it was given",
        Reason::Te => "the SELinux policy does not allow that",
        Reason::Caps => "no capability that it has gives that",
        Reason::Trust => {
            "only the top level's code, or what is trusted as far, gets into a trusted program"
        }
    }
}

/// The type in a context.
fn kind_of(context: &str) -> &str {
    context.split(':').nth(2).unwrap_or(context)
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, verb, what) = (self.who(), self.verb(), self.what());
        let level = self.subject.as_ref().map_or("", |s| s.level.as_str());
        match self.kind.as_str() {
            "denied" | "would" if self.caps.is_some() => told(self, f, &who, verb, &what),
            "denied" | "would" if self.tclass.is_some() => {
                let start = match self.kind.as_str() {
                    "denied" => "denied",
                    _ => "would be denied",
                };
                let word = |word: &Option<String>| word.clone().unwrap_or_default();
                write!(
                    f,
                    "{start}: {who} {} may not {{ {} }}{what} ({}:{})",
                    kind_of(&word(&self.scontext)),
                    word(&self.denied),
                    kind_of(&word(&self.tcontext)),
                    word(&self.tclass),
                )
            }
            "denied" | "would" => {
                let start = if self.kind == "denied" {
                    "denied"
                } else {
                    "would be denied"
                };
                write!(f, "{start}: {who} {level} may not {verb}{what}")?;
                let object = self.object.as_ref().map(|o| o.level.as_str());
                let rule = self.rule.as_ref().map(|r| r.place.as_str());
                let parts: Vec<&str> = object.into_iter().chain(rule).collect();
                if !parts.is_empty() {
                    write!(f, " ({})", parts.join(", "))?;
                }
                match self.reason() {
                    Some(reason) => write!(f, ": {}", because(reason)),
                    None => Ok(()),
                }
            }
            "user-denied" | "user-would" | "user-audited" => {
                let start = match self.kind.as_str() {
                    "user-denied" => "denied by",
                    "user-would" => "would be denied by",
                    _ => "allowed by",
                };
                let word = |word: &Option<String>| printable(word.as_deref().unwrap_or_default());
                let (verb, what) = match self.kind.as_str() {
                    "user-audited" => ("used", &self.request),
                    _ => ("may not", &self.denied),
                };
                let about = self.manager.as_ref().and_then(|m| m.about.as_deref());
                let about = about.map_or_else(String::new, |a| format!(" {}", printable(a)));
                write!(
                    f,
                    "{start} {who}: {} {verb} {{ {} }}{about} ({}:{})",
                    kind_of(&word(&self.scontext)),
                    word(what),
                    kind_of(&word(&self.tcontext)),
                    word(&self.tclass),
                )
            }
            "audited" => write!(f, "audited: {who} {verb}{what}"),
            "demoted" => {
                write!(
                    f,
                    "demoted to {level} {} by {verb}{what} in {who}",
                    self.clock()
                )
            }
            "started" => write!(f, "started{what} at {level} {} in {who}", self.clock()),
            "promoted" => write!(f, "promoted{what} to {level} {} by {who}", self.clock()),
            "table-full" => write!(f, "the table of given levels is full"),
            "dropped" => {
                let of = self
                    .subject
                    .as_ref()
                    .map(|_| format!(": {who} {verb}{what}"));
                let count = self.count.unwrap_or(0);
                write!(f, "{count} more of the same{}", of.unwrap_or_default())
            }
            "lost" => write!(f, "{} records were lost", self.count.unwrap_or(0)),
            other => write!(f, "{other}: {who}{what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial() -> Record {
        Record {
            kind: "denied".into(),
            op: Some("open-write".into()),
            subject: Some(SubjectRecord {
                pid: 412,
                comm: "sh".into(),
                level: "untrusted".into(),
                ..Default::default()
            }),
            object: Some(ObjectRecord {
                level: "user".into(),
                path: Some("/home/alice/.bashrc".into()),
                ..Default::default()
            }),
            rule: Some(RuleRecord {
                place: "my.plm:14".into(),
                text: String::new(),
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_denial_names_subject_object_and_rule() {
        assert_eq!(
            denial().to_string(),
            "denied: sh(412) untrusted may not write /home/alice/.bashrc (user, my.plm:14)"
        );
    }

    #[test]
    fn a_reason_is_given_where_no_rule_decided() {
        let record = Record {
            reason: Some("launder".into()),
            ..denial()
        };
        assert!(
            record
                .to_string()
                .ends_with(": a lower object may not get a higher name")
        );
    }

    #[test]
    fn a_profiles_refusal_names_the_capability_or_the_family() {
        let record = |op: &str, capability: Option<&str>, family: Option<&str>| Record {
            op: Some(op.into()),
            object: None,
            rule: None,
            capability: capability.map(str::to_owned),
            family: family.map(str::to_owned),
            ..denial()
        };
        assert_eq!(
            record("capable", Some("net_admin"), None).to_string(),
            "denied: sh(412) untrusted may not use the capability net_admin"
        );
        assert_eq!(
            record("socket", None, Some("inet")).to_string(),
            "denied: sh(412) untrusted may not use a socket of the family inet"
        );
    }

    #[test]
    fn a_capability_files_refusal_names_the_subject_and_why() {
        let record = Record {
            reason: Some("caps".into()),
            denied: Some("write".into()),
            tclass: Some("file".into()),
            rule: None,
            caps: Some(CapsRecord {
                session: Some(3),
                subject: Some("tool".into()),
                file: Some("tools.caps:9".into()),
                why: "missing".into(),
                ..CapsRecord::default()
            }),
            ..denial()
        };
        assert_eq!(
            record.to_string(),
            "denied: sh(412) as tool may not { write } /home/alice/.bashrc (file) in session 3: no line gives that"
        );
        let of_none = Record {
            denied: None,
            tclass: None,
            object: None,
            op: Some("bpf".into()),
            caps: Some(CapsRecord {
                why: "nobodys".into(),
                ..CapsRecord::default()
            }),
            ..record
        };
        assert_eq!(
            of_none.to_string(),
            "denied: sh(412) may not use bpf: no capability file can give that"
        );
    }

    #[test]
    fn a_record_survives_the_log() {
        let text = serde_json::to_string(&denial()).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), denial());
        assert!(!text.contains("prev"));
    }
}
