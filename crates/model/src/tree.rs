//! The sandbox's files: names, and the canonical path of each object.

use std::collections::BTreeMap;

use tidegate_bundle::Attrs;

use crate::decide::{Step, Stop, sensible};
use crate::world::{Channel, Object, World};
use crate::{Errno, Level};

pub(crate) type NodeId = usize;

/// An object with a name, or one that had or will have a name.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub kind: Kind,
    /// The level it was given, where that is not its rule's.
    pub given: Option<Level>,
    /// The name it was first seen by: its directory and its name there. The
    /// sandbox's root has none.
    pub place: Option<(NodeId, String)>,
    pub links: u32,
    /// The lowest byte in it.
    pub content: Level,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory(BTreeMap<String, NodeId>),
    File,
    Symlink,
    /// With its channel.
    Fifo(usize),
    Device,
    /// With the socket that is bound to it.
    Socket(usize),
}

impl Node {
    pub fn is_dir(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }

    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    /// A FIFO's channel.
    pub fn fifo(&self) -> Option<usize> {
        match self.kind {
            Kind::Fifo(channel) => Some(channel),
            _ => None,
        }
    }
}

/// The directories of a fresh sandbox: `policy/replay.plm` says what each is.
pub const DIRECTORIES: [&str; 7] = ["sys", "usr", "low", "tmp", "cache", "drop", "mix"];

/// The files of a fresh sandbox, made at the top level.
pub const FILES: [&str; 10] = [
    "sys/a", "sys/log", "sys/key", "usr/a", "usr/log", "usr/key", "low/a", "tmp/a", "cache/a",
    "mix/a",
];

impl World {
    /// Makes the sandbox as it is before anybody lives in it.
    pub(crate) fn plant(&mut self) {
        for path in DIRECTORIES {
            self.enter(0, path, Kind::Directory(BTreeMap::new()), None);
        }
        for path in FILES {
            if let Ok((dir, name)) = self.parent(path) {
                self.enter(dir, name, Kind::File, None);
            }
        }
    }

    /// Puts a new node under a name.
    pub(crate) fn enter(
        &mut self,
        dir: NodeId,
        name: &str,
        kind: Kind,
        given: Option<Level>,
    ) -> NodeId {
        self.nodes.push(Node {
            kind,
            given,
            place: Some((dir, name.into())),
            links: 0,
            content: self.top(),
        });
        let node = self.nodes.len() - 1;
        self.put_name(dir, name, node);
        node
    }

    pub(crate) fn put_name(&mut self, dir: NodeId, name: &str, node: NodeId) {
        if let Kind::Directory(names) = &mut self.nodes[dir].kind {
            names.insert(name.into(), node);
            self.nodes[node].links += 1;
        }
    }

    pub(crate) fn take_name(&mut self, dir: NodeId, name: &str) {
        let Kind::Directory(names) = &mut self.nodes[dir].kind else {
            return;
        };
        if let Some(node) = names.remove(name) {
            self.nodes[node].links -= 1;
            if self.nodes[node].links == 0 {
                self.lose(node);
            }
        }
    }

    /// A file in memory that has lost its last name is memory to the processes that have it open,
    /// at the level it had.
    fn lose(&mut self, node: NodeId) {
        if !self.in_memory(node) {
            return;
        }
        let level = self.label(node).0;
        self.channels.push(Channel {
            level,
            content: self.nodes[node].content,
            was_file: true,
            bytes: 0,
        });
        let memory = Object::Memory(self.channels.len() - 1);
        for open in &mut self.opens {
            if open.object == Object::Node(node) {
                open.object = memory;
            }
        }
    }

    /// Is it a file on a filesystem in memory?
    fn in_memory(&self, node: NodeId) -> bool {
        self.root.starts_with("/dev/shm/") && self.nodes[node].is_file()
    }

    /// May an object lose a name? Not the last of what is open in memory and no
    /// more would be open to all: a lower process may have it mapped.
    pub(crate) fn may_lose(&self, node: NodeId) -> Step {
        let last = self.nodes[node].links == 1 && self.in_memory(node);
        if last && self.label(node).1.contains(Attrs::LOWWRITE) && self.is_open(node) {
            return Err(Stop::Refused(Errno::Busy));
        }
        Ok(())
    }

    /// What a path in the sandbox leads to.
    pub(crate) fn find(&self, path: &str) -> Option<NodeId> {
        path.split('/')
            .try_fold(0, |dir, name| match &self.nodes[dir].kind {
                Kind::Directory(names) => names.get(name).copied(),
                _ => None,
            })
    }

    pub(crate) fn existing(&self, path: &str) -> Step<NodeId> {
        self.find(path).ok_or(Stop::Senseless)
    }

    /// The directory of a path, and the name in it.
    pub(crate) fn parent<'p>(&self, path: &'p str) -> Step<(NodeId, &'p str)> {
        let (dir, name) = path.rsplit_once('/').ok_or(Stop::Senseless)?;
        let dir = self.existing(dir)?;
        sensible(self.nodes[dir].is_dir())?;
        Ok((dir, name))
    }

    /// The place of a name that is still free.
    pub(crate) fn free<'p>(&self, path: &'p str) -> Step<(NodeId, &'p str)> {
        sensible(self.find(path).is_none())?;
        self.parent(path)
    }

    /// A node's canonical path.
    pub(crate) fn path(&self, node: NodeId) -> String {
        match &self.nodes[node].place {
            Some((dir, name)) => self.path_in(*dir, name),
            None => self.root.to_string(),
        }
    }

    pub(crate) fn path_in(&self, dir: NodeId, name: &str) -> String {
        format!("{}/{name}", self.path(dir))
    }

    /// Every path in the sandbox, those of its top left out.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut dirs: Vec<(String, NodeId)> = vec![(String::new(), 0)];
        while let Some((path, dir)) = dirs.pop() {
            let Kind::Directory(names) = &self.nodes[dir].kind else {
                continue;
            };
            for (name, node) in names {
                let below = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}/{name}")
                };
                if self.nodes[*node].is_dir() {
                    dirs.push((below.clone(), *node));
                }
                if !path.is_empty() {
                    found.push(below);
                }
            }
        }
        found
    }
}
