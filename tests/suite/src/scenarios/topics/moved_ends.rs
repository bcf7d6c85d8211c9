//! Ends of channels that are moved about in a table while a writer falls: the reader is found, and
//! nobody else pays for it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::pipe2;

use crate::scenarios::check::{Failed, Outcome, ensure, same};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, asleep, busy, lower, start, step};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "pipe-reader-moves",
        "who reads a pipe moves its end to and fro in a large table while a writer falls",
        || reader_moves(pipe_ends, SMALLER),
    )
    .slow(),
    bypass(
        "pipe-reader-moves-far",
        "the same in a table that is larger than its user's share of what is looked at",
        || reader_moves(pipe_ends, LARGEST),
    )
    .slow(),
    bypass(
        "socket-reader-moves",
        "the same of one end of a socketpair",
        || reader_moves(socket_ends, SMALLER),
    )
    .slow(),
    bypass(
        "pipe-reader-moves-reuse",
        "the same while another reader closes its end, in whose place the kernel puts the next file",
        reader_moves_reuse,
    )
    .slow(),
    bypass(
        "pipe-reader-hands-on",
        "a reader's threads hand its end from one to the next, each in a table of its own, while a writer falls",
        reader_hands_on,
    )
    .slow(),
    bypass(
        "pipe-writer-moves",
        "another thread of the process that falls moves the end by which that one writes",
        writer_moves,
    )
    .slow(),
    allow(
        "large-table-beside",
        "a process moves descriptors in a table of the largest size while others, of which it has nothing, fall",
        large_table_beside,
    )
    .slow(),
    allow(
        "pipe-reader-waits",
        "a writer falls whose reader waits in read() and poll() by threads, while others are busy",
        reader_waits,
    ),
];

/// A subject that has read what begins with `l`, which a low subject wrote, must not be at the top.
pub(super) fn not_above(bytes: &[u8]) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        bytes.first() != Some(&b'l') || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// A pipe's end to read, which does not wait, and its end to write.
fn pipe_ends() -> Result<(OwnedFd, OwnedFd), Errno> {
    pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
}

fn socket_ends() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::Stream, None, flags)
}

/// Places of a table: as many as a process commonly may have, and some that its user's share suffices for.
const LARGEST: libc::c_int = 1 << 19;
pub(super) const SMALLER: libc::c_int = 1 << 15;

/// This process gets a table of so many places, of which those from 100 on have one file.
pub(super) fn fill_table(other: &impl AsRawFd, places: libc::c_int) -> Outcome {
    for fd in 100..places {
        syscall!(libc::SYS_dup2, other.as_raw_fd(), fd)?;
    }
    Ok(())
}

pub(super) fn may_have(places: libc::c_int) -> Outcome {
    let places = u64::from(places.unsigned_abs());
    Ok(setrlimit(Resource::RLIMIT_NOFILE, places, places)?)
}

/// A reader moves its end from the beginning of its table to the end, and back, while a child falls that writes, and has a
/// copy of that end. What it reads then must have lowered it. It is another one each time, as it falls if it is seen.
fn reader_moves(ends: fn() -> Result<(OwnedFd, OwnedFd), Errno>, places: libc::c_int) -> Outcome {
    // for as long as it takes to look at half of the table
    let pause = Duration::from_nanos(3 * u64::from(places.unsigned_abs()));
    for _ in 0..8 {
        start(|| {
            may_have(places)?;
            let (read, write) = ends()?;
            let low = start(|| {
                step()?;
                if lower(Untrusted).is_ok() {
                    sys::put_all(&write, b"l")?;
                }
                Ok(())
            })?;
            drop(write);
            low.stands()?;
            let other = sys::reads("/dev/null")?;
            fill_table(&other, places)?;
            let (mut from, mut to) = (100, places - 1);
            syscall!(libc::SYS_dup2, read.as_raw_fd(), from)?;
            drop(read);
            low.go()?;
            let got = loop {
                match sys::get(&from) {
                    Ok(bytes) => break bytes,
                    Err(Errno::EAGAIN) => {}
                    Err(e) => Err(e)?,
                }
                syscall!(libc::SYS_dup2, from, to)?;
                syscall!(libc::SYS_dup2, other.as_raw_fd(), from)?;
                (from, to) = (to, from);
                busy(pause);
            };
            low.join()?;
            not_above(&got)
        })?
        .join()?;
    }
    Ok(())
}

/// Somebody low has an end to read of its own when the fall begins, and another file at the same address when it ends. It begins long
/// before it ends, as a thread of the writer waits in a call.
fn reader_moves_reuse() -> Outcome {
    let pause = Duration::from_nanos(3 * u64::from(SMALLER.unsigned_abs()));
    let moment = Duration::from_millis(100);
    for _ in 0..8 {
        start(|| {
            may_have(SMALLER)?;
            let (read, write) = pipe_ends()?;
            let (drain, full) = pipe2(OFlag::O_CLOEXEC)?;
            let beside = start(|| {
                syscall!(libc::SYS_close, write.as_raw_fd())?;
                syscall!(libc::SYS_close, full.as_raw_fd())?;
                let own = sys::again(&read, OFlag::O_RDONLY)?;
                syscall!(libc::SYS_close, read.as_raw_fd())?;
                lower(Untrusted)?;
                step()?;
                sleep(moment);
                drop(own);
                let files = (0..8).map(|_| sys::reads("/dev/null"));
                let files = files.collect::<Result<Vec<_>, Errno>>()?;
                sleep(moment);
                while !sys::get(&drain)?.is_empty() {}
                drop(files);
                Ok(())
            })?;
            beside.stands()?;
            drop(drain);
            let low = start(|| {
                syscall!(libc::SYS_close, read.as_raw_fd())?;
                let to = full.as_raw_fd();
                asleep(&[libc::SYS_write], move || {
                    sys::put_all(&to, &vec![0u8; 1 << 17])
                })?;
                step()?;
                if lower(Untrusted).is_ok() {
                    sys::put_all(&write, b"l")?;
                }
                Ok(())
            })?;
            drop((write, full));
            low.stands()?;
            let other = sys::reads("/dev/null")?;
            fill_table(&other, SMALLER)?;
            let (mut from, mut to) = (100, SMALLER - 1);
            syscall!(libc::SYS_dup2, read.as_raw_fd(), from)?;
            drop(read);
            beside.go()?;
            low.go()?;
            let got = loop {
                match sys::get(&from) {
                    Ok(bytes) => break bytes,
                    Err(Errno::EAGAIN) => {}
                    Err(e) => Err(e)?,
                }
                syscall!(libc::SYS_dup2, from, to)?;
                syscall!(libc::SYS_dup2, other.as_raw_fd(), from)?;
                (from, to) = (to, from);
                busy(pause);
            };
            low.join()?;
            beside.join()?;
            not_above(&got)
        })?
        .join()?;
    }
    Ok(())
}

/// A thread with a copy of the table of the one that started it. That one lets go of its own end then; the thread with the copy reads,
/// or hands the end on.
fn hands_on(end: RawFd, copied: &Sender<()>, got: Sender<Result<Vec<u8>, Errno>>) {
    let own = unshare(CloneFlags::CLONE_FILES);
    let _ = copied.send(());
    let bytes = own.and_then(|()| sys::get(&end));
    if bytes != Err(Errno::EAGAIN) {
        let _ = got.send(bytes);
        return;
    }
    let (tell, told) = channel();
    thread::spawn(move || hands_on(end, &tell, got));
    let _ = told.recv();
    let _ = syscall!(libc::SYS_close, end);
}

/// Of many threads that have one table it takes long to find that, and meanwhile the end is elsewhere.
fn reader_hands_on() -> Outcome {
    const THREADS: usize = 1000;
    for _ in 0..8 {
        start(|| {
            let (read, write) = pipe_ends()?;
            let low = start(|| {
                step()?;
                if lower(Untrusted).is_ok() {
                    sys::put_all(&write, b"l")?;
                }
                Ok(())
            })?;
            drop(write);
            low.stands()?;
            for _ in 0..THREADS {
                thread::Builder::new()
                    .stack_size(1 << 16)
                    .spawn(thread::park)?;
            }
            let (end, (copied, copy), (got, bytes)) = (read.as_raw_fd(), channel(), channel());
            thread::spawn(move || hands_on(end, &copied, got));
            copy.recv()
                .map_err(|_| Failed::because("a thread has ended early"))?;
            drop(read);
            low.go()?;
            let bytes = bytes
                .recv()
                .map_err(|_| Failed::because("a thread has ended early"))??;
            low.join()?;
            not_above(&bytes)
        })?
        .join()?;
    }
    Ok(())
}

/// Whoever reads keeps still, but no pass need meet the end that is written to. Somebody low has the end to read as well, so that the
/// pipe has a reader whom each fall finds.
fn writer_moves() -> Outcome {
    let pause = Duration::from_nanos(3 * u64::from(SMALLER.unsigned_abs()));
    for _ in 0..8 {
        start(|| {
            let (read, write) = pipe_ends()?;
            let beside = start(|| {
                syscall!(libc::SYS_close, write.as_raw_fd())?;
                lower(Untrusted)?;
                step()
            })?;
            beside.stands()?;
            let low = start(|| {
                may_have(SMALLER)?;
                let other = sys::reads("/dev/null")?;
                fill_table(&other, SMALLER)?;
                sys::keep_as(&write, 100)?;
                syscall!(libc::SYS_close, write.as_raw_fd())?;
                syscall!(libc::SYS_close, read.as_raw_fd())?;
                let ends = Arc::new(AtomicBool::new(false));
                let (told, null) = (Arc::clone(&ends), other.as_raw_fd());
                let mover = thread::spawn(move || {
                    let (mut from, mut to) = (100, SMALLER - 1);
                    while !told.load(Ordering::Relaxed) {
                        let _ = syscall!(libc::SYS_dup2, from, to);
                        let _ = syscall!(libc::SYS_dup2, null, from);
                        (from, to) = (to, from);
                        busy(pause);
                    }
                    from
                });
                let fell = lower(Untrusted);
                ends.store(true, Ordering::Relaxed);
                let end = mover
                    .join()
                    .map_err(|_| Failed::because("the other thread has ended early"))?;
                if fell.is_ok() {
                    sys::put_all(&end, b"l")?;
                }
                Ok(())
            })?;
            drop(write);
            low.join()?;
            not_above(&sys::get(&read)?)?;
            beside.join_after_step()
        })?
        .join()?;
    }
    Ok(())
}

/// The kernel counts as many references to the reader's end as its table shows. So nobody else's table matters, whatever
/// becomes of it meanwhile.
fn large_table_beside() -> Outcome {
    let beside = start(|| {
        may_have(LARGEST)?;
        let other = sys::reads("/dev/null")?;
        fill_table(&other, LARGEST)?;
        step()?;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            syscall!(libc::SYS_dup2, 100, LARGEST - 1)?;
        }
        level::is(System)
    })?;
    beside.stands()?;
    beside.go()?;
    for _ in 0..8 {
        start(|| {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            let low = start(|| {
                syscall!(libc::SYS_close, read.as_raw_fd())?;
                lower(Untrusted)?;
                sys::put_all(&write, b"l")?;
                Ok(())
            })?;
            drop(write);
            let got = sys::get(&read)?;
            same("what was read", got.as_slice(), b"l".as_slice())?;
            level::is(Untrusted)?;
            low.join()
        })?
        .join()?;
    }
    beside.join()
}

/// References to a pipe's end that calls hold tell nothing of its holder: nobody waits for these
/// calls' end.
fn reader_waits() -> Outcome {
    let others = start(|| {
        busy(Duration::from_secs(30));
        Ok(())
    })?;
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let fd = read.as_raw_fd();
        let polls = asleep(&[libc::SYS_poll], move || {
            let mut asked = libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            syscall!(libc::SYS_poll, &raw mut asked, 1, -1)
        })?;
        let waits = asleep(&[libc::SYS_read], move || sys::get(&fd))?;
        // SAFETY: the child makes system calls only, none that needs a lock of another thread.
        let low = start(move || {
            step()?;
            lower(Untrusted)?;
            sys::put_all(&write, b"l")?;
            step()
        })?;
        low.stands()?;
        low.go()?;
        let got = waits.join().unwrap_or(Err(Errno::EIO))?;
        same("what was read", got.as_slice(), b"l".as_slice())?;
        level::is(Untrusted)?;
        low.join_after_step()?;
        polls.join().unwrap_or(Err(Errno::EIO))?;
        Ok(())
    })?
    .join()?;
    others.kill()
}
