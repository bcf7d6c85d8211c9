//! What a small policy makes of lines as the recorder writes them.

use std::rc::Rc;

use tidegate_bundle::Policy;
use tidegate_policy::map;

use crate::event::{Event, Reason};
use crate::line::{Act, End, Flags, Inode, Line};
use crate::side::Side;

const MAP: &str = "levels system > user > untrusted
system /
user /home/*
user /home/*/src creator
user /home/*/.ssh lownoopen
system /tmp creator
untrusted /srv
system /usr/bin/trusted nodemote
system /usr/bin/ssh nonetdemote
user network 192.0.2.0/24
";

const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

fn policy() -> Policy {
    map::compile_str("test", MAP).unwrap().policy
}

fn line(act: Act, pid: u32) -> Line<'static> {
    Line {
        pid,
        comm: "sh".into(),
        class: "file".into(),
        kind: FILE,
        links: 1,
        ..Line::new(act)
    }
}

/// An inode for a path: its bytes added up.
fn on(act: Act, pid: u32, path: &'static str) -> Line<'static> {
    let ino = path
        .bytes()
        .fold(7u64, |n, b| n.wrapping_mul(31) + u64::from(b));
    Line {
        path: path.into(),
        inode: Inode(1, ino, 0),
        flags: match act {
            Act::OpenWrite => Flags::WRITES,
            _ => Flags::READS,
        },
        ..line(act, pid)
    }
}

fn create(pid: u32, path: &'static str) -> Line<'static> {
    Line {
        class: "dir".into(),
        flags: Flags::empty(),
        ..on(Act::Create, pid, path)
    }
}

fn rename(pid: u32, from: &'static str, to: &'static str) -> Line<'static> {
    Line {
        act: Act::Rename,
        other: to.into(),
        ..create(pid, from)
    }
}

fn connect(pid: u32, address: &str) -> Line<'static> {
    Line {
        class: "socket".into(),
        family: 2,
        socket: 1,
        address: Some(address.parse().unwrap()),
        port: 80,
        inode: Inode::default(),
        ..line(Act::Connect, pid)
    }
}

fn fork(parent: u32, child: u32, flags: Flags) -> Line<'static> {
    Line {
        peer: child,
        flags,
        ..line(Act::Fork, parent)
    }
}

/// The recording of a machine with one process, 1, at the top.
fn begun(policy: &Policy) -> Side<'_> {
    let mut side = Side::new(policy, false);
    side.feed(&on(Act::Process, 1, "/usr/bin/bash"));
    side.feed(&Line::new(Act::Begun));
    side
}

/// The operation and the reason of each refusal.
fn refused(side: &mut Side<'_>, line: &Line<'_>) -> Vec<(Act, Reason)> {
    let events = side.feed(line).iter();
    events
        .filter_map(|e| match e {
            Event::Refused(r) => Some((r.act, r.reason)),
            Event::Fell { .. } => None,
        })
        .collect()
}

#[test]
fn who_reads_low_data_falls_and_may_not_write_above() {
    let policy = policy();
    let mut side = begun(&policy);
    assert_eq!(refused(&mut side, &on(Act::OpenWrite, 1, "/etc/x")), []);
    side.feed(&on(Act::OpenRead, 1, "/home/ann/notes"));
    assert_eq!(side.level_of(1), 1);
    let etc = on(Act::OpenWrite, 1, "/etc/x");
    assert_eq!(refused(&mut side, &etc), [(Act::OpenWrite, Reason::Rule)]);
    assert_eq!(
        refused(&mut side, &on(Act::OpenWrite, 1, "/home/ann/x")),
        []
    );
    side.feed(&connect(1, "203.0.113.7"));
    assert_eq!(side.level_of(1), 0);
    let events = side.feed(&on(Act::OpenWrite, 1, "/home/ann/x")).to_vec();
    let Some(Event::Refused(refusal)) = events.first() else {
        panic!("it is refused");
    };
    let chain: Vec<_> = std::iter::successors(refusal.cause.clone(), |c: &Rc<_>| c.prev.clone())
        .map(|c| (c.act, c.object.to_string()))
        .collect();
    let expected = [
        (Act::Connect, "203.0.113.7:80".to_string()),
        (Act::OpenRead, "/home/ann/notes".to_string()),
    ];
    assert_eq!(chain, expected);
    assert_eq!(policy.rules[refusal.source.unwrap() as usize].line, 3);
}

#[test]
fn secrets_stay_closed_and_creators_may_create() {
    let policy = policy();
    let mut side = begun(&policy);
    side.feed(&connect(1, "203.0.113.7"));
    let key = on(Act::OpenRead, 1, "/home/ann/.ssh/id");
    assert_eq!(refused(&mut side, &key), [(Act::OpenRead, Reason::Noopen)]);
    let planted = create(1, "/home/ann/planted");
    assert_eq!(refused(&mut side, &planted), [(Act::Create, Reason::Rule)]);
    // the open is part of the creation, and told with it
    assert_eq!(
        refused(&mut side, &on(Act::OpenWrite, 1, "/home/ann/planted")),
        []
    );
    // in a creator area what it makes is its own, and whoever reads that falls
    assert_eq!(refused(&mut side, &create(1, "/home/ann/src/new")), []);
    assert_eq!(
        refused(&mut side, &on(Act::OpenWrite, 1, "/home/ann/src/new")),
        []
    );
    side.feed(&fork(2, 3, Flags::empty()));
    side.feed(&on(Act::OpenRead, 2, "/home/ann/src/new"));
    assert_eq!(side.level_of(2), 0);
    // which is no longer so once it is gone
    side.feed(&Line {
        act: Act::Unlink,
        ..create(1, "/home/ann/src/new")
    });
    side.feed(&on(Act::OpenRead, 4, "/home/ann/src/new"));
    assert_eq!(side.level_of(4), 1);
}

#[test]
fn names_do_not_launder() {
    let policy = policy();
    let mut side = begun(&policy);
    side.feed(&connect(1, "203.0.113.7"));
    side.feed(&create(1, "/tmp/x"));
    let moved = rename(1, "/tmp/x", "/home/ann/src/x");
    assert_eq!(refused(&mut side, &moved), []);
    let laundered = rename(9, "/tmp/x", "/etc/x");
    assert_eq!(
        refused(&mut side, &laundered),
        [(Act::Rename, Reason::Launder)]
    );
    let tree = Line {
        kind: DIRECTORY,
        ..rename(9, "/home/ann", "/opt/ann")
    };
    assert_eq!(refused(&mut side, &tree), [(Act::Rename, Reason::Launder)]);
    let tree = Line {
        kind: DIRECTORY,
        ..rename(9, "/opt/ann", "/home/ann")
    };
    assert_eq!(refused(&mut side, &tree), [(Act::Rename, Reason::Tree)]);
    let open = Line {
        flags: Flags::OPEN,
        ..rename(9, "/etc/y", "/srv/y")
    };
    assert_eq!(refused(&mut side, &open), [(Act::Rename, Reason::Busy)]);
    let link = Line {
        act: Act::Link,
        ..rename(9, "/etc/y", "/srv/y")
    };
    assert_eq!(refused(&mut side, &link), [(Act::Link, Reason::Names)]);
    let second = Line {
        links: 2,
        ..rename(9, "/etc/y", "/srv/y")
    };
    assert_eq!(refused(&mut side, &second), [(Act::Rename, Reason::Names)]);
}

#[test]
fn trust_is_taken_at_exec_and_ends_there() {
    let policy = policy();
    let mut side = begun(&policy);
    let exec = |side: &mut Side<'_>, path| {
        side.feed(&Line {
            flags: Flags::READS | Flags::FIRST,
            ..on(Act::Exec, 1, path)
        });
        side.feed(&line(Act::Started, 1));
    };
    exec(&mut side, "/usr/bin/ssh");
    side.feed(&connect(1, "203.0.113.7"));
    assert_eq!(side.level_of(1), 2);
    side.feed(&on(Act::OpenRead, 1, "/home/ann/x"));
    assert_eq!(side.level_of(1), 1);
    exec(&mut side, "/usr/bin/trusted");
    side.feed(&connect(1, "203.0.113.7"));
    assert_eq!(side.level_of(1), 1, "it keeps the level it was started at");
    exec(&mut side, "/bin/sh");
    side.feed(&connect(1, "192.0.2.9"));
    assert_eq!(side.level_of(1), 1);
    exec(&mut side, "/srv/program");
    assert_eq!(side.level_of(1), 0);
}

#[test]
fn children_share_or_inherit() {
    let policy = policy();
    let mut side = begun(&policy);
    side.feed(&fork(1, 2, Flags::SHARES));
    side.feed(&fork(1, 3, Flags::empty()));
    side.feed(&on(Act::OpenRead, 2, "/srv/x"));
    assert_eq!(
        (side.level_of(1), side.level_of(2), side.level_of(3)),
        (0, 0, 2)
    );
    side.feed(&fork(1, 4, Flags::empty()));
    assert_eq!(side.level_of(4), 0);
    // a number that is used again is another process
    side.feed(&line(Act::Exit, 4));
    assert_eq!(side.level_of(4), 2);
}

#[test]
fn readers_fall_with_writers() {
    let policy = policy();
    let mut side = begun(&policy);
    let ends = |pid, ino, flags| Line {
        ends: vec![End {
            dev: 9,
            ino,
            peer: 0,
            flags,
        }],
        ..line(Act::Channels, pid)
    };
    side.feed(&fork(1, 2, Flags::empty()));
    side.feed(&fork(1, 3, Flags::empty()));
    side.feed(&ends(2, 77, Flags::WRITES));
    side.feed(&ends(3, 77, Flags::READS));
    let fell = side.feed(&connect(2, "203.0.113.7")).len();
    assert_eq!(fell, 2);
    assert_eq!((side.level_of(1), side.level_of(3)), (2, 0));
    // what is in it outlives its writer
    side.feed(&line(Act::Exit, 2));
    side.feed(&fork(1, 5, Flags::empty()));
    side.feed(&ends(5, 77, Flags::READS));
    assert_eq!(side.level_of(5), 0);
}

#[test]
fn who_has_let_go_of_an_end_reads_no_more() {
    let policy = policy();
    let mut side = begun(&policy);
    let ends = |pid, flags| Line {
        ends: vec![End {
            dev: 9,
            ino: 77,
            peer: 0,
            flags,
        }],
        ..line(Act::Channels, pid)
    };
    side.feed(&ends(1, Flags::READS | Flags::WRITES));
    side.feed(&fork(1, 2, Flags::empty()));
    side.feed(&ends(1, Flags::WRITES));
    side.feed(&connect(2, "203.0.113.7"));
    assert_eq!((side.level_of(1), side.level_of(2)), (2, 0));
    side.feed(&ends(1, Flags::READS));
    assert_eq!(side.level_of(1), 0);
}

#[test]
fn a_mapping_stands_in_the_way() {
    let policy = policy();
    let mut side = begun(&policy);
    side.feed(&Line {
        class: "mmap".into(),
        flags: Flags::READS | Flags::WRITES,
        ..on(Act::Mmap, 1, "/var/db")
    });
    let low = on(Act::OpenRead, 1, "/srv/x");
    assert_eq!(refused(&mut side, &low), [(Act::OpenRead, Reason::Mapping)]);
    assert_eq!(side.level_of(1), 2);
}

#[test]
fn the_top_is_kept_to_the_top_and_processes_to_theirs() {
    let policy = policy();
    let mut side = begun(&policy);
    let mount = Line {
        class: "system".into(),
        inode: Inode::default(),
        ..line(Act::Mount, 1)
    };
    assert_eq!(refused(&mut side, &mount), []);
    side.feed(&fork(1, 2, Flags::empty()));
    side.feed(&on(Act::OpenRead, 1, "/srv/x"));
    assert_eq!(refused(&mut side, &mount), [(Act::Mount, Reason::TopOnly)]);
    let capable = Line {
        act: Act::Capable,
        ..mount
    };
    assert_eq!(
        refused(&mut side, &capable),
        [(Act::Capable, Reason::TopOnly)]
    );
    let kill = Line {
        peer: 2,
        class: "task".into(),
        inode: Inode::default(),
        ..line(Act::Signal, 1)
    };
    assert_eq!(refused(&mut side, &kill), [(Act::Signal, Reason::Rule)]);
    let trace = Line {
        act: Act::Ptrace,
        pid: 2,
        peer: 1,
        ..kill.clone()
    };
    assert_eq!(refused(&mut side, &trace), []);
    assert_eq!(side.level_of(2), 0);
}

#[test]
fn what_was_held_counts_from_the_start() {
    let policy = policy();
    let mut side = Side::new(&policy, false);
    side.feed(&on(Act::Process, 1, "/usr/bin/bash"));
    side.feed(&on(Act::Held, 1, "/home/ann/x"));
    side.feed(&Line {
        level: "untrusted".into(),
        ..on(Act::Process, 2, "/usr/bin/bash")
    });
    side.feed(&Line::new(Act::Begun));
    assert_eq!((side.level_of(1), side.level_of(2)), (1, 0));
}
