//! The guard: revokes descriptors that were opened before a demotion.
//!
//! Its programs sit on hooks that every read and write passes, so they are
//! attached only while somebody holds a descriptor through which it could still
//! change something above it. The kernel side is `tx_guard` in
//! kernel/lomac/demote/transaction.h; the two agree on `guard_armed`:
//!
//! - it is 1 only while every guard is attached: set after the last is attached,
//!   cleared before the first is detached;
//! - a demotion that finds such a descriptor publishes its levels only once it has
//!   read 1. It holds the transaction lock throughout;
//! - it is cleared only under that same lock, after a scan under that lock has
//!   found no such descriptor, and only if nobody has taken the lock since (turn.rs).
//!   So no demotion can have read 1 and still be under way, and one that begins later
//!   reads 0 and asks.
//!
//! While the lock is held no level falls. A descriptor can then only change hands
//! by fork, which gives it to a task with a higher number, where the scan has yet
//! to come, or after the numbers wrapped, to one where the second scan comes; or
//! through a hook (SCM_RIGHTS, `pidfd_getfd`), which refuses it.
//!
//! The `te` model's guard (kernel/te/revoke.h) comes with the others where a policy takes back what an earlier
//! one gave, or an execution brings descriptors into a domain that may not use them, and goes with them. An execution
//! takes no lock: it sets the SID and then reads `te_guard_armed`; here that is cleared, and then looked for such SIDs.
//!
//! A policy that raises objects, and a promotion, make descriptors revocable
//! without a demotion: they arm the guard before they take effect.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::load::Monitor;
use crate::quiescent::Quiescent;

/// Scans in a row, a beat apart, that must have found nothing: who moves a descriptor
/// to and fro within its table may hide it from one.
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
}

impl Guard {
    /// Takes the guard as it stands in the kernel. It goes once nobody has needed it for `quiet`.
    ///
    /// # Errors
    /// As [`Monitor::status`].
    pub fn of(monitor: &Monitor, quiet: Duration) -> Result<Guard> {
        let status = monitor.status()?;
        let there = status.guard_armed || status.guard_attached;
        Ok(Guard {
            quiet,
            needed: Mutex::new(there.then(Instant::now)),
            clean: AtomicU32::new(0),
            asked: AtomicU32::new(0),
        })
    }

    /// For how long nobody must have needed it before it goes.
    pub fn quiet(&self) -> Duration {
        self.quiet
    }

    /// Arms it, if it is not: a demotion asks, or something is about to rise.
    ///
    /// # Errors
    /// [`crate::Error::Hook`]; the demotion that asked is then refused in time.
    pub fn arm(&self, monitor: &Monitor) -> Result<()> {
        // the lock goes to whoever is quickest, and that is who has just let it go
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
    /// [`crate::Error::Hook`]; who asked is killed in time.
    pub fn arm_te(&self, monitor: &Monitor) -> Result<()> {
        self.arm(monitor)?;
        let mut needed = self.needed();
        let _quiescent = Quiescent::begin();
        monitor.attach_te_guards()?;
        monitor.globals.te_guard_armed().store(1, Ordering::SeqCst);
        *needed = Some(Instant::now());
        Ok(())
    }

    /// Lets it go once nobody has needed it for a while. To be called often.
    ///
    /// # Errors
    /// As [`Monitor::hold_transactions`] and the scan; the guard then stays.
    pub fn rest(&self, monitor: &Monitor) -> Result<()> {
        if !self.needed().is_some_and(|at| at.elapsed() >= self.quiet) {
            return Ok(());
        }
        // outside the lock, so that a demotion that asks is not kept waiting
        if monitor.revocable()? {
            self.clean.store(0, Ordering::Relaxed);
            *self.needed() = Some(Instant::now());
            return Ok(());
        }
        if self.clean.fetch_add(1, Ordering::Relaxed) < CLEAN {
            return Ok(());
        }
        self.clean.store(0, Ordering::Relaxed);
        if !self.disarm(monitor)? {
            return Ok(());
        }
        // detaching is slow: who asks meanwhile gets back what is left
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
        if !needed.is_some_and(|at| at.elapsed() >= self.quiet) {
            return Ok(false);
        }
        let turn = monitor.hold_transactions()?;
        if monitor.revocable()? || monitor.revocable()? {
            *needed = Some(Instant::now());
            return Ok(false);
        }
        // who comes to another domain now asks for the guard again, or is found by the last look
        let te = monitor.globals.te_guard_armed();
        let was_armed = te.swap(0, Ordering::SeqCst) == 1;
        let is_needed = was_armed && !monitor.te_descriptors().is_ok_and(|held| held.is_empty());
        // a demotion that took the turn since may count on it
        let disarm = || monitor.globals.guard_armed().store(0, Ordering::SeqCst);
        if is_needed || turn.finish(disarm).is_none() {
            te.store(was_armed.into(), Ordering::SeqCst);
            *needed = Some(Instant::now());
            return Ok(false);
        }
        Ok(true)
    }

    fn needed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.needed.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Monitor {
    /// Whether anybody holds a descriptor that the guard would refuse.
    fn revocable(&self) -> Result<bool> {
        let top = self.globals.policy().top;
        Ok(self.held_descriptors()?.iter().any(|h| h.revoke)
            || self.rings_below(top)?
            || (self.globals.te_guard_armed().load(Ordering::SeqCst) == 1
                && !self.te_descriptors()?.is_empty()))
    }
}
