//! Channels: a reader of one stands no higher than any subject that could write it.

use tidegate_bundle::Attrs;

use crate::line::{Act, End, Flags, Line};
use crate::side::Side;

/// Which channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ChannelId {
    /// A pipe or FIFO, by device and inode.
    Pipe(u32, u64),
    /// What is read from a Unix socket, by its inode.
    Socket(u64),
    /// A Unix connection, both ways, by its number.
    Link(u64),
}

/// A channel and the subjects that have its ends.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// The lowest level that could ever write it.
    pub floor: u8,
    /// Process, reads, writes.
    pub members: Vec<(u32, bool, bool)>,
}

/// The channels that an end reads and writes.
fn ends_of(end: &End) -> [(ChannelId, bool, bool); 2] {
    let (reads, writes) = (
        end.flags.contains(Flags::READS),
        end.flags.contains(Flags::WRITES),
    );
    if end.peer == 0 {
        let pipe = ChannelId::Pipe(end.dev, end.ino);
        return [(pipe, reads, writes), (pipe, false, false)];
    }
    [
        (ChannelId::Socket(end.ino), true, false),
        (ChannelId::Socket(end.peer), false, true),
    ]
}

impl Side<'_> {
    /// A process has just these ends of pipes and sockets.
    pub(crate) fn has_ends(&mut self, line: &Line<'_>) {
        let mut old = self.processes[&line.pid].channels.clone();
        old.retain(|id| !matches!(id, ChannelId::Link(_)));
        let new: Vec<_> = line
            .ends
            .iter()
            .flat_map(ends_of)
            .filter(|(_, reads, writes)| *reads || *writes)
            .collect();
        for id in old {
            if new.iter().any(|(other, ..)| *other == id) {
                // of both ends it may have one left
                let members = self.channels.get_mut(&id).map(|c| &mut c.members);
                for member in members.into_iter().flatten().filter(|m| m.0 == line.pid) {
                    *member = (line.pid, false, false);
                }
            } else {
                self.leave(id, line.pid);
                self.unlist(id, line.pid);
            }
        }
        for (id, reads, writes) in new {
            self.join(line, id, line.pid, reads, writes);
        }
    }

    /// A process gets an end.
    pub(crate) fn join(
        &mut self,
        line: &Line<'_>,
        id: ChannelId,
        pid: u32,
        reads: bool,
        writes: bool,
    ) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !process.channels.contains(&id) {
            process.channels.push(id);
        }
        let (level, top) = (self.level_of(pid), self.top);
        let channel = self.channels.entry(id).or_insert_with(|| Channel {
            floor: top,
            ..Channel::default()
        });
        match channel.members.iter_mut().find(|m| m.0 == pid) {
            Some(member) => *member = (pid, member.1 | reads, member.2 | writes),
            None => channel.members.push((pid, reads, writes)),
        }
        if writes {
            channel.floor = channel.floor.min(level);
        }
        let floor = channel.floor;
        if self.begun {
            self.sink(line, id, floor);
        }
    }

    /// Lowers whoever reads a channel from above its floor.
    fn sink(&mut self, line: &Line<'_>, id: ChannelId, floor: u8) {
        let members = self.channels.get(&id).map(|c| c.members.clone());
        for (pid, reads, _) in members.unwrap_or_default() {
            if reads && self.level_of(pid) > floor && !self.stays(pid) {
                let reader = Line {
                    pid,
                    comm: self.processes[&pid].comm.clone().into(),
                    time: line.time,
                    ..Line::new(Act::Pipe)
                };
                self.fall(&reader, floor, Act::Pipe, &self.writer(id, floor));
            }
        }
    }

    /// A writer of a channel at its floor, in words.
    fn writer(&self, id: ChannelId, floor: u8) -> String {
        let members = self.channels.get(&id).map(|c| c.members.as_slice());
        let low = members
            .unwrap_or_default()
            .iter()
            .find(|(pid, _, writes)| *writes && self.level_of(*pid) <= floor);
        low.map_or("one that has ended".into(), |(pid, ..)| {
            format!("{}({pid})", self.processes[pid].comm)
        })
    }

    fn stays(&self, pid: u32) -> bool {
        u16::from(self.state(pid).attrs) & Attrs::NODEMOTE.bits() != 0
    }

    /// A child has its parent's end.
    pub(crate) fn inherit(&mut self, id: ChannelId, parent: u32, child: u32) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        if let Some(&(_, reads, writes)) = channel.members.iter().find(|m| m.0 == parent) {
            channel.members.push((child, reads, writes));
            if let Some(process) = self.processes.get_mut(&child) {
                process.channels.push(id);
            }
        }
    }

    /// A process lets go of a channel; its own list is the caller's to change.
    pub(crate) fn leave(&mut self, id: ChannelId, pid: u32) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.members.retain(|m| m.0 != pid);
            if channel.members.is_empty() {
                self.channels.remove(&id);
            }
        }
    }

    fn unlist(&mut self, id: ChannelId, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.channels.retain(|other| *other != id);
        }
    }

    /// A channel that has ended.
    pub(crate) fn forget_channel(&mut self, id: ChannelId) {
        let channel = self.channels.remove(&id);
        for (pid, ..) in channel.map(|c| c.members).unwrap_or_default() {
            self.unlist(id, pid);
        }
    }

    /// What a process writes may be as low as it is now.
    pub(crate) fn lower_floors(&mut self, pid: u32, level: u8) {
        for id in &self.processes[&pid].channels {
            if let Some(channel) = self.channels.get_mut(id)
                && channel.members.iter().any(|m| m.0 == pid && m.2)
            {
                channel.floor = channel.floor.min(level);
            }
        }
    }

    /// The subjects that fall with one: readers of what it writes, and of what they write.
    pub(crate) fn falling(&self, first: usize, to: u8) -> Vec<usize> {
        let mut falling = vec![first];
        let mut next = 0;
        while self.begun && next < falling.len() {
            let pids = &self.subjects[falling[next]].pids;
            next += 1;
            let channels = pids.iter().flat_map(|pid| {
                let ids = &self.processes[pid].channels;
                ids.iter().map(move |id| (pid, id))
            });
            let mut readers = Vec::new();
            for (pid, id) in channels {
                let Some(channel) = self.channels.get(id) else {
                    continue;
                };
                if channel.members.iter().any(|m| m.0 == *pid && m.2) {
                    readers.extend(channel.members.iter().filter(|m| m.1).map(|m| m.0));
                }
            }
            for pid in readers {
                let subject = self.processes[&pid].subject;
                let lower = self.subjects[subject].level > to && !self.stays(pid);
                if lower && !falling.contains(&subject) {
                    falling.push(subject);
                }
            }
        }
        falling
    }

    /// All that was there when recording began is known: channels have their effect.
    pub(crate) fn settle(&mut self) {
        self.begun = true;
        let line = Line::new(Act::Begun);
        let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
        for id in &ids {
            let writers = self.channels[id].members.iter().filter(|m| m.2);
            let floor = writers.map(|m| self.level_of(m.0)).min();
            if let (Some(channel), Some(floor)) = (self.channels.get_mut(id), floor) {
                channel.floor = channel.floor.min(floor);
            }
        }
        for id in ids {
            let floor = self.channels[&id].floor;
            self.sink(&line, id, floor);
        }
    }
}
