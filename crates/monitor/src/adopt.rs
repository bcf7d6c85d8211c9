//! Labels for processes that were there before the monitor: each gets the level
//! of the lowest thing it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, statat};
use tidegate_bundle::Attrs;

use crate::code::Says;
use crate::error::Result;
use crate::event::{set_comm, set_path};
use crate::label::{Label, Origin};
use crate::load::Monitor;
use crate::skel::types::tg_event;
use crate::subject::{Subject, thread};
use crate::tasks::{Held, Process};
use crate::{Kind, Op};

/// Attributes that a program has by its rule.
const OF_PROGRAMS: Attrs = Attrs::NODEMOTE
    .union(Attrs::NONETDEMOTE)
    .union(Attrs::PERMISSIVE);

/// Passes after which it gives up: each finds only what began meanwhile.
const PASSES: usize = 16;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Processes below the top level now.
    pub lowered: usize,
    /// What a process keeps although its level forbids it.
    pub warnings: Vec<String>,
    /// Their records.
    pub records: Vec<u64>,
}

/// One look at everybody.
#[derive(Default)]
struct Pass {
    /// There is no further one.
    last: bool,
    /// Another is due.
    again: bool,
}

impl Pass {
    /// Whether a label counts. One that could not be looked for now is asked for again; in
    /// the last pass it is the lowest.
    fn counts(&mut self, label: Label) -> bool {
        let later = label.origin == Origin::Later && !self.last;
        self.again |= later;
        !later
    }

    /// Whether it counts that a process could not be looked at. It is looked at again; in the last pass it is taken for
    /// one that holds the lowest.
    fn counts_blocked(&mut self) -> bool {
        self.again |= !self.last;
        self.last
    }
}

/// Why a process is where it is.
struct Cause {
    level: u8,
    path: Option<String>,
    address: Option<IpAddr>,
    source: Option<u32>,
}

impl Monitor {
    /// Labels every process by what it has: its program, mapped files, files open
    /// for reading, connections. Demotions wait while a label is written.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterators cannot be run.
    pub fn adopt(&self) -> Result<Adopted> {
        let first = self.newest() + 1;
        let mut lowered = BTreeSet::new();
        let mut doubted = BTreeMap::new();
        let (mut blocked, mut unseen) = (Vec::new(), BTreeSet::new());
        for number in 1..=PASSES {
            let mut pass = Pass {
                last: number == PASSES,
                ..Pass::default()
            };
            doubted = self.take_programs(&mut pass, &mut lowered, &mut unseen)?;
            let mut causes: BTreeMap<u32, Cause> = BTreeMap::new();
            let descriptors = self.held_descriptors()?;
            let mapped = self.held_mappings()?;
            for h in descriptors.into_iter().chain(mapped.held) {
                let lower = causes.get(&h.pid).is_none_or(|c| h.to < c.level);
                if h.to < h.level && lower && pass.counts(h.label) {
                    causes.insert(h.pid, Cause::of(&h));
                }
            }
            blocked = mapped.blocked;
            blocked.retain(|it| it.level > 0);
            for it in &blocked {
                if pass.counts_blocked() {
                    causes.insert(it.pid, Cause::unknown());
                }
            }
            let processes = self.processes()?;
            for process in processes.iter().filter(|p| causes.contains_key(&p.pid)) {
                pass.again |= self.lower(process, &causes[&process.pid])?;
                lowered.insert(process.pid);
            }
            if !pass.again {
                break;
            }
        }
        let mut warnings = self.kept_mappings()?;
        warnings.extend(doubted.into_iter().map(|(pid, comm)| {
            format!(
                "{comm}({pid}) is not trusted by its program's rule, as not all that it executes is that program's: \
                 start it anew"
            )
        }));
        let lowest = blocked.iter().map(|it| {
            let pid = it.pid;
            format!("process {pid} is at the lowest level, as what it has mapped could not be looked at: start it anew")
        });
        warnings.extend(lowest);
        let mut records = Vec::new();
        for id in first..=self.newest() {
            let ours = self.event(id)?.is_some_and(|e| e.op == Some(Op::Start));
            records.extend(ours.then_some(id));
        }
        Ok(Adopted {
            lowered: lowered.len(),
            warnings,
            records,
        })
    }

    /// Mappings through which a process can go on changing what is above it: what a demotion would
    /// have been refused for, and nothing can take back. In words; so is a process that could not
    /// be looked at.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterator cannot be run.
    pub fn kept_mappings(&self) -> Result<Vec<String>> {
        let mapped = self.held_mappings()?;
        let top = self.globals.policy().top;
        let mut kept = Vec::new();
        for h in mapped.held.iter().filter(|h| h.revoke) {
            let what = h.path().unwrap_or_else(|| "a file above it".into());
            kept.push(format!("process {} keeps {what} mapped for writing", h.pid));
        }
        for it in mapped.blocked.iter().filter(|it| it.level < top) {
            kept.push(format!(
                "process {} could not be looked at, and may keep a file above it mapped for writing",
                it.pid
            ));
        }
        kept.dedup();
        Ok(kept)
    }

    /// Gives each process the level of its program, and its attributes, if it is that program: one
    /// that only says so is in the answer, with its name. One that cannot be looked at is `unseen`,
    /// and not waited for again.
    fn take_programs(
        &self,
        pass: &mut Pass,
        lowered: &mut BTreeSet<u32>,
        unseen: &mut BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, String>> {
        let mut doubted = BTreeMap::new();
        let (me, top) = (std::process::id(), self.globals.policy().top);
        for process in self.processes()? {
            let Some(program) = process.program.filter(|_| process.pid != me) else {
                continue;
            };
            if !pass.counts(program) {
                continue;
            }
            if program.level < process.subject.level && !program.attrs.contains(Attrs::NEUTRAL) {
                let path = link(&format!("/proc/{}/exe", process.pid));
                let path = path.filter(|_| process.executed);
                let cause = Cause {
                    level: program.level,
                    path,
                    address: None,
                    source: None,
                };
                pass.again |= self.lower(&process, &cause)?;
                lowered.insert(process.pid);
            } else if !process.governed {
                let mut attrs = program.attrs & OF_PROGRAMS;
                if program.level < top {
                    attrs &= Attrs::PERMISSIVE;
                }
                if attrs.is_empty() {
                    continue;
                }
                let says = match unseen.contains(&process.pid) {
                    true => Says::Unseen,
                    false => self.code(process.pid)?.is_of(program.level),
                };
                if says == Says::Unseen {
                    unseen.insert(process.pid);
                }
                match says {
                    Says::Yes => pass.again |= self.label_threads(&process, top, attrs, 0)?,
                    Says::Later if !pass.last => pass.again = true,
                    _ => drop(doubted.insert(process.pid, process.comm)),
                }
            }
        }
        Ok(doubted)
    }

    /// Lowers a process, and records why.
    fn lower(&self, process: &Process, cause: &Cause) -> Result<bool> {
        let mut event = tg_event {
            kind: Kind::Demoted as u8,
            op: Op::Start as u8,
            pid: process.pid,
            tid: process.pid,
            uid: process.uid,
            start: process.start,
            prev: process.subject.cause,
            from: process.subject.level,
            to: cause.level,
            object: cause.level,
            source: cause.source.unwrap_or(u32::MAX),
            ..Default::default()
        };
        set_comm(&mut event, &process.comm);
        if let Some(path) = &cause.path {
            set_path(&mut event, path);
        }
        if let Some(address) = cause.address {
            event.family = if address.is_ipv4() { 2 } else { 10 };
            event.addr = match address {
                IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
                IpAddr::V6(a) => a.octets(),
            };
        }
        let id = self.record(event)?;
        self.label_threads(process, cause.level, process.subject.attrs, id)
    }

    /// Labels every thread of a process, those that begin meanwhile too. A process
    /// that has ended is no error; one that has its number by then falls as that did, and gets no attributes.
    fn label_threads(
        &self,
        process: &Process,
        level: u8,
        attrs: Attrs,
        cause: u64,
    ) -> Result<bool> {
        let mut done = BTreeSet::new();
        // of one process from here on, which a path of procfs would not be
        let open = |of: BorrowedFd<'_>, name: &str| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(of, name, flags, Mode::empty()).ok()
        };
        let Some(whose) = open(CWD, &format!("/proc/{}", process.pid)) else {
            return Ok(false);
        };
        let attrs = match self.is_there(process)? {
            true => attrs,
            false => Attrs::empty(),
        };
        while let Some(tasks) = open(whose.as_fd(), "task") {
            let Ok(tasks) = Dir::new(tasks) else {
                break;
            };
            let tids = tasks
                .flatten()
                .filter_map(|t| t.file_name().to_str().ok()?.parse().ok());
            let fresh: Vec<u32> = tids.filter(|t| !done.contains(t)).collect();
            if fresh.is_empty() {
                break;
            }
            for tid in fresh {
                done.insert(tid);
                let label = Subject {
                    level,
                    attrs,
                    cause,
                };
                match self.in_turn(|| self.label_thread(&whose, tid, label))? {
                    Err(e) if e.errno() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                    labelled => labelled?,
                }
            }
        }
        Ok(!done.is_empty())
    }

    /// Labels a thread of a process, by that one's directory in procfs, that is not lower by now. In a turn.
    fn label_thread(&self, whose: &OwnedFd, tid: u32, label: Subject) -> Result<()> {
        let takes = |now: Subject| {
            now.level > label.level || (now.level == label.level && !label.attrs.is_empty())
        };
        let thread = thread(tid)?;
        // whose number it is now, it was when the descriptor was opened
        if statat(whose, format!("task/{tid}"), AtFlags::empty()).is_err() {
            return Ok(());
        }
        match self.subject(&thread, tid)?.is_none_or(takes) {
            true => self.set_subject(&thread, tid, label),
            false => Ok(()),
        }
    }
}

impl Cause {
    fn of(h: &Held) -> Cause {
        Cause {
            level: h.to,
            path: h.path(),
            address: h.address,
            source: h.source,
        }
    }

    /// It is not known what the process holds.
    fn unknown() -> Cause {
        Cause {
            level: 0,
            path: None,
            address: None,
            source: None,
        }
    }
}

impl Held {
    /// Its path, as far as this process can see it; of a mapping its name alone, as procfs waits for the lock of its holder's
    /// memory.
    fn path(&self) -> Option<String> {
        match self.fd {
            _ if self.address.is_some() => None,
            Some(fd) => link(&format!("/proc/{}/fd/{fd}", self.pid)),
            None => Some(self.name.clone()).filter(|name| !name.is_empty()),
        }
    }
}

fn link(path: &str) -> Option<String> {
    fs::read_link(path)
        .ok()
        .map(|p| p.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_for_is_looked_for_again_and_then_the_lowest() {
        let later = Label::from_word(1 << 28 | 1 << 29);
        let mut pass = Pass::default();
        assert!(pass.counts(Label::from_word(1 << 28)) && !pass.again);
        assert!(!pass.counts(later) && pass.again);
        let mut last = Pass {
            last: true,
            ..Pass::default()
        };
        assert!(last.counts(later) && !last.again);
        assert!(last.counts_blocked() && !last.again);
        let mut pass = Pass::default();
        assert!(!pass.counts_blocked() && pass.again);
    }
}
