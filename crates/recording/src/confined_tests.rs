//! What profiles that `apparmor_parser` has compiled say of lines.

use tidegate_bundle::Policy;
use tidegate_policy::map;
use tidegate_policy::profile::{self, FEATURES, Parser};

use crate::compare::Comparison;
use crate::line::{Act, Flags, Line};
use crate::report::Report;

const PROFILES: &str = "
profile tool /usr/bin/tool {
  /etc/tool r,
  owner /home/ann/log w,
  /home/ann/journal a,
  /home/ann/new/ w,
  /home/ann/old rw,
  /home/ann/name w,
  link /home/ann/link -> /home/ann/old,
  /usr/bin/cat ix,
  /usr/bin/sh Ux,
  /usr/bin/lost px -> lost,
  network inet stream,
}
";

fn policy() -> Policy {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles");
    std::fs::write(&file, PROFILES).unwrap();
    let parser = Parser {
        program: "apparmor_parser".into(),
        base: dir.path().into(),
        features: FEATURES.into(),
    };
    let map = "levels system > untrusted\nsystem /\nsystem network 127.0.0.0/8\n";
    let mut policy = map::compile_str("flat", map).unwrap().policy;
    policy.profiles = profile::link(&parser.parse(&file).unwrap(), &[]).unwrap();
    policy
}

fn line(act: Act, path: &str, flags: Flags) -> Line<'_> {
    Line {
        pid: 7,
        uid: 1000,
        comm: "tool".into(),
        class: "file".into(),
        path: path.into(),
        flags,
        ..Line::new(act)
    }
}

/// The lines of an execution.
fn exec(path: &str) -> [Line<'_>; 2] {
    let started = Line {
        pid: 7,
        ..Line::new(Act::Started)
    };
    [line(Act::Exec, path, Flags::READS | Flags::FIRST), started]
}

fn replay(lines: &[Line<'_>]) -> Report {
    let policy = policy();
    let mut comparison = Comparison::new((&policy, false), None);
    for line in lines {
        comparison.feed(line);
    }
    comparison.finish()
}

/// Of a process that has executed the tool: what is refused.
fn refused(then: Vec<Line<'_>>) -> Vec<String> {
    let mut lines = exec("/usr/bin/tool").to_vec();
    lines.extend(then);
    let report = replay(&lines);
    assert!(
        report
            .refused
            .iter()
            .all(|g| g.profile == "tool" && g.level.is_empty())
    );
    let mut told: Vec<_> = report
        .refused
        .iter()
        .map(|g| format!("{} {}", g.op, g.object))
        .collect();
    told.sort();
    told
}

#[test]
fn who_is_not_confined_is_not_asked() {
    let report = replay(&[line(Act::OpenRead, "/etc/shadow", Flags::READS)]);
    assert_eq!(report.refused, []);
}

#[test]
fn opens_are_asked_as_far_as_they_are_recorded() {
    let told = refused(vec![
        line(Act::OpenRead, "/etc/tool", Flags::READS),
        line(Act::OpenRead, "/etc/shadow", Flags::READS),
        line(Act::OpenWrite, "/etc/tool", Flags::WRITES),
        line(Act::OpenWrite, "/home/ann/log", Flags::WRITES),
        line(Act::OpenWrite, "/home/ann/journal", Flags::WRITES),
        Line {
            refused: 13,
            ..line(Act::OpenRead, "/root/x", Flags::READS)
        },
    ]);
    assert_eq!(told, ["open-read /etc/shadow", "open-write /etc/tool"]);
}

#[test]
fn names_are_asked_for_both() {
    let other = |act, path, other| Line {
        other,
        ..line(act, path, Flags::WRITES)
    };
    let told = refused(vec![
        Line {
            kind: 0o040_000,
            ..line(Act::Create, "/home/ann/new", Flags::WRITES)
        },
        line(Act::Create, "/home/ann/new", Flags::WRITES),
        other(Act::Rename, "/home/ann/old", "/home/ann/name".into()),
        other(Act::Rename, "/home/ann/name", "/home/ann/old".into()),
        other(Act::Link, "/home/ann/old", "/home/ann/link".into()),
        other(Act::Link, "/etc/shadow", "/home/ann/link".into()),
    ]);
    assert_eq!(
        told,
        [
            "create /home/ann/new",
            "link /home/ann/link",
            "rename /home/ann/name"
        ]
    );
}

#[test]
fn executions_lead_where_their_rules_say() {
    let read = || line(Act::OpenRead, "/etc/shadow", Flags::READS);
    let after = |path| {
        let mut lines = exec(path).to_vec();
        lines.push(read());
        refused(lines)
    };
    assert_eq!(after("/usr/bin/cat"), ["open-read /etc/shadow"]);
    assert_eq!(after("/usr/bin/sh"), [""; 0]);
    assert_eq!(
        after("/usr/bin/id"),
        ["exec /usr/bin/id", "open-read /etc/shadow"]
    );
    let lines = [exec("/usr/bin/tool"), exec("/usr/bin/lost")].concat();
    assert_eq!(replay(&lines).refused[0].reason, "no-profile");
    // a child is confined, too, until it ends
    let mut lines = exec("/usr/bin/tool").to_vec();
    let born = Line {
        pid: 7,
        peer: 8,
        ..Line::new(Act::Fork)
    };
    lines.push(born);
    lines.push(Line { pid: 8, ..read() });
    lines.push(Line {
        pid: 8,
        ..Line::new(Act::Exit)
    });
    lines.push(Line { pid: 8, ..read() });
    assert_eq!(replay(&lines).refused[0].count, 1);
}

#[test]
fn sockets_are_asked_by_family_and_type() {
    let connect = |socket| Line {
        class: "socket".into(),
        family: 2,
        socket,
        address: Some("127.0.0.1".parse().unwrap()),
        port: 9,
        ..line(Act::Connect, "", Flags::empty())
    };
    let told = refused(vec![connect(1), connect(2)]);
    assert_eq!(told, ["connect 127.0.0.1:9"]);
}

#[test]
fn what_depends_on_the_owner_is_counted() {
    let mut lines = exec("/usr/bin/tool").to_vec();
    lines.push(line(Act::OpenWrite, "/home/ann/log", Flags::WRITES));
    assert_eq!(replay(&lines).unsure, 1);
}
