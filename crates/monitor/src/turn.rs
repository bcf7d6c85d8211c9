//! The turn of the demotion transaction, as user space takes it (kernel/lomac/demote/lock.h): while it has it, no level falls.
//!
//! It has it for a time, as each of the kernel's transactions has. Once that is over, a task that
//! waits may take it, whether the process that had it runs or not, and a process that has died
//! keeps nobody waiting. So whoever has it finds out, by [`Turn::finish`], whether it has been its
//! own throughout; what was to hold by it is done there, or not at all.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};
use crate::load::Monitor;

/// How long to wait for a demotion under way; the kernel ends each in 2 s, but what waits
/// for the guard.
const TRANSACTION: Duration = Duration::from_secs(2);

/// In the lock's word: it is the kernel's (`TX_KERNEL` of kernel/lomac/demote/lock.h).
const KERNEL: u32 = 1 << 31;

/// And its holder does not wait for others just now (`TX_INSIDE`): nobody may take it from that one.
const INSIDE: u32 = 1 << 30;

/// Bits of a process's id; above it is a number that tells its turns apart.
const PID_BITS: u32 = 22;

/// How long a holder that waits is left alone: `TURN_HIGHER_NS` of kernel/lib/budget.h.
const TURN: Duration = Duration::from_millis(50);

/// How often the turn is taken anew, where another takes it before it was used.
const TRIES: u32 = 4;

/// Keeps demotions waiting while it lives, for as long as a turn lasts.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    monitor: &'a Monitor,
    word: u32,
}

impl Turn<'_> {
    /// Does something, and gives the turn back; nothing, and `None`, if another has had it since. Nobody takes it
    /// meanwhile, so it is to be short.
    pub fn finish<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let lock = self.monitor.globals.transaction();
        let inside = self.word | INSIDE;
        lock.compare_exchange(self.word, inside, Ordering::SeqCst, Ordering::SeqCst)
            .ok()?;
        let done = work();
        lock.store(self.word, Ordering::SeqCst);
        Some(done)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // another's is left alone
        let _ = self.monitor.globals.transaction().compare_exchange(
            self.word,
            0,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
    }
}

impl Monitor {
    /// Waits for the demotion under way, if any, and keeps others from beginning.
    pub(crate) fn hold_transactions(&self) -> Result<Turn<'_>> {
        let lock = self.globals.transaction();
        let word = fresh();
        let until = Instant::now() + TRANSACTION;
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            let now = lock.load(Ordering::SeqCst);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            // a holder of the kernel's that waits has had its turn; one of user space's may have died
            let free = match now {
                0 => true,
                _ if now & KERNEL != 0 => now & INSIDE == 0 && since.elapsed() > TURN,
                _ => !is_alive(now),
            };
            // its time begins before anybody can take it
            if free
                && lock
                    .compare_exchange(now, word | INSIDE, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
            {
                self.globals.begin_turn(monotonic());
                lock.store(word, Ordering::SeqCst);
                return Ok(Turn {
                    monitor: self,
                    word,
                });
            }
            if Instant::now() > until {
                let busy = std::io::Error::from(Errno::BUSY);
                return Err(Error::io("wait for a demotion to end", busy));
            }
            // lower ones leave the next turn to it
            self.globals.wait_for_turn(monotonic(), word);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes the turn, does something in it, and gives it back. Nobody takes it meanwhile, so it is to be short.
    pub(crate) fn in_turn<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let mut work = Some(work);
        for _ in 0..TRIES {
            let done = self
                .hold_transactions()?
                .finish(|| work.take().map(|work| work()));
            if let Some(Some(done)) = done {
                return Ok(done);
            }
        }
        let busy = std::io::Error::from(Errno::BUSY);
        Err(Error::io("keep demotions waiting", busy))
    }

    /// Gives back the turn that a daemon had when it died, also where it was at something that nobody may take it from. The lock
    /// of the daemon's instance says that it has: what has its number by now is another process.
    pub fn forget_turn(&self) {
        let lock = self.globals.transaction();
        let now = lock.load(Ordering::SeqCst);
        if now != 0 && now & KERNEL == 0 {
            let _ = lock.compare_exchange(now, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

/// A word for the lock that none of this process's last turns had.
fn fresh() -> u32 {
    static TURNS: AtomicU32 = AtomicU32::new(0);
    let number = TURNS.fetch_add(1, Ordering::Relaxed);
    std::process::id() | ((number << PID_BITS) & !(KERNEL | INSIDE))
}

/// Whether the process that a word is of is there.
fn is_alive(word: u32) -> bool {
    let pid = word & ((1 << PID_BITS) - 1);
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Nanoseconds of the clock that the kernel counts turns by (bpf_ktime_get_ns).
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_told_from_the_one_before_and_from_the_kernels() {
        let (first, second) = (fresh(), fresh());
        assert_ne!(first, second);
        for word in [first, second] {
            assert_eq!(word & (KERNEL | INSIDE), 0);
            assert!(is_alive(word) && is_alive(word | INSIDE));
        }
    }
}
