//! Pipes: a reader falls with its writers.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::scenarios::check::{Outcome, PATIENCE, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW, SYSTEM, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Child, Level, asleep, at, busy, lower, spawn, start, step, tell};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

const ROW: &str = "socketpair, abstract";

pub const SCENARIOS: &[Scenario] = &[
    allow("pipe-own", "a pipeline within one level", own).of(ROW),
    allow("pipe-down", "who only writes to a lower reader stays", down).of(ROW),
    allow(
        "pipe-closed",
        "a reader that closed its end before does not fall",
        closed,
    ),
    allow(
        "pipeline-in-the-making",
        "a shell that is about to let go of a pipeline's end stays, though a program in it falls",
        in_the_making,
    ),
    deny(
        "pipeline-held",
        "who is awake and does not let go falls with it",
        held_awake,
    ),
    allow(
        "pipe-reopened",
        "who has an end of a pipe opens it again, whoever else holds it",
        reopened,
    ),
    allow(
        "pipe-eventfd",
        "an eventfd is no channel, nor a timer that nobody else has",
        neutral,
    ),
    allow(
        "pipe-stopped-reader",
        "a stopped reader falls like any other",
        stopped,
    ),
    deny(
        "pipe-floats",
        "readers fall with the lowest writer before it can write",
        floats,
    )
    .of(ROW),
    deny("pipe-floats-on", "and whoever reads from them", floats_on).of(ROW),
    bypass(
        "pipe-tee-splice",
        "low data moved by tee, splice and vmsplice, which no hook sees",
        tee,
    ),
    bypass(
        "pipe-left-full",
        "low data left in a pipe whose writer is gone",
        left_full,
    ),
    bypass(
        "pipe-other-end",
        "a pipe that a low subject holds, opened again for what one has not",
        other_end,
    ),
    bypass(
        "pipe-opened-before",
        "a pipe opened by name as before, while a low subject has come to it",
        opened_before,
    ),
    bypass(
        "pipe-reopened-thread",
        "or while another thread may close what one has",
        reopened_by_threads,
    ),
    bypass(
        "pipe-read-under-way",
        "a read waits on a descriptor that was closed meanwhile",
        under_way,
    ),
    bypass(
        "pidfd-getfd",
        "descriptors taken out of another process, both ways",
        getfd,
    ),
];

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    pipe2(OFlag::O_CLOEXEC)
}

fn own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let (read, write) = pipe()?;
            let child = start(|| {
                sys::put(&write)?;
                level::is(level)
            })?;
            drop(write);
            same("what was read", sys::get(&read)?, b"x".to_vec())?;
            child.join()?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn down() -> Outcome {
    let (read, write) = pipe()?;
    let writes = write.as_raw_fd();
    let child = start(move || {
        crate::sys::syscall!(libc::SYS_close, writes)?;
        lower(Untrusted)?;
        same("what was read", sys::get(&read)?, b"x".to_vec())?;
        level::is(Untrusted)
    });
    // the reader's end is in the child alone by now
    sys::put(&write)?;
    drop(write);
    child?.join()?;
    level::is(System)
}

fn closed() -> Outcome {
    let (read, write) = pipe()?;
    drop(read);
    at(Untrusted, || {
        refused(Errno::EPIPE, put_ignoring_sigpipe(&write))
    })?;
    level::is(System)
}

/// The signs that the first program of a pipeline gives before it falls, and after it has tried to.
const SIGNS: [&str; 2] = ["falls", "fell"];

/// Waits for such a sign, and never sleeps. The call made last counts as rest, so that this process can fall meanwhile.
fn awake_until(sign: &str) -> Outcome {
    let (sign, end) = (path(TMPFS_LOW, sign), Instant::now() + PATIENCE);
    while !fs::exists(&sign)? {
        ensure(Instant::now() < end, "the program gives no sign")?;
        std::thread::yield_now();
        busy(Duration::from_millis(10));
    }
    Ok(())
}

/// A child, or a child's child, that writes to a pipe by its standard output, and falls, for
/// which it has to wait so long.
fn first_program(write: &OwnedFd, forefathers: u32, wait: Duration) -> Outcome<Child> {
    for sign in SIGNS {
        let _ = fs::remove_file(path(TMPFS_LOW, sign));
    }
    start(|| {
        if forefathers > 0 {
            return first_program(write, forefathers - 1, wait)?.join();
        }
        sys::keep_as(write, libc::STDOUT_FILENO)?;
        tell(SIGNS[0])?;
        let begun = Instant::now();
        let fell = lower(Untrusted);
        let waited = begun.elapsed();
        tell(SIGNS[1])?;
        fell?;
        ensure(waited >= wait, &format!("it waited for {waited:?}"))
    })
}

fn in_the_making() -> Outcome {
    let pipeline = |forefathers| {
        let (read, write) = pipe()?;
        let program = first_program(&write, forefathers, Duration::from_millis(5))?;
        awake_until(SIGNS[0])?;
        busy(Duration::from_millis(20));
        drop((read, write));
        program.join()?;
        level::is(System)
    };
    for forefathers in [0, 1] {
        patiently(|| pipeline(forefathers))?;
    }
    Ok(())
}

/// Plays it from the top until it succeeds, up to five times: of what waits for a moment, a try
/// says nothing if a processor stands still meanwhile.
fn patiently(play: impl Fn() -> Outcome) -> Outcome {
    let mut tries = 5;
    while let Err(failed) = at(System, &play) {
        tries -= 1;
        if tries == 0 {
            return Err(failed);
        }
    }
    Ok(())
}

fn held_awake() -> Outcome {
    patiently(|| {
        let (read, write) = pipe()?;
        let program = first_program(&write, 0, Duration::from_millis(200))?;
        awake_until(SIGNS[1])?;
        program.join()?;
        level::is(Untrusted)?;
        drop(read);
        Ok(())
    })
}

/// A low process that holds one end of a pipe, which it has not written to.
fn low_holder(end: &OwnedFd, other: &OwnedFd) -> Outcome<Child> {
    let holder = start(|| {
        sys::keep_as(end, 100)?;
        for fd in [end.as_raw_fd(), other.as_raw_fd()] {
            crate::sys::syscall!(libc::SYS_close, fd)?;
        }
        lower(Untrusted)?;
        step()
    })?;
    holder.stands()?;
    Ok(holder)
}

fn reopened() -> Outcome {
    let (read, write) = pipe()?;
    let holder = low_holder(&read, &write)?;
    let same_again = [
        (&read, OFlag::O_RDONLY),
        (&write, OFlag::O_WRONLY),
        (&read, OFlag::O_RDWR),
    ];
    for (fd, access) in same_again {
        allowed(sys::again(fd, access))?;
        level::is(System)?;
    }
    holder.kill()
}

fn other_end() -> Outcome {
    for access in [OFlag::O_RDONLY, OFlag::O_RDWR] {
        at(System, || {
            let (read, write) = pipe()?;
            let holder = low_holder(&read, &write)?;
            drop(read);
            let again = sys::again(&write, access | OFlag::O_NONBLOCK)?;
            level::is(Untrusted)?;
            drop(again);
            holder.kill()
        })?;
    }
    Ok(())
}

fn opened_before() -> Outcome {
    // the writer that comes: one that had it and falls, or one that is low and opens it
    for falls in [true, false] {
        at(System, || {
            let (read, write) = pipe()?;
            drop(read);
            sys::keep_as(&write, 100)?;
            drop(write);
            let path = format!("/proc/{}/fd/100", std::process::id());
            let opens = || sys::open(&path, OFlag::O_RDONLY | OFlag::O_NONBLOCK).map(drop);
            for _ in 0..3 {
                allowed(opens())?;
                level::is(System)?;
            }
            let low = start(|| {
                if falls {
                    lower(Untrusted)?;
                } else {
                    crate::sys::syscall!(libc::SYS_close, 100)?;
                    lower(Untrusted)?;
                    sys::keep_as(&sys::open(&path, OFlag::O_RDWR)?, 101)?;
                }
                step()
            })?;
            low.stands()?;
            allowed(opens())?;
            level::is(Untrusted)?;
            low.kill()
        })?;
    }
    Ok(())
}

fn reopened_by_threads() -> Outcome {
    let (read, write) = pipe()?;
    let holder = low_holder(&read, &write)?;
    let (go, stopped) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || stopped.recv().is_ok());
    let again = sys::again(&read, OFlag::O_RDONLY)?;
    drop(go);
    let _ = other.join();
    level::is(Untrusted)?;
    drop(again);
    holder.kill()
}

fn put_ignoring_sigpipe(fd: &OwnedFd) -> Result<(), Errno> {
    // Rust's start-up ignores SIGPIPE
    sys::put(fd)
}

fn neutral() -> Outcome {
    let event = sys::owned(crate::sys::syscall!(
        libc::SYS_eventfd2,
        0,
        libc::O_NONBLOCK
    )?)?;
    at(Untrusted, || {
        let _timer = sys::owned(crate::sys::syscall!(
            libc::SYS_timerfd_create,
            libc::CLOCK_MONOTONIC,
            0
        )?)?;
        sys::put_all(&event, &1u64.to_ne_bytes())?;
        level::is(Untrusted)
    })?;
    same("the count", sys::get(&event)?, 1u64.to_ne_bytes().to_vec())?;
    level::is(System)
}

fn stopped() -> Outcome {
    // a job stopped at its terminal does not keep its neighbours from falling
    let (read, write) = pipe()?;
    let reader = start(|| {
        sys::keep_as(&read, 100)?;
        step()
    })?;
    reader.stands()?;
    drop(read);
    start(|| {
        lower(Untrusted)?;
        sys::put(&write)?;
        Ok(())
    })?
    .join()?;
    reader.join_after_step()
}

fn floats() -> Outcome {
    let (read, write) = pipe()?;
    let child = start(|| {
        lower(User)?;
        step()?;
        lower(Untrusted)?;
        sys::put(&write)?;
        step()
    })?;
    child.stands()?;
    level::is(User)?;
    child.go()?;
    child.stands()?;
    level::is(Untrusted)?;
    same("what was read", sys::get(&read)?, b"x".to_vec())?;
    child.join_after_step()
}

fn floats_on() -> Outcome {
    let (first_read, first_write) = pipe()?;
    let (second_read, _second_write) = pipe()?;
    let middle = start(|| {
        step()?;
        level::is(Untrusted)?;
        step()
    })?;
    drop((first_write, second_read));
    middle.stands()?;
    start(|| lower(Untrusted))?.join()?;
    middle.go()?;
    middle.stands()?;
    level::is(Untrusted)?;
    drop(first_read);
    middle.join_after_step()
}

fn splice(from: &OwnedFd, to: &OwnedFd) -> Result<i64, Errno> {
    crate::sys::syscall!(
        libc::SYS_splice,
        from.as_raw_fd(),
        0,
        to.as_raw_fd(),
        0,
        1,
        libc::SPLICE_F_NONBLOCK
    )
}

fn tee() -> Outcome {
    let (in_read, in_write) = pipe()?;
    let (out_read, out_write) = pipe()?;
    let low = start(|| {
        lower(Untrusted)?;
        let byte = [b'v'; 1];
        let vec = libc::iovec {
            iov_base: byte.as_ptr() as *mut _,
            iov_len: 1,
        };
        crate::sys::syscall!(
            libc::SYS_vmsplice,
            in_write.as_raw_fd(),
            &raw const vec,
            1,
            0
        )?;
        step()
    })?;
    low.stands()?;
    let mover = start(|| {
        crate::sys::syscall!(
            libc::SYS_tee,
            in_read.as_raw_fd(),
            out_write.as_raw_fd(),
            1,
            0
        )?;
        splice(&in_read, &out_write)?;
        Ok(())
    })?;
    mover.join()?;
    level::is(Untrusted)?;
    sys::get(&out_read)?;
    low.kill()
}

fn left_full() -> Outcome {
    // the holder reads nothing: it keeps a pipe that a low writer has filled
    let holder = start(|| {
        let (read, write) = pipe()?;
        sys::keep_as(&read, 100)?;
        start(move || {
            lower(Untrusted)?;
            Ok(sys::put(&write)?)
        })?
        .join()?;
        level::is(Untrusted)?;
        step()
    })?;
    holder.stands()?;
    at(User, || {
        let fd = sys::open(
            format!("/proc/{}/fd/100", holder.pid),
            OFlag::O_RDONLY | OFlag::O_NONBLOCK,
        )?;
        let got = sys::get(&fd)?;
        if got.is_empty() {
            Ok(())
        } else {
            level::is(Untrusted)
        }
    })?;
    holder.kill()
}

fn under_way() -> Outcome {
    let victim = start(|| {
        let (read, write) = pipe()?;
        let fd = read.as_raw_fd();
        let waiting = asleep(&[libc::SYS_read], move || sys::get(&fd))?;
        drop(read);
        // SAFETY: the child makes system calls only, none that needs a lock of the other thread.
        let low = start(move || {
            // refused: the readers cannot be seen
            if lower(Untrusted).is_ok() {
                sys::put(&write)?;
            }
            Ok(())
        })?;
        low.join()?;
        let got = waiting.join().unwrap_or(Ok(Vec::new()))?;
        if got.is_empty() {
            Ok(())
        } else {
            level::is(Untrusted)
        }
    })?;
    victim.join()
}

fn getfd() -> Outcome {
    let (high_file, low_file) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let high = start(|| {
        sys::keep_as(&sys::both(&high_file)?, 100)?;
        step()
    })?;
    let low = spawn(Untrusted, || {
        sys::keep_as(&sys::reads(&low_file)?, 100)?;
        step()
    })?;
    high.stands()?;
    low.stands()?;
    at(Untrusted, || {
        let process = sys::pidfd_open(high.pid.as_raw())?;
        refused(Errno::EPERM, sys::pidfd_getfd(&process, 100))
    })?;
    at(User, || {
        let process = sys::pidfd_open(low.pid.as_raw())?;
        match sys::pidfd_getfd(&process, 100) {
            Ok(fd) => {
                level::is(Untrusted)?;
                sys::get(&fd).map(drop).map_err(Into::into)
            }
            Err(e) => refused_any(
                &[Errno::EAGAIN, Errno::EACCES, Errno::EPERM],
                Err::<(), _>(e),
            ),
        }
    })?;
    high.kill()?;
    low.kill()
}
