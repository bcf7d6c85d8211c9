//! Descriptors from before a demotion: what they could do, they can do no more.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};

use crate::scenarios::check::{Outcome, allowed, refused, refused_any, same};
use crate::scenarios::place::{self, AREA, LOG, LOW, SYSTEM, TMPFS_SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::{level, sys};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

/// What a revoked descriptor gives; where the call changes an attribute, EPERM.
pub(super) const NO: &[Errno] = &[Errno::EIO, Errno::EPERM];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "revoke-not-own",
        "descriptors of what one still may write go on working",
        not_own,
    ),
    allow(
        "revoke-reading",
        "so does reading by every old descriptor",
        reading,
    ),
    allow(
        "revoke-not-others",
        "and the descriptors of those who did not fall",
        not_others,
    ),
    deny(
        "revoke-write",
        "a descriptor from before the demotion writes no more: EIO",
        write,
    ),
    bypass(
        "revoke-every-write",
        "write, writev, pwrite, pwritev2, with O_APPEND and O_DIRECT",
        every_write,
    ),
    bypass(
        "revoke-truncate",
        "ftruncate, fallocate, holes and ranges",
        truncate,
    ),
    bypass(
        "revoke-copying",
        "sendfile, splice and copy_file_range into the file",
        copying,
    ),
    bypass(
        "revoke-attributes",
        "fchmod, futimens, fsetxattr and flags by descriptor",
        attributes,
    ),
    bypass(
        "revoke-duplicate",
        "duplicates, and copies that a child inherits",
        duplicates,
    ),
    bypass(
        "revoke-exec",
        "a program that is executed with the descriptor",
        by_exec,
    ),
    bypass("revoke-device", "a device opened before", device),
    bypass(
        "revoke-directory",
        "names made below a directory opened before",
        directory,
    ),
    bypass(
        "revoke-own-then-lower",
        "a file of the level between, two falls later",
        between,
    ),
];

/// A process at the top level that opens a file, falls, and then does what it likes.
pub(super) fn fallen(
    dir: &'static str,
    flags: OFlag,
    then: impl FnOnce(OwnedFd) -> Outcome,
) -> Outcome {
    let (high, low) = (place::file(dir, "high")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::open(&high, flags)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        then(fd)
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")?;
    fs::remove_file(&high)?;
    Ok(fs::remove_file(&low)?)
}

fn not_own() -> Outcome {
    let low = place::file(LOW, "low")?;
    let user = place::file(USER, "user")?;
    start(|| {
        let of_user = sys::open(&user, OFlag::O_WRONLY)?;
        let log = sys::open(LOG, OFlag::O_WRONLY | OFlag::O_APPEND)?;
        let of_low = sys::writes(path(LOW, "low"))?;
        let null = sys::both("/dev/null")?;
        lower(User)?;
        for fd in [&of_user, &log, &of_low, &null] {
            allowed(sys::put(fd))?;
        }
        allowed(fs::read(&low))?;
        for fd in [&log, &of_low, &null] {
            allowed(sys::put(fd))?;
        }
        refused(Errno::EIO, sys::put(&of_user))?;
        level::is(Untrusted)
    })?
    .join()
}

fn reading() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        same("the content", sys::get(&fd)?, b"high".to_vec())?;
        nix::unistd::lseek(&fd, 0, nix::unistd::Whence::SeekSet)?;
        nix::sys::stat::fstat(&fd)?;
        allowed(nix::unistd::fsync(&fd))
    })
}

fn not_others() -> Outcome {
    let file = place::file(SYSTEM, "high")?;
    let fd = sys::both(&file)?;
    start(|| {
        lower(Untrusted)?;
        refused(Errno::EIO, sys::put(&fd))?;
        step()
    })
    .and_then(|child| {
        child.stands()?;
        for _ in 0..20 {
            allowed(sys::put(&fd))?;
        }
        child.join_after_step()
    })?;
    level::is(System)
}

fn write() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| refused(Errno::EIO, sys::put(&fd)))?;
    }
    let low = place::file(LOW, "low")?;
    for level in [User, System] {
        let own = place::file(home(level), "own")?;
        at(level, || {
            let fd = sys::both(&own)?;
            allowed(fs::read(&low))?;
            refused(Errno::EIO, sys::put(&fd))
        })?;
    }
    Ok(())
}

fn every_write() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        for flags in [
            OFlag::O_RDWR,
            OFlag::O_WRONLY | OFlag::O_APPEND,
            OFlag::O_WRONLY | OFlag::O_DIRECT,
            OFlag::O_WRONLY | OFlag::O_SYNC,
        ] {
            fallen(dir, flags, |fd| {
                let page = vec![b'l'; 8192];
                // aligned, for O_DIRECT
                let start = page.as_ptr().align_offset(4096);
                let vec = libc::iovec {
                    iov_base: page[start..].as_ptr().cast_mut().cast(),
                    iov_len: 4096,
                };
                let (raw, vec) = (fd.as_raw_fd(), &raw const vec);
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_write, raw, page[start..].as_ptr(), 4096),
                )?;
                refused(Errno::EIO, syscall!(libc::SYS_writev, raw, vec, 1))?;
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwrite64, raw, page[start..].as_ptr(), 4096, 0),
                )?;
                refused(Errno::EIO, syscall!(libc::SYS_pwritev, raw, vec, 1, 0, 0))?;
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwritev2, raw, vec, 1, 0, 0, 0),
                )?;
                // RWF_APPEND
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwritev2, raw, vec, 1, 0, 0, 0x10),
                )
            })?;
        }
    }
    Ok(())
}

fn truncate() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| {
            refused_any(NO, nix::unistd::ftruncate(&fd, 0))?;
            refused_any(NO, nix::unistd::ftruncate(&fd, 100))?;
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            for mode in [
                FallocateFlags::empty(),
                FallocateFlags::FALLOC_FL_KEEP_SIZE,
                hole,
            ] {
                refused_any(NO, fallocate(&fd, mode, 0, 2))?;
            }
            // ZERO_RANGE, COLLAPSE_RANGE, INSERT_RANGE
            for mode in [0x10, 0x08, 0x20] {
                let done = syscall!(libc::SYS_fallocate, fd.as_raw_fd(), mode, 0, 4096);
                refused_any(&[Errno::EIO, Errno::EPERM, Errno::EOPNOTSUPP], done)?;
            }
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            refused_any(NO, nix::unistd::truncate(path.as_str(), 0))
        })?;
    }
    Ok(())
}

fn copying() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| {
            let low = sys::reads(path(LOW, "low"))?;
            refused_any(NO, nix::sys::sendfile::sendfile(&fd, &low, None, 3))?;
            let copied = syscall!(
                libc::SYS_copy_file_range,
                low.as_raw_fd(),
                0,
                fd.as_raw_fd(),
                0,
                3,
                0
            );
            // between filesystems it may not be possible at all
            refused_any(&[Errno::EIO, Errno::EPERM, Errno::EXDEV], copied)?;
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            sys::put_all(&write, b"low")?;
            refused_any(
                NO,
                syscall!(
                    libc::SYS_splice,
                    read.as_raw_fd(),
                    0,
                    fd.as_raw_fd(),
                    0,
                    3,
                    0
                ),
            )?;
            const FICLONE: u64 = 0x4004_9409;
            let cloned = sys::ioctl(&fd, FICLONE, low.as_raw_fd() as usize);
            refused_any(
                &[
                    Errno::EIO,
                    Errno::EPERM,
                    Errno::EOPNOTSUPP,
                    Errno::EXDEV,
                    Errno::ENOTTY,
                ],
                cloned,
            )
        })?;
    }
    Ok(())
}

fn attributes() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        let raw = fd.as_raw_fd();
        refused_any(NO, syscall!(libc::SYS_fchmod, raw, 0o777))?;
        refused_any(NO, syscall!(libc::SYS_fchown, raw, 1000, 1000))?;
        refused_any(NO, syscall!(libc::SYS_utimensat, raw, 0, 0, 0))?;
        let (name, value) = (c"user.low", b"low");
        refused_any(
            NO,
            syscall!(
                libc::SYS_fsetxattr,
                raw,
                name.as_ptr(),
                value.as_ptr(),
                3,
                0
            ),
        )?;
        let flags: libc::c_long = 0x20;
        refused_any(NO, sys::ioctl(&fd, 0x4008_6602, &raw const flags as usize))
    })
}

fn duplicates() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        let copy = fd.try_clone()?;
        refused(Errno::EIO, sys::put(&copy))?;
        sys::keep_as(&fd, 100)?;
        refused(Errno::EIO, syscall!(libc::SYS_write, 100, b"x".as_ptr(), 1))?;
        refused(Errno::EPERM, sys::again(&fd, OFlag::O_WRONLY))?;
        start(|| refused(Errno::EIO, sys::put(&copy)))?.join()
    })
}

fn by_exec() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        sys::keep_as(&fd, 100)?;
        let status = std::process::Command::new(format!("{}/scenarios", place::BIN))
            .args(["--helper", "write-fd", "100"])
            .status()?;
        same("its errno", status.code(), Some(libc::EIO))
    })
}

fn device() -> Outcome {
    let low = place::file(LOW, "low")?;
    start(|| {
        let log = sys::writes("/dev/kmsg")?;
        allowed(fs::read(&low))?;
        refused(Errno::EIO, sys::put_all(&log, b"<7>low\n"))
    })?
    .join()
}

fn directory() -> Outcome {
    let (dir, low) = (place::directory(SYSTEM, "dir")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::open(&dir, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        allowed(fs::read(&low))?;
        let make = OFlag::O_CREAT | OFlag::O_WRONLY;
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o666);
        refused(Errno::EPERM, nix::fcntl::openat(&fd, "new", make, mode))?;
        refused(Errno::EPERM, nix::sys::stat::mkdirat(&fd, "new", mode))
    })?
    .join()
}

fn between() -> Outcome {
    let (user, low) = (path(AREA, "user"), place::file(LOW, "low")?);
    at(User, || {
        fs::write(&user, "user")?;
        let fd = sys::both(&user)?;
        allowed(sys::put_all(&fd, b"u"))?;
        allowed(fs::read(&low))?;
        refused(Errno::EIO, sys::put(&fd))
    })?;
    at(User, || {
        same("the content", fs::read_to_string(&user)?.as_str(), "user")
    })
}
