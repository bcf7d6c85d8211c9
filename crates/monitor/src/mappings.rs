//! Looks at what processes have mapped, by the kernel's programs (kernel/lib/look.h).
//!
//! A process is looked at as a whole, or not at all: nothing can be moved from before a look to behind it. No look waits for
//! the lock of a process's memory, which that process may keep for as long as it likes. Where it cannot be looked at, it is tried
//! again for a while, and then the answer says so; whoever asked takes it for one that holds what was looked for.
//!
//! From process to process a mapping goes by fork alone, to a higher number, where the look has yet to come. Only once, after the
//! numbers have begun anew, it may go to a lower one. So where nothing may be missed, two looks in a row have to find nothing.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, Trying};
use crate::load::Monitor;
use crate::skel::types::tg_held;
use crate::sys::{self, Over, Pod};
use crate::tasks::Held;

/// In place of a descriptor: this process could not be looked at (`LOOK_BLOCKED`).
pub(crate) const BLOCKED: u32 = u32::MAX - 1;

/// How long it is tried to look at one process,
const PATIENCE: Duration = Duration::from_millis(100);

/// at all of them that have to be tried again; from then on once more each.
const IN_ALL: Duration = Duration::from_secs(2);

/// Between two tries.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What others than this process have mapped that does not agree with their levels.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    /// The mappings.
    pub held: Vec<Held>,
    /// The processes that could not be looked at.
    pub blocked: Vec<Blocked>,
}

/// A process that could not be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub pid: u32,
    pub level: u8,
}

impl Monitor {
    /// Mappings that do not agree with their holders' levels: of each process all that it could change what is above it by, as
    /// far as there is room for them, and those that are lower than it is, each below the one before.
    pub(crate) fn held_mappings(&self) -> Result<Mapped> {
        self.mapped_of((0, 0))
    }

    /// As [`Monitor::held_mappings`], but of one file alone: by its inode's number and its device.
    pub(crate) fn mapped_of(&self, file: (u64, u32)) -> Result<Mapped> {
        let lines: Vec<tg_held> = self.look_for(&self.ps_vma, Over::All, file)?;
        let (blocked, held): (Vec<_>, Vec<_>) = lines.into_iter().partition(|h| h.fd == BLOCKED);
        Ok(Mapped {
            held: held.into_iter().map(Held::from).collect(),
            blocked: (blocked.iter())
                .map(|h| Blocked {
                    pid: h.pid,
                    level: h.level,
                })
                .collect(),
        })
    }

    /// The lines of a program that looks at mappings.
    pub(crate) fn look<T: Pod>(&self, program: &impl AsFd, over: Over<'_>) -> Result<Vec<T>> {
        self.look_for(program, over, (0, 0))
    }

    fn look_for<T: Pod>(
        &self,
        program: &impl AsFd,
        over: Over<'_>,
        file: (u64, u32),
    ) -> Result<Vec<T>> {
        let what = || "look at what processes have mapped".to_string();
        let _one = self.looks.lock().unwrap_or_else(|e| e.into_inner());
        self.globals.look_for(file);
        self.globals.looks_over().store(0, Ordering::SeqCst);
        let mut lines = File::from(sys::iterate(program.as_fd(), over).trying(what)?);
        let mut bytes = Vec::new();
        let mut room = [0; 1 << 15];
        let mut waits = Waits::default();
        loop {
            match lines.read(&mut room) {
                Ok(0) => break,
                Ok(n) => {
                    bytes.extend_from_slice(&room[..n]);
                    waits.next();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // the process that comes next
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if waits.is_over() {
                        self.globals.looks_over().store(1, Ordering::SeqCst);
                        waits.next();
                    } else {
                        thread::sleep(LOOK_AGAIN);
                    }
                }
                Err(e) => return Err(e).trying(what),
            }
        }
        Ok(bytes
            .chunks_exact(size_of::<T>())
            .filter_map(T::read)
            .collect())
    }
}

/// How long a look has waited.
#[derive(Debug, Default)]
struct Waits {
    /// For the process that it is at: since when, and how often it was tried in vain.
    now: Option<(Instant, u32)>,
    /// For those before.
    before: Duration,
}

impl Waits {
    /// A try was in vain: whether it was the last.
    fn is_over(&mut self) -> bool {
        let (since, tries) = self.now.get_or_insert_with(|| (Instant::now(), 0));
        *tries += 1;
        let waited = since.elapsed();
        *tries > 1 && (waited >= PATIENCE || self.before + waited >= IN_ALL)
    }

    /// From here on it is at another.
    fn next(&mut self) {
        if let Some((since, _)) = self.now.take() {
            self.before += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_waited_for_so_long_and_all_together_not_much_longer() {
        let mut waits = Waits::default();
        let begun = Instant::now();
        while !waits.is_over() {
            thread::sleep(LOOK_AGAIN);
        }
        assert!(begun.elapsed() >= PATIENCE);
        waits.next();
        assert!(waits.before >= PATIENCE);
        waits.before = IN_ALL;
        assert!(!waits.is_over() && waits.is_over());
    }
}
