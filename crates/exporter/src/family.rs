//! The metrics, each with its name, its meaning and how it is read: the one list that
//! every form of exposition is made from. docs/how-to/metrics.md has it as a table.

use tidegate_protocol::{Manager, Metrics};

use crate::snapshot::Snapshot;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until what counts it starts anew.
    Counter,
    /// It is what it is now.
    Gauge,
}

/// A metric: a name, and a number for each set of labels.
#[derive(Debug)]
pub struct Family {
    /// Without the unit, and without `_total`.
    pub name: &'static str,
    /// Its last word, where the number has a unit.
    pub unit: Option<&'static str>,
    /// What it says.
    pub help: &'static str,
    /// What its numbers are.
    pub kind: Kind,
    /// Takes its numbers out of what was asked.
    pub read: fn(&Snapshot) -> Vec<Sample>,
}

/// A number and its labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: u64,
}

/// A number without labels.
fn one(value: u64) -> Vec<Sample> {
    let labels = Vec::new();
    vec![Sample { labels, value }]
}

/// What the daemon says, if it does.
fn told(snapshot: &Snapshot, read: impl Fn(&Metrics) -> Vec<Sample>) -> Vec<Sample> {
    snapshot.metrics.as_ref().map_or_else(Vec::new, read)
}

const fn counter(
    name: &'static str,
    help: &'static str,
    read: fn(&Snapshot) -> Vec<Sample>,
) -> Family {
    let (unit, kind) = (None, Kind::Counter);
    Family {
        name,
        unit,
        help,
        kind,
        read,
    }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    read: fn(&Snapshot) -> Vec<Sample>,
) -> Family {
    let kind = Kind::Gauge;
    Family {
        kind,
        ..counter(name, help, read)
    }
}

/// All metrics.
pub const FAMILIES: [Family; 21] = [
    gauge("tidegate_up", "Whether the daemon answered.", |s| {
        one(s.metrics.is_some().into())
    }),
    gauge(
        "tidegate_loaded",
        "Whether the monitor is in the kernel, with a daemon or without.",
        |s| one(s.loaded.into()),
    ),
    gauge(
        "tidegate_enforcing",
        "Whether refusals are enforced; 0: they are only recorded.",
        |s| told(s, |m| one((!m.status.permissive).into())),
    ),
    gauge(
        "tidegate_policy_info",
        "The policy in force, by its name.",
        |s| told(s, policy),
    ),
    gauge(
        "tidegate_policy_seqno",
        "Number of the policy in force; a reload adds 1.",
        |s| told(s, |m| one(m.status.seqno.into())),
    ),
    gauge(
        "tidegate_programs_attached",
        "BPF programs attached to hooks.",
        |s| told(s, |m| one(m.status.attached as u64)),
    ),
    gauge(
        "tidegate_guard_armed",
        "Whether descriptors opened before a demotion are being refused.",
        |s| told(s, |m| one(m.status.guard_armed.into())),
    ),
    gauge(
        "tidegate_given_levels",
        "Objects whose level is remembered because no path rule gives it back.",
        |s| told(s, |m| one(m.status.given.used)),
    ),
    gauge(
        "tidegate_given_levels_max",
        "Objects whose level the kernel has room to remember.",
        |s| told(s, |m| one(m.status.given.max)),
    ),
    gauge(
        "tidegate_given_labels",
        "Objects whose context is remembered because no path gives it back.",
        |s| told(s, |m| one(m.status.labels.used)),
    ),
    gauge(
        "tidegate_given_labels_max",
        "Objects whose context the kernel has room to remember.",
        |s| told(s, |m| one(m.status.labels.max)),
    ),
    gauge(
        "tidegate_processes",
        "Processes at each level, without kernel threads.",
        |s| told(s, processes),
    ),
    counter(
        "tidegate_queries",
        "Decisions asked of an object manager, by what resolved them.",
        |s| told(s, queries),
    ),
    counter(
        "tidegate_denials",
        "Decisions of an object manager to refuse, done or only recorded.",
        |s| told(s, denials),
    ),
    counter(
        "tidegate_history_records",
        "Records the kernel has added to its history.",
        |s| told(s, |m| one(m.status.records)),
    ),
    counter(
        "tidegate_records",
        "Records that reached the daemon, by their sort.",
        |s| told(s, records),
    ),
    counter(
        "tidegate_records_dropped",
        "Denials left out of the log as more of the same (--log-rate).",
        |s| told(s, |m| one(m.dropped)),
    ),
    counter(
        "tidegate_records_lost",
        "Records that found no room on their way to the log, and where.",
        |s| told(s, lost),
    ),
    counter(
        "tidegate_labels_failed",
        "Objects whose label found no room in the kernel.",
        |s| told(s, |m| one(m.status.labels_failed)),
    ),
    Family {
        unit: Some("seconds"),
        ..gauge(
            "tidegate_daemon_start_time",
            "When the daemon started, since 1970.",
            |s| told(s, |m| one(m.started)),
        )
    },
    Family {
        unit: Some("bytes"),
        ..gauge(
            "tidegate_daemon_resident_memory",
            "Memory the daemon has resident.",
            |s| told(s, |m| one(m.resident)),
        )
    },
];

fn policy(m: &Metrics) -> Vec<Sample> {
    let labels = vec![("policy", m.status.policy.clone())];
    vec![Sample { labels, value: 1 }]
}

fn processes(m: &Metrics) -> Vec<Sample> {
    let named = m.processes.iter().enumerate().map(|(number, &value)| {
        let name = m.status.levels.get(number);
        let level = name.map_or_else(|| number.to_string(), Clone::clone);
        Sample {
            labels: vec![("level", level)],
            value,
        }
    });
    named.collect()
}

fn denials(m: &Metrics) -> Vec<Sample> {
    let lines = m.managers.iter().map(|line| Sample {
        labels: vec![("object_manager", line.object_manager.clone())],
        value: line.denied,
    });
    lines.collect()
}

fn queries(m: &Metrics) -> Vec<Sample> {
    let resolved = |l: &Manager| {
        let name = l.object_manager.clone();
        [("hint", l.hint), ("cache", l.cache), ("server", l.server)].map(|(by, value)| Sample {
            labels: vec![("object_manager", name.clone()), ("by", by.into())],
            value,
        })
    };
    m.managers.iter().flat_map(resolved).collect()
}

fn records(m: &Metrics) -> Vec<Sample> {
    let sorts = m.records.iter().map(|r| {
        let mut labels = vec![("kind", r.kind.clone())];
        let class = r.class.iter().map(|c| ("class", c.clone()));
        labels.extend(class);
        let op = r.op.iter().map(|o| ("op", o.clone()));
        labels.extend(op);
        Sample {
            labels,
            value: r.count,
        }
    });
    sorts.collect()
}

fn lost(m: &Metrics) -> Vec<Sample> {
    let places = [("kernel", m.status.events_lost), ("daemon", m.queue_lost)];
    let samples = places.map(|(place, value)| Sample {
        labels: vec![("at", place.into())],
        value,
    });
    samples.into()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use tidegate_protocol::{RecordCount, Room, Status};

    /// What a daemon may answer.
    pub fn snapshot() -> Snapshot {
        let status = Status {
            policy: "my \"own\"".into(),
            levels: vec!["untrusted".into(), "service".into(), "system".into()],
            left_out: Vec::new(),
            options: Vec::new(),
            seqno: 2,
            permissive: false,
            daemon: Some(1),
            attached: 90,
            guard_armed: true,
            given: Room { used: 5, max: 512 },
            labels: Room { used: 3, max: 512 },
            records: 40,
            events_lost: 3,
            labels_failed: 0,
        };
        let manager = Manager {
            object_manager: "file".into(),
            queries: 100,
            hint: 90,
            cache: 6,
            server: 4,
            denied: 1,
        };
        let record = RecordCount {
            kind: "denied".into(),
            class: Some("file".into()),
            op: Some("open-write".into()),
            count: 7,
        };
        Snapshot {
            loaded: true,
            metrics: Some(Metrics {
                status,
                managers: vec![manager],
                records: vec![record],
                dropped: 9,
                queue_lost: 1,
                processes: vec![4, 0, 60],
                started: 1_790_000_000,
                resident: 40 << 20,
            }),
        }
    }

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for f in &FAMILIES {
            assert!(f.name.starts_with("tidegate_"), "{}", f.name);
            assert!(!f.name.ends_with("_total"), "{}", f.name);
            assert!(f.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            assert!(f.help.ends_with('.') && !f.help.contains(['\n', '\\']));
        }
        let mut names: Vec<_> = FAMILIES.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }

    #[test]
    fn every_family_has_a_number_while_the_daemon_runs_and_two_have_without() {
        let with = snapshot();
        assert!(FAMILIES.iter().all(|f| !(f.read)(&with).is_empty()));
        let without = Snapshot {
            loaded: false,
            metrics: None,
        };
        let left: Vec<_> = FAMILIES
            .iter()
            .filter(|f| !(f.read)(&without).is_empty())
            .map(|f| f.name)
            .collect();
        assert_eq!(left, ["tidegate_up", "tidegate_loaded"]);
    }

    #[test]
    fn the_documentation_lists_what_there_is() {
        let text = include_str!("../../../docs/how-to/metrics.md");
        for f in &FAMILIES {
            let unit = f.unit.map_or_else(String::new, |u| format!("_{u}"));
            let total = if f.kind == Kind::Counter {
                "_total"
            } else {
                ""
            };
            let name = format!("| `{}{unit}{total}", f.name);
            assert!(text.contains(&name), "docs/how-to/metrics.md lacks {name}");
        }
    }
}
