//! Queues and buffers that a child has from its parent: what a fallen one asks to be told, or
//! writes there, a higher one does not read.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use libc::{MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::ftruncate;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, same};
use crate::scenarios::helper::level_of_status;
use crate::scenarios::level;
use crate::scenarios::place::{self, BIN, LOW, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, start};
use crate::scenarios::sys::{self, Map};
use crate::sys::{c, syscall};

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "queues-own",
        "each level has queues of events, also with an equal child, and starts lower programs beside them",
        own,
    ),
    bypass(
        "epoll-inherited",
        "a child that fell writes words of its own into the epoll instance that its parent waits at",
        epoll,
    ),
    bypass(
        "inotify-inherited",
        "a child that fell has its parent's inotify instance tell of what it makes",
        inotify,
    ),
    bypass(
        "signalfd-inherited",
        "a child that fell has its parent's signalfd tell of other signals",
        signals,
    ),
    bypass(
        "timerfd-inherited",
        "a child that fell sets the timer that its parent waits for",
        timer,
    ),
    bypass(
        "dma-buf-inherited",
        "a child that fell writes the buffer for devices that it has from its parent",
        buffer,
    ),
    bypass(
        "fanotify-inherited",
        "a child with its parent's fanotify instance, which opens files for who reads it, falls",
        fanotify,
    ),
];

/// A subject that has got what begins with `l`, which a low subject wrote, must not be at the top.
fn not_above(byte: u8) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        byte != b'l' || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// A child falls, if it may, and does something then.
fn falls_and(act: impl FnOnce() -> Outcome) -> Outcome {
    start(|| {
        if lower(Untrusted).is_ok() {
            act()?;
        }
        Ok(())
    })?
    .join()
}

/// An eventfd at which something is to be read.
fn ready() -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(libc::SYS_eventfd2, 1, libc::EFD_CLOEXEC)?)
}

/// Has an epoll instance say a word once a descriptor is ready.
fn add(epoll: &OwnedFd, fd: &OwnedFd, word: u8) -> Result<(), Errno> {
    sys::epoll_add(epoll, fd, libc::EPOLLIN as u32, word.into())
}

/// The word that an epoll instance says; 0: it says nothing.
fn says(epoll: &OwnedFd) -> Result<u8, Errno> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    syscall!(
        libc::SYS_epoll_wait,
        epoll.as_raw_fd(),
        &raw mut event,
        1,
        0
    )?;
    Ok(event.u64 as u8)
}

fn inotify_instance() -> Result<OwnedFd, Errno> {
    let flags = libc::IN_CLOEXEC | libc::IN_NONBLOCK;
    sys::owned(syscall!(libc::SYS_inotify_init1, flags)?)
}

/// Has an inotify instance tell what is made in a directory.
fn watch(inotify: &OwnedFd, dir: &str) -> Result<(), Errno> {
    let dir = c(dir);
    syscall!(
        libc::SYS_inotify_add_watch,
        inotify.as_raw_fd(),
        dir.as_ptr(),
        libc::IN_CREATE
    )
    .map(drop)
}

/// The first letter of the name that an inotify instance tells; 0: it tells none.
fn tells(inotify: &OwnedFd) -> u8 {
    // struct inotify_event: four numbers, and the name
    let event = sys::get(inotify).unwrap_or_default();
    event.get(16).copied().unwrap_or(0)
}

fn own() -> Outcome {
    for level in Level::ALL {
        let dir = path(home(level), level.name());
        at(level, || {
            fs::create_dir(&dir)?;
            let (epoll, event, inotify) = (sys::epoll()?, ready()?, inotify_instance()?);
            allowed(add(&epoll, &event, b'e'))?;
            start(|| {
                allowed(watch(&inotify, &dir))?;
                level::is(level)
            })?
            .join()?;
            fs::write(format!("{dir}/own"), "")?;
            same("what is said", says(&epoll)?, b'e')?;
            same("what is told", tells(&inotify), b'o')?;
            level::is(level)
        })?;
    }
    // what ends when a program is executed is not shared with it
    let program = path(LOW, "program");
    fs::copy(format!("{BIN}/scenarios"), &program)?;
    let (_epoll, _inotify) = (sys::epoll()?, inotify_instance()?);
    let status = Command::new(&program)
        .args(["--helper", "level"])
        .status()?;
    same(
        "the program's level",
        level_of_status(status.code().unwrap_or(0)),
        Some(Untrusted),
    )?;
    level::is(System)
}

fn epoll() -> Outcome {
    start(|| {
        let (epoll, event) = (sys::epoll()?, ready()?);
        falls_and(|| Ok(add(&epoll, &event, b'l')?))?;
        not_above(says(&epoll)?)
    })?
    .join()
}

fn inotify() -> Outcome {
    start(|| {
        let inotify = inotify_instance()?;
        let dir = place::directory(LOW, "dir")?;
        falls_and(|| {
            watch(&inotify, &dir)?;
            Ok(fs::write(format!("{dir}/low"), "")?)
        })?;
        not_above(tells(&inotify))
    })?
    .join()
}

/// Has a signalfd instance tell of one signal, or, of -1, makes one that does.
fn tell_of(instance: i32, signal: Signal) -> Result<i64, Errno> {
    let (signals, flags) = (
        1u64 << (signal as i32 - 1),
        libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
    );
    let size = size_of_val(&signals);
    syscall!(
        libc::SYS_signalfd4,
        instance,
        &raw const signals,
        size,
        flags
    )
}

fn signals() -> Outcome {
    start(|| {
        SigSet::from_iter([Signal::SIGUSR1, Signal::SIGUSR2]).thread_block()?;
        let instance = sys::owned(tell_of(-1, Signal::SIGUSR1)?)?;
        falls_and(|| Ok(tell_of(instance.as_raw_fd(), Signal::SIGUSR2).map(drop)?))?;
        raise(Signal::SIGUSR2)?;
        not_above(if sys::get(&instance).is_ok() { b'l' } else { 0 })
    })?
    .join()
}

/// Has a timer be over after so many nanoseconds.
fn set_timer(timer: &OwnedFd, after: i64) -> Result<(), Errno> {
    const SECOND: i64 = 1_000_000_000;
    // struct itimerspec: how often, and when
    let time = [0, 0, after / SECOND, after % SECOND];
    syscall!(
        libc::SYS_timerfd_settime,
        timer.as_raw_fd(),
        0,
        time.as_ptr(),
        0
    )
    .map(drop)
}

fn timer() -> Outcome {
    const DAY: i64 = 86_400 * 1_000_000_000;
    start(|| {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        let timer = sys::owned(syscall!(
            libc::SYS_timerfd_create,
            libc::CLOCK_MONOTONIC,
            flags
        )?)?;
        set_timer(&timer, DAY)?;
        falls_and(|| Ok(set_timer(&timer, 1)?))?;
        std::thread::sleep(Duration::from_millis(20));
        not_above(if sys::get(&timer).is_ok() { b'l' } else { 0 })
    })?
    .join()
}

/// A page that devices may be given.
fn page() -> Result<OwnedFd, Errno> {
    const CREATE: u64 = 0x4018_7542;
    const CLOSED_BY_EXEC: u64 = 1;
    let memory = sys::memfd(libc::MFD_ALLOW_SEALING)?;
    ftruncate(&memory, sys::PAGE as i64)?;
    sys::fcntl(&memory, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK.into())?;
    // struct udmabuf_create: the descriptor and flags, where it begins, its size
    let fd = memory.as_raw_fd() as u64;
    let question = [fd | CLOSED_BY_EXEC << 32, 0, sys::PAGE as u64];
    let device = sys::both("/dev/udmabuf")?;
    sys::owned(sys::ioctl(&device, CREATE, question.as_ptr() as usize)?)
}

fn buffer() -> Outcome {
    start(|| {
        let page = page()?;
        falls_and(|| {
            // it may be refused
            if let Ok(map) = Map::of(&page, PROT_READ | PROT_WRITE, MAP_SHARED) {
                map.poke(b'l');
            }
            Ok(())
        })?;
        let byte = Map::of(&page, PROT_READ, MAP_SHARED)?.peek();
        not_above(byte)
    })?
    .join()
}

fn fanotify() -> Outcome {
    /// FAN_CLASS_CONTENT, FAN_CLOEXEC
    const DECIDES: i32 = 4 | 1;
    start(|| {
        let instance = sys::owned(syscall!(libc::SYS_fanotify_init, DECIDES, 0)?)?;
        let child = start(|| refused(Errno::EACCES, fs::read(place::level_file(Untrusted))))?;
        child.join()?;
        // once it is closed it keeps nobody from falling
        drop(instance);
        start(|| lower(Untrusted))?.join()
    })?
    .join()
}
