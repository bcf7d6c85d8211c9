//! Pipes and sockets: which are connected with which.

use tidegate_bundle::Attrs;

use crate::Level;
use crate::decide::{Step, sensible};
use crate::step::Actor;
use crate::world::{Object, World};
use crate::{Errno, Slot};

/// What a description is open for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direction {
    pub read: bool,
    pub write: bool,
}

impl Direction {
    pub const READ: Direction = Direction {
        read: true,
        write: false,
    };
    pub const WRITE: Direction = Direction {
        read: false,
        write: true,
    };
    pub const BOTH: Direction = Direction {
        read: true,
        write: true,
    };
}

impl World {
    /// What the holder of a socket reads from: the socket itself, and what
    /// waits to be accepted.
    pub(crate) fn ends(&self, socket: usize) -> impl Iterator<Item = usize> {
        self.sockets[socket].backlog.iter().copied().chain([socket])
    }

    /// What the holder of a socket can write to: the peers of those.
    pub(crate) fn reached(&self, socket: usize) -> impl Iterator<Item = usize> {
        self.ends(socket).filter_map(|end| self.sockets[end].peer)
    }

    /// The lowest level that may send to a socket: one that was reached by a
    /// socket file is that file.
    pub(crate) fn admits(&self, socket: usize) -> Level {
        match self.sockets[socket].name.map(|node| self.label(node)) {
            Some((level, attrs)) if !attrs.contains(Attrs::LOWWRITE) => level,
            _ => 0,
        }
    }

    /// A FIFO that nobody has open any more is a new one to whoever comes next.
    pub(crate) fn empty_fifos(&mut self) {
        for node in 0..self.nodes.len() {
            if let Some(channel) = self.nodes[node].fifo().filter(|_| !self.is_open(node)) {
                let top = self.top();
                let channel = &mut self.channels[channel];
                (channel.level, channel.content, channel.bytes) = (top, top, 0);
            }
        }
    }

    /// Whether somebody has the pipe open for reading, or for writing.
    pub(crate) fn pipe_has(&self, channel: usize, end: Direction) -> bool {
        let fits = |open: usize| {
            let open = &self.opens[open];
            open.object == Object::Pipe(channel)
                && (open.read && end.read || open.write && end.write)
        };
        let used = self.in_use();
        (0..self.opens.len()).any(|open| used[open] && fits(open))
    }

    pub(crate) fn pipe(&mut self, who: Actor, read: Slot, write: Slot) -> Step {
        self.room(who, read)?;
        self.room(who, write)?;
        sensible(read != write)?;
        let channel = self.new_channel();
        for (slot, direction) in [(read, Direction::READ), (write, Direction::WRITE)] {
            let open = self.new_open(Object::Pipe(channel), direction);
            self.hold(who, slot, open)?;
        }
        Ok(())
    }

    pub(crate) fn read_pipe(&mut self, who: Actor, channel: usize) -> Step {
        sensible(self.channels[channel].bytes > 0)?;
        self.channels[channel].bytes -= 1;
        self.hear(who.subject, self.channels[channel].content);
        Ok(())
    }

    pub(crate) fn write_pipe(&mut self, who: Actor, channel: usize) -> Step {
        sensible(self.pipe_has(channel, Direction::READ))?;
        self.channels[channel].bytes += 1;
        self.speak(who.subject, channel);
        Ok(())
    }

    /// May a subject send to a socket it is connected to?
    pub(crate) fn admitted(&self, who: Actor, peer: usize) -> Step {
        if self.level(who.subject) < self.admits(peer) {
            return Err(crate::decide::Stop::Refused(Errno::Io));
        }
        Ok(())
    }
}
