//! The copy of the audit log that systemd's journal gets, in its native protocol
//! (systemd.io/JOURNAL_NATIVE_PROTOCOL): a line a field.

use std::fmt::Write;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use tidegate_audit::{Record, printable};

/// The journal's socket.
const SOCKET: &str = "/run/systemd/journal/socket";

/// What `journalctl MESSAGE_ID=…` finds each kind by (docs/reference/audit-log.md).
const MESSAGE_IDS: [(&str, &str); 12] = [
    ("denied", "381fb61e1b334fd188cf4d3c74c13d33"),
    ("would", "3d136b103c4d44879b09f93a8ac65929"),
    ("audited", "92ad00da1e684b7a83d942b9a21e7663"),
    ("demoted", "d4549880b626457da5f9bfb8fd90d3f4"),
    ("started", "f12f6aa790ef4098bea451de10cd110f"),
    ("promoted", "7a23961f42d74b0488651ca74d02c82b"),
    ("table-full", "6ecb1a9c3fbf4a99a0749b6597525f83"),
    ("dropped", "a8e6cdd27f604bae8b0e4f4dbb8d3aa6"),
    ("lost", "a2d740618048406f9ffa9811c3a4fbfb"),
    ("user-denied", "5f0c1c7e4b3a4d0a9f3a7f6f1f6b2d11"),
    ("user-would", "c8b2f7d3a9e64c52b1d07e94a3c5e826"),
    ("user-audited", "e17a4d90c36b4f8e8d25b90f7c1a6034"),
];

/// The way to the journal. Each entry finds its way anew: the daemon starts before the
/// journal does, and the journal may be started again.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    /// To the machine's journal, whether it runs yet or not.
    ///
    /// # Errors
    /// If there is no socket to be had.
    pub fn new() -> io::Result<Journal> {
        Journal::at(SOCKET.into())
    }

    fn at(path: PathBuf) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Journal { socket, path })
    }

    /// Sends a record. The file is the log: a journal that is not there or cannot keep
    /// up is not waited for.
    pub fn send(&self, record: &Record) {
        let _ = self.socket.send_to(entry(record).as_bytes(), &self.path);
    }
}

/// A record's fields.
fn entry(record: &Record) -> String {
    let mut out = String::new();
    // a newline would begin another field
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(out, "{name}={}", printable(value));
    };
    field("MESSAGE", &record.to_string());
    if let Some((_, id)) = MESSAGE_IDS.iter().find(|(kind, _)| *kind == record.kind) {
        field("MESSAGE_ID", id);
    }
    field("PRIORITY", priority(record));
    field("SYSLOG_IDENTIFIER", "tidegate");
    field("TIDEGATE_KIND", &record.kind);
    field("TIDEGATE_ID", &record.id.to_string());
    field("TIDEGATE_TIME", &record.time);
    field("TIDEGATE_SEQNO", &record.seqno.to_string());
    let mut some = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            field(name, &value);
        }
    };
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    some("TIDEGATE_OP", record.op.clone());
    some("TIDEGATE_CLASS", record.class.clone());
    some("TIDEGATE_REASON", record.reason.clone());
    some("TIDEGATE_REQUEST", record.request.clone());
    some("TIDEGATE_DENIED", record.denied.clone());
    some("TIDEGATE_CAPABILITY", record.capability.clone());
    some("TIDEGATE_FAMILY", record.family.clone());
    some("TIDEGATE_SOCKET", record.socket.clone());
    some("TIDEGATE_SIGNAL", record.signal.clone());
    some("TIDEGATE_SCONTEXT", record.scontext.clone());
    some("TIDEGATE_TCONTEXT", record.tcontext.clone());
    some("TIDEGATE_TCLASS", record.tclass.clone());
    some("TIDEGATE_PREV", number(record.prev));
    some("TIDEGATE_COUNT", number(record.count));
    some(
        "TIDEGATE_RULE",
        record.rule.as_ref().map(|r| r.place.clone()),
    );
    if let Some(caps) = &record.caps {
        some("TIDEGATE_CAPS_SESSION", number(caps.session));
        some("TIDEGATE_CAPS_SUBJECT", caps.subject.clone());
        some("TIDEGATE_CAPS_FILE", caps.file.clone());
        some("TIDEGATE_CAPS_WHY", Some(caps.why.clone()));
    }
    if let Some(subject) = &record.subject {
        some("OBJECT_PID", Some(subject.pid.to_string()));
        some("OBJECT_UID", Some(subject.uid.to_string()));
        some("TIDEGATE_SUBJECT_COMM", Some(subject.comm.clone()));
        some("TIDEGATE_LEVEL", Some(subject.level.clone()));
        some("TIDEGATE_WAS", subject.was.clone());
        some("TIDEGATE_PROFILE", subject.profile.clone());
    }
    if let Some(object) = &record.object {
        some("TIDEGATE_OBJECT_LEVEL", Some(object.level.clone()));
        some("TIDEGATE_PATH", object.path.clone());
        some("TIDEGATE_ADDRESS", object.address.clone());
        some("TIDEGATE_PEER", number(object.pid.map(u64::from)));
    }
    out
}

/// syslog's: `warning` for what is refused or missing, `info` for the rest.
fn priority(record: &Record) -> &'static str {
    let missing = ["table-full", "dropped", "lost"].contains(&record.kind.as_str());
    if missing || record.is_denial() || record.is_managers_denial() {
        "4"
    } else {
        "6"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_audit::CapsRecord;
    use tidegate_audit::{ObjectRecord, RuleRecord, SubjectRecord};

    fn denial() -> Record {
        let mut record = Record::own("denied", 1);
        record.op = Some("open-write".into());
        record.prev = Some(7);
        record.subject = Some(SubjectRecord {
            pid: 412,
            uid: 1000,
            comm: "sh\nPRIORITY=0".into(),
            level: "untrusted".into(),
            ..Default::default()
        });
        record.object = Some(ObjectRecord {
            level: "user".into(),
            path: Some("/tmp/x\nPRIORITY=0\u{1b}[2J".into()),
            ..Default::default()
        });
        record.caps = Some(CapsRecord {
            session: Some(3),
            subject: Some("tool".into()),
            file: Some("tools.caps:9".into()),
            why: "missing".into(),
            ..CapsRecord::default()
        });
        record.rule = Some(RuleRecord {
            place: "my.plm:14".into(),
            text: String::new(),
        });
        record
    }

    #[test]
    fn a_newline_in_a_value_does_not_forge_a_field() {
        let entry = entry(&denial());
        assert_eq!(entry.matches("\nPRIORITY=").count(), 1);
        assert!(entry.contains("\nTIDEGATE_PATH=/tmp/x\\nPRIORITY=0\\u001b[2J\n"));
        assert!(!entry.contains('\u{1b}'));
    }

    #[test]
    fn every_part_of_a_record_is_a_field() {
        let entry = entry(&denial());
        for line in [
            "MESSAGE_ID=381fb61e1b334fd188cf4d3c74c13d33",
            "PRIORITY=4",
            "OBJECT_PID=412",
            "OBJECT_UID=1000",
            "TIDEGATE_LEVEL=untrusted",
            "TIDEGATE_OBJECT_LEVEL=user",
            "TIDEGATE_OP=open-write",
            "TIDEGATE_PREV=7",
            "TIDEGATE_RULE=my.plm:14",
            "TIDEGATE_CAPS_SESSION=3",
            "TIDEGATE_CAPS_SUBJECT=tool",
            "TIDEGATE_CAPS_FILE=tools.caps:9",
            "TIDEGATE_CAPS_WHY=missing",
        ] {
            assert!(entry.lines().any(|l| l == line), "{line} in {entry}");
        }
        assert!(!entry.contains("TIDEGATE_WAS"));
    }

    #[test]
    fn every_kind_has_an_id_of_its_own() {
        const OWN: [&str; 5] = [
            "dropped",
            "lost",
            "user-denied",
            "user-would",
            "user-audited",
        ];
        let kinds = tidegate_monitor::Kind::ALL.into_iter().map(|k| k.word());
        for kind in kinds.filter(|k| *k != "guard").chain(OWN) {
            let id = entry(&Record::own(kind, 1));
            assert!(id.contains("\nMESSAGE_ID="), "{kind}");
        }
        let mut ids = MESSAGE_IDS.map(|(_, id)| id).to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), MESSAGE_IDS.len());
        assert!(ids.iter().all(|id| id.len() == 32));
    }

    #[test]
    fn a_journal_that_comes_later_or_again_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let journal = Journal::at(path.clone()).unwrap();
        let record = denial();
        journal.send(&record);
        for _ in 0..2 {
            let listener = UnixDatagram::bind(&path).unwrap();
            journal.send(&record);
            let mut bytes = [0; 4096];
            let len = listener.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..len], entry(&record).as_bytes());
            drop(listener);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_journal_that_does_not_read_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _listener = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(path).unwrap();
        for _ in 0..10_000 {
            journal.send(&denial());
        }
    }
}
