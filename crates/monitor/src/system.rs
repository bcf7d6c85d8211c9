//! The system-wide start of the `te` model: which tasks there are, and the SIDs that they are given
//! (kernel/te/adopt.h).

use std::sync::atomic::Ordering;

use tidegate_flask::Sid;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::parts::Te;
use crate::skel::types::{te_adopted, tg_te_task};

/// In the kernel's table of SIDs: it is to have none.
const EXEMPT: u64 = !0;

/// In place of a program's SID: it cannot be known now.
const LATER: u64 = !1;

/// The first process.
pub const INIT: u32 = 1;

/// A thread, and its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its process's parent, 0: it has none.
    pub ppid: u32,
    /// The session that it is in, by the process that began it.
    pub session: u32,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub start: u64,
    /// Whether it is a thread of the kernel's.
    pub kernel: bool,
    /// Its SID; `None`: it has none yet, or only that of tasks that have no label.
    pub sid: Option<Sid>,
    /// Which file its program is, and that file's SID, as far as it can be known now. `None`: it has none.
    pub program: Option<(u64, Option<Sid>)>,
    /// Whether that file is what was executed: a process may say another one (PR_SET_MM).
    pub executed: bool,
}

impl From<&tg_te_task> for Thread {
    fn from(t: &tg_te_task) -> Thread {
        Thread {
            pid: t.pid,
            tid: t.tid,
            ppid: t.ppid,
            session: t.session,
            start: t.start,
            kernel: t.kernel != 0,
            sid: (t.sid != 0 && t.stray == 0).then_some(Sid(t.sid)),
            program: (t.program != 0).then(|| {
                let known = t.label != 0 && t.label != LATER;
                (t.program, known.then_some(Sid(t.label)))
            }),
            executed: t.executed != 0,
        }
    }
}

impl Monitor {
    /// All threads, the kernel's too, but for the monitor's own.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel's iterator cannot be run; [`Error::Load`].
    pub fn threads(&self) -> Result<Vec<Thread>> {
        let lines: Vec<tg_te_task> = self.lines(&self.needed::<Te>()?.ps_task)?;
        Ok(lines.iter().map(Thread::from).collect())
    }

    /// Gives threads their SIDs, but for those that have one by now.
    ///
    /// # Errors
    /// [`Error::Io`] without memory for one of them.
    pub fn adopt_into(&self, threads: &[(Thread, Sid)]) -> Result<()> {
        let keys: Vec<te_adopted> = threads.iter().map(|(t, _)| key(t.tid, t.start)).collect();
        let values: Vec<u64> = threads.iter().map(|(_, sid)| sid.0).collect();
        self.adopt_as(&keys, &values)
    }

    /// Makes this process one that no policy of the `te` model governs under a system-wide start: it enforces it. Its
    /// threads and children to come are like it.
    ///
    /// # Errors
    /// [`Error::Io`] without memory.
    pub fn exempt_myself(&self) -> Result<()> {
        let me = rustix::thread::gettid().as_raw_pid() as u32;
        let process = self.process(me)?;
        let start = process.map_or(0, |process| process.start);
        self.adopt_as(&[key(me, start)], &[EXEMPT])
    }

    fn adopt_as(&self, keys: &[te_adopted], values: &[u64]) -> Result<()> {
        let what = || "bring what runs under the policy".to_string();
        let te = self.needed::<Te>()?;
        te.adopted.put_all(keys, values).trying(what)?;
        let done: Result<Vec<u32>> = self.lines(&te.ps_adopt);
        for key in keys {
            te.adopted.delete(key).trying(what)?;
        }
        match done?.contains(&0) {
            true => Err(Error::io(what(), rustix::io::Errno::NOMEM)),
            false => Ok(()),
        }
    }

    /// Gives sockets that have no SID their holders'.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel's iterator cannot be run.
    pub fn adopt_sockets(&self) -> Result<()> {
        let te = self.needed::<Te>()?;
        for first in [0, 1] {
            te.globals.first_holds().store(first, Ordering::SeqCst);
            self.lines::<u32>(&te.ps_socket)?;
        }
        Ok(())
    }

    /// From here on every task is governed: one that has no SID has this one, until another is
    /// given to it. `None`: such are not governed.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn govern_everyone(&self, unlabeled: Option<Sid>) -> Result<()> {
        let sid = unlabeled.map_or(0, |sid| sid.0);
        let te = self.needed::<Te>()?;
        te.globals.everyone().store(sid, Ordering::SeqCst);
        Ok(())
    }

    /// Whether everybody is governed.
    ///
    /// # Errors
    /// [`Error::Io`] if the `te` model is loaded and what it has cannot be opened.
    pub fn governs_everyone(&self) -> Result<bool> {
        let te = self.part::<Te>()?;
        Ok(te.is_some_and(|te| te.globals.everyone().load(Ordering::SeqCst) != 0))
    }

    /// How often a task was met that was governed and had no SID.
    ///
    /// # Errors
    /// As [`governs_everyone`](Self::governs_everyone).
    pub fn strays(&self) -> Result<u64> {
        let te = self.part::<Te>()?;
        Ok(te.map_or(0, |te| te.globals.strays().load(Ordering::SeqCst)))
    }
}

fn key(tid: u32, start: u64) -> te_adopted {
    te_adopted { start, tid, pad: 0 }
}
