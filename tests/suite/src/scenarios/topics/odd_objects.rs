//! What a place's rule says of what is no plain file: whose modes belong to the system though anybody may write to it,
//! FIFOs that no lower subject may open, and what is in a directory for neutral devices.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sched::CloneFlags;
use nix::sys::socket::SockType::Stream;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;

use super::system::bind;
use crate::scenarios::check::{Outcome, allowed, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, HANDLE, HANDLES, MOUNT, OPEN_SOCKET, VAULT, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, own_namespaces, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{file_name, named};
use crate::sys::{c, syscall};

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "mode-of-own",
        "each level shuts its own terminal and sockets to others, and devices for all have their times set",
        own,
    ),
    allow(
        "neutral-device-below",
        "each level uses a device in a directory that the map calls neutral",
        device_below,
    ),
    bypass(
        "neutral-directory",
        "root below the top makes, removes and changes what is no device in such a directory, for all to believe",
        neutral_directory,
    ),
    bypass(
        "mode-of-device",
        "root below the top takes a neutral device from everybody, or gives it away, by its mode and owner",
        devices,
    ),
    bypass(
        "mode-of-terminal",
        "the same of a higher session's terminal",
        terminal,
    ),
    bypass(
        "mode-of-terminals",
        "root below the top changes the mode or the owner of the directory of all terminals, /dev/pts",
        terminals,
    ),
    bypass(
        "mode-of-socket",
        "the same of a socket that everybody may connect to, and of the daemon's",
        sockets,
    ),
    bypass(
        "attributes-of-socket",
        "the same by extended attributes and access control lists",
        attributes,
    ),
    bypass(
        "fifo-lownoopen",
        "a FIFO that no lower subject may open, by its name",
        fifo,
    ),
    bypass(
        "fifo-lownoopen-reopened",
        "the same by /proc/self/fd, of a descriptor that no hook sees",
        fifo_reopened,
    ),
    bypass(
        "fifo-lownoopen-bound",
        "the same by a mount in a namespace of one's own",
        fifo_bound,
    ),
    bypass(
        "fifo-lownoopen-by-handle",
        "the same by its handle",
        fifo_by_handle,
    ),
];

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

/// An object's mode and owner.
fn looks(object: &str) -> Outcome<(u32, u32, u32)> {
    let its = fs::metadata(object)?;
    Ok((its.mode(), its.uid(), its.gid()))
}

/// Puts them back, where it should not have been possible to change them.
fn put_back(object: &str, (mode, uid, gid): (u32, u32, u32)) -> Outcome {
    let path = c(object);
    syscall!(libc::SYS_chown, path.as_ptr(), uid, gid)?;
    syscall!(libc::SYS_chmod, path.as_ptr(), mode & 0o7777)?;
    Ok(())
}

/// Each way of changing an object's mode and its owner.
fn changes(object: &str) -> Outcome {
    const FCHMODAT2: libc::c_long = 452;
    let path = c(object);
    let by_path = sys::open(object, OFlag::O_PATH)?;
    let (fd, none) = (by_path.as_raw_fd(), c"");
    let (name, cwd) = (path.as_ptr(), libc::AT_FDCWD);
    refused_any(NO, syscall!(libc::SYS_chmod, name, 0))?;
    refused_any(NO, syscall!(libc::SYS_fchmodat, cwd, name, 0o666))?;
    refused_any(
        NO,
        syscall!(FCHMODAT2, fd, none.as_ptr(), 0, libc::AT_EMPTY_PATH),
    )?;
    refused_any(NO, syscall!(libc::SYS_chown, name, 1000, 1000))?;
    refused_any(
        NO,
        syscall!(
            libc::SYS_fchownat,
            fd,
            none.as_ptr(),
            1000,
            -1,
            libc::AT_EMPTY_PATH
        ),
    )
}

/// No level below the top changes the mode or the owner of any of these.
fn kept(objects: &[&str]) -> Outcome {
    for object in objects {
        let before = looks(object)?;
        for level in Level::LOWER {
            let tried = at(level, || changes(object));
            let after = looks(object)?;
            put_back(object, before)?;
            tried?;
            same(object, after, before)?;
        }
    }
    Ok(())
}

fn devices() -> Outcome {
    kept(&[
        "/dev/null",
        "/dev/full",
        "/dev/tty",
        "/dev/urandom",
        "/dev/ptmx",
        "/dev/tty1",
    ])?;
    // by a descriptor that is for something else
    for level in Level::LOWER {
        at(level, || {
            let null = sys::both("/dev/null")?;
            refused_any(
                NO,
                nix::sys::stat::fchmod(&null, Mode::from_bits_truncate(0o666)),
            )
        })?;
    }
    Ok(())
}

fn device_below() -> Outcome {
    let device = path(HANDLES, "fuse");
    let mode = Mode::from_bits_truncate(0o666);
    mknod(device.as_str(), SFlag::S_IFCHR, mode, makedev(10, 229))?;
    let played = Level::ALL.into_iter().try_for_each(|level| {
        at(level, || {
            allowed(sys::both(&device))?;
            level::is(level)
        })
    });
    fs::remove_file(&device)?;
    played
}

fn neutral_directory() -> Outcome {
    let (file, dir) = (
        place::file(HANDLES, "high")?,
        place::directory(HANDLES, "dir")?,
    );
    let open = || fs::Permissions::from_mode(0o777);
    for level in Level::LOWER {
        at(level, || {
            let made = path(HANDLES, level.name());
            refused_any(NO, sys::both(&file))?;
            refused_any(NO, fs::write(&made, "low"))?;
            refused_any(NO, fs::create_dir(&made))?;
            refused_any(NO, symlink("/", &made))?;
            refused_any(NO, mkfifo(made.as_str(), Mode::S_IRWXU))?;
            refused_any(NO, fs::rename(&file, &made))?;
            refused_any(NO, fs::remove_file(&file))?;
            refused_any(NO, fs::remove_dir(&dir))?;
            for object in [file.as_str(), &dir, HANDLES] {
                refused_any(NO, fs::set_permissions(object, open()))?;
            }
            // where everybody makes names
            refused_any(NO, fs::write(HANDLE, "low"))?;
            refused_any(NO, fs::create_dir(HANDLE))?;
            allowed(sys::reads(&file))?;
            level::is(level)
        })?;
    }
    allowed(fs::remove_file(&file))?;
    allowed(fs::remove_dir(&dir))
}

/// A new terminal: its master and its name.
fn pty() -> Outcome<(PtyMaster, String)> {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname_r(&master)?;
    Ok((master, name))
}

/// Shuts a device or a socket to others, and gives it to its user.
fn shuts(object: &str) -> Outcome {
    allowed(fs::set_permissions(
        object,
        fs::Permissions::from_mode(0o600),
    ))?;
    allowed(chown(object, Some(0), Some(0)))
}

fn own() -> Outcome {
    for level in Level::ALL {
        let socket = path(home(level), level.name());
        at(level, || {
            allowed(level::touch("/dev/null"))?;
            let _server = named(Stream, &file_name(&socket)?)?;
            shuts(&socket)?;
            let (_master, name) = pty()?;
            // nobody's, and then its session's
            shuts(&name)?;
            start(|| {
                nix::unistd::setsid()?;
                let _terminal = sys::both(&name)?;
                shuts(&name)?;
                level::is(level)
            })?
            .join()
        })?;
    }
    Ok(())
}

fn terminal() -> Outcome {
    let (_master, name) = pty()?;
    let session = start(|| {
        nix::unistd::setsid()?;
        let _terminal = sys::both(&name)?;
        step()
    })?;
    session.stands()?;
    let played = kept(&[&name]);
    session.kill()?;
    played
}

fn terminals() -> Outcome {
    kept(&["/dev/pts"])
}

fn sockets() -> Outcome {
    let _server = named(Stream, &file_name(OPEN_SOCKET)?);
    kept(&[OPEN_SOCKET, level::SOCKET])
}

fn attributes() -> Outcome {
    let _server = named(Stream, &file_name(OPEN_SOCKET)?);
    // version 2: the owner may all, the group and others nothing
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, may) in [(1u16, 7u16), (4, 0), (0x20, 0)] {
        list.extend(tag.to_le_bytes());
        list.extend(may.to_le_bytes());
        list.extend(u32::MAX.to_le_bytes());
    }
    for object in [OPEN_SOCKET, level::SOCKET, "/dev/null"] {
        let before = looks(object)?;
        for level in Level::LOWER {
            let tried = at(level, || {
                refused_any(NO, sys::setxattr(object, "trusted.word", b"l"))?;
                refused_any(NO, sys::setxattr(object, "system.posix_acl_access", &list))?;
                refused_any(NO, sys::removexattr(object, "system.posix_acl_access"))
            });
            let after = looks(object)?;
            put_back(object, before)?;
            tried?;
            same(object, after, before)?;
        }
    }
    Ok(())
}

const WAYS: [OFlag; 3] = [OFlag::O_RDONLY, OFlag::O_WRONLY, OFlag::O_RDWR];

fn fifo() -> Outcome {
    let fifo = place::fifo(VAULT, "fifo")?;
    for level in Level::LOWER {
        at(level, || {
            for way in WAYS {
                let opened = sys::open(&fifo, way | OFlag::O_NONBLOCK);
                refused(Errno::EPERM, opened)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn fifo_reopened() -> Outcome {
    let fifo = place::fifo(VAULT, "fifo")?;
    for level in Level::LOWER {
        at(level, || {
            let by_path = sys::open(&fifo, OFlag::O_PATH)?;
            for way in WAYS {
                let opened = sys::again(&by_path, way | OFlag::O_NONBLOCK);
                refused(Errno::EPERM, opened)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn fifo_bound() -> Outcome {
    let fifo = place::fifo(VAULT, "fifo")?;
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            bind(VAULT, MOUNT)?;
            let name = fifo.rsplit('/').next().unwrap_or_default();
            for way in WAYS {
                let opened = sys::open(format!("{MOUNT}/{name}"), way | OFlag::O_NONBLOCK);
                refused(Errno::EPERM, opened)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn fifo_by_handle() -> Outcome {
    let fifo = place::fifo(VAULT, "fifo")?;
    let handle = sys::handle_of(&fifo)?;
    for in_sight in [true, false] {
        if !in_sight {
            sys::drop_caches()?;
        }
        at(Untrusted, || {
            let root = sys::open("/", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            let way = OFlag::O_RDONLY | OFlag::O_NONBLOCK;
            refused_any(NO, sys::open_handle(&root, &handle, way))
        })?;
    }
    Ok(())
}
