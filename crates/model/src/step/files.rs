//! Open files: contents and attributes.

use super::Actor;
use crate::channel::Direction;
use crate::decide::{Step, Stop, refuse, sensible};
use crate::tree::{Kind, NodeId};
use crate::world::{Object, Subject, World};
use crate::{Access, Attribute, Errno, Slot};

impl Access {
    fn direction(self) -> Direction {
        Direction {
            read: self.reads(),
            write: self.writes(),
        }
    }
}

impl World {
    pub(super) fn open(
        &mut self,
        who: Actor,
        path: &str,
        access: Access,
        create: bool,
        truncate: bool,
        to: Slot,
    ) -> Step {
        self.room(who, to)?;
        let node = match self.find(path) {
            Some(node) => node,
            None => {
                sensible(create)?;
                let (dir, name) = self.parent(path)?;
                let given = self.creation(who.subject, dir, name)?;
                self.enter(dir, name, Kind::File, given)
            }
        };
        if let Some(channel) = self.nodes[node].fifo() {
            sensible(!create && !truncate)?;
            return self.open_fifo(who, channel, access, to);
        }
        sensible(self.nodes[node].is_file())?;
        self.bind(who.subject, node, access.reads(), access.writes())?;
        if truncate {
            self.modify_node(who.subject, node)?;
            self.fill(who.subject, node);
        }
        let open = self.new_open(Object::Node(node), access.direction());
        self.hold(who, to, open)
    }

    /// May the subject have a descriptor of this pipe? Where it is a FIFO, its place says so.
    pub(super) fn may_open_fifo(&self, subject: usize, channel: usize) -> Step {
        let fifo = (0..self.nodes.len()).find(|node| self.nodes[*node].fifo() == Some(channel));
        fifo.map_or(Ok(()), |node| self.may_open(subject, node))
    }

    /// A FIFO is joined; without waiting, a writer needs a reader.
    fn open_fifo(&mut self, who: Actor, channel: usize, access: Access, to: Slot) -> Step {
        let read = self.pipe_has(channel, Direction::READ);
        sensible(access.reads() || read)?;
        self.may_open_fifo(who.subject, channel)?;
        let open = self.new_open(Object::Pipe(channel), access.direction());
        self.hold(who, to, open)
    }

    pub(super) fn reopen(&mut self, who: Actor, slot: Slot, access: Access, to: Slot) -> Step {
        self.room(who, to)?;
        let object = self.opens[self.descriptor(who, slot)?].object;
        match object {
            Object::Node(node) => {
                self.bind(who.subject, node, access.reads(), access.writes())?;
            }
            Object::Pipe(channel) => {
                sensible(access.reads() || self.pipe_has(channel, Direction::READ))?;
                self.may_open_fifo(who.subject, channel)?;
            }
            Object::Memory(memory) if access.writes() => self.bind_memory(who.subject, memory)?,
            Object::Memory(_) => {}
            Object::Socket(_) | Object::Network(_) => return Err(Stop::Senseless),
        }
        let open = self.new_open(object, access.direction());
        if self.is_named(object) {
            return self.hold(who, to, open);
        }
        // a subject that comes to a channel without a name in this way drags nobody down
        let before = self.clone();
        let held = self.hold(who, to, open);
        let fell = |(s, was): (&Subject, &Subject)| s.level < was.level;
        let others = |(id, _): &(usize, _)| *id != who.subject;
        let pairs = self.subjects.iter().zip(&before.subjects).enumerate();
        if held.is_ok() && pairs.filter(others).any(|(_, pair)| fell(pair)) {
            *self = before;
            return refuse();
        }
        held
    }

    /// A file or a FIFO, rather than what has no name.
    fn is_named(&self, object: Object) -> bool {
        match object {
            Object::Pipe(channel) => self.nodes.iter().any(|n| n.fifo() == Some(channel)),
            Object::Memory(_) => false,
            _ => true,
        }
    }

    pub(super) fn close(&mut self, who: Actor, slot: Slot) -> Step {
        self.descriptor(who, slot)?;
        let table = self.processes[who.process].table;
        self.tables[table].remove(&slot);
        Ok(())
    }

    /// Nothing is asked of a reader: it was asked before it could read.
    pub(super) fn read(&mut self, who: Actor, slot: Slot) -> Step {
        let open = &self.opens[self.descriptor(who, slot)?];
        sensible(open.read)?;
        match open.object {
            Object::Pipe(channel) => self.read_pipe(who, channel),
            Object::Node(_) | Object::Memory(_) => {
                self.hear(who.subject, self.content(open.object));
                Ok(())
            }
            Object::Socket(_) | Object::Network(_) => Err(Stop::Senseless),
        }
    }

    pub(super) fn write(&mut self, who: Actor, slot: Slot) -> Step {
        let open = &self.opens[self.descriptor(who, slot)?];
        sensible(open.write)?;
        match open.object {
            Object::Node(node) => {
                let writable = self.modify_node(who.subject, node);
                #[cfg(test)]
                let writable = writable.or_else(|stop| match self.fault {
                    Some(crate::fault::Fault::Revoke) => Ok(()),
                    _ => Err(stop),
                });
                writable.map_err(|_| Stop::Refused(Errno::Io))?;
                self.fill(who.subject, node);
                Ok(())
            }
            Object::Pipe(channel) => self.write_pipe(who, channel),
            Object::Memory(channel) => {
                self.modify_memory(who.subject, channel)
                    .map_err(|_| Stop::Refused(Errno::Io))?;
                self.speak(who.subject, channel);
                Ok(())
            }
            Object::Socket(_) | Object::Network(_) => Err(Stop::Senseless),
        }
    }

    pub(super) fn resize(&mut self, who: Actor, slot: Slot) -> Step {
        let open = &self.opens[self.descriptor(who, slot)?];
        sensible(open.write)?;
        match open.object {
            Object::Node(node) => self.modify_node(who.subject, node),
            Object::Memory(memory) => self.modify_memory(who.subject, memory),
            _ => Err(Stop::Senseless),
        }
    }

    pub(super) fn change(&mut self, who: Actor, path: &str, what: Attribute) -> Step {
        let node = self.existing(path)?;
        sensible(match (what, &self.nodes[node].kind) {
            (Attribute::Size, kind) => *kind == Kind::File,
            (Attribute::Xattr, kind) => *kind == Kind::File || self.nodes[node].is_dir(),
            (_, kind) => *kind != Kind::Symlink,
        })?;
        if matches!(what, Attribute::Mode | Attribute::Owner) {
            // whose it is and which users may open it is as its name is
            self.modify_named(who.subject, node)?;
        } else {
            self.modify_node(who.subject, node)?;
        }
        if what == Attribute::Xattr {
            self.fill(who.subject, node);
        }
        Ok(())
    }

    pub(super) fn get_xattr(&mut self, who: Actor, path: &str) -> Step {
        let node = self.existing(path)?;
        sensible(self.nodes[node].is_file() || self.nodes[node].is_dir())?;
        self.may_open(who.subject, node)?;
        self.look_into(who, node)
    }

    pub(super) fn readlink(&mut self, who: Actor, path: &str) -> Step {
        let node = self.existing(path)?;
        sensible(self.nodes[node].kind == Kind::Symlink)?;
        self.look_into(who, node)
    }

    fn look_into(&mut self, who: Actor, node: NodeId) -> Step {
        self.observe_node(who.subject, node)?;
        self.hear(who.subject, self.nodes[node].content);
        Ok(())
    }
}
