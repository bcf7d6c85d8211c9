//! What a child shares with its parent beyond memory and descriptors: open descriptions, and by CLONE_FS the directory,
//! the root and the umask. A child that falls changes none of that for a parent that stays above it.

use std::env;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Whence, chdir, chroot, fchdir, lseek, pipe2};

use super::threads::clone_here;
use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::net::address;
use crate::scenarios::place::{self, LOW, SYSTEM, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "description-own",
        "flags of open files are set by who made them, and by who stands above all that have them",
        own_flags,
    ),
    bypass(
        "description-append",
        "a log loses O_APPEND and is wound back by a child, so that its parent's next line overwrites the first",
        append,
    ),
    bypass(
        "description-position",
        "a child winds back the file that its parent writes",
        position,
    )
    .gap("The position of an open file"),
    bypass(
        "description-position-read",
        "a child chooses what its parent reads next of a file",
        position_read,
    )
    .gap("The position of an open file"),
    bypass(
        "description-direct",
        "a child sets O_DIRECT, and its parent's writes fail",
        direct,
    ),
    bypass(
        "description-nonblocking",
        "a child sets O_NONBLOCK on the pipe that its parent writes",
        nonblocking,
    ),
    bypass(
        "description-signal",
        "a child chooses the signal that its parent gets, and takes its place as owner",
        signal,
    ),
    bypass(
        "description-lease",
        "a child gives up its parent's lease",
        lease,
    ),
    bypass(
        "description-locks",
        "a child gives up its parent's locks",
        locks,
    ),
    bypass(
        "clone-fs-directory",
        "a child that shares its parent's directory falls, and goes elsewhere",
        directory,
    ),
    bypass(
        "clone-fs-root",
        "one that shares its parent's root changes that",
        root,
    ),
    bypass(
        "clone-fs-umask",
        "one that shares its parent's umask changes that",
        mask,
    ),
];

pub(super) const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES, Errno::EIO];

/// In a child: falls, if it may, and does something, if it may.
pub(super) fn falls_and(act: impl FnOnce() -> Result<(), Errno>) -> Outcome {
    if lower(Untrusted).is_ok()
        && let Err(e) = act()
    {
        refused_any(NO, Err::<(), _>(e))?;
    }
    Ok(())
}

/// Whether this process stands where it stood when a child has fallen and done something: then it must see nothing of it.
pub(super) fn stays_above(act: impl FnOnce() -> Result<(), Errno>) -> Outcome<bool> {
    start(|| falls_and(act))?.join()?;
    Ok(level::by_writing()? == System)
}

/// A child that shares the directory, the root and the umask of this process falls, and does something.
fn shares(act: impl FnOnce() -> Result<(), Errno>) -> Outcome {
    let child = clone_here(libc::CLONE_FS, || falls_and(act))?;
    match waitpid(child, None)? {
        WaitStatus::Exited(_, 0) => Ok(()),
        _ => Err(Failed::reported()),
    }
}

fn wind_back(fd: &OwnedFd) -> Result<(), Errno> {
    lseek(fd, 0, Whence::SeekSet).map(drop)
}

/// Flags that an open description has of these.
pub(super) fn flags(fd: &OwnedFd, these: OFlag) -> Outcome<OFlag> {
    let flags = sys::fcntl(fd, libc::F_GETFL, 0)?;
    Ok(OFlag::from_bits_retain(flags as i32) & these)
}

fn set_flags(fd: &OwnedFd, flags: OFlag) -> Result<(), Errno> {
    sys::fcntl(fd, libc::F_SETFL, flags.bits().into()).map(drop)
}

fn own_flags() -> Outcome {
    const BOTH: OFlag = OFlag::O_APPEND.union(OFlag::O_NONBLOCK);
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "x")?;
            let fd = sys::both(&file)?;
            let equal = start(step)?;
            equal.stands()?;
            allowed(set_flags(&fd, BOTH))?;
            equal.kill()?;
            // and of a higher file that it has opened itself
            allowed(set_flags(&sys::reads(&high)?, OFlag::O_NONBLOCK))?;
            level::is(level)
        })?;
    }
    start(|| {
        let fd = sys::both(&high)?;
        let child = start(|| {
            lower(Untrusted)?;
            step()
        })?;
        child.stands()?;
        allowed(set_flags(&fd, BOTH))?;
        child.kill()?;
        level::is(System)
    })?
    .join()
}

fn append() -> Outcome {
    let log = place::file(SYSTEM, "first")?;
    start(|| {
        let fd = sys::open(&log, OFlag::O_RDWR | OFlag::O_APPEND)?;
        let above = stays_above(|| {
            set_flags(&fd, OFlag::empty())?;
            wind_back(&fd)
        })?;
        if !above {
            return Ok(());
        }
        sys::put_all(&fd, b"-more")?;
        same("the log", fs::read_to_string(&log)?.as_str(), "first-more")
    })?
    .join()
}

fn position() -> Outcome {
    let file = place::file(SYSTEM, "first")?;
    start(|| {
        let fd = sys::both(&file)?;
        lseek(&fd, 0, Whence::SeekEnd)?;
        if !stays_above(|| wind_back(&fd))? {
            return Ok(());
        }
        sys::put_all(&fd, b"-more")?;
        same(
            "the file",
            fs::read_to_string(&file)?.as_str(),
            "first-more",
        )
    })?
    .join()
}

fn position_read() -> Outcome {
    let file = place::file(SYSTEM, "first-then")?;
    start(|| {
        let fd = sys::reads(&file)?;
        let mut first = [0u8; 6];
        nix::unistd::read(&fd, &mut first)?;
        same("what is read first", &first, b"first-")?;
        if !stays_above(|| wind_back(&fd))? {
            return Ok(());
        }
        same("what is read then", sys::get(&fd)?, b"then".to_vec())
    })?
    .join()
}

fn direct() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    start(|| {
        let fd = sys::both(&file)?;
        if !stays_above(|| set_flags(&fd, OFlag::O_DIRECT))? {
            return Ok(());
        }
        let has = flags(&fd, OFlag::O_DIRECT)?;
        same("whether it is direct", has, OFlag::empty())
    })?
    .join()
}

fn nonblocking() -> Outcome {
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    // the reader may fall with the child
    let reader = start(|| {
        syscall!(libc::SYS_close, write.as_raw_fd())?;
        step()
    })?;
    reader.stands()?;
    drop(read);
    start(|| {
        if !stays_above(|| set_flags(&write, OFlag::O_NONBLOCK))? {
            return Ok(());
        }
        let has = flags(&write, OFlag::O_NONBLOCK)?;
        same("whether it blocks", has, OFlag::empty())
    })?
    .join()?;
    reader.kill()
}

fn signal() -> Outcome {
    start(|| {
        let socket: OwnedFd = std::net::UdpSocket::bind((address(System), 0))?.into();
        let own = i64::from(std::process::id());
        sys::fcntl(&socket, libc::F_SETOWN, own)?;
        let above = stays_above(|| {
            let killed = sys::fcntl(&socket, SET_SIGNAL, libc::SIGKILL.into());
            let pid = i64::from(std::process::id());
            let owned = sys::fcntl(&socket, libc::F_SETOWN, pid);
            killed.and(owned).map(drop)
        })?;
        if !above {
            return Ok(());
        }
        same("the signal", sys::fcntl(&socket, GET_SIGNAL, 0)?, 0)?;
        same("its owner", sys::fcntl(&socket, libc::F_GETOWN, 0)?, own)
    })?
    .join()
}

const SET_SIGNAL: i32 = 10;
const GET_SIGNAL: i32 = 11;

fn lease() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    start(|| {
        let fd = sys::reads(&file)?;
        let (read, none) = (libc::F_RDLCK.into(), libc::F_UNLCK.into());
        sys::fcntl(&fd, libc::F_SETLEASE, read)?;
        if !stays_above(|| sys::fcntl(&fd, libc::F_SETLEASE, none).map(drop))? {
            return Ok(());
        }
        same("the lease", sys::fcntl(&fd, libc::F_GETLEASE, 0)?, read)
    })?
    .join()
}

pub(super) fn lock_file(fd: &OwnedFd, operation: i32) -> Result<(), Errno> {
    syscall!(libc::SYS_flock, fd.as_raw_fd(), operation).map(drop)
}

/// Locks the whole file for its open description, or gives that up.
fn lock_description(fd: &OwnedFd, kind: i32) -> Result<(), Errno> {
    let lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    sys::fcntl(fd, libc::F_OFD_SETLK, &raw const lock as i64).map(drop)
}

fn locks() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    start(|| {
        let (fd, other) = (sys::both(&file)?, sys::both(&file)?);
        lock_file(&fd, libc::LOCK_EX)?;
        lock_description(&fd, libc::F_WRLCK)?;
        let above = stays_above(|| {
            let one = lock_file(&fd, libc::LOCK_UN);
            let two = lock_description(&fd, libc::F_UNLCK);
            one.and(two)
        })?;
        if !above {
            return Ok(());
        }
        let one = lock_file(&other, libc::LOCK_EX | libc::LOCK_NB);
        same("who takes its lock", one, Err(Errno::EAGAIN))?;
        let two = lock_description(&other, libc::F_WRLCK);
        same("who takes its description's lock", two, Err(Errno::EAGAIN))
    })?
    .join()
}

fn directory() -> Outcome {
    start(|| {
        chdir(SYSTEM)?;
        shares(|| chdir(LOW))?;
        let is = env::current_dir()?;
        ensure(
            is.as_os_str() == SYSTEM || level::by_writing()? == Untrusted,
            "its directory is another",
        )
    })?
    .join()
}

fn root() -> Outcome {
    start(|| {
        let before = sys::open("/", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        let inode = fs::metadata("/")?.ino();
        shares(|| chroot(LOW))?;
        let is = fs::metadata("/")?.ino();
        // to where its level can be told
        fchdir(&before)?;
        chroot(".")?;
        ensure(
            is == inode || level::by_writing()? == Untrusted,
            "its root is another",
        )
    })?
    .join()
}

fn mask() -> Outcome {
    start(|| {
        let own = Mode::S_IRWXG | Mode::S_IRWXO;
        umask(own);
        shares(|| {
            umask(Mode::empty());
            Ok(())
        })?;
        let is = umask(own);
        ensure(
            is == own || level::by_writing()? == Untrusted,
            "what it makes may be written by all",
        )
    })?
    .join()
}
