//! Memory that is mapped, shared, or kept by System V IPC.

use super::Actor;
use crate::channel::Direction;
use crate::decide::{Step, Stop, sensible};
use crate::world::{Ipc, MAPPINGS, Mapped, Mapping, Object, World};
use crate::{At, Errno, Slot};

/// A segment or queue that was not removed.
fn present(ipc: &[Ipc], id: u8) -> Step<usize> {
    let id = usize::from(id);
    ipc.get(id)
        .filter(|i| !i.removed)
        .map(|_| id)
        .ok_or(Stop::Senseless)
}

/// What the calls of System V IPC say of every refusal but of a removal.
fn said(stop: Stop) -> Stop {
    match stop {
        Stop::Refused(_) => Stop::Refused(Errno::Acces),
        Stop::Senseless => stop,
    }
}

impl World {
    pub(super) fn memfd(&mut self, who: Actor, to: Slot) -> Step {
        self.room(who, to)?;
        let channel = self.new_channel();
        let open = self.new_open(Object::Memory(channel), Direction::BOTH);
        self.hold(who, to, open)
    }

    fn room_to_map(&self, who: Actor, at: At) -> Step {
        sensible(at < MAPPINGS && !self.processes[who.process].mappings.contains_key(&at))
    }

    fn put_mapping(&mut self, who: Actor, at: At, of: Mapped, writable: bool) {
        self.processes[who.process]
            .mappings
            .insert(at, Mapping { of, writable });
    }

    pub(super) fn map(&mut self, who: Actor, slot: Slot, shared: bool, at: At) -> Step {
        self.room_to_map(who, at)?;
        let id = self.descriptor(who, slot)?;
        let open = &self.opens[id];
        sensible(open.read)?;
        let writable = shared && open.write;
        match open.object {
            Object::Node(node) => {
                self.observe(who.subject, self.label(node).0)?;
                if writable {
                    self.modify_node(who.subject, node)?;
                }
            }
            Object::Memory(_) => {}
            _ => return Err(Stop::Senseless),
        }
        self.put_mapping(who, at, Mapped::Open(id), writable);
        Ok(())
    }

    pub(super) fn map_fresh(&mut self, who: Actor, at: At) -> Step {
        self.room_to_map(who, at)?;
        let channel = self.new_channel();
        self.put_mapping(who, at, Mapped::Memory(channel), true);
        Ok(())
    }

    pub(super) fn unmap(&mut self, who: Actor, at: At) -> Step {
        let mapping = self.processes[who.process].mappings.remove(&at);
        mapping.map(drop).ok_or(Stop::Senseless)
    }

    fn new_ipc(&self, who: Actor) -> Ipc {
        Ipc {
            level: self.level(who.subject),
            content: self.top(),
            messages: 0,
            removed: false,
        }
    }

    pub(super) fn segment(&mut self, who: Actor, id: u8) -> Step {
        sensible(usize::from(id) == self.segments.len())?;
        self.segments.push(self.new_ipc(who));
        Ok(())
    }

    pub(super) fn attach(&mut self, who: Actor, id: u8, write: bool, at: At) -> Step {
        self.room_to_map(who, at)?;
        let id = present(&self.segments, id)?;
        let level = self.segments[id].level;
        self.observe(who.subject, level)?;
        if write {
            self.modify(who.subject, level).map_err(said)?;
        }
        self.put_mapping(who, at, Mapped::Segment(id), write);
        Ok(())
    }

    pub(super) fn drop_segment(&mut self, who: Actor, id: u8) -> Step {
        let id = present(&self.segments, id)?;
        self.modify(who.subject, self.segments[id].level)?;
        self.segments[id].removed = true;
        Ok(())
    }

    pub(super) fn queue(&mut self, who: Actor, id: u8) -> Step {
        sensible(usize::from(id) == self.queues.len())?;
        self.queues.push(self.new_ipc(who));
        Ok(())
    }

    pub(super) fn enqueue(&mut self, who: Actor, id: u8) -> Step {
        let id = present(&self.queues, id)?;
        self.modify(who.subject, self.queues[id].level)
            .map_err(said)?;
        let voice = self.voice(who.subject);
        let queue = &mut self.queues[id];
        queue.content = voice.min(queue.content);
        queue.messages += 1;
        Ok(())
    }

    pub(super) fn dequeue(&mut self, who: Actor, id: u8) -> Step {
        let id = present(&self.queues, id)?;
        sensible(self.queues[id].messages > 0)?;
        self.observe(who.subject, self.queues[id].level)?;
        self.queues[id].messages -= 1;
        self.hear(who.subject, self.queues[id].content);
        Ok(())
    }
}
