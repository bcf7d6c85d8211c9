//! Ends of channels that a call has in hand while a writer falls: no table shows them, and whoever reads is found all the same.

use std::mem;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libc::{MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::SockType;
use nix::unistd::{Pid, gettid, pipe2};

use super::asynchronous::Faults;
use super::under_way::not_above;
use crate::scenarios::check::{Failed, Outcome, ensure, same, soon};
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{
    Child, Level, asleep, busy, finish, lower, start, step, tell, told,
};
use crate::scenarios::sys;
use crate::scenarios::unixsock;
use crate::sys::syscall;
use crate::wait;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "clone-tells-pidfd",
        "a child has a copy of a pipe's end, and is in no list while clone3() waits in memory to tell its pidfd",
        clone_tells_pidfd,
    ),
    bypass(
        "fifo-open-locked",
        "an open of a FIFO waits for the pipe's lock, which another reader has, while a writer falls",
        open_locked,
    ),
    bypass(
        "accept-tells-address",
        "accept() waits in memory to tell its client's address, while the client falls",
        accept_tells_address,
    ),
    bypass(
        "pipe-end-told",
        "recvmsg() waits in memory to tell the number of a pipe's end, while the pipe's writer falls",
        end_told,
    ),
    bypass(
        "pipe-end-doubled",
        "a pipe's end is only in fcntl(F_DUPFD), which makes the table larger, while the pipe's writer falls",
        doubled,
    )
    .slow(),
    bypass(
        "memory-split-while-counted",
        "a thread splits and joins its process's mapping of memory that another one reads, while the process falls",
        split_while_counted,
    )
    .slow(),
    allow(
        "receive-waits-beside-accept",
        "a writer falls beside a process that waits for a message and for a connection",
        waits_beside,
    ),
];

/// A process that falls, if it can, and writes to a pipe then, from when it is let go on. It has no end to read.
fn falls_and_writes(read: &OwnedFd, write: &OwnedFd) -> Outcome<Child> {
    let low = start(|| {
        syscall!(libc::SYS_close, read.as_raw_fd())?;
        step()?;
        if lower(Untrusted).is_ok() {
            sys::put_all(write, b"l")?;
        }
        Ok(())
    })?;
    low.stands()?;
    Ok(low)
}

/// A low process that has the end to read, so that the pipe has a reader that each fall finds.
fn low_reader(write: &OwnedFd) -> Outcome<Child> {
    let beside = start(|| {
        syscall!(libc::SYS_close, write.as_raw_fd())?;
        lower(Untrusted)?;
        step()
    })?;
    beside.stands()?;
    Ok(beside)
}

fn clone_tells_pidfd() -> Outcome {
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let beside = low_reader(&write)?;
        let low = falls_and_writes(&read, &write)?;
        drop(write);
        let faults = Faults::new()?;
        let (fd, told_at) = (read.as_raw_fd(), faults.page.0 as u64);
        let bears = asleep(&[libc::SYS_clone3], move || {
            // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
            let how: [u64; 8] = [
                libc::CLONE_PIDFD as u64,
                told_at,
                0,
                0,
                libc::SIGCHLD as u64,
                0,
                0,
                0,
            ];
            let born = syscall!(libc::SYS_clone3, how.as_ptr(), mem::size_of_val(&how));
            if born == Ok(0) {
                // the child makes system calls only: what needs a lock another thread may have
                let mut byte = 0u8;
                let _ = syscall!(libc::SYS_read, fd, &raw mut byte, 1);
                finish(|| not_above(&[byte]));
            }
            born
        })?;
        // the child's copy is the last one at the top
        drop(read);
        low.go()?;
        low.join()?;
        faults.fill(0)?;
        let born = bears.join().unwrap_or(Err(Errno::EIO))?;
        let pid = Pid::from_raw(i32::try_from(born).map_err(|_| Errno::EIO)?);
        Child { pid }.join()?;
        beside.join_after_step()
    })?
    .join()
}

/// Waits until a process sleeps, and no signal would wake it: for a lock.
fn waits_for_lock(child: &Child) -> Outcome {
    let task = format!("/proc/{}", child.pid);
    let waits = soon(|| Ok(matches!(wait::state(&task), None | Some('D' | 'Z'))))?;
    ensure(waits, "nobody waits for the lock")
}

fn open_locked() -> Outcome {
    let fifo = place::fifo(SYSTEM, "fifo")?;
    // a low reader, which has the lock while what it reads finds no memory
    let holder = start(|| {
        let faults = Faults::new()?;
        let read = sys::open(&fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        lower(Untrusted)?;
        step()?;
        let (fd, page) = (read.as_raw_fd(), faults.page.0 as usize);
        let reads = asleep(&[libc::SYS_read], move || {
            syscall!(libc::SYS_read, fd, page, 1)
        })?;
        tell("locked")?;
        told("over")?;
        faults.fill(0)?;
        let read = reads.join().unwrap_or(Err(Errno::EIO))?;
        same("bytes read", read, 1)
    })?;
    holder.stands()?;
    let low = start(|| {
        let write = sys::writes(&fifo)?;
        sys::put_all(&write, b"h")?;
        step()?;
        let fell = lower(Untrusted);
        // what is written now waits for the lock, too
        tell("over")?;
        if fell.is_ok() {
            sys::put_all(&write, b"l")?;
        }
        step()
    })?;
    low.stands()?;
    holder.go()?;
    told("locked")?;
    let victim = start(|| {
        let read = sys::reads(&fifo)?;
        not_above(&sys::get(&read)?)
    })?;
    waits_for_lock(&victim)?;
    low.go()?;
    low.stands()?;
    holder.join()?;
    // until here the pipe has a writer, without which the open would wait for one
    victim.sleeps()?;
    low.join_after_step()?;
    victim.join()
}

/// Of an accept(2) under way no fall has to wait: the process that accepts falls with its client.
fn accept_tells_address() -> Outcome {
    let name = unixsock::abstract_name("server")?;
    let server = start(|| {
        let listener = unixsock::named(SockType::Stream, &name)?;
        let faults = Faults::new()?;
        let (fd, told_at) = (listener.as_raw_fd(), faults.page.0 as usize);
        tell("listens")?;
        told("connected")?;
        // it waits for no connection
        let accepts = asleep(&[libc::SYS_accept4], move || {
            let mut room = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
            let (room, flags) = (&raw mut room, libc::SOCK_CLOEXEC);
            sys::owned(syscall!(libc::SYS_accept4, fd, told_at, room, flags)?)
        })?;
        tell("accepts")?;
        told("written")?;
        faults.fill(0)?;
        let connection = accepts.join().unwrap_or(Err(Errno::EIO))?;
        let got = sys::get(&connection)?;
        same("what was read", got.as_slice(), b"l".as_slice())?;
        not_above(&got)
    })?;
    told("listens")?;
    let low = start(|| {
        let client = unixsock::connected(SockType::Stream, &name)?;
        tell("connected")?;
        told("accepts")?;
        lower(Untrusted)?;
        sys::put_all(&client, b"l")?;
        tell("written")?;
        step()
    })?;
    low.stands()?;
    server.join()?;
    low.join_after_step()
}

/// Receives a byte, with whatever comes with it at an address that has room for so much.
fn receives(socket: RawFd, control: usize, room: usize) -> Result<i64, Errno> {
    let mut byte = 0u8;
    let mut data = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: integers and pointers, all of which may be 0.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control as *mut libc::c_void;
    message.msg_controllen = room;
    let flags = libc::MSG_CMSG_CLOEXEC;
    syscall!(libc::SYS_recvmsg, socket, &raw mut message, flags)
}

/// The process that is handed the end has it in hand alone while the number is told: whoever sent it has closed it.
fn end_told() -> Outcome {
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let beside = low_reader(&write)?;
        let low = falls_and_writes(&read, &write)?;
        drop(write);
        let (from, to) = unixsock::pair(SockType::Stream)?;
        unixsock::send(&from, None, &[read.as_raw_fd()])?;
        drop(read);
        let faults = Faults::new()?;
        let (fd, control) = (to.as_raw_fd(), faults.page.0 as usize);
        let waits = asleep(&[libc::SYS_recvmsg], move || receives(fd, control, 64))?;
        low.go()?;
        low.join()?;
        faults.fill(0)?;
        let bytes = waits.join().unwrap_or(Err(Errno::EIO))?;
        same("bytes received", bytes, 1)?;
        // SAFETY: the kernel has put a header and a number there.
        let end: RawFd = unsafe { faults.page.0.add(16).cast::<RawFd>().read_volatile() };
        not_above(&sys::get(&sys::owned(end)?)?)?;
        beside.join_after_step()
    })?
    .join()
}

/// Places of a table: as many as a process commonly may have.
const LARGEST: libc::c_int = 1 << 19;

/// Again and again one thread has the end put where the table has to be larger, for which it waits, and another one closes it where
/// it was.
fn doubled() -> Outcome {
    for _ in 0..4 {
        start(|| {
            let places = u64::from(LARGEST.unsigned_abs());
            setrlimit(Resource::RLIMIT_NOFILE, places, places)?;
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            let beside = low_reader(&write)?;
            let low = falls_and_writes(&read, &write)?;
            drop(write);
            // two threads at all times, so that the table is shared
            let over = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&over);
            let other = thread::spawn(move || {
                while !told.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let mut end = read.into_raw_fd();
            low.go()?;
            let mut least = 128;
            while least < LARGEST {
                let (send, id) = std::sync::mpsc::channel();
                let from = end;
                let doubles = thread::spawn(move || {
                    let _ = send.send(gettid());
                    syscall!(libc::SYS_fcntl, from, libc::F_DUPFD, least)
                });
                let id = id.recv().map_err(|_| Failed::because("no thread"))?;
                let task = format!("/proc/self/task/{id}");
                while !doubles.is_finished() && wait::call(&task) != Some(libc::SYS_fcntl) {}
                syscall!(libc::SYS_close, from)?;
                let to = doubles.join().unwrap_or(Err(Errno::EIO))?;
                end = RawFd::try_from(to).map_err(|_| Errno::EIO)?;
                least *= 2;
            }
            low.join()?;
            over.store(true, Ordering::Relaxed);
            let _ = other.join();
            not_above(&sys::get(&end)?)?;
            beside.join_after_step()
        })?
        .join()?;
    }
    Ok(())
}

/// What the process that falls has mapped is counted as two mappings and is one by the time that all mappings are: the reader's
/// would be taken for the other one.
fn split_while_counted() -> Outcome {
    const PAGES: usize = 2 * sys::PAGE;
    start(|| {
        let memory = sys::memfd(libc::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&memory, PAGES as i64)?;
        let shown = sys::Map::of(&memory, PROT_READ, MAP_SHARED)?;
        let low = start(|| {
            let prot = PROT_READ | PROT_WRITE;
            let fd = memory.as_raw_fd();
            let at = syscall!(libc::SYS_mmap, 0, PAGES, prot, MAP_SHARED, fd, 0)?;
            syscall!(libc::SYS_munmap, shown.address(), sys::PAGE)?;
            let over = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&over);
            let splits = thread::spawn(move || {
                let second = at + sys::PAGE as libc::c_long;
                while !told.load(Ordering::Relaxed) {
                    for advice in [libc::MADV_DONTFORK, libc::MADV_DOFORK] {
                        let _ = syscall!(libc::SYS_madvise, second, sys::PAGE, advice);
                        busy(Duration::from_micros(50));
                    }
                }
            });
            let fell = (0..20).any(|_| lower(Untrusted).is_ok());
            over.store(true, Ordering::Relaxed);
            let _ = splits.join();
            if fell {
                // SAFETY: the page is mapped writable.
                unsafe { (at as *mut u8).write_volatile(b'l') };
            }
            Ok(())
        })?;
        drop(memory);
        low.join()?;
        not_above(&[shown.peek()])
    })?
    .join()
}

/// The pipe's end has more references than tables show, as another thread of its reader polls. A process above has nothing of it, waits
/// for a message, and keeps a place in its table for the connection that it waits for.
fn waits_beside() -> Outcome {
    let beside = start(|| {
        let (_kept, socket) = unixsock::pair(SockType::Stream)?;
        let listener = unixsock::named(SockType::Stream, &unixsock::abstract_name("server")?)?;
        let (fd, listens) = (socket.as_raw_fd(), listener.as_raw_fd());
        let page = sys::Map::anonymous(libc::MAP_PRIVATE)?;
        let control = page.0 as usize;
        let _receives = asleep(&[libc::SYS_recvmsg], move || receives(fd, control, 64))?;
        let _accepts = asleep(&[libc::SYS_accept4], move || {
            syscall!(libc::SYS_accept4, listens, 0, 0, libc::SOCK_CLOEXEC)
        })?;
        tell("waits")?;
        told("over")?;
        level::is(System)
    })?;
    told("waits")?;
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let low = falls_and_writes(&read, &write)?;
        drop(write);
        let fd = read.as_raw_fd();
        let polls = asleep(&[libc::SYS_poll], move || {
            let mut asked = libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            syscall!(libc::SYS_poll, &raw mut asked, 1, -1)
        })?;
        low.go()?;
        low.join()?;
        let got = sys::get(&read)?;
        same("what was read", got.as_slice(), b"l".as_slice())?;
        level::is(Untrusted)?;
        polls.join().unwrap_or(Err(Errno::EIO))?;
        Ok(())
    })?
    .join()?;
    tell("over")?;
    beside.join()
}
