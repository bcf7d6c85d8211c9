//! What waits for a lock, a lease or a word of memory is woken, and gets it, whoever below holds or waits for the same.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, Signal};

use crate::scenarios::check::{Outcome, allowed, refused, refused_any};
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Child, Level, at, become_alice, lower, spawn, start, step};
use crate::scenarios::sys::{self, Map};
use crate::sys::{c, syscall};

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "futex-requeue",
        "who may only read a higher file has its waiters wait for another word (FUTEX_REQUEUE)",
        requeued,
    )
    .gap("Words to wait at"),
    bypass(
        "futex-wake-taken",
        "who may only read it waits, too, and is woken in place of a higher waiter",
        wake_taken,
    )
    .gap("Words to wait at"),
    bypass(
        "futex-wake-taken-waitv",
        "the same by a wait for several words (futex_waitv)",
        wake_taken_by_many,
    )
    .gap("Words to wait at"),
    bypass(
        "lock-exclusive",
        "who may only read a higher file has it locked for itself (flock)",
        exclusive,
    ),
    bypass(
        "lock-console",
        "a lower process locks /dev/console, whose lock process 1 waits for",
        console,
    ),
    bypass(
        "lock-exclusive-memory",
        "a lower process opens a higher process's memory without a path for reading, through /proc, and locks it exclusively",
        memory_locked,
    ),
    bypass(
        "lock-of-daemon",
        "a lower process waits for the daemon's lock, so that no other daemon gets it",
        daemons_lock,
    ),
    bypass(
        "lock-kept",
        "a process that falls keeps the lock that it had on a higher file",
        lock_kept,
    )
    .gap("Locks that are kept"),
    bypass(
        "lease-read",
        "root below the top has a lease on a higher file, and its writers wait",
        lease,
    ),
    bypass(
        "lease-of-others",
        "the same of a file that is another user's (CAP_LEASE)",
        lease_of_others,
    ),
    bypass(
        "lease-by-owner",
        "the same by the user whose file it is",
        lease_by_owner,
    ),
    bypass(
        "lease-kept",
        "the same by who had the lease before it fell",
        lease_kept,
    ),
];

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: i32 = 1;
const FUTEX_REQUEUE: i32 = 3;
const FUTEX_CMP_REQUEUE: i32 = 4;

/// How long a process waits that is not woken.
const LONG: i64 = 30;

/// Waits while a word is 0; whether it was woken.
fn waits(word: *const u8) -> Result<(), Errno> {
    let time = [LONG, 0];
    syscall!(libc::SYS_futex, word, FUTEX_WAIT, 0, time.as_ptr(), 0, 0).map(drop)
}

/// The first word of a file: for reading, or for both.
fn word(file: &str, prot: i32) -> Outcome<Map> {
    let fd = match prot & PROT_WRITE {
        0 => sys::reads(file)?,
        _ => sys::both(file)?,
    };
    Ok(Map::of(&fd, prot, MAP_SHARED)?)
}

/// A file at the top whose words are all 0.
fn words() -> Outcome<String> {
    let file = place::path(SYSTEM, "words");
    fs::write(&file, [0u8; 64])?;
    Ok(file)
}

/// A process at the top that waits for the word to be woken, and must be.
fn higher_waiter(file: &str) -> Outcome<Child> {
    let waiter = start(|| {
        let word = word(file, PROT_READ | PROT_WRITE)?;
        step()?;
        allowed(waits(word.0))
    })?;
    waiter.waits()?;
    Ok(waiter)
}

/// Wakes one who waits.
fn wakes_one(file: &str) -> Outcome {
    let word = word(file, PROT_READ | PROT_WRITE)?;
    syscall!(libc::SYS_futex, word.0, FUTEX_WAKE, 1)?;
    Ok(())
}

fn requeued() -> Outcome {
    let file = words()?;
    for how in [FUTEX_REQUEUE, FUTEX_CMP_REQUEUE] {
        let waiter = higher_waiter(&file)?;
        at(Untrusted, || {
            // it may be refused at any step
            if let Ok(word) = word(&file, PROT_READ) {
                let (from, to) = (word.0, word.0.wrapping_add(32));
                let _ = syscall!(libc::SYS_futex, from, how, 0, 1, to, 0);
            }
            Ok(())
        })?;
        wakes_one(&file)?;
        waiter.join()?;
    }
    Ok(())
}

/// A low process waits before a higher one does: the one that is woken is the higher one.
fn woken(wait: fn(*const u8) -> Result<(), Errno>) -> Outcome {
    let file = words()?;
    let low = spawn(Untrusted, || {
        let word = word(&file, PROT_READ);
        step()?;
        if let Ok(word) = word {
            let _ = wait(word.0);
        }
        // it may have been refused: then it waits for its end
        nix::unistd::pause();
        Ok(())
    })?;
    low.waits()?;
    let waiter = higher_waiter(&file)?;
    wakes_one(&file)?;
    let played = waiter.join();
    low.kill()?;
    played
}

fn wake_taken() -> Outcome {
    woken(waits)
}

fn wake_taken_by_many() -> Outcome {
    woken(|word| {
        const MONOTONIC: i32 = 1;
        /// FUTEX2_SIZE_U32
        const WORD: u64 = 2;
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
        let until = [now.tv_sec() + LONG, 0];
        // struct futex_waitv: the value, the address, flags
        let all = [0u64, word as u64, WORD];
        syscall!(
            libc::SYS_futex_waitv,
            all.as_ptr(),
            1,
            0,
            until.as_ptr(),
            MONOTONIC
        )
        .map(drop)
    })
}

/// Locks a file, if nobody else has.
fn locks(file: &OwnedFd, how: i32) -> Result<(), Errno> {
    syscall!(libc::SYS_flock, file.as_raw_fd(), how | libc::LOCK_NB).map(drop)
}

fn exclusive() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        let holder = spawn(level, || {
            let file = sys::reads(&high)?;
            let tried = locks(&file, libc::LOCK_EX);
            step()?;
            refused_any(NO, tried)
        })?;
        holder.stands()?;
        let own = locks(&sys::both(&high)?, libc::LOCK_EX);
        holder.join_after_step()?;
        allowed(own)?;
    }
    Ok(())
}

fn console() -> Outcome {
    let opens = || sys::open("/dev/console", OFlag::O_RDONLY | OFlag::O_NOCTTY);
    for level in Level::LOWER {
        for how in [libc::LOCK_SH, libc::LOCK_EX] {
            let holder = spawn(level, || {
                let file = opens()?;
                let tried = locks(&file, how);
                step()?;
                refused_any(NO, tried)?;
                // what it has not it may leave
                allowed(locks(&file, libc::LOCK_UN))
            })?;
            holder.stands()?;
            let own = locks(&opens()?, libc::LOCK_EX);
            holder.join_after_step()?;
            allowed(own)?;
        }
    }
    Ok(())
}

/// Memory that no path names, in two ways.
fn memory() -> [Result<OwnedFd, Errno>; 2] {
    let flags = OFlag::O_TMPFILE | OFlag::O_EXCL | OFlag::O_RDWR;
    [sys::memfd(0), sys::open(place::TMPFS, flags)]
}

fn memory_locked() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for own in memory() {
                let reads = sys::again(&own?, OFlag::O_RDONLY)?;
                allowed(locks(&reads, libc::LOCK_EX))?;
            }
            Ok(())
        })?;
    }
    for (level, own) in Level::LOWER.into_iter().zip(memory()) {
        let own = own?;
        let place = format!("/proc/{}/fd/{}", std::process::id(), own.as_raw_fd());
        let holder = start(|| {
            // it is to have none of what it was born with
            syscall!(libc::SYS_close_range, 3, u32::MAX, 0)?;
            lower(level)?;
            let opened = sys::reads(&place);
            let tried = match &opened {
                Ok(file) => locks(file, libc::LOCK_EX),
                Err(e) => Err(*e),
            };
            step()?;
            refused_any(NO, tried)
        })?;
        holder.stands()?;
        let locked = locks(&own, libc::LOCK_EX);
        holder.join_after_step()?;
        allowed(locked)?;
    }
    Ok(())
}

fn daemons_lock() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            // a process that may not open it has nothing to lock
            refused(Errno::EPERM, sys::reads("/run/tidegate/lock"))?;
            let by_path = sys::open("/run/tidegate/lock", OFlag::O_PATH)?;
            refused(Errno::EPERM, sys::again(&by_path, OFlag::O_RDONLY))?;
            refused(Errno::EBADF, locks(&by_path, libc::LOCK_SH))
        })?;
    }
    Ok(())
}

/// What a process at the top holds of a file, and others' use waits for, ends with its fall, or it does not fall.
fn kept(holds: impl FnOnce(&OwnedFd) -> Outcome, uses: impl FnOnce(&str) -> Outcome) -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let holder = start(|| {
        let file = sys::reads(&high)?;
        holds(&file)?;
        // a process that has not fallen lets go
        let kept = lower(Untrusted).is_ok().then_some(file);
        step()?;
        drop(kept);
        Ok(())
    })?;
    holder.stands()?;
    let used = uses(&high);
    holder.join_after_step()?;
    used
}

fn lock_kept() -> Outcome {
    kept(
        |file| Ok(locks(file, libc::LOCK_EX)?),
        |high| allowed(locks(&sys::both(high)?, libc::LOCK_EX)),
    )
}

/// Asks for a lease, at whose end nobody is killed.
fn leases(file: &OwnedFd) -> Result<(), Errno> {
    SigSet::from_iter([Signal::SIGIO]).thread_block()?;
    let fd = file.as_raw_fd();
    syscall!(libc::SYS_fcntl, fd, libc::F_SETLEASE, libc::F_RDLCK).map(drop)
}

/// A writer does not wait for anybody's lease.
fn writes_at_once(file: &str) -> Outcome {
    allowed(sys::open(file, OFlag::O_WRONLY | OFlag::O_NONBLOCK)).map(drop)
}

/// A lease that a lower process asks for is refused.
fn leased(file: &str, becomes: fn() -> Outcome) -> Outcome {
    let holder = spawn(Untrusted, || {
        becomes()?;
        let fd = sys::reads(file)?;
        let tried = leases(&fd);
        step()?;
        refused_any(NO, tried)
    })?;
    holder.stands()?;
    let written = writes_at_once(file);
    holder.join_after_step()?;
    written
}

fn lease() -> Outcome {
    leased(&place::file(SYSTEM, "high")?, || Ok(()))
}

/// A file at the top that is an ordinary user's.
fn alices() -> Outcome<String> {
    let file = place::file(SYSTEM, "alices")?;
    let path = c(&file);
    syscall!(libc::SYS_chown, path.as_ptr(), 1000, 1000)?;
    Ok(file)
}

fn lease_of_others() -> Outcome {
    leased(&alices()?, || Ok(()))
}

fn lease_by_owner() -> Outcome {
    leased(&alices()?, become_alice)
}

fn lease_kept() -> Outcome {
    kept(|file| Ok(leases(file)?), writes_at_once)
}
