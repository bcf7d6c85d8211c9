//! Memory that is mapped, shared, or kept by System V IPC.

use super::Actor;
use crate::channel::Direction;
use crate::decide::{Step, Stop, sensible};
use crate::world::{MAPPINGS, Mapped, Mapping, Object, Queue, Segment, World};
use crate::{At, Errno, Slot};

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

    /// May the subject get a descriptor to write memory? One that has it mapped falls with no
    /// descriptor, so nobody lower than its writers so far comes to it then; nor to what was a
    /// file.
    pub(super) fn bind_memory(&self, subject: usize, memory: usize) -> Step {
        let mapped = self
            .mapped()
            .any(|(_, m)| self.behind(m.of) == Object::Memory(memory));
        if mapped || self.channels[memory].was_file {
            self.modify_memory(subject, memory)
        } else {
            Ok(())
        }
    }

    /// A subject that has fallen while memory was a file, with a descriptor to write it, is below
    /// it.
    pub(super) fn modify_memory(&self, subject: usize, memory: usize) -> Step {
        self.modify(subject, self.channels[memory].level)
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
            Object::Node(node) => self.bind(who.subject, node, true, writable)?,
            Object::Memory(memory) if writable => self.modify_memory(who.subject, memory)?,
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

    pub(crate) fn mapping(&self, who: Actor, at: At) -> Step<Mapping> {
        let mappings = &self.processes[who.process].mappings;
        mappings.get(&at).copied().ok_or(Stop::Senseless)
    }

    pub(super) fn segment(&mut self, who: Actor, id: u8) -> Step {
        sensible(usize::from(id) == self.segments.len())?;
        let (level, channel) = (self.level(who.subject), self.new_channel());
        self.segments.push(Segment {
            level,
            channel,
            removed: false,
        });
        Ok(())
    }

    /// A segment that was not removed.
    fn present(&self, id: u8) -> Step<&Segment> {
        let segment = self.segments.get(usize::from(id));
        segment.filter(|s| !s.removed).ok_or(Stop::Senseless)
    }

    pub(super) fn attach(&mut self, who: Actor, id: u8, write: bool, at: At) -> Step {
        self.room_to_map(who, at)?;
        let &Segment { level, channel, .. } = self.present(id)?;
        self.observe(who.subject, level)?;
        if write {
            self.modify(who.subject, level).map_err(said)?;
        }
        self.observe(who.subject, self.channels[channel].level)?;
        self.put_mapping(who, at, Mapped::Memory(channel), write);
        Ok(())
    }

    pub(super) fn drop_segment(&mut self, who: Actor, id: u8) -> Step {
        self.modify(who.subject, self.present(id)?.level)?;
        self.segments[usize::from(id)].removed = true;
        Ok(())
    }

    pub(super) fn queue(&mut self, who: Actor, id: u8) -> Step {
        sensible(usize::from(id) == self.queues.len())?;
        let (level, content) = (self.level(who.subject), self.top());
        self.queues.push(Queue {
            level,
            content,
            messages: 0,
        });
        Ok(())
    }

    fn queued(&self, id: u8) -> Step<Queue> {
        self.queues
            .get(usize::from(id))
            .cloned()
            .ok_or(Stop::Senseless)
    }

    pub(super) fn enqueue(&mut self, who: Actor, id: u8) -> Step {
        let queue = self.queued(id)?;
        self.modify(who.subject, queue.level).map_err(said)?;
        let content = self.voice(who.subject).min(queue.content);
        let messages = queue.messages + 1;
        self.queues[usize::from(id)] = Queue {
            content,
            messages,
            ..queue
        };
        Ok(())
    }

    pub(super) fn dequeue(&mut self, who: Actor, id: u8) -> Step {
        let queue = self.queued(id)?;
        sensible(queue.messages > 0)?;
        self.observe(who.subject, queue.level)?;
        // what may not be taken away is passed over
        if self.modify(who.subject, queue.level).is_err() {
            return Err(Stop::Refused(Errno::NoMsg));
        }
        self.queues[usize::from(id)].messages -= 1;
        self.hear(who.subject, queue.content);
        Ok(())
    }
}
