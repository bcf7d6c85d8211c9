//! Processes: how they began, what they execute, what one does to another.

use tidegate_bundle::Attrs;

use crate::channel::ChannelId;
use crate::event::Reason;
use crate::line::{Act, End, Flags, Line};
use crate::rules::{self, Object};
use crate::side::{Exec, Side};

/// `st_mode & S_IFMT`
pub(crate) const FIFO: u32 = 0o010_000;
const SOCKET: u32 = 0o140_000;

/// Attributes that a program has by its rule.
const OF_PROGRAMS: u16 = Attrs::NODEMOTE
    .union(Attrs::NONETDEMOTE)
    .union(Attrs::PERMISSIVE)
    .bits();

impl Side<'_> {
    /// A process that was there: the level and the trust of its program.
    pub(crate) fn was_there(&mut self, line: &Line<'_>) {
        self.birth(line.pid, line.start, &line.comm);
        if let Some(level) = self.recorded_level(line) {
            self.state_mut(line.pid).level = level;
        }
        if line.inode.is_none() {
            return;
        }
        let (label, _) = self.label(line);
        if label.known && label.level == self.top {
            self.state_mut(line.pid).attrs = (label.attrs & OF_PROGRAMS) as u8;
        }
        self.held(line);
    }

    /// What a process had at the beginning lowers it as if it read that now.
    pub(crate) fn held(&mut self, line: &Line<'_>) {
        let end = |peer| End {
            dev: line.inode.0,
            ino: line.inode.1,
            peer,
            flags: line.flags,
        };
        match (line.kind, line.class.as_ref()) {
            (FIFO, _) => self.has_end(line, &end(0)),
            (SOCKET, "unix") if line.channel != 0 => self.has_end(line, &end(line.channel)),
            (SOCKET, "socket") => self.connected(line),
            (SOCKET, _) => {}
            _ if line.flags.contains(Flags::UNNAMED) => {}
            _ => {
                let (label, _) = self.label(line);
                let reads = line.flags.contains(Flags::READS) || line.act == Act::Process;
                let who = self.who(line.pid);
                let to = rules::observe(who, label);
                if reads && to < who.level {
                    self.fall(line, to, Act::Held, &line.path);
                }
                self.maps(line, label);
            }
        }
    }

    fn has_end(&mut self, line: &Line<'_>, end: &End) {
        if end.peer == 0 {
            let (reads, writes) = (
                end.flags.contains(Flags::READS),
                end.flags.contains(Flags::WRITES),
            );
            let pipe = ChannelId::Pipe(end.dev, end.ino);
            self.join(line, pipe, line.pid, reads, writes);
        } else {
            self.join(line, ChannelId::Socket(end.ino), line.pid, true, false);
            self.join(line, ChannelId::Socket(end.peer), line.pid, false, true);
        }
    }

    /// Opening a FIFO joins it.
    pub(crate) fn open_fifo(&mut self, line: &Line<'_>) {
        let end = End {
            dev: line.inode.0,
            ino: line.inode.1,
            peer: 0,
            flags: line.flags,
        };
        self.has_end(line, &end);
    }

    /// Remembers a shared writable mapping: nothing can revoke it.
    pub(crate) fn maps(&mut self, line: &Line<'_>, label: Object) {
        let maps = line.class == "mmap" && line.flags.contains(Flags::WRITES);
        if !maps || line.refused != 0 || label.has(Attrs::NEUTRAL | Attrs::LOWWRITE) {
            return;
        }
        if let Some(process) = self.processes.get_mut(&line.pid)
            && !process.mapped.contains(&label)
        {
            process.mapped.push(label);
        }
    }

    /// A file of an exec: the program asked for, or an interpreter.
    pub(crate) fn exec(&mut self, line: &Line<'_>) {
        let (label, _) = self.label(line);
        // the new program observes its files, and it has not its predecessor's trust
        let who = rules::Subject {
            attrs: 0,
            ..self.who(line.pid)
        };
        let to = rules::observe(who, label);
        let top = self.top;
        let Some(process) = self.processes.get_mut(&line.pid) else {
            return;
        };
        if line.flags.contains(Flags::FIRST) {
            let trusting = label.known && label.level == top;
            process.exec = Some(Exec {
                level: to,
                attrs: if trusting {
                    label.attrs & OF_PROGRAMS
                } else {
                    0
                } as u8,
                path: line.path.as_ref().into(),
            });
        } else if let Some(exec) = &mut process.exec
            && to < exec.level
        {
            exec.level = to;
            exec.path = line.path.as_ref().into();
        }
    }

    /// What one process does to another.
    pub(crate) fn act(&mut self, line: &Line<'_>) {
        let Some(other) = self.processes.get(&line.peer) else {
            return;
        };
        let me = self.processes[&line.pid].subject;
        let (who, target) = (self.who(line.pid), self.level_of(line.peer));
        let object = format!("process {}", line.peer);
        if line.act == Act::Ptrace && other.subject != me {
            if !rules::controls(who, self.state(line.peer).attrs, self.top) {
                let target = Object::of(target, 0);
                self.refuse(line, line.act, Reason::Trust, &object, target, None);
                return;
            }
            let to = rules::observe(who, Object::of(target, 0));
            if to < who.level {
                self.fall(line, to, line.act, &object);
                return;
            }
        }
        if !rules::act(who, target) {
            let target = Object::of(target, 0);
            self.refuse(line, line.act, Reason::Rule, &object, target, None);
        }
    }

    /// What belongs to the top level.
    pub(crate) fn top_only(&mut self, line: &Line<'_>) {
        if self.who(line.pid).level < self.top {
            let top = Object::of(self.top, 0);
            self.refuse(line, line.act, Reason::TopOnly, "", top, None);
        }
    }
}
