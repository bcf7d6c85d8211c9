//! Queues of messages: a process that receives one takes it away from the others.

use std::fs;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::inherited::{flags, stays_above};
use crate::scenarios::check::{Outcome, allowed, refused, same};
use crate::scenarios::daemon;
use crate::scenarios::ipcs::{Queue, mq_open, mq_receive, mq_send};
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, spawn, start, step};
use crate::sys::syscall;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "queue-copied",
        "a low subject reads what is in a higher queue of System V and leaves it there (MSG_COPY)",
        copied,
    ),
    bypass(
        "queue-emptied-waiting",
        "a low subject waits for the next message of a higher queue of System V",
        waiting,
    ),
    bypass(
        "queue-emptied-posix",
        "a low subject takes what a higher one left in a POSIX queue",
        posix,
    ),
    bypass(
        "queue-emptied-kept",
        "who has opened a POSIX queue to receive falls, and takes what is there",
        kept,
    ),
    bypass(
        "queue-flags-shared",
        "a child that falls has the queue that its parent receives from not wait (mq_getsetattr)",
        not_waiting,
    ),
    bypass(
        "queue-opened-to-execute",
        "a low subject opens a higher POSIX queue with the flag of an execution, which mq_open(2) takes of anybody",
        to_execute,
    ),
    bypass(
        "queue-level-kept",
        "the levels of two queues are kept apart, and that of one does not go with the other",
        level_kept,
    ),
];

/// `__FMODE_EXEC`: the kernel opens by it what is executed, and open(2) does not take it.
const EXECUTE: OFlag = OFlag::from_bits_retain(0x20);

fn copied() -> Outcome {
    const COPY: i32 = 0o40000;
    let queue = Queue::make()?;
    queue.send()?;
    at(Untrusted, || {
        let mut message = [0u64; 2];
        allowed(syscall!(
            libc::SYS_msgrcv,
            queue.number(),
            message.as_mut_ptr(),
            8,
            0,
            COPY | libc::IPC_NOWAIT
        ))?;
        same("what is there", message[1] as u8, b'q')?;
        level::is(Untrusted)
    })?;
    queue.receive()?;
    Ok(queue.remove()?)
}

fn waiting() -> Outcome {
    let queue = Queue::make()?;
    let low = spawn(Untrusted, || {
        step()?;
        let mut message = [0u64; 2];
        let _ = syscall!(
            libc::SYS_msgrcv,
            queue.number(),
            message.as_mut_ptr(),
            8,
            0,
            0
        );
        Ok(())
    })?;
    low.waits()?;
    queue.send()?;
    let left = queue.receive();
    low.kill()?;
    queue.remove()?;
    Ok(left?)
}

const BOTH: OFlag = OFlag::O_RDWR.union(OFlag::O_CREAT);

fn posix() -> Outcome {
    let name = place::scenario();
    mq_send(&mq_open(name, BOTH)?)?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, mq_open(name, OFlag::O_RDONLY))
        })?;
    }
    let left = mq_open(name, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
    Ok(mq_receive(&left)?)
}

fn kept() -> Outcome {
    let name = place::scenario();
    mq_send(&mq_open(name, BOTH)?)?;
    start(|| {
        let queue = mq_open(name, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        if stays_above(|| mq_receive(&queue))? {
            mq_receive(&queue)?;
        }
        Ok(())
    })?
    .join()
}

fn not_waiting() -> Outcome {
    let name = place::scenario();
    start(|| {
        let queue = mq_open(name, OFlag::O_RDONLY | OFlag::O_CREAT)?;
        let above = stays_above(|| {
            // struct mq_attr: flags, three numbers, room
            let attributes = [i64::from(libc::O_NONBLOCK), 0, 0, 0, 0, 0, 0, 0];
            let fd = queue.as_raw_fd();
            syscall!(libc::SYS_mq_getsetattr, fd, attributes.as_ptr(), 0).map(drop)
        })?;
        if !above {
            return Ok(());
        }
        let has = flags(&queue, OFlag::O_NONBLOCK)?;
        same("whether it waits", has, OFlag::empty())
    })?
    .join()
}

fn level_kept() -> Outcome {
    let names = ["kept", "other"].map(|what| format!("{}-{what}", place::scenario()));
    let [kept, other] = names.clone().map(|name| format!("/dev/mqueue/{name}"));
    at(Untrusted, || {
        for name in &names {
            mq_open(name, BOTH)?;
        }
        Ok(())
    })?;
    object_is(&kept, Untrusted)?;
    object_is(&other, Untrusted)?;
    let promoted = daemon::quietly(&["promote", "--level", "user", &kept])?;
    same("promote", promoted, 0)?;
    fs::remove_file(&other)?;
    object_is(&kept, User)?;
    at(Untrusted, || {
        mq_open(&names[1], BOTH).map(drop).map_err(Into::into)
    })?;
    object_is(&other, Untrusted)?;
    object_is(&kept, User)
}

fn to_execute() -> Outcome {
    let name = place::scenario();
    mq_send(&mq_open(name, BOTH)?)?;
    for level in Level::LOWER {
        at(level, || {
            for access in [OFlag::O_RDONLY, OFlag::O_WRONLY, OFlag::O_RDWR] {
                refused(Errno::EPERM, mq_open(name, access | EXECUTE))?;
            }
            Ok(())
        })?;
    }
    let of_low = format!("{name}-low");
    at(Untrusted, || {
        mq_send(&mq_open(&of_low, BOTH)?)?;
        Ok(())
    })?;
    at(User, || {
        mq_receive(&mq_open(&of_low, OFlag::O_RDONLY | EXECUTE)?)?;
        level::is(Untrusted)
    })
}
