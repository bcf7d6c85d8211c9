//! Random operations in the reference model's machine, and their recording under the same
//! policy: the replay must refuse what the contract refuses, and everybody must stand
//! where the contract has them. Not hard links, whose label depends on which name was seen
//! first; nor channels, mappings and what is left open, which are the virtual machine's to
//! show (tests/record): descriptors are closed as soon as they are had.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tidegate_model::{
    Access, Act as Do, Attribute, DIRECTORIES, FILES, FIRST, Made, Op, POLICY, Program, Slot,
    Verdict, World, draw,
};
use tidegate_policy::map;
use tidegate_recording::{Act, Event, Flags, Inode, Line, Side};

const ROOT: &str = "/srv/replay/1";
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// What a recorder sees of the sandbox: names, and the inode and kind behind each.
struct Names {
    names: BTreeMap<String, (u64, u32)>,
    last: u64,
}

impl Names {
    fn new() -> Names {
        let mut names = Names {
            names: BTreeMap::new(),
            last: 1,
        };
        names.names.insert(String::new(), (1, DIRECTORY));
        for path in DIRECTORIES {
            names.make(path, DIRECTORY);
        }
        for path in FILES {
            names.make(path, FILE);
        }
        names
    }

    fn make(&mut self, path: &str, kind: u32) {
        self.last += 1;
        self.names.insert(path.into(), (self.last, kind));
    }

    fn inode(&self, path: &str) -> Inode {
        self.names
            .get(path)
            .map_or(Inode::default(), |(ino, _)| Inode(1, *ino, 0))
    }

    fn links(&self, inode: Inode) -> usize {
        self.names
            .values()
            .filter(|(ino, _)| *ino == inode.1)
            .count()
    }

    fn dir(&self, path: &str) -> Inode {
        self.inode(path.rsplit_once('/').map_or("", |(dir, _)| dir))
    }

    /// A line about a name.
    fn line(&self, act: Act, pid: u32, path: &str, flags: Flags) -> Line<'static> {
        let (ino, kind) = self
            .names
            .get(path)
            .copied()
            .unwrap_or((self.last + 1, FILE));
        Line {
            pid,
            class: "file".into(),
            flags,
            path: format!("{ROOT}/{path}").into(),
            inode: Inode(1, ino, 0),
            dir: self.dir(path),
            kind,
            links: self.links(Inode(1, ino, 0)) as u32,
            ..Line::new(act)
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let inside = format!("{from}/");
        let moved: Vec<String> = self
            .names
            .keys()
            .filter(|name| *name == from || name.starts_with(&inside))
            .cloned()
            .collect();
        for name in moved {
            let node = self.names.remove(&name).unwrap();
            self.names
                .insert(format!("{to}{}", &name[from.len()..]), node);
        }
    }
}

/// The lines that an operation leaves, and the descriptor that it gets; `None`: not played here.
fn lines(names: &Names, op: &Op) -> Option<(Vec<Line<'static>>, Option<Slot>)> {
    let pid = 100 + u32::from(op.who);
    let line = |act, path: &str, flags| names.line(act, pid, path, flags);
    let about = |act, class: &'static str, flags| Line {
        pid,
        class: class.into(),
        flags,
        ..Line::new(act)
    };
    let to = |act, other: u8| Line {
        peer: 100 + u32::from(other),
        ..about(act, "task", Flags::WRITES)
    };
    let (reads, writes, none) = (Flags::READS, Flags::WRITES, Flags::empty());
    let one = |line| Some((vec![line], None));
    match &op.act {
        Do::Open {
            path,
            access,
            create,
            truncate,
            to,
        } => {
            if names.names.get(path).is_some_and(|(_, kind)| *kind != FILE)
                || (*truncate && !access.writes())
            {
                return None;
            }
            let mut lines = Vec::new();
            if !names.names.contains_key(path) {
                if !create {
                    return None;
                }
                lines.push(line(Act::Create, path, none));
            }
            let act = if access.reads() {
                Act::OpenRead
            } else {
                Act::OpenWrite
            };
            let flags = match access {
                Access::Read => reads,
                Access::Both => reads | writes,
                Access::Write | Access::Append => writes,
            };
            lines.push(line(act, path, flags));
            Some((lines, Some(*to)))
        }
        Do::Change { path, what } => one(match what {
            Attribute::Xattr => line(Act::Xattr, path, writes),
            _ => line(Act::Setattr, path, writes),
        }),
        Do::GetXattr { path } => one(line(Act::Xattr, path, reads)),
        Do::Readlink { path } => one(line(Act::Readlink, path, reads)),
        Do::Make { path, what } => {
            let kind = match what {
                Made::Directory => DIRECTORY,
                Made::Symlink => SYMLINK,
                Made::Fifo | Made::Device => return None,
            };
            one(Line {
                kind,
                ..line(Act::Create, path, none)
            })
        }
        Do::Remove { path } => one(line(Act::Unlink, path, none)),
        Do::Rename { from, to } => {
            let over = names.inode(to);
            let mut replaced = none;
            if !over.is_none() {
                replaced |= Flags::REPLACED;
                replaced.set(Flags::LAST, names.links(over) == 1);
            }
            one(Line {
                other: format!("{ROOT}/{to}").into(),
                other_dir: names.dir(to),
                over,
                ..line(Act::Rename, from, replaced)
            })
        }
        Do::Fork { child } => one(Line {
            flags: none,
            class: "".into(),
            ..to(Act::Fork, *child)
        }),
        Do::Share { child } => one(Line {
            flags: Flags::SHARES,
            class: "".into(),
            ..to(Act::Fork, *child)
        }),
        Do::Exec { program } => {
            let exec = |program: Program, flags| Line {
                path: program.path().into(),
                inode: Inode(2, 1 + program as u64, 0),
                kind: FILE,
                ..about(Act::Exec, "exec", flags)
            };
            let mut lines = vec![exec(*program, reads | Flags::FIRST)];
            if *program == Program::Script {
                lines.push(exec(Program::Worker, reads));
            }
            lines.push(about(Act::Started, "", none));
            Some((lines, None))
        }
        Do::Exit => one(about(Act::Exit, "", none)),
        Do::Signal { pid } | Do::Kill { pid } => one(to(Act::Signal, *pid)),
        Do::Renice { pid } => one(to(Act::Sched, *pid)),
        Do::Peek { pid } | Do::Poke { pid } => one(to(Act::Ptrace, *pid)),
        Do::Dial { network, to } => Some((
            vec![Line {
                family: 2,
                socket: 1,
                address: Some(std::net::Ipv4Addr::new(127, 0, *network, 1).into()),
                ..about(Act::Connect, "socket", reads | writes)
            }],
            Some(*to),
        )),
        _ => None,
    }
}

/// What an operation that was done changes of the names.
fn done(names: &mut Names, op: &Op) {
    match &op.act {
        Do::Open { path, .. } if !names.names.contains_key(path) => names.make(path, FILE),
        Do::Make { path, what } => names.make(
            path,
            if *what == Made::Directory {
                DIRECTORY
            } else {
                SYMLINK
            },
        ),
        Do::Remove { path } => drop(names.names.remove(path)),
        Do::Rename { from, to } if names.inode(from) != names.inode(to) => names.rename(from, to),
        _ => {}
    }
}

fn begin(side: &mut Side<'_>) {
    for pid in 0..FIRST {
        side.feed(&Line {
            pid: 100 + u32::from(pid),
            path: Program::Worker.path().into(),
            inode: Inode(2, 1 + Program::Worker as u64, 0),
            kind: FILE,
            ..Line::new(Act::Process)
        });
    }
    side.feed(&Line::new(Act::Begun));
}

fn play(seeds: &[u64]) -> usize {
    let policy = map::compile_str("replay", POLICY).unwrap().policy;
    let mut world = World::new(Arc::new(policy.clone()), ROOT);
    let mut names = Names::new();
    let mut side = Side::new(&policy, false);
    begin(&mut side);
    let mut played = Vec::new();
    for &seed in seeds {
        let Some(op) = draw(&world, seed).filter(|op| !op.second) else {
            continue;
        };
        let Some((lines, slot)) = lines(&names, &op) else {
            continue;
        };
        let Some(verdict) = world.step(&op) else {
            continue;
        };
        played.push(op.clone());
        let mut refused = false;
        for line in lines {
            let line = Line {
                refused: u32::from(verdict != Verdict::Done),
                ..line
            };
            let events = side.feed(&line);
            refused |= events.iter().any(|e| matches!(e, Event::Refused(_)));
            // what a refusal keeps from happening is not recorded
            if refused {
                break;
            }
        }
        assert_eq!(refused, verdict != Verdict::Done, "{verdict}: {played:#?}");
        if verdict == Verdict::Done {
            done(&mut names, &op);
            if let Do::Kill { pid } = op.act {
                side.feed(&Line {
                    pid: 100 + u32::from(pid),
                    ..Line::new(Act::Exit)
                });
            }
            if let Some(slot) = slot {
                world.step(&Op {
                    act: Do::Close { slot },
                    ..op
                });
            }
        }
        for (pid, _, level) in world.living() {
            let there = side.level_of(100 + u32::from(pid));
            assert_eq!(there, level, "p{pid}: {played:#?}");
        }
    }
    played.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_replay_decides_as_the_contract(seeds in prop::collection::vec(any::<u64>(), 0..400)) {
        play(&seeds);
    }
}

#[test]
fn sequences_are_played() {
    let seeds = |of: u64| -> Vec<u64> {
        let numbers = (0..400).map(|n| (of * 400 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        numbers.collect()
    };
    let played: usize = (0..50).map(|of| play(&seeds(of))).sum();
    assert!(played > 2000, "{played}");
}
