//! Random operations: each drawn in the world it is to be tried in, so that most
//! make sense there.

use fastrand::Rng;

use crate::tree::{DIRECTORIES, Kind};
use crate::world::{FIRST, MAPPINGS, Object, PROCESSES, SLOTS, World};
use crate::{Access, Act, Address, At, Attribute, Made, Op, Pid, Program, Slot};

/// Names that new objects get.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "log"];

/// Draws before it is accepted that nothing makes sense.
const DRAWS: u32 = 60;

/// A sequence of operations, each drawn by a seed of its own.
pub fn sequence(start: &World, seeds: impl IntoIterator<Item = u64>) -> Vec<Op> {
    let mut world = start.clone();
    let ops = seeds.into_iter().filter_map(|seed| {
        let op = draw(&world, seed)?;
        world.step(&op)?;
        Some(op)
    });
    ops.collect()
}

/// One operation that makes sense here; `None` if none was found.
pub fn draw(world: &World, seed: u64) -> Option<Op> {
    let mut rng = Rng::with_seed(seed);
    (0..DRAWS).find_map(|_| {
        let op = Dice {
            world,
            rng: &mut rng,
        }
        .op()?;
        world.clone().step(&op).map(|_| op)
    })
}

struct Dice<'a> {
    world: &'a World,
    rng: &'a mut Rng,
}

impl Dice<'_> {
    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.rng.usize(..of.len())].clone())
    }

    fn op(&mut self) -> Option<Op> {
        let living: Vec<Pid> = self.world.living().map(|(pid, ..)| pid).collect();
        let who = self.one(&living)?;
        let second = self.world.processes[usize::from(who)].threads > 1 && self.rng.bool();
        Some(Op {
            who,
            second,
            act: self.act(who)?,
        })
    }

    /// By weight; what makes levels fall is rarer than what they protect.
    fn act(&mut self, who: Pid) -> Option<Act> {
        match self.rng.u32(..100) {
            0..40 => self.file(who),
            40..56 => self.name(who),
            56..76 => self.channel(who),
            76..86 => self.memory(who),
            _ => self.process(who),
        }
    }

    fn file(&mut self, who: Pid) -> Option<Act> {
        let access = [
            Access::Read,
            Access::Read,
            Access::Write,
            Access::Both,
            Access::Append,
        ];
        Some(match self.rng.u32(..20) {
            0..7 => Act::Open {
                path: self.path()?,
                access: self.one(&access)?,
                create: false,
                truncate: self.rng.u32(..5) == 0,
                to: self.free(who)?,
            },
            7..9 => Act::Open {
                path: self.new_path()?,
                access: self.one(&access)?,
                create: true,
                truncate: false,
                to: self.free(who)?,
            },
            9 => {
                let (slot, access) = (self.held(who, is_open_file)?, self.one(&access)?);
                Act::Reopen {
                    slot,
                    access,
                    to: self.free(who)?,
                }
            }
            10..12 => Act::Read {
                slot: self.held(who, |o| !matches!(o, Object::Socket(_)))?,
            },
            12..16 => Act::Write {
                slot: self.held(who, |o| !matches!(o, Object::Socket(_)))?,
            },
            16 => Act::Resize {
                slot: self.held(who, is_open_file)?,
            },
            17 => {
                let what = [
                    Attribute::Mode,
                    Attribute::Owner,
                    Attribute::Times,
                    Attribute::Size,
                    Attribute::Xattr,
                ];
                Act::Change {
                    path: self.path()?,
                    what: self.one(&what)?,
                }
            }
            18 => match self.rng.u32(..3) {
                0 => Act::GetXattr { path: self.path()? },
                1 => Act::Readlink { path: self.path()? },
                _ => Act::Look { path: self.path()? },
            },
            _ => Act::Close {
                slot: self.held(who, |_| true)?,
            },
        })
    }

    fn name(&mut self, who: Pid) -> Option<Act> {
        Some(match self.rng.u32(..16) {
            0..4 => {
                let made = [
                    Made::Directory,
                    Made::Directory,
                    Made::Fifo,
                    Made::Symlink,
                    Made::Device,
                ];
                Act::Make {
                    path: self.new_path()?,
                    what: self.one(&made)?,
                }
            }
            4..7 => Act::Remove { path: self.path()? },
            7..11 => Act::Rename {
                from: self.path()?,
                to: self.some_path()?,
            },
            11..14 => Act::Link {
                from: self.path()?,
                to: self.new_path()?,
            },
            14 => Act::Unnamed {
                dir: self.dir()?,
                to: self.free(who)?,
            },
            _ => Act::Name {
                slot: self.held(who, |o| matches!(o, Object::Node(_)))?,
                path: self.new_path()?,
            },
        })
    }

    fn channel(&mut self, who: Pid) -> Option<Act> {
        let socket = |o| matches!(o, Object::Socket(_));
        Some(match self.rng.u32(..20) {
            0..2 => Act::Pipe {
                read: self.free(who)?,
                write: self.free(who)?,
            },
            2..4 => Act::Pair {
                one: self.free(who)?,
                other: self.free(who)?,
            },
            4 => Act::Listen {
                address: self.new_address()?,
                to: self.free(who)?,
            },
            5 => Act::Mailbox {
                address: self.new_address()?,
                to: self.free(who)?,
            },
            6..8 => Act::Connect {
                address: self.address()?,
                to: self.free(who)?,
            },
            8..10 => Act::Accept {
                slot: self.held(who, socket)?,
                to: self.free(who)?,
            },
            10..13 => Act::Send {
                slot: self.held(who, socket)?,
                carry: self.carried(who),
            },
            13 => Act::Post {
                address: self.address()?,
                carry: self.carried(who),
            },
            14..17 => Act::Receive {
                slot: self.held(who, socket)?,
                to: self.free(who)?,
            },
            17 => {
                let from = self.other(who)?;
                Act::Take {
                    from,
                    slot: self.held(from, |_| true)?,
                    to: self.free(who)?,
                }
            }
            _ => Act::Open {
                path: self.fifo()?,
                access: self.one(&[Access::Read, Access::Write, Access::Both])?,
                create: false,
                truncate: false,
                to: self.free(who)?,
            },
        })
    }

    fn memory(&mut self, who: Pid) -> Option<Act> {
        let (segments, queues) = (self.world.segments.len(), self.world.queues.len());
        Some(match self.rng.u32(..24) {
            18..21 => Act::Load { at: self.at() },
            21..24 => Act::Store { at: self.at() },
            0..3 => Act::Memfd {
                to: self.free(who)?,
            },
            3..7 => Act::Map {
                slot: self.held(who, is_open_file)?,
                shared: self.rng.u32(..3) > 0,
                at: self.at(),
            },
            7 => Act::MapFresh { at: self.at() },
            8..11 => Act::Unmap { at: self.at() },
            11 => Act::Segment { id: segments as u8 },
            12..14 => Act::Attach {
                id: self.id(segments)?,
                write: self.rng.bool(),
                at: self.at(),
            },
            14 => Act::Drop {
                id: self.id(segments)?,
            },
            15 => Act::Queue { id: queues as u8 },
            16 => Act::Enqueue {
                id: self.id(queues)?,
            },
            _ => Act::Dequeue {
                id: self.id(queues)?,
            },
        })
    }

    fn process(&mut self, who: Pid) -> Option<Act> {
        let born = self.world.processes.len() as Pid;
        let child = (born < PROCESSES).then_some(born);
        Some(match self.rng.u32(..16) {
            0..3 => Act::Fork { child: child? },
            3 => Act::Share { child: child? },
            4 => Act::Thread,
            5..8 => Act::Exec {
                program: self.one(&Program::ALL)?,
            },
            8 if born > FIRST => Act::Exit,
            8 | 9 => Act::Signal {
                pid: self.other(who)?,
            },
            10 => Act::Kill {
                pid: self.other(who)?,
            },
            11 => Act::Renice {
                pid: self.other(who)?,
            },
            12 => Act::Peek {
                pid: self.other(who)?,
            },
            13 => Act::Poke {
                pid: self.other(who)?,
            },
            _ => Act::Dial {
                network: self.rng.u8(..=self.world.top()),
                to: self.free(who)?,
            },
        })
    }

    fn other(&mut self, who: Pid) -> Option<Pid> {
        let others: Vec<Pid> = self
            .world
            .living()
            .map(|(p, ..)| p)
            .filter(|p| *p != who)
            .collect();
        self.one(&others)
    }

    fn path(&mut self) -> Option<String> {
        self.one(&self.world.paths())
    }

    fn fifo(&mut self) -> Option<String> {
        let is_fifo = |path: &String| {
            self.world
                .find(path)
                .is_some_and(|node| self.world.nodes[node].fifo().is_some())
        };
        let fifos: Vec<String> = self.world.paths().into_iter().filter(is_fifo).collect();
        self.one(&fifos)
    }

    fn dir(&mut self) -> Option<String> {
        let mut dirs: Vec<String> = DIRECTORIES.iter().map(|d| d.to_string()).collect();
        dirs.extend(self.world.paths().into_iter().filter(|path| {
            self.world
                .find(path)
                .is_some_and(|node| self.world.nodes[node].is_dir())
        }));
        self.one(&dirs)
    }

    fn new_path(&mut self) -> Option<String> {
        Some(format!("{}/{}", self.dir()?, self.one(&NAMES)?))
    }

    fn some_path(&mut self) -> Option<String> {
        if self.rng.u32(..4) == 0 {
            self.path()
        } else {
            self.new_path()
        }
    }

    fn new_address(&mut self) -> Option<Address> {
        Some(match self.rng.u32(..3) {
            0 => Address::Abstract(self.rng.u8(..4)),
            _ => Address::Path(self.new_path()?),
        })
    }

    fn address(&mut self) -> Option<Address> {
        let is_socket = |path: &String| {
            self.world
                .find(path)
                .is_some_and(|n| matches!(self.world.nodes[n].kind, Kind::Socket(_)))
        };
        let paths = self
            .world
            .paths()
            .into_iter()
            .filter(is_socket)
            .map(Address::Path);
        let names = self.world.names.keys().map(|name| Address::Abstract(*name));
        let all: Vec<Address> = paths.chain(names).collect();
        self.one(&all)
    }

    fn carried(&mut self, who: Pid) -> Option<Slot> {
        if self.rng.bool() {
            self.held(who, |_| true)
        } else {
            None
        }
    }

    /// A descriptor that a process has.
    fn held(&mut self, who: Pid, fits: impl Fn(Object) -> bool) -> Option<Slot> {
        let table = &self.world.tables[self.world.processes[usize::from(who)].table];
        let slots: Vec<Slot> = table
            .iter()
            .filter(|(_, open)| fits(self.world.opens[**open].object))
            .map(|(slot, _)| *slot)
            .collect();
        self.one(&slots)
    }

    /// A place for one more; any place, as two may be asked for.
    fn free(&mut self, who: Pid) -> Option<Slot> {
        let table = &self.world.tables[self.world.processes[usize::from(who)].table];
        let slots: Vec<Slot> = (0..SLOTS)
            .filter(|slot| !table.contains_key(slot))
            .collect();
        self.one(&slots)
    }

    fn at(&mut self) -> At {
        self.rng.u8(..MAPPINGS)
    }

    fn id(&mut self, len: usize) -> Option<u8> {
        (len > 0).then(|| self.rng.u8(..len as u8))
    }
}

/// What can be opened again, mapped and resized.
fn is_open_file(object: Object) -> bool {
    matches!(
        object,
        Object::Node(_) | Object::Pipe(_) | Object::Memory(_)
    )
}
