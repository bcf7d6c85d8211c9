//! What a line asks: observe, modify, and what follows from each. The checks and their
//! order are those of kernel/lomac/check.h and kernel/lomac; the rules are the kernel's.

use crate::line::{Act, Flags, Line};
use crate::names::{reason_of, unopened};
use crate::process::FIFO;
use crate::rules;
use crate::side::Side;

impl Side<'_> {
    pub(crate) fn decide(&mut self, line: &Line<'_>) {
        if line.act != Act::Process {
            self.meet(line);
        }
        match line.act {
            Act::Process => self.was_there(line),
            Act::Held => self.held(line),
            Act::Fork if line.peer != 0 => {
                self.fork(line.pid, line.peer, line.flags.contains(Flags::SHARES));
            }
            Act::Fork => {}
            Act::Started => self.started(line),
            Act::Channels => self.has_ends(line),
            Act::OpenRead | Act::OpenWrite => self.open(line),
            Act::Mmap | Act::ReceiveFd => self.bind(line, line.act),
            Act::Exec => self.exec(line),
            Act::Create => self.create(line),
            Act::Unlink => self.unlink(line),
            Act::Rename | Act::Link => self.rename(line),
            Act::Setattr | Act::Xattr | Act::Readlink | Act::WriteRevoked => {
                self.attribute(line);
            }
            Act::Connect | Act::Accept | Act::Receive | Act::Send | Act::Socket => {
                self.socket(line);
            }
            Act::Signal | Act::Ptrace | Act::Sched => self.act(line),
            Act::Mount | Act::Module | Act::Bpf | Act::System | Act::Capable => {
                self.top_only(line);
            }
            Act::Given | Act::Begun | Act::Closed | Act::Exit | Act::End | Act::Pipe => {}
        }
    }

    fn open(&mut self, line: &Line<'_>) {
        if line.kind == FIFO {
            let (label, source) = self.label(line);
            let named = !line.flags.contains(Flags::UNNAMED);
            if named && !rules::open(self.who(line.pid), label, self.top) {
                self.refuse(
                    line,
                    Act::OpenRead,
                    unopened(label),
                    &line.path,
                    label,
                    source,
                );
            }
            return self.open_fifo(line);
        }
        // the creation was decided, so the open that is part of it need not be
        let level = self.who(line.pid).level;
        let process = self.processes.get_mut(&line.pid);
        let created = process.and_then(|p| p.created.take());
        let own = created.is_some_and(|(inode, at)| inode == line.inode && level >= at);
        if own && line.act == Act::OpenWrite {
            return;
        }
        self.bind(line, Act::OpenWrite);
    }

    /// Binds an object: observes, then modifies. `writing` is what a refusal to write is
    /// recorded as.
    fn bind(&mut self, line: &Line<'_>, writing: Act) {
        // memory and channels that are not followed
        if line.flags.contains(Flags::UNNAMED) || (line.inode.is_none() && line.path.is_empty()) {
            return;
        }
        let (label, source) = self.label(line);
        let mut who = self.who(line.pid);
        // opening for writing is asked as an open, too
        let asked = match line.act {
            Act::OpenWrite => Act::OpenRead,
            other => other,
        };
        // a subject that opens from the top what has no label is not there any more then; a mapping
        // opens nothing
        let unknown = !label.known && (line.act == Act::Mmap || rules::open(who, label, self.top));
        let opens = unknown || rules::open(who, label, self.top);
        if line.flags.contains(Flags::READS) && opens {
            let to = rules::observe(who, label);
            if to < who.level && !self.fall(line, to, asked, &line.path) {
                return;
            }
            who = self.who(line.pid);
        }
        if !unknown && !rules::open(who, label, self.top) {
            self.refuse(line, asked, unopened(label), &line.path, label, source);
        } else if line.flags.contains(Flags::WRITES) && !rules::modify(who, label, self.top) {
            self.refuse(line, writing, reason_of(label), &line.path, label, source);
        }
        self.maps(line, label);
    }

    /// What an object carries besides its content.
    fn attribute(&mut self, line: &Line<'_>) {
        if line.flags.contains(Flags::UNNAMED) {
            return;
        }
        let (label, source) = self.label(line);
        if line.flags.contains(Flags::READS) {
            let who = self.who(line.pid);
            let asked = line.act == Act::Xattr || !label.known;
            if asked && !rules::open(who, label, self.top) {
                self.refuse(line, line.act, unopened(label), &line.path, label, source);
                return;
            }
            let to = rules::observe(who, label);
            if to < who.level {
                self.fall(line, to, line.act, &line.path);
            }
        } else {
            self.modify(line, line.act, &line.path, label, source);
        }
    }
}
