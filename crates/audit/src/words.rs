//! A record in words: the line that `log`, `why` and the journal show.

use std::fmt::{self, Write};

use tidegate_monitor::{Op, Reason};

use crate::capability;
use crate::record::Record;
use crate::text::printable;

impl Record {
    /// The subject in words: `sh(412)`.
    fn who(&self) -> String {
        self.subject
            .as_ref()
            .map_or_else(String::new, |s| format!("{}({})", s.comm, s.pid))
    }

    /// What was done, and to what: `read /etc/passwd`.
    pub fn deed(&self) -> String {
        printable(&format!("{}{}", self.verb(), self.what()))
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
            (Some(path), ..) => path.clone(),
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
        Reason::Names => "its other name, or the level that it was given, keeps it from falling",
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

/// What it shows is [`printable`], whoever named what it is about.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = String::new();
        self.write(&mut words)?;
        f.write_str(&printable(&words))
    }
}

impl Record {
    fn write(&self, f: &mut String) -> fmt::Result {
        let (who, verb, what) = (self.who(), self.verb(), self.what());
        let level = self.subject.as_ref().map_or("", |s| s.level.as_str());
        match self.kind.as_str() {
            "denied" | "would" if self.caps.is_some() => {
                of_capabilities(self, f, &who, verb, &what)
            }
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
                let word = |word: &Option<String>| word.clone().unwrap_or_default();
                let (verb, what) = match self.kind.as_str() {
                    "user-audited" => ("used", &self.request),
                    _ => ("may not", &self.denied),
                };
                let about = self.manager.as_ref().and_then(|m| m.about.as_deref());
                let about = about.map_or_else(String::new, |a| format!(" {a}"));
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

/// What capability files refuse: `denied: sh(412) as tool may not { write } /etc/passwd (file): no line gives that`.
fn of_capabilities(
    record: &Record,
    f: &mut String,
    who: &str,
    verb: &str,
    what: &str,
) -> fmt::Result {
    let start = match record.kind.as_str() {
        "denied" => "denied",
        _ => "would be denied",
    };
    let Some(caps) = &record.caps else {
        return Ok(());
    };
    write!(f, "{start}: {who}")?;
    if let Some(subject) = &caps.subject {
        write!(f, " as {subject}")?;
    }
    let object = caps.object.iter();
    let object: String = object.map(|name| format!(" {name}")).collect();
    match (&record.denied, &record.tclass, &caps.service) {
        (Some(denied), _, Some(service)) => {
            write!(f, " may not {{ {denied} }}{object} ({service})")?;
        }
        (None, _, Some(service)) => write!(f, " may not use{object} ({service})")?,
        (Some(denied), Some(class), None) => write!(f, " may not {{ {denied} }}{what} ({class})")?,
        _ => write!(f, " may not {verb}{what}{object}")?,
    }
    if let Some(operation) = &caps.operation {
        write!(f, " by operation {operation}")?;
    }
    if let Some(session) = caps.session {
        write!(f, " in session {session}")?;
    }
    write!(f, ": {}", capability::because(&caps.why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::CapsRecord;
    use crate::record::{ObjectRecord, RuleRecord, SubjectRecord};

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
    fn nothing_that_others_named_is_shown_but_as_text() {
        let mut record = denial();
        let named = "x\u{1b}[2J\u{202e}\n";
        record.object.as_mut().unwrap().path = Some(named.into());
        record.rule.as_mut().unwrap().place = named.into();
        record.subject.as_mut().unwrap().comm = named.into();
        record.subject.as_mut().unwrap().level = named.into();
        let words = record.to_string();
        assert!(!words.contains(crate::text::is_unseen), "{words:?}");
        assert_eq!(words.matches("x\\u001b[2J\\u202e\\n").count(), 4);
        assert!(!record.deed().contains(crate::text::is_unseen));
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

    #[test]
    fn what_a_service_refuses_is_told() {
        let mut record = Record {
            kind: "denied".into(),
            op: Some("send".into()),
            subject: Some(SubjectRecord {
                pid: 7,
                comm: "sh".into(),
                ..SubjectRecord::default()
            }),
            tclass: Some("service".into()),
            denied: Some("write".into()),
            caps: Some(CapsRecord {
                session: Some(3),
                subject: Some("tool".into()),
                why: "missing".into(),
                service: Some("notes".into()),
                operation: Some("open".into()),
                object: Some("pub:\x1ba".into()),
                ..CapsRecord::default()
            }),
            ..Record::default()
        };
        assert_eq!(
            record.to_string(),
            r"denied: sh(7) as tool may not { write } pub:\u001ba (notes) by operation open in session 3: no line gives that"
        );
        record.denied = None;
        let caps = record.caps.as_mut().unwrap();
        (caps.object, caps.operation, caps.why) = (None, Some("9".into()), "request".into());
        assert!(
            record.to_string().contains(
                "may not use (notes) by operation 9 in session 3: the service has no such"
            )
        );
    }
}
