//! Demotion: which subjects fall with which, and when none may.

use crate::Errno;
use crate::Level;
use crate::decide::{Step, Stop};
use crate::world::{Object, Open, World};

/// The levels of everything that can fall.
struct Levels {
    subjects: Vec<Level>,
    channels: Vec<Level>,
}

impl World {
    /// Lowers a subject, and with it whoever reads what it can write. Refused,
    /// nothing has changed.
    pub(crate) fn demote(&mut self, subject: usize, to: Level) -> Step {
        let before = self.levels();
        self.subjects[subject].level = to;
        self.settle(before)
    }

    /// Makes levels fit after a descriptor has changed hands. Refused, no level
    /// has changed; the caller takes the descriptor back.
    pub(crate) fn join(&mut self) -> Step {
        let before = self.levels();
        self.settle(before)
    }

    fn levels(&self) -> Levels {
        Levels {
            subjects: self.subjects.iter().map(|s| s.level).collect(),
            channels: self.channels.iter().map(|c| c.level).collect(),
        }
    }

    fn settle(&mut self, before: Levels) -> Step {
        while self.channels_fall(&before) | self.readers_fall() {}
        if self.mapping_in_the_way(&before) {
            for (s, level) in self.subjects.iter_mut().zip(before.subjects) {
                s.level = level;
            }
            for (c, level) in self.channels.iter_mut().zip(before.channels) {
                c.level = level;
            }
            return Err(Stop::Refused(Errno::Acces));
        }
        Ok(())
    }

    /// A channel stands no higher than a subject that can write it.
    fn channels_fall(&mut self, before: &Levels) -> bool {
        let mut writers: Vec<(usize, Level)> = Vec::new();
        for (subject, open) in self.held() {
            let open = &self.opens[open];
            let level = self.level(subject);
            match open.object {
                Object::Pipe(channel) | Object::Memory(channel)
                    if open.write && self.writes(before, subject, channel) =>
                {
                    writers.push((channel, level));
                }
                Object::Socket(socket) => writers.extend(
                    self.reached(socket)
                        .filter(|peer| level >= self.admits(*peer))
                        .map(|peer| (self.sockets[peer].channel, level)),
                ),
                _ => {}
            }
        }
        for (process, mapping) in self.mapped().filter(|(_, m)| m.writable) {
            if let Object::Memory(channel) = self.behind(mapping.of) {
                writers.push((channel, self.level(process.subject)));
            }
        }
        let mut fell = false;
        for (channel, level) in writers {
            let channel = &mut self.channels[channel].level;
            fell |= level < *channel;
            *channel = level.min(*channel);
        }
        fell
    }

    /// Does a descriptor to write a channel still do so? Not that of a subject that fell while
    /// memory was a file.
    fn writes(&self, before: &Levels, subject: usize, channel: usize) -> bool {
        !self.channels[channel].was_file || before.subjects[subject] >= before.channels[channel]
    }

    /// A reader stands no higher than what it reads. A subject that has memory mapped, and no
    /// descriptor of it, is no reader here: see `mapping_in_the_way`.
    fn readers_fall(&mut self) -> bool {
        #[cfg(test)]
        if self.fault == Some(crate::fault::Fault::Float) {
            return false;
        }
        let mut readers: Vec<(usize, Level)> = Vec::new();
        for (subject, open) in self.held() {
            let open = &self.opens[open];
            match open.object {
                Object::Pipe(channel) | Object::Memory(channel) if open.read => {
                    readers.push((subject, self.channels[channel].level));
                }
                Object::Socket(socket) => readers.extend(
                    self.ends(socket)
                        .map(|end| (subject, self.channels[self.sockets[end].channel].level)),
                ),
                _ => {}
            }
        }
        let mut fell = false;
        for (subject, level) in readers {
            let s = &mut self.subjects[subject];
            if !s.nodemote && level < s.level {
                s.level = level;
                fell = true;
            }
        }
        fell
    }

    /// Would somebody who fell keep a shared writable mapping of what is now
    /// above it, or could it still write memory that somebody who stays has mapped?
    fn mapping_in_the_way(&self, before: &Levels) -> bool {
        #[cfg(test)]
        if self.fault == Some(crate::fault::Fault::Mappings) {
            return false;
        }
        let fell = |subject: usize| self.level(subject) < before.subjects[subject];
        let stays = |memory: Object| {
            self.mapped()
                .any(|(q, m)| self.behind(m.of) == memory && !fell(q.subject))
        };
        let kept = self.mapped().filter(|(p, m)| m.writable && fell(p.subject));
        let mapped = kept.into_iter().any(|(p, m)| match self.behind(m.of) {
            Object::Node(node) => self.level(p.subject) < self.label(node).0,
            memory => stays(memory),
        });
        let mut held = self.held().filter(|(subject, _)| fell(*subject));
        mapped
            || held.any(|(subject, open)| match &self.opens[open] {
                Open {
                    object: memory @ Object::Memory(channel),
                    write: true,
                    ..
                } => self.writes(before, subject, *channel) && stays(*memory),
                _ => false,
            })
    }
}
