//! Files: opening, and what they carry besides their content.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{Outcome, allowed, refused, same};
use crate::scenarios::level::{self, touch};
use crate::scenarios::place::{self, AREA, LOG, LOW, SECRET, SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, become_alice};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

const READ: &str = "open for reading";
const WRITE: &str = "open for writing";

pub const SCENARIOS: &[Scenario] = &[
    allow("file-own", "each level reads and writes its own files", own).of(WRITE),
    allow(
        "file-read-up",
        "reading what is higher changes nothing",
        read_up,
    )
    .of(READ),
    allow(
        "file-write-down",
        "writing what is lower changes nothing",
        write_down,
    )
    .of(WRITE),
    allow(
        "file-lowwrite",
        "a lowwrite file takes writes of every level",
        lowwrite,
    ),
    allow(
        "file-neutral-devices",
        "null, zero, random and terminals neither demote nor refuse",
        neutral,
    ),
    allow(
        "file-unmediated",
        "stat, readdir and locks are not observations",
        unmediated,
    ),
    allow(
        "file-attributes-down",
        "a higher subject changes a lower file's attributes",
        attributes_down,
    ),
    deny(
        "file-observe",
        "reading what is lower demotes, and never raises again",
        observe,
    )
    .of(READ),
    deny(
        "file-read-write-down",
        "O_RDWR of a lower file demotes, then writes",
        read_write_down,
    ),
    deny(
        "file-write-up",
        "no way of opening a higher file for writing",
        write_up,
    )
    .of(WRITE),
    deny("file-truncate-up", "truncate of a higher file", truncate_up),
    deny(
        "file-lownoopen",
        "a lower subject may not even read it",
        lownoopen,
    ),
    deny(
        "file-attributes-up",
        "mode, owner, times, xattrs and ACLs of a higher file",
        attributes_up,
    ),
    deny(
        "file-xattr-observe",
        "user.* attributes are observed",
        xattr_observe,
    ),
    deny(
        "file-readlink-observe",
        "a link's target is observed",
        readlink_observe,
    ),
    deny(
        "file-devices",
        "device nodes follow their path's rule",
        devices,
    ),
    bypass("opath-reopen", "an O_PATH descriptor opened again", opath),
    bypass(
        "proc-fd-reopen",
        "a read descriptor opened again for writing",
        proc_fd,
    ),
    bypass(
        "file-root-and-owner",
        "root, the owner and DAC capabilities are not above the level",
        identity,
    ),
    bypass(
        "inode-flags-ioctl",
        "flags and generation changed through a read descriptor",
        inode_flags,
    ),
];

fn own() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "mine")?;
            allowed(sys::both(&file))?;
            allowed(sys::open(&file, OFlag::O_WRONLY | OFlag::O_APPEND))?;
            same("the content", fs::read_to_string(&file)?.as_str(), "mine")?;
            level::is(level)
        })?;
        level::object_is(&file, level)?;
    }
    level::is(System)
}

fn read_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let file = place::file(home(high), &format!("for-{}", low.name()))?;
        at(low, || {
            allowed(fs::read(&file))?;
            level::is(low)
        })?;
    }
    Ok(())
}

fn write_down() -> Outcome {
    for (high, low) in [(System, Untrusted), (System, User), (User, Untrusted)] {
        let file = place::file(home(low), &format!("from-{}", high.name()))?;
        at(high, || {
            sys::put(&sys::writes(&file)?)?;
            sys::put(&sys::open(&file, OFlag::O_WRONLY | OFlag::O_APPEND)?)?;
            fs::write(&file, "whole")?;
            level::is(high)
        })?;
        level::object_is(&file, low)?;
    }
    Ok(())
}

fn lowwrite() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            sys::put(&sys::open(LOG, OFlag::O_WRONLY | OFlag::O_APPEND)?)?;
            allowed(sys::both(LOG))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn neutral() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            for path in [
                "/dev/null",
                "/dev/zero",
                "/dev/full",
                "/dev/random",
                "/dev/urandom",
                "/dev/ptmx",
            ] {
                allowed(sys::both(path))?;
            }
            sys::put(&sys::writes("/dev/null")?)?;
            sys::get(&sys::reads("/dev/urandom")?)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn unmediated() -> Outcome {
    let low = place::file(LOW, "file")?;
    let high = place::file(SYSTEM, "file")?;
    fs::metadata(&low)?;
    fs::symlink_metadata(&low)?;
    for entry in fs::read_dir(LOW)? {
        entry?;
    }
    nix::sys::statfs::statfs(LOW)?;
    at(Untrusted, || {
        let fd = sys::reads(&high)?;
        // SAFETY: takes no pointer.
        Errno::result(unsafe { libc::flock(std::os::fd::AsRawFd::as_raw_fd(&fd), libc::LOCK_SH) })?;
        Ok(())
    })?;
    level::is(System)
}

fn attributes_down() -> Outcome {
    let file = place::file(LOW, "file")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640))?;
    chown(&file, Some(1000), Some(1000))?;
    touch(&file)?;
    sys::setxattr(&file, "user.scenario", b"value")?;
    sys::removexattr(&file, "user.scenario")?;
    nix::unistd::truncate(file.as_str(), 0)?;
    level::is(System)
}

fn observe() -> Outcome {
    let (user, low) = (place::file(USER, "user")?, place::file(LOW, "low")?);
    let high = place::file(SYSTEM, "high")?;
    let child = crate::scenarios::subject::start(|| {
        allowed(fs::read(&user))?;
        level::is(User)?;
        refused(Errno::EPERM, sys::writes(&high))?;
        allowed(sys::writes(&user))?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        refused(Errno::EPERM, sys::writes(&user))?;
        allowed(fs::read(&high))?;
        level::is(Untrusted)
    })?;
    child.join()?;
    level::is(System)
}

fn read_write_down() -> Outcome {
    let low = place::file(LOW, "low")?;
    at(User, || {
        sys::put(&sys::both(&low)?)?;
        level::is(Untrusted)
    })
}

fn write_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let file = place::file(home(high), &format!("for-{}", low.name()))?;
        at(low, || {
            let (w, rw) = (OFlag::O_WRONLY, OFlag::O_RDWR);
            for flags in [
                w,
                rw,
                w | OFlag::O_APPEND,
                w | OFlag::O_TRUNC,
                rw | OFlag::O_CREAT,
                w | OFlag::O_DIRECT,
            ] {
                refused(Errno::EPERM, sys::open(&file, flags))?;
            }
            let truncate_reading = OFlag::O_RDONLY | OFlag::O_TRUNC;
            refused(Errno::EPERM, sys::open(&file, truncate_reading))?;
            level::is(low)
        })?;
        at(high, || {
            same(
                "the content",
                fs::read_to_string(&file)?,
                format!("for-{}", low.name()),
            )
        })?;
    }
    Ok(())
}

fn truncate_up() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    at(User, || {
        refused(Errno::EPERM, nix::unistd::truncate(file.as_str(), 0))
    })?;
    same("the content", fs::read_to_string(&file)?.as_str(), "file")
}

fn lownoopen() -> Outcome {
    allowed(sys::both(SECRET))?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, sys::reads(SECRET))?;
            refused(Errno::EPERM, sys::writes(SECRET))?;
            let handle = sys::open(SECRET, OFlag::O_PATH)?;
            refused(Errno::EPERM, sys::again(&handle, OFlag::O_RDONLY))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn attributes_up() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    sys::setxattr(&file, "user.there", b"1")?;
    let before = fs::metadata(&file)?.permissions().mode();
    for level in Level::LOWER {
        at(level, || {
            refused(
                Errno::EPERM,
                fs::set_permissions(&file, fs::Permissions::from_mode(0o777)),
            )?;
            refused(Errno::EPERM, chown(&file, Some(1000), None))?;
            refused(Errno::EPERM, touch(&file))?;
            refused(Errno::EPERM, sys::setxattr(&file, "user.new", b"1"))?;
            refused(Errno::EPERM, sys::setxattr(&file, "security.bpf.x", b"1"))?;
            refused(Errno::EPERM, sys::setxattr(&file, "trusted.new", b"1"))?;
            refused(Errno::EPERM, sys::removexattr(&file, "user.there"))?;
            refused(
                Errno::EPERM,
                sys::setxattr(&file, "system.posix_acl_access", &acl_for_all()),
            )?;
            refused(
                Errno::EPERM,
                sys::removexattr(&file, "system.posix_acl_access"),
            )
        })?;
    }
    same(
        "the mode",
        fs::metadata(&file)?.permissions().mode(),
        before,
    )
}

/// An ACL that lets alice write: version 2, then (tag, permissions, id) each.
fn acl_for_all() -> Vec<u8> {
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, perm, id) in [
        (1u16, 7u16, u32::MAX),
        (2, 7, 1000),
        (4, 7, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 7, u32::MAX),
    ] {
        acl.extend(tag.to_le_bytes());
        acl.extend(perm.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

fn xattr_observe() -> Outcome {
    let low = place::file(LOW, "low")?;
    sys::setxattr(&low, "security.said", b"by the system")?;
    for said in ["user.said", "trusted.said"] {
        sys::setxattr(&low, said, b"low")?;
    }
    at(User, || {
        allowed(sys::getxattr(&low, "security.said"))?;
        // for a subject without privilege it is not there
        refused(Errno::ENODATA, sys::getxattr(&low, "trusted.said"))?;
        level::is(User)?;
        allowed(sys::getxattr(&low, "user.said"))?;
        level::is(Untrusted)
    })?;
    for said in ["user.said", "trusted.said"] {
        at(System, || {
            allowed(sys::getxattr(&low, "security.said"))?;
            level::is(System)?;
            allowed(sys::getxattr(&low, said))?;
            level::is(Untrusted)
        })?;
    }
    Ok(())
}

fn readlink_observe() -> Outcome {
    let link = path(LOW, "link");
    symlink("/wherever", &link)?;
    at(User, || {
        allowed(fs::read_link(&link))?;
        level::is(Untrusted)
    })?;
    let high = path(SYSTEM, "link");
    symlink("/wherever", &high)?;
    at(User, || {
        allowed(fs::read_link(&high))?;
        allowed(fs::read_link("/proc/self/exe"))?;
        level::is(User)
    })
}

fn devices() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for path in [
                "/dev/kmsg",
                "/dev/mem",
                "/dev/pmem0",
                "/dev/rtc0",
                "/dev/snapshot",
            ] {
                refused(Errno::EPERM, sys::writes(path))?;
                refused(Errno::EPERM, sys::reads(path))?;
            }
            level::is(level)
        })?;
    }
    sys::put_all(&sys::writes("/dev/kmsg")?, b"<7>scenario\n")?;
    level::is(System)
}

fn opath() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    at(Untrusted, || {
        let fd = allowed(sys::open(&high, OFlag::O_PATH))?;
        refused(Errno::EPERM, sys::again(&fd, OFlag::O_WRONLY))?;
        refused(Errno::EPERM, sys::again(&fd, OFlag::O_RDWR))
    })?;
    at(User, || {
        let fd = allowed(sys::open(&low, OFlag::O_PATH))?;
        level::is(User)?;
        sys::get(&sys::again(&fd, OFlag::O_RDONLY)?)?;
        level::is(Untrusted)
    })
}

fn proc_fd() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    at(Untrusted, || {
        let fd = sys::reads(&high)?;
        refused(Errno::EPERM, sys::again(&fd, OFlag::O_WRONLY))?;
        refused(
            Errno::EPERM,
            sys::again(&fd, OFlag::O_RDWR | OFlag::O_TRUNC),
        )
    })
}

fn identity() -> Outcome {
    let file = place::file(SYSTEM, "of-alice")?;
    chown(&file, Some(1000), Some(1000))?;
    at(User, || refused(Errno::EPERM, sys::writes(&file)))?;
    at(User, || {
        become_alice()?;
        refused(Errno::EPERM, sys::writes(&file))?;
        refused(
            Errno::EPERM,
            fs::set_permissions(&file, fs::Permissions::from_mode(0o777)),
        )?;
        // and ordinary permission is still needed besides
        let roots = path(AREA, "of-alice-too");
        fs::write(&roots, "")?;
        refused(Errno::EACCES, sys::reads("/etc/shadow"))
    })
}

fn inode_flags() -> Outcome {
    const SETFLAGS: u64 = 0x4008_6602;
    const SETVERSION: u64 = 0x4008_7602;
    const EXT4_SETVERSION: u64 = 0x4008_6604;
    let file = place::file(SYSTEM, "file")?;
    // file_setattr(2) came with 6.17
    let newer = sys::set_file_flags(&file, 0) != Err(Errno::ENOSYS);
    for level in Level::LOWER {
        at(level, || {
            if newer {
                refused(Errno::EPERM, sys::set_file_flags(&file, 0x10))?; // append only
            }
            let fd = sys::reads(&file)?;
            let flags: libc::c_long = 0x20; // append only
            refused(
                Errno::EPERM,
                sys::ioctl(&fd, SETFLAGS, &raw const flags as usize),
            )?;
            let generation: libc::c_long = 7;
            let generation = &raw const generation as usize;
            refused(Errno::EPERM, sys::ioctl(&fd, SETVERSION, generation))?;
            refused(Errno::EPERM, sys::ioctl(&fd, EXT4_SETVERSION, generation))?;
            // not of its own files either: the generation is part of a label's key
            let own = path(AREA, &format!("own-{}", level.name()));
            fs::write(&own, "")?;
            refused(
                Errno::EPERM,
                sys::ioctl(&sys::reads(&own)?, SETVERSION, generation),
            )
        })?;
    }
    Ok(())
}
