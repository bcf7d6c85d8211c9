//! The guard: revokes descriptors that were opened before a demotion.
//!
//! Its programs sit on hooks that every read and write passes, so they are
//! attached only while somebody holds a descriptor through which it could still
//! change something above it. The kernel side is `tx_guard` in
//! kernel/lomac/demote/steps.h; the two agree on `guard_armed`:
//!
//! - it is 1 only while every guard is attached: set after the last is attached,
//!   cleared before the first is detached;
//! - a demotion that finds such a descriptor publishes its levels only once it has
//!   read 1. It holds the transaction lock throughout;
//! - it is cleared only under that same lock, while no task has a note that it may
//!   hold such a descriptor, and only if nobody has taken the lock since (turn.rs).
//!   So no demotion can have read 1 and still be under way, and one that begins later
//!   reads 0 and asks.
//!
//! kernel/lomac/held.h says who has that note, and how one gets rid of it: nothing
//! is concluded from the table of a process that runs. While the lock is held no
//! level falls. A descriptor can then only change hands by fork, with the note, or
//! through a hook (SCM_RIGHTS, `pidfd_getfd`), which refuses it.
//!
//! The `te` model's guard (kernel/te/revoke.h) comes with the others where a policy takes back what an earlier
//! one gave, or an execution brings descriptors into a domain that may not use them, and goes with them. An execution
//! takes no lock: it sets the SID and then reads `te_guard_armed`; here that is cleared, and then looked for such SIDs.
//!
//! A policy that raises objects, and a promotion, make descriptors revocable
//! without a demotion: they arm the guard before they take effect, and it stays until
//! they have ([`Guard::raise`]). Then everybody below the top has the note.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::load::Monitor;
use crate::parts::Te;
use crate::quiescent::Quiescent;

/// Scans of the `te` model in a row, a beat apart, that must have found nothing: a process that
/// moves a descriptor to and fro within its table may hide it from one.
const CLEAN: u32 = 12;

/// The guard's state in this process.
#[derive(Debug)]
pub struct Guard {
    /// How long nobody must have needed it before it goes.
    quiet: Duration,
    /// When it was last needed; `None`: it is not attached.
    needed: Mutex<Option<Instant>>,
    /// Scans in a row that found nothing.
    clean: AtomicU32,
    /// How many are about to arm it, and wait for [`Guard::needed`].
    asked: AtomicU32,
    /// How many are raising something: see [`Guard::raise`].
    raising: AtomicU32,
}

/// While it lives, something may rise, and the guard stays.
#[derive(Debug)]
#[must_use]
pub struct Raising<'a> {
    guard: &'a Guard,
    monitor: &'a Monitor,
}

impl Drop for Raising<'_> {
    fn drop(&mut self) {
        // after what it was for: what was seen to hold nothing before that may hold something now
        self.monitor.globals.rises().fetch_add(1, Ordering::SeqCst);
        *self.guard.needed() = Some(Instant::now());
        self.guard.raising.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Guard {
    /// Takes the guard as it stands in the kernel. It goes once nobody has needed it for `quiet`.
    ///
    /// # Errors
    /// As [`Monitor::status`].
    pub fn of(monitor: &Monitor, quiet: Duration) -> Result<Guard> {
        let status = monitor.status()?;
        let there = status.guard_armed || status.guard_attached;
        if there {
            // whoever ran before may have ended while something rose
            monitor.globals.rises().fetch_add(1, Ordering::SeqCst);
        }
        Ok(Guard {
            quiet,
            needed: Mutex::new(there.then(Instant::now)),
            clean: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            raising: AtomicU32::new(0),
        })
    }

    /// For how long nobody must have needed it before it goes.
    pub fn quiet(&self) -> Duration {
        self.quiet
    }

    /// Arms it, if it is not, and keeps it while something rises: until the answer is dropped.
    ///
    /// # Errors
    /// As [`Guard::arm`]; then nothing may rise.
    pub fn raise<'a>(&'a self, monitor: &'a Monitor) -> Result<Raising<'a>> {
        self.raising.fetch_add(1, Ordering::SeqCst);
        let raising = Raising {
            guard: self,
            monitor,
        };
        self.arm(monitor)?;
        Ok(raising)
    }

    /// Arms it, if it is not: a demotion asks.
    ///
    /// # Errors
    /// [`crate::Error::Hook`]; the demotion that asked is then refused in time.
    pub fn arm(&self, monitor: &Monitor) -> Result<()> {
        // the lock goes to the quickest thread, and that is the one that has just let it go
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut needed = self.needed();
        self.asked.fetch_sub(1, Ordering::SeqCst);
        if monitor.globals.guard_armed().load(Ordering::SeqCst) == 0 {
            let _quiescent = Quiescent::begin();
            monitor.attach_guards()?;
            monitor.globals.guard_armed().store(1, Ordering::SeqCst);
        }
        *needed = Some(Instant::now());
        Ok(())
    }

    /// Attaches the `te` model's guard, too: a policy has come into force under which a descriptor may be revoked, or a
    /// process has come to a domain that may not use what it holds.
    ///
    /// # Errors
    /// [`crate::Error::Hook`]; the process that asked is killed in time.
    pub fn arm_te(&self, monitor: &Monitor) -> Result<()> {
        let te = monitor.needed::<Te>()?;
        self.arm(monitor)?;
        let mut needed = self.needed();
        let _quiescent = Quiescent::begin();
        monitor.attach_te_guards()?;
        te.globals.guard_armed().store(1, Ordering::SeqCst);
        *needed = Some(Instant::now());
        Ok(())
    }

    /// Lets it go once nobody has needed it for a while. To be called often.
    ///
    /// # Errors
    /// As [`Monitor::hold_transactions`] and the scan; the guard then stays.
    pub fn rest(&self, monitor: &Monitor) -> Result<()> {
        if self.needed().is_none() {
            return Ok(());
        }
        // each time, as a process that is seldom at rest may be so just now; outside the lock, so
        // that a demotion that asks does not wait
        monitor.look_at_held()?;
        if !self.is_quiet(&self.needed()) {
            return Ok(());
        }
        if monitor.revocable()? {
            self.clean.store(0, Ordering::Relaxed);
            *self.needed() = Some(Instant::now());
            return Ok(());
        }
        if monitor.te_guard_is_armed()? && self.clean.fetch_add(1, Ordering::Relaxed) < CLEAN {
            return Ok(());
        }
        self.clean.store(0, Ordering::Relaxed);
        if !self.disarm(monitor)? {
            return Ok(());
        }
        // detaching is slow: a demotion that asks meanwhile gets back what is left
        while self.asked.load(Ordering::SeqCst) == 0 {
            let mut needed = self.needed();
            if monitor.globals.guard_armed().load(Ordering::SeqCst) != 0 {
                break;
            }
            if !monitor.detach_one_guard()? {
                *needed = None;
                break;
            }
        }
        Ok(())
    }

    /// Clears `guard_armed`, if it is still quiet and nobody needs it.
    fn disarm(&self, monitor: &Monitor) -> Result<bool> {
        let mut needed = self.needed();
        if !self.is_quiet(&needed) {
            return Ok(false);
        }
        let turn = monitor.hold_transactions()?;
        if monitor.revocable()? {
            *needed = Some(Instant::now());
            return Ok(false);
        }
        // a process that comes to another domain now asks for the guard again, or is found by the
        // last look
        let te = monitor.part::<Te>()?.map(|te| te.globals.guard_armed());
        let was_armed = te.is_some_and(|armed| armed.swap(0, Ordering::SeqCst) == 1);
        let is_needed = was_armed && !monitor.te_descriptors().is_ok_and(|held| held.is_empty());
        // a demotion that took the turn since may count on it
        let disarm = || monitor.globals.guard_armed().store(0, Ordering::SeqCst);
        if is_needed || turn.finish(disarm).is_none() {
            if let Some(armed) = te {
                armed.store(was_armed.into(), Ordering::SeqCst);
            }
            *needed = Some(Instant::now());
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether nobody has needed it for long enough, and nothing rises.
    fn is_quiet(&self, needed: &Option<Instant>) -> bool {
        self.raising.load(Ordering::SeqCst) == 0
            && needed.is_some_and(|at| at.elapsed() >= self.quiet)
    }

    fn needed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.needed.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Monitor {
    /// Whether anybody may hold a descriptor that the guard would refuse, or has a ring.
    fn revocable(&self) -> Result<bool> {
        Ok(self.may_hold()? || (self.te_guard_is_armed()? && !self.te_descriptors()?.is_empty()))
    }

    fn te_guard_is_armed(&self) -> Result<bool> {
        let te = self.part::<Te>()?;
        Ok(te.is_some_and(|te| te.globals.guard_armed().load(Ordering::SeqCst) == 1))
    }
}
