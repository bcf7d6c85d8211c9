//! The state of the model.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidegate_bundle::{Attrs, Policy};

use crate::step::Actor;
use crate::tree::{Kind, Node, NodeId};
use crate::{At, Level, Pid, Slot};

/// Processes that a sequence begins with, all at the top level.
pub const FIRST: u8 = 3;
/// Processes a sequence may have in all.
pub(crate) const PROCESSES: u8 = 8;
/// Descriptors in a table.
pub(crate) const SLOTS: u8 = 12;
/// Mappings in an address space.
pub(crate) const MAPPINGS: u8 = 4;

/// What has one label: the tasks that share memory or a descriptor table.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub level: Level,
    /// Never demoted.
    pub nodemote: bool,
    /// Not demoted by the network.
    pub nonetdemote: bool,
    /// The lowest byte it has seen.
    pub seen: Level,
}

/// A process: an address space and its threads.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub subject: usize,
    pub table: usize,
    pub mappings: BTreeMap<At, Mapping>,
    pub threads: u8,
    pub alive: bool,
}

/// A descriptor table; processes may share one.
pub(crate) type Table = BTreeMap<Slot, usize>;

/// An open file description.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub object: Object,
    pub read: bool,
    pub write: bool,
}

/// What a descriptor names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Node(NodeId),
    /// A pipe's or a FIFO's channel.
    Pipe(usize),
    Socket(usize),
    /// A memfd's channel, or other memory's.
    Memory(usize),
    /// A connection to a network of this level.
    Network(Level),
}

/// What is mapped, and whether it could be written through the mapping, now or
/// after mprotect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    pub of: Mapped,
    pub writable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapped {
    /// A file, by the description that was mapped: it stays open.
    Open(usize),
    /// Memory without a descriptor, System V's among it.
    Memory(usize),
}

/// What floats: a reader of it stands no higher than any subject that could ever write it.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    pub level: Level,
    /// The lowest byte in it.
    pub content: Level,
    /// Memory that once had a name: nobody below its level comes to write it.
    pub was_file: bool,
    /// Bytes that wait in a pipe.
    pub bytes: u32,
}

/// One end of a Unix connection, a listener or a mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Socket {
    /// What is read from it.
    pub channel: usize,
    pub peer: Option<usize>,
    /// The socket file by which it was reached.
    pub name: Option<NodeId>,
    pub listens: bool,
    /// Connections that wait to be accepted.
    pub backlog: VecDeque<usize>,
    /// Messages, with the descriptors that they carry.
    pub queue: VecDeque<Option<usize>>,
}

/// A System V segment: attached as an object of its creator's level, and then
/// memory like any other.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub level: Level,
    pub channel: usize,
    pub removed: bool,
}

/// A System V queue.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub level: Level,
    pub content: Level,
    pub messages: u32,
}

/// A small machine under a policy. See the crate's documentation.
#[derive(Debug, Clone)]
pub struct World {
    pub(crate) policy: Arc<Policy>,
    /// Canonical path of the sandbox.
    pub(crate) root: Arc<str>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) processes: Vec<Process>,
    pub(crate) tables: Vec<Table>,
    pub(crate) opens: Vec<Open>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) sockets: Vec<Socket>,
    /// The sockets that have abstract names.
    pub(crate) names: BTreeMap<u8, usize>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) queues: Vec<Queue>,
    /// The rule that it does not keep.
    #[cfg(test)]
    pub(crate) fault: Option<crate::fault::Fault>,
}

impl World {
    /// A fresh sandbox at `root` and its first processes.
    pub fn new(policy: Arc<Policy>, root: &str) -> World {
        let mut world = World::bare(policy, root);
        world.plant();
        for _ in 0..FIRST {
            world.enrol(world.top());
        }
        world
    }

    /// A directory at `root` and nobody in it.
    pub(crate) fn bare(policy: Arc<Policy>, root: &str) -> World {
        World {
            root: root.into(),
            nodes: vec![Node {
                kind: Kind::Directory(BTreeMap::new()),
                given: None,
                place: None,
                links: 1,
                content: policy.top(),
            }],
            subjects: Vec::new(),
            processes: Vec::new(),
            tables: Vec::new(),
            opens: Vec::new(),
            channels: Vec::new(),
            sockets: Vec::new(),
            names: BTreeMap::new(),
            segments: Vec::new(),
            queues: Vec::new(),
            #[cfg(test)]
            fault: None,
            policy,
        }
    }

    /// A subject of this level, with a process of its own.
    pub(crate) fn enrol(&mut self, level: Level) -> Actor {
        self.subjects.push(Subject {
            level,
            nodemote: false,
            nonetdemote: false,
            seen: level,
        });
        self.tables.push(Table::new());
        let subject = self.subjects.len() - 1;
        self.processes.push(Process {
            subject,
            table: self.tables.len() - 1,
            mappings: BTreeMap::new(),
            threads: 1,
            alive: true,
        });
        Actor {
            process: self.processes.len() - 1,
            subject,
        }
    }

    /// Each living process: its number, its threads, its level.
    pub fn living(&self) -> impl Iterator<Item = (Pid, u8, Level)> {
        (0..)
            .zip(&self.processes)
            .filter(|(_, p)| p.alive)
            .map(|(pid, p)| (pid, p.threads, self.subjects[p.subject].level))
    }

    /// A process's level.
    pub fn level_of(&self, pid: Pid) -> Level {
        let process = self.processes.get(usize::from(pid));
        process.map_or(self.top(), |p| self.subjects[p.subject].level)
    }

    /// The highest level.
    pub(crate) fn top(&self) -> Level {
        self.policy.top()
    }

    /// The name of a level.
    pub fn level_name(&self, level: Level) -> &str {
        self.policy
            .levels
            .get(usize::from(level))
            .map_or("?", String::as_str)
    }

    /// What a program's file says: its level and its attributes.
    pub(crate) fn program(&self, path: &str) -> (Level, Attrs) {
        let rule = self.policy.lookup(path.as_bytes());
        (rule.level, rule.attrs)
    }

    /// Each descriptor that somebody living has: whose, and what it names.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, usize)> {
        self.processes.iter().filter(|p| p.alive).flat_map(|p| {
            self.tables[p.table]
                .values()
                .map(move |open| (p.subject, *open))
        })
    }

    /// Each mapping that somebody living has.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (&Process, Mapping)> {
        let living = self.processes.iter().filter(|p| p.alive);
        living.flat_map(|p| p.mappings.values().map(move |m| (p, *m)))
    }

    /// What is mapped: a node or memory.
    pub(crate) fn behind(&self, of: Mapped) -> Object {
        match of {
            Mapped::Open(open) => self.opens[open].object,
            Mapped::Memory(channel) => Object::Memory(channel),
        }
    }

    /// Descriptions that are open: held, mapped, or on their way in a message
    /// that somebody could still receive.
    pub(crate) fn in_use(&self) -> Vec<bool> {
        let mut used = vec![false; self.opens.len()];
        let mut found: Vec<usize> = self.held().map(|(_, open)| open).collect();
        found.extend(self.mapped().filter_map(|(_, m)| match m.of {
            Mapped::Open(open) => Some(open),
            _ => None,
        }));
        while let Some(open) = found.pop() {
            if std::mem::replace(&mut used[open], true) {
                continue;
            }
            if let Object::Socket(socket) = self.opens[open].object {
                let ends = self.sockets[socket].backlog.iter().chain([&socket]);
                found.extend(ends.flat_map(|end| self.sockets[*end].queue.iter().flatten()));
            }
        }
        used
    }

    /// Whether anybody has a node open.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        let named = |open: &Open| match (open.object, self.nodes[node].fifo()) {
            (Object::Node(id), _) => id == node,
            (Object::Pipe(channel), Some(own)) => channel == own,
            _ => false,
        };
        self.opens
            .iter()
            .zip(self.in_use())
            .any(|(open, used)| used && named(open))
    }

    /// Whether an end of a connection still exists: held, or waiting to be accepted.
    pub(crate) fn is_connected(&self, socket: usize) -> bool {
        let used = self.in_use();
        let exists = |id: usize| {
            let open = |(open, used): (&Open, &bool)| *used && open.object == Object::Socket(id);
            self.opens.iter().zip(&used).any(open)
        };
        exists(socket)
            || (0..self.sockets.len())
                .any(|id| self.sockets[id].backlog.contains(&socket) && exists(id))
    }

    pub(crate) fn new_channel(&mut self) -> usize {
        let top = self.top();
        self.channels.push(Channel {
            level: top,
            content: top,
            was_file: false,
            bytes: 0,
        });
        self.channels.len() - 1
    }
}
