//! Revokes what the `te` model granted under an earlier policy (kernel/te/revoke.h). Capabilities are revoked by
//! caps/revoke.rs, and a promotion by the guard ([`Monitor::give`]).
//!
//! Invariant: once [`Monitor::revoke`] has returned, no operation uses a permission that the policy in force does not
//! give. In this order:
//!
//! 1. the policy is in force: what is decided from now on is decided by it, also on sockets, at each message;
//! 2. the guard is attached: so is each read and write through a descriptor from now on;
//! 3. each governed thread has been outside of what it began before (`rest.rs`): no read that waits is left, and no
//!    open or mmap that was decided earlier has yet to come into being;
//! 4. a process with a mapping that it may not have is killed, as nobody is asked about its use; so
//!    is one that holds such a descriptor and has an io_uring, whose workers never leave the
//!    kernel; and one that cannot be looked at, as its memory is locked.
//!
//! Threads that are born meanwhile have begun nothing yet. What changes hands meanwhile passes a hook that decides by the
//! policy in force, or comes by fork with what the parent holds, which is looked at again until nothing is found twice
//! (mappings.rs).

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tidegate_flask::Sid;

use crate::error::{Error, Result, Trying};
use crate::guard::Guard;
use crate::load::Monitor;
use crate::mappings::BLOCKED;
use crate::parts::Te;
use crate::rest;
use crate::skel::types::tg_te_held;
use crate::sys::Over;
use crate::tasks::Process;

/// How long a process that is killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Looks at what is held, at most: a process that is killed is not found by the next, but a child
/// of it may be.
const LOOKS: u32 = 16;

/// Looks in a row that find nobody.
const CLEAN: u32 = 2;

/// What was revoked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Descriptors that their holders may not use any more.
    pub descriptors: usize,
    /// The processes that were killed.
    pub killed: Vec<Killed>,
}

/// A process that held what could not be taken from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Killed {
    /// Its id,
    pub pid: u32,
    /// its program's name,
    pub comm: String,
    /// and why.
    pub why: Why,
}

/// Why a process was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A mapping: of what, and of which class.
    Mapping {
        /// The label of what is mapped.
        target: Sid,
        /// Its inode's number; 0: memory that no file is behind.
        ino: u64,
    },
    /// A descriptor, and an io_uring that may use it.
    Ring {
        /// The label of what it is a descriptor of.
        target: Sid,
    },
    /// A mapping that went by a capability which was taken back, by the inode's number.
    Withdrawn {
        /// The inode's number.
        ino: u64,
    },
    /// One of its threads did not leave the kernel in time, or somebody keeps its memory locked, so that it cannot be looked at.
    Busy,
}

impl Monitor {
    /// Revokes what the `te` policy in force does not allow any more; complete when it returns.
    ///
    /// # Errors
    /// [`Error::Hook`], [`Error::Io`]: the policy is in force, and what was granted earlier may still be used.
    pub fn revoke(&self, guard: &Guard) -> Result<Revoked> {
        let processes = self.processes()?;
        let governed: Vec<&Process> = processes.iter().filter(|p| p.sid.is_some()).collect();
        if governed.is_empty() {
            return Ok(Revoked::default());
        }
        guard.arm_te(self)?;
        let late = self.bring_to_rest(&governed)?;
        let mut revoked = Revoked::default();
        revoked.killed = self.kill_all(processes, late, |doomed| {
            let mut held = self.te_descriptors()?;
            held.extend(self.te_mappings()?);
            // the ring itself is no more than a reason for the guard
            let is_ring = |h: &&tg_te_held| h.fd < BLOCKED && h.ino == 0;
            let mut rings: HashSet<u32> = held.iter().filter(is_ring).map(|h| h.pid).collect();
            rings.extend(self.with_rings()?);
            let descriptors = held.iter().filter(|h| h.fd < BLOCKED && h.ino != 0);
            revoked.descriptors = descriptors.count();
            for h in held.iter().filter(|h| !is_ring(h)) {
                let target = Sid(h.target);
                if h.fd == BLOCKED {
                    doomed.insert(h.pid, Why::Busy);
                } else if h.fd == u32::MAX {
                    doomed.insert(h.pid, Why::Mapping { target, ino: h.ino });
                } else if rings.contains(&h.pid) {
                    doomed.entry(h.pid).or_insert(Why::Ring { target });
                }
            }
            Ok(())
        })?;
        Ok(revoked)
    }

    /// Kills the processes that were late, and those that a look finds, until it finds none twice. A look tells processes by their
    /// numbers, which others may have by then: a process is killed only if it was there before the look, and is still.
    ///
    /// `there`: all processes, from before somebody was late.
    pub(crate) fn kill_all(
        &self,
        mut there: Vec<Process>,
        late: Vec<u32>,
        mut look: impl FnMut(&mut BTreeMap<u32, Why>) -> Result<()>,
    ) -> Result<Vec<Killed>> {
        let mut doomed: BTreeMap<u32, Why> = late.into_iter().map(|pid| (pid, Why::Busy)).collect();
        let mut killed = Vec::new();
        let mut clean = 0;
        for _ in 0..LOOKS {
            look(&mut doomed)?;
            clean = if doomed.is_empty() { clean + 1 } else { 0 };
            if clean == CLEAN {
                return Ok(killed);
            }
            for (pid, why) in std::mem::take(&mut doomed) {
                // a process that came since is found by the next look
                let Some(process) = there.iter().find(|process| process.pid == pid) else {
                    continue;
                };
                if self.kill(process)? {
                    killed.push(Killed {
                        pid,
                        comm: process.comm.clone(),
                        why,
                    });
                }
            }
            there = self.processes()?;
        }
        let what = "kill all who map what they may not";
        Err(Error::io(what, rustix::io::Errno::BUSY))
    }

    /// Kills a process that was there, and waits until it is gone; false: it has ended by itself.
    fn kill(&self, process: &Process) -> Result<bool> {
        let pid = process.pid;
        let what = || format!("kill process {pid}");
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Ok(false);
        };
        let fd = match pidfd_open(id, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            fd => fd.trying(what)?,
        };
        // whoever has the number now had it when the descriptor was opened
        if !self.is_there(process)? {
            return Ok(false);
        }
        match pidfd_send_signal(&fd, Signal::KILL) {
            Ok(()) => {}
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            Err(e) => return Err(Error::io(what(), e)),
        }
        let until = Instant::now() + GONE_WITHIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let mut ended = [PollFd::new(&fd, PollFlags::IN)];
            match poll(&mut ended, Some(&left)) {
                Ok(0) => return Err(Error::io(what(), rustix::io::Errno::TIMEDOUT)),
                Ok(_) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Error::io(what(), e)),
            }
        }
    }

    /// Descriptors that governed processes have and may not use.
    pub(crate) fn te_descriptors(&self) -> Result<Vec<tg_te_held>> {
        match self.part::<Te>()? {
            Some(te) => Ok(of_others(self.lines(&te.ps_file)?)),
            None => Ok(Vec::new()),
        }
    }

    /// Of each governed process a mapping that it may not have; so is one that cannot be looked at (`BLOCKED`).
    fn te_mappings(&self) -> Result<Vec<tg_te_held>> {
        match self.part::<Te>()? {
            Some(te) => Ok(of_others(self.look(&te.ps_vma, Over::All)?)),
            None => Ok(Vec::new()),
        }
    }

    /// Has all threads of these processes be at rest once (rest.rs); the processes of those that were not to be had.
    pub(crate) fn bring_to_rest(&self, processes: &[&Process]) -> Result<Vec<u32>> {
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        rest::bring(&pids, || self.calls())
    }
}

/// Without those of the process that asks, of which there are all, for `labels`.
fn of_others(mut held: Vec<tg_te_held>) -> Vec<tg_te_held> {
    held.retain(|h| h.pid != std::process::id());
    held
}
