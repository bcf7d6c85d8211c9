//! Requests that run by themselves: io_uring, AIO, and page faults handled elsewhere.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{
    Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW, SYSTEM, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, asleep, at, lower, start};
use crate::scenarios::sys;
use crate::scenarios::uring::{Ring, SQPOLL};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow("uring-own", "each level uses rings for its own files", own),
    allow(
        "uring-gone",
        "a ring that is closed does not stand in the way of a demotion",
        uring_gone,
    ),
    allow(
        "aio-gone",
        "nor does an AIO context that was destroyed",
        aio_gone,
    ),
    allow(
        "uffd-own",
        "each level handles its own page faults",
        uffd_own,
    ),
    bypass(
        "uring-open",
        "files opened through a ring, by worker threads too",
        open,
    ),
    bypass(
        "uring-fixed-file",
        "a registered file written after the demotion",
        fixed_file,
    ),
    bypass(
        "uring-sqpoll",
        "the same by a kernel thread that polls",
        sqpoll,
    ),
    bypass(
        "uring-inherited",
        "a ring and its files inherited by a child that falls",
        inherited,
    ),
    bypass(
        "uring-sqpoll-inherited",
        "the same, served by the parent's kernel thread",
        sqpoll_inherited,
    ),
    bypass(
        "uring-fixed-reader",
        "a pipe's read end that only a ring has",
        fixed_reader,
    ),
    bypass(
        "aio-under-way",
        "an AIO context from before the demotion",
        aio,
    ),
    bypass(
        "uffd-stalled-write",
        "a write stalled in a page fault while another thread demotes",
        stalled_write,
    ),
    bypass(
        "uffd-inherited",
        "a child that falls fills its parent's memory through a userfaultfd",
        uffd_inherited,
    ),
];

fn own() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "0123")?;
            let ring = Ring::new(0)?;
            let fd = sys::both(&file)?;
            same("bytes written", ring.write(fd.as_raw_fd(), b"ab")?, 2)?;
            ring.register(&[fd.as_raw_fd()])?;
            same("bytes written", ring.write_fixed(0, b"c")?, 1)?;
            let opened = sys::owned(ring.open(&file, libc::O_RDONLY, true)?)?;
            same("the content", sys::get(&opened)?, b"cb23".to_vec())?;
            let ring = Ring::new(SQPOLL)?;
            ring.register(&[fd.as_raw_fd()])?;
            same("bytes written", ring.write_fixed(0, b"d")?, 1)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn uring_gone() -> Outcome {
    let low = place::file(LOW, "low")?;
    start(|| {
        let ring = Ring::new(0)?;
        allowed(ring.open("/etc/passwd", libc::O_RDONLY, false))?;
        drop(ring);
        // the kernel tears a ring down some time after it was closed
        soon(|| Ok(fs::read(&low).is_ok()))?;
        level::is(Untrusted)
    })?
    .join()
}

/// An AIO context.
fn context() -> Result<u64, Errno> {
    let mut context = 0u64;
    syscall!(libc::SYS_io_setup, 4, &raw mut context)?;
    Ok(context)
}

fn aio_gone() -> Outcome {
    let low = place::file(LOW, "low")?;
    start(|| {
        syscall!(libc::SYS_io_destroy, context()?)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)
    })?
    .join()
}

fn open() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    for worker in [false, true] {
        at(Untrusted, || {
            let ring = Ring::new(0)?;
            refused(Errno::EPERM, ring.open(&high, libc::O_WRONLY, worker))?;
            refused(
                Errno::EPERM,
                ring.open(&high, libc::O_RDWR | libc::O_TRUNC, worker),
            )
        })?;
        at(User, || {
            let ring = Ring::new(0)?;
            match ring.open(&low, libc::O_RDONLY, worker) {
                Ok(_) => level::is(Untrusted),
                Err(e) => {
                    refused_any(&[Errno::EACCES, Errno::EAGAIN], Err::<(), _>(e))?;
                    level::is(User)
                }
            }
        })?;
    }
    Ok(())
}

/// Falls, or not, with a ring that has a system file; the file must not change after.
fn ring_then_fall(flags: u32, in_child: bool) -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    start(|| {
        let ring = Ring::new(flags)?;
        let fd = sys::both(&high)?;
        ring.register(&[fd.as_raw_fd()])?;
        drop(fd);
        let fall_and_write = || {
            if fs::read(&low).is_ok() {
                let _ = ring.write_fixed(0, b"low!");
                level::is(Untrusted)
            } else {
                level::is(System)
            }
        };
        if in_child {
            start(fall_and_write)?.join()
        } else {
            fall_and_write()
        }
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn fixed_file() -> Outcome {
    ring_then_fall(0, false)
}

fn sqpoll() -> Outcome {
    ring_then_fall(SQPOLL, false)
}

fn inherited() -> Outcome {
    ring_then_fall(0, true)
}

fn sqpoll_inherited() -> Outcome {
    ring_then_fall(SQPOLL, true)
}

fn fixed_reader() -> Outcome {
    start(|| {
        let ring = Ring::new(0)?;
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        ring.register(&[read.as_raw_fd()])?;
        drop(read);
        let child = start(|| {
            // SAFETY: this child's copy; the ring holds what it registered.
            unsafe { libc::close(ring.fd.as_raw_fd()) };
            if lower(Untrusted).is_ok() {
                let _ = sys::put(&write);
            }
            Ok(())
        })?;
        child.join()?;
        // what is read then is a byte, or the end
        drop(write);
        let mut byte = [0u8; 1];
        if ring.read_fixed(0, &mut byte) == Ok(1) {
            level::is(Untrusted)
        } else {
            Ok(())
        }
    })?
    .join()
}

/// struct iocb of a write of four bytes at a file's beginning.
fn control_block(fd: i32, bytes: &[u8; 4]) -> [u64; 8] {
    const PWRITE: u64 = 1;
    let mut block = [0u64; 8];
    block[2] = PWRITE | (fd as u64) << 32;
    (block[3], block[4]) = (bytes.as_ptr() as u64, 4);
    block
}

fn aio() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    start(|| {
        let context = context()?;
        let fd = sys::both(&high)?;
        let block = control_block(fd.as_raw_fd(), b"low!");
        if fs::read(&low).is_err() {
            return level::is(System);
        }
        let list = [&raw const block];
        refused_any(
            &[Errno::EIO, Errno::EPERM],
            syscall!(libc::SYS_io_submit, context, 1, list.as_ptr()),
        )
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

/// A userfaultfd, and a page whose first touch waits for it.
pub(super) struct Faults {
    pub(super) fd: OwnedFd,
    pub(super) page: sys::Map,
}

impl Faults {
    pub(super) fn new() -> Result<Faults, Errno> {
        Self::with(0)
    }

    /// One that the kernel's own touches do not wait for, which needs no privilege.
    fn of_user_mode() -> Result<Faults, Errno> {
        /// UFFD_USER_MODE_ONLY
        const USER_MODE_ONLY: i32 = 1;
        Self::with(USER_MODE_ONLY)
    }

    fn with(flags: i32) -> Result<Faults, Errno> {
        const API: u64 = 0xc018_aa3f;
        const REGISTER: u64 = 0xc020_aa00;
        let fd = sys::owned(syscall!(libc::SYS_userfaultfd, libc::O_CLOEXEC | flags)?)?;
        let api = [0xaau64, 0, 0];
        sys::ioctl(&fd, API, api.as_ptr() as usize)?;
        let page = sys::Map::anonymous(libc::MAP_PRIVATE)?;
        let register = [page.0 as u64, sys::PAGE as u64, 1, 0];
        sys::ioctl(&fd, REGISTER, register.as_ptr() as usize)?;
        Ok(Faults { fd, page })
    }

    /// Fills the page: the thread that waits goes on.
    pub(super) fn fill(&self, with: u8) -> Result<(), Errno> {
        fill_by(&self.fd, self.page.0 as u64, with)
    }
}

/// Fills a page, by its address in the memory of the process that made the userfaultfd.
pub(super) fn fill_by(fd: &OwnedFd, page: u64, with: u8) -> Result<(), Errno> {
    const COPY: u64 = 0xc028_aa03;
    let source = vec![with; sys::PAGE];
    let copy = [page, source.as_ptr() as u64, sys::PAGE as u64, 0, 0];
    sys::ioctl(fd, COPY, copy.as_ptr() as usize).map(drop)
}

fn uffd_own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let faults = allowed(Faults::of_user_mode())?;
            faults.fill(5)?;
            same("the memory", faults.page.peek(), 5)?;
            level::is(level)
        })?;
    }
    // the kernel's own waits for a handler at the top alone
    let faults = allowed(Faults::new())?;
    faults.fill(5)?;
    same("the memory", faults.page.peek(), 5)
}

fn stalled_write() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    start(|| {
        let (faults, fd) = (Faults::new()?, sys::both(&high)?);
        let address = faults.page.0 as usize;
        let (told, wrote) = mpsc::channel();
        let raw = fd.as_raw_fd();
        let writer = asleep(&[libc::SYS_pwrite64], move || {
            let _ = told.send(syscall!(libc::SYS_pwrite64, raw, address, 4, 0));
        })?;
        let fell = fs::read(&low).is_ok();
        faults.fill(b'l')?;
        let wrote = wrote
            .recv_timeout(PATIENCE)
            .unwrap_or(Err(Errno::ETIMEDOUT));
        let _ = writer.join();
        if fell {
            refused_any(&[Errno::EIO, Errno::EPERM], wrote)?;
            level::is(Untrusted)
        } else {
            // the write was first, at the level it was begun at
            allowed(wrote)?;
            level::is(System)
        }
    })?
    .join()
}

fn uffd_inherited() -> Outcome {
    start(|| {
        let faults = Faults::new()?;
        let filled = path(place::TMPFS_LOW, "filled");
        let child = start(|| {
            if lower(Untrusted).is_ok() && faults.fill(b'l').is_ok() {
                fs::write(&filled, "")?;
            }
            Ok(())
        })?;
        child.join()?;
        if fs::exists(&filled)? {
            ensure(faults.page.peek() == b'l', "the memory was not filled")?;
            return level::is(Untrusted);
        }
        level::is(System)
    })?
    .join()
}
