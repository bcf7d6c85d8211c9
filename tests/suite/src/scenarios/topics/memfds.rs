//! Memory behind descriptors: a reader of it has observed its writers.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{Outcome, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, spawn, start, step};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "memfd-own",
        "memory behind a descriptor, within one level",
        memfd_own,
    ),
    allow(
        "memfd-secret",
        "secret memory is the subject's own",
        memfd_secret,
    ),
    bypass(
        "memfd-inherited",
        "a child that fell writes to memory it shares a descriptor of",
        memfd_inherited,
    ),
    bypass(
        "memfd-left",
        "memory that a low subject has filled and left",
        memfd_left,
    ),
    bypass(
        "memfd-of-high",
        "a low subject writes a higher subject's memory through /proc",
        memfd_of_high,
    ),
    bypass(
        "map-files",
        "a low subject's memory read through /proc/PID/map_files",
        map_files,
    ),
];

fn memfd_own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let fd = sys::memfd(0)?;
            sys::put(&fd)?;
            let map = sys::Map::of(&fd, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
            map.poke(b'y');
            start(|| {
                map.poke(b'z');
                level::is(level)
            })?
            .join()?;
            same("the memory", map.peek(), b'z')?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn memfd_secret() -> Outcome {
    let secret = sys::owned(crate::sys::syscall!(libc::SYS_memfd_secret, 0)?)?;
    nix::unistd::ftruncate(&secret, 4096)?;
    sys::Map::of(
        &secret,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED,
    )?
    .poke(1);
    level::is(System)
}

fn memfd_inherited() -> Outcome {
    for keep_mapping in [false, true] {
        let victim = start(|| {
            let fd = sys::memfd(0)?;
            sys::put(&fd)?;
            let map = sys::Map::of(&fd, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
            let kept = keep_mapping.then_some(map);
            let low = start(|| {
                // the fall may be refused; the write may be
                if lower(Untrusted).is_ok()
                    && nix::unistd::lseek(&fd, 0, nix::unistd::Whence::SeekSet).is_ok()
                {
                    let _ = sys::put_all(&fd, b"low");
                }
                Ok(())
            })?;
            low.join()?;
            let mut first = [0u8; 1];
            nix::sys::uio::pread(&fd, &mut first, 0)?;
            drop(kept);
            if first[0] == b'l' {
                level::is(Untrusted)
            } else {
                level::is(System)
            }
        })?;
        victim.join()?;
    }
    Ok(())
}

fn memfd_left() -> Outcome {
    let unnamed = || {
        let flags = OFlag::O_TMPFILE | OFlag::O_EXCL | OFlag::O_RDWR;
        sys::open(place::TMPFS, flags)
    };
    let makers: [fn() -> Result<OwnedFd, Errno>; 2] = [|| sys::memfd(0), unnamed];
    for make in makers {
        let low = spawn(Untrusted, || {
            let fd = make()?;
            sys::put(&fd)?;
            sys::keep_as(&sys::again(&fd, OFlag::O_RDONLY)?, 100)?;
            drop(fd);
            step()
        })?;
        low.stands()?;
        at(User, || {
            let fd = sys::open(format!("/proc/{}/fd/100", low.pid), OFlag::O_RDONLY)?;
            same("what was read", sys::get(&fd)?, b"x".to_vec())?;
            level::is(Untrusted)
        })?;
        low.kill()?;
    }
    Ok(())
}

fn memfd_of_high() -> Outcome {
    let fd = sys::memfd(0)?;
    sys::put(&fd)?;
    sys::keep_as(&fd, 100)?;
    let me = std::process::id();
    at(Untrusted, || {
        // its own copy of the descriptor is gone: the way is through /proc
        crate::sys::syscall!(libc::SYS_close, 100)?;
        crate::sys::syscall!(libc::SYS_close, fd.as_raw_fd())?;
        match sys::open(format!("/proc/{me}/fd/100"), OFlag::O_WRONLY) {
            Ok(fd) => Ok(sys::put_all(&fd, b"low").map(drop).or_else(|e| match e {
                Errno::EIO | Errno::EPERM => Ok(()),
                e => Err(e),
            })?),
            Err(e) => refused_any(
                &[Errno::EPERM, Errno::EACCES, Errno::EAGAIN],
                Err::<(), _>(e),
            ),
        }
    })?;
    let mut first = [0u8; 1];
    nix::sys::uio::pread(&fd, &mut first, 0)?;
    if first[0] == b'l' {
        level::is(Untrusted)
    } else {
        level::is(System)
    }
}

fn map_files() -> Outcome {
    let low = spawn(Untrusted, || {
        let fd = sys::memfd(0)?;
        sys::put(&fd)?;
        let map = sys::Map::of(&fd, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
        drop(fd);
        map.poke(b'l');
        step()
    })?;
    low.stands()?;
    let dir = format!("/proc/{}/map_files", low.pid);
    let mut tried = 0;
    for entry in fs::read_dir(&dir)? {
        let path = entry?.path();
        if !fs::read_link(&path)?.to_string_lossy().contains("memfd:") {
            continue;
        }
        tried += 1;
        // below the top the way needs a privilege (CAP_CHECKPOINT_RESTORE)
        for level in Level::LOWER {
            at(level, || refused(Errno::EPERM, sys::reads(&path)))?;
        }
        at(System, || match sys::reads(&path) {
            Ok(fd) => {
                sys::get(&fd)?;
                level::is(Untrusted)
            }
            Err(e) => refused_any(&[Errno::EAGAIN, Errno::EACCES], Err::<(), _>(e)),
        })?;
    }
    low.kill()?;
    ensure(tried > 0, "no mapping was found")
}
