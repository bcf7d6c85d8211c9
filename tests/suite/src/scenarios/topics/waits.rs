//! Operations that wait for a transaction: what they decided before it is decided again.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, soon};
use crate::scenarios::ipcs::Segment;
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW, SYSTEM, USER, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, asleep, at, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::syscall;
use crate::wait;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "wait-own-files",
        "who changes its own files of /proc while another of its threads falls",
        proc_self,
    ),
    bypass(
        "wait-fifo-reader",
        "a reader comes to a FIFO while a low writer waits",
        fifo_late,
    ),
    bypass(
        "wait-fifo-elsewhere",
        "a FIFO's last reader is in the open of another file",
        lease,
    ),
    bypass(
        "wait-segment-write",
        "a thread falls while another waits to attach a segment",
        shm_write,
    ),
    bypass(
        "wait-xattr-moved",
        "a file falls while the reader of its attribute waits",
        xattr_stale,
    ),
];

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn not_above(bytes: &[u8], most: Level) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        bytes.first() != Some(&b'l') || is <= most,
        &format!("low data was read, and its reader stands at {}", is.name()),
    )
}

/// A thread that is in a write that does not end.
pub(super) fn stuck() -> Outcome<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    while sys::put_all(&write, &[0; 4096]).is_ok() {}
    syscall!(libc::SYS_fcntl, write.as_raw_fd(), libc::F_SETFL, 0)?;
    let raw = write.as_raw_fd();
    asleep(&[libc::SYS_write], move || {
        sys::put_all(&raw, &[0; 4096]).is_ok()
    })?;
    Ok((read, write))
}

/// Holds the transaction's lock for two seconds.
fn locker() -> Outcome<Child> {
    start(|| {
        let _ends = stuck()?;
        let _ = fs::read(place::level_file(Untrusted));
        Ok(())
    })
}

fn fifo_late() -> Outcome {
    for _ in 0..2 {
        let fifo = place::fifo(SYSTEM, "fifo")?;
        let low = spawn(Untrusted, || {
            step()?;
            if let Ok(write) = sys::writes(&fifo) {
                sys::put_all(&write, b"l")?;
                pause(700);
            }
            Ok(())
        })?;
        low.stands()?;
        let reader = start(|| {
            step()?;
            let read = sys::reads(&fifo)?;
            not_above(&sys::get(&read)?, Untrusted)
        })?;
        reader.stands()?;
        let locker = locker()?;
        pause(600);
        low.go()?;
        pause(300);
        reader.go()?;
        locker.join()?;
        pause(300);
        // the reader waits for a writer, and may come to that late
        let task = format!("/proc/{}", reader.pid);
        let has_read = soon(|| {
            if let Ok(write) = sys::open(&fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK) {
                let _ = sys::put_all(&write, b"h");
            }
            Ok(matches!(wait::state(&task), None | Some('Z')))
        })?;
        ensure(has_read, "the reader goes on waiting")?;
        reader.join()?;
        // if it comes after the reader it waits for another
        low.kill()?;
    }
    Ok(())
}

fn lease() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let fifo = place::fifo(SYSTEM, "fifo")?;
    let holder = start(|| {
        nix::sys::signal::SigSet::from_iter([nix::sys::signal::Signal::SIGIO]).thread_block()?;
        let fd = sys::reads(&high)?;
        syscall!(
            libc::SYS_fcntl,
            fd.as_raw_fd(),
            libc::F_SETLEASE,
            libc::F_RDLCK
        )?;
        step()?;
        syscall!(
            libc::SYS_fcntl,
            fd.as_raw_fd(),
            libc::F_SETLEASE,
            libc::F_UNLCK
        )?;
        Ok(())
    })?;
    holder.stands()?;
    let victim = start(|| {
        step()?;
        let read = sys::open(&fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        // waits for the lease
        let fd = sys::writes(&high)?;
        let got = sys::get(&read).unwrap_or_default();
        if level::by_writing()? == Untrusted {
            refused(Errno::EIO, sys::put_all(&fd, &got))?;
        }
        not_above(&got, Untrusted)
    })?;
    victim.waits()?;
    at(Untrusted, || {
        if let Ok(write) = sys::open(&fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK) {
            sys::put_all(&write, b"l")?;
        }
        Ok(())
    })?;
    holder.join_after_step()?;
    victim.join()
}

fn shm_write() -> Outcome {
    for round in 0..2 {
        let key = 0x5d00 + round;
        let maker = start(|| {
            let memory = Segment::keyed(key, 4096)?.attach(false)?;
            memory.poke(b'h');
            lower(User)?;
            step()?;
            not_above(&[memory.peek()], Untrusted)
        })?;
        maker.stands()?;
        let other = start(|| {
            step()?;
            let segment = Segment::find(key)?;
            let low = place::level_file(Untrusted);
            std::thread::scope(|threads| {
                let reader = threads.spawn(|| {
                    pause(300);
                    fs::read(&low).is_ok()
                });
                let memory = segment.attach(false);
                let fell = reader.join().unwrap_or(false);
                let is = level::by_writing()?;
                if let Ok(memory) = memory
                    && fell
                    && is == Untrusted
                {
                    memory.poke(b'l');
                }
                Ok(())
            })
        })?;
        other.stands()?;
        let locker = locker()?;
        pause(600);
        other.go()?;
        locker.join()?;
        other.join()?;
        maker.join_after_step()?;
        Segment::find(key)?.remove()?;
    }
    Ok(())
}

fn xattr_stale() -> Outcome {
    let (file, low) = (place::file(USER, "file")?, path(LOW, "file"));
    sys::setxattr(&file, "user.x", b"high")?;
    let reader = start(|| {
        step()?;
        // as long as what is there
        let Ok(size) = sys::getxattr(&file, "user.x") else {
            return Ok(());
        };
        not_above(if size == 1 { b"l" } else { b"h" }, Untrusted)
    })?;
    reader.stands()?;
    let writer = spawn(Untrusted, || {
        step()?;
        allowed(sys::setxattr(&low, "user.x", b"l"))
    })?;
    writer.stands()?;
    let locker = locker()?;
    pause(600);
    reader.go()?;
    pause(300);
    fs::rename(&file, &low)?;
    writer.join_after_step()?;
    locker.join()?;
    reader.join()
}

fn proc_self() -> Outcome {
    start(|| {
        let _ends = stuck()?;
        let (done, changes) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|threads| {
            let other = threads.spawn(|| {
                let mut outcome = Ok(());
                while !done.load(Ordering::SeqCst) && outcome.is_ok() {
                    outcome = allowed(fs::write("/proc/self/comm", "other"));
                    changes.fetch_add(1, Ordering::SeqCst);
                    pause(20);
                }
                outcome
            });
            soon(|| Ok(changes.load(Ordering::SeqCst) > 1 || other.is_finished()))?;
            let read = fs::read(place::level_file(Untrusted)).is_ok();
            done.store(true, Ordering::SeqCst);
            ensure(!read, "not refused")?;
            other.join().unwrap_or(Ok(()))
        })
    })?
    .join()
}
