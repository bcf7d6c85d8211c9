//! Where bytes have gone, followed apart from the levels, and the property.

use tidegate_bundle::Attrs;

use crate::tree::NodeId;
use crate::world::{Object, World};
use crate::{Act, Level, Op, Pid};

/// A file of the sandbox.
#[derive(Debug, Clone)]
pub struct Contents {
    /// Its path in the sandbox.
    pub path: String,
    /// Its level.
    pub level: Level,
    /// Whether its rule lets everybody write it, and vouches for what it holds.
    pub open_to_all: bool,
    /// The lowest byte that it may hold.
    pub lowest: Level,
}

impl World {
    /// The lowest byte that a subject may write. One that has fallen may have learnt what it fell
    /// for; what a trusted program writes counts as its own level: that is the trust.
    pub(crate) fn voice(&self, subject: usize) -> Level {
        let s = &self.subjects[subject];
        if s.nodemote {
            s.level
        } else {
            s.level.min(s.seen)
        }
    }

    /// A subject hears something.
    pub(crate) fn hear(&mut self, subject: usize, what: Level) {
        let s = &mut self.subjects[subject];
        s.seen = s.seen.min(what);
    }

    /// A subject puts bytes into a node. What a rule opens to all (`lowwrite`) is
    /// trusted to hold what it holds.
    pub(crate) fn fill(&mut self, subject: usize, node: NodeId) {
        let voice = self.voice(subject).max(self.vouched(node));
        let content = &mut self.nodes[node].content;
        *content = voice.min(*content);
    }

    fn vouched(&self, node: NodeId) -> Level {
        let (level, attrs) = self.label(node);
        if attrs.contains(Attrs::LOWWRITE) {
            level
        } else {
            0
        }
    }

    /// The level that a rule vouches for in what an operation writes.
    pub fn floor(&self, op: &Op) -> Level {
        let node = self.written(op);
        node.map_or(0, |node| self.vouched(node))
    }

    fn written(&self, op: &Op) -> Option<NodeId> {
        let process = self.processes.get(usize::from(op.who))?;
        let object = match &op.act {
            Act::Write { slot } => self.opens[*self.tables[process.table].get(slot)?].object,
            Act::Store { at } => self.behind(process.mappings.get(at)?.of),
            Act::Change { path, .. } => Object::Node(self.find(path)?),
            _ => return None,
        };
        match object {
            Object::Node(node) => Some(node),
            _ => None,
        }
    }

    /// What the files of the sandbox are, and may hold.
    pub fn contents(&self) -> Vec<Contents> {
        let contents = |path: String| {
            let node = self.find(&path)?;
            let (level, attrs) = self.label(node);
            Some(Contents {
                path,
                level,
                open_to_all: attrs.contains(Attrs::LOWWRITE),
                lowest: self.nodes[node].content,
            })
        };
        self.paths().into_iter().filter_map(contents).collect()
    }

    /// The lowest level that a process may have read bytes of.
    pub fn seen(&self, pid: Pid) -> Option<Level> {
        let process = self.processes.get(usize::from(pid)).filter(|p| p.alive)?;
        Some(self.subjects[process.subject].seen)
    }

    /// Whether the policy trusts a process with what it reads.
    pub fn is_trusted(&self, pid: Pid) -> bool {
        let process = self.processes.get(usize::from(pid));
        process.is_some_and(|p| self.subjects[p.subject].nodemote)
    }

    /// A subject puts bytes into a channel.
    pub(crate) fn speak(&mut self, subject: usize, channel: usize) {
        let voice = self.voice(subject);
        let content = &mut self.channels[channel].content;
        *content = voice.min(*content);
    }

    /// The lowest byte to be read from an object.
    pub(crate) fn content(&self, object: Object) -> Level {
        match object {
            Object::Node(node) => self.nodes[node].content,
            Object::Pipe(channel) | Object::Memory(channel) => self.channels[channel].content,
            Object::Socket(socket) => self
                .ends(socket)
                .map(|end| self.channels[self.sockets[end].channel].content)
                .min()
                .unwrap_or(self.top()),
            Object::Network(_) => self.top(), // observed as it is received
        }
    }

    /// What is mapped is heard, and what is mapped shared is written, all the time.
    pub(crate) fn flow(&mut self) {
        loop {
            let mapped: Vec<_> = self.mapped().map(|(p, m)| (p.subject, m)).collect();
            let before = self.traces();
            for (subject, mapping) in mapped {
                let object = self.behind(mapping.of);
                self.hear(subject, self.content(object));
                match object {
                    Object::Node(node) if mapping.writable => self.fill(subject, node),
                    Object::Memory(channel) if mapping.writable => self.speak(subject, channel),
                    _ => {}
                }
            }
            if self.traces() == before {
                return;
            }
        }
    }

    fn traces(&self) -> Vec<Level> {
        let subjects = self.subjects.iter().map(|s| s.seen);
        let nodes = self.nodes.iter().map(|n| n.content);
        let channels = self.channels.iter().map(|c| c.content);
        subjects.chain(nodes).chain(channels).collect()
    }

    /// The property: no byte that was ever low is in something higher, and none
    /// can be read by something higher, but by trust.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        for (pid, p) in self.processes.iter().enumerate().filter(|(_, p)| p.alive) {
            let s = &self.subjects[p.subject];
            if s.nodemote {
                continue;
            }
            if s.seen < s.level {
                return Err(format!("p{pid} at {} has seen {}", s.level, s.seen));
            }
            for (slot, open) in &self.tables[p.table] {
                let open = &self.opens[*open];
                if open.read && self.content(open.object) < s.level {
                    return Err(format!(
                        "p{pid} at {} could read lower bytes from {slot}",
                        s.level
                    ));
                }
            }
        }
        for id in 0..self.nodes.len() {
            let (level, content) = (self.label(id).0, self.nodes[id].content);
            if content < level {
                return Err(format!("{} at {level} holds {content}", self.path(id)));
            }
        }
        if let Some(id) = self.queues.iter().position(|q| q.content < q.level) {
            return Err(format!("queue {id} holds lower messages"));
        }
        Ok(())
    }
}
