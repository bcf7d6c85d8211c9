//! Names, mounts and what is kept of files: whose name a device or a socket has, what a mount that comes or goes does to
//! paths, and levels that have gone with their files.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, renameat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, fchmod, makedev, mknod};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use super::system::{bind, tmpfs};
use crate::scenarios::check::{Outcome, allowed, ensure, refused};
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, LOW, MOUNT, OPEN_IN_AREA, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::setup;
use crate::scenarios::subject::{Level, at, lower, own_namespaces, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "device-name-taken",
        "root below the top has urandom and zero change places in a higher container's /dev",
        device_name,
    ),
    bypass(
        "socket-name-taken",
        "a low process removes a higher server's socket, which admits it, from where all may make names",
        socket_name,
    ),
    bypass(
        "mount-namespace-directory",
        "a low file in a directory of a filesystem that only another namespace has mounted",
        directory_elsewhere,
    ),
    bypass(
        "mounted-whole-later",
        "a filesystem of which a part is mounted is mounted once more, as a whole, at a low place",
        whole_later,
    ),
    bypass(
        "mountpoint-removed",
        "a directory on which a higher process has mounted something is removed or moved from outside",
        mountpoint,
    ),
    bypass(
        "levels-unmounted",
        "files of filesystems in memory that are unmounted fill the table of given levels",
        unmounted,
    ),
    bypass(
        "levels-moved",
        "so do files that were moved and removed",
        moved,
    ),
    bypass(
        "levels-forgotten",
        "so do files that are removed when the kernel has forgotten their inodes",
        forgotten,
    ),
    bypass(
        "pipe-mode-shared",
        "who has fallen takes the pipe that it has with a higher process from that by its mode and its owner",
        pipe_mode,
    ),
];

const NO: Errno = Errno::EPERM;

fn exchange(one: &str, other: &str) -> Result<(), Errno> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
}

fn makes_device(file: &str, minor: u64) -> Result<(), Errno> {
    let mode = Mode::from_bits_truncate(0o666);
    mknod(file, SFlag::S_IFCHR, mode, makedev(1, minor))
}

fn device_name() -> Outcome {
    const DEVICES: [(&str, u64); 3] = [("null", 3), ("zero", 5), ("urandom", 9)];
    let container = start(|| {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        tmpfs(MOUNT)?;
        for (name, minor) in DEVICES {
            makes_device(&format!("{MOUNT}/{name}"), minor)?;
        }
        step()
    })?;
    container.stands()?;
    let there = |name: &str| format!("/proc/{}/root{MOUNT}/{name}", container.pid);
    for level in Level::LOWER {
        at(level, || {
            let own = there(level.name());
            refused(NO, exchange(&there("urandom"), &there("zero")))?;
            refused(NO, fs::remove_file(there("null")))?;
            refused(NO, fs::rename(there("null"), &own))?;
            refused(NO, fs::hard_link(there("null"), &own))?;
            fs::write(&own, "own")?;
            refused(NO, fs::rename(&own, there("null")))?;
            allowed(fs::remove_file(&own))
        })?;
    }
    container.kill()?;
    // where a device's place is low its name is so, too
    let low = path(LOW, "null");
    makes_device(&low, 3)?;
    at(Untrusted, || allowed(fs::remove_file(&low)))
}

fn socket_name() -> Outcome {
    let _server = UnixDatagram::bind(OPEN_IN_AREA)?;
    let played = at(Untrusted, || {
        let own = path(AREA, "own");
        refused(NO, fs::remove_file(OPEN_IN_AREA))?;
        refused(NO, fs::rename(OPEN_IN_AREA, &own))?;
        refused(NO, fs::hard_link(OPEN_IN_AREA, &own))
    });
    fs::remove_file(OPEN_IN_AREA)?;
    played
}

fn directory_elsewhere() -> Outcome {
    let child = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        tmpfs(MOUNT)?;
        let dir = format!("{MOUNT}/dir");
        fs::create_dir(&dir)?;
        allowed(fs::write(format!("{dir}/file"), "low"))?;
        let deeper = format!("{dir}/deeper");
        allowed(fs::create_dir(&deeper))?;
        allowed(fs::write(format!("{deeper}/file"), "low"))?;
        allowed(fs::rename(&deeper, format!("{MOUNT}/moved")))?;
        step()
    })?;
    child.stands()?;
    let seen = format!("/proc/{}/root{MOUNT}", child.pid);
    for file in ["dir/file", "moved/file"] {
        at(User, || {
            allowed(fs::read(format!("{seen}/{file}")))?;
            level::is(Untrusted)
        })?;
    }
    let high = format!("{seen}/dir/high");
    fs::write(&high, "high")?;
    at(Untrusted, || refused(NO, sys::writes(&high)))?;
    child.kill()
}

fn whole_later() -> Outcome {
    let directory = place::directory;
    let (first, part) = (directory(SYSTEM, "first")?, directory(SYSTEM, "part")?);
    let whole = directory(LOW, "whole")?;
    tmpfs(&first)?;
    fs::create_dir(format!("{first}/sub"))?;
    bind(&format!("{first}/sub"), &part)?;
    bind(&first, &whole)?;
    umount2(first.as_str(), MntFlags::MNT_DETACH)?;
    let played = (|| {
        let file = format!("{part}/file");
        fs::write(&file, "high")?;
        object_is(&file, System)?;
        at(User, || {
            allowed(fs::read(format!("{whole}/sub/file")))?;
            level::is(User)
        })
    })();
    umount2(part.as_str(), MntFlags::MNT_DETACH)?;
    umount2(whole.as_str(), MntFlags::MNT_DETACH)?;
    played
}

fn mountpoint() -> Outcome {
    let (dir, other) = (path(AREA, "dir"), path(AREA, "other"));
    at(Untrusted, || {
        fs::create_dir(&dir)?;
        Ok(fs::create_dir(&other)?)
    })?;
    let own = format!("{dir}/own");
    let higher = spawn(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        tmpfs(&dir)?;
        fs::write(&own, "own")?;
        step()?;
        ensure(fs::exists(&own)?, "what it has mounted is gone")
    })?;
    higher.stands()?;
    at(Untrusted, || {
        refused(Errno::EBUSY, fs::remove_dir(&dir))?;
        refused(Errno::EBUSY, fs::rename(&dir, path(AREA, "moved")))?;
        refused(Errno::EBUSY, fs::rename(&other, &dir))?;
        refused(Errno::EBUSY, exchange(&other, &dir))
    })?;
    higher.join_after_step()
}

/// Files at a time: fewer than one user's share of the table of given levels.
const FILES: u32 = setup::GIVEN / 3;

/// So many times that no share would do if an entry stayed of each file.
const TIMES: u32 = 5;

fn unmounted() -> Outcome {
    at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        for _ in 0..TIMES {
            tmpfs(MOUNT)?;
            for n in 0..FILES {
                let file = format!("{MOUNT}/{n}");
                allowed(mknod(file.as_str(), SFlag::S_IFREG, Mode::S_IRWXU, 0))?;
            }
            umount2(MOUNT, MntFlags::empty())?;
        }
        Ok(())
    })
}

fn moved() -> Outcome {
    let (made, moved) = (path(AREA, "file"), path(LOW, "file"));
    at(Untrusted, || {
        for _ in 0..FILES * TIMES {
            allowed(mknod(made.as_str(), SFlag::S_IFREG, Mode::S_IRWXU, 0))?;
            allowed(fs::rename(&made, &moved))?;
            fs::remove_file(&moved)?;
        }
        Ok(())
    })
}

fn forgotten() -> Outcome {
    let dir = path(AREA, "dir");
    for _ in 0..TIMES {
        at(Untrusted, || {
            allowed(fs::create_dir(&dir))?;
            for n in 0..FILES {
                let file = format!("{dir}/{n}");
                allowed(mknod(file.as_str(), SFlag::S_IFREG, Mode::S_IRWXU, 0))?;
            }
            Ok(())
        })?;
        sys::drop_caches()?;
        fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

fn pipe_mode() -> Outcome {
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    let (mode, alice) = (Mode::empty(), Some(Uid::from_raw(1000)));
    start(|| {
        // whose end to write falls, its reader falls
        syscall!(libc::SYS_close, write.as_raw_fd())?;
        lower(Untrusted)?;
        refused(NO, fchmod(&read, mode))?;
        refused(NO, fchown(&read, alice, None::<Gid>))?;
        let (own, _other) = pipe2(OFlag::O_CLOEXEC)?;
        allowed(fchmod(&own, mode))?;
        allowed(fchown(&own, alice, None::<Gid>))
    })?
    .join()?;
    allowed(sys::again(&write, OFlag::O_WRONLY))?;
    level::is(System)
}
