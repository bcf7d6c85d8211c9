//! What a hook has noted for a call that then fails, or for a file of before its name: it must not outlive that.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, renameat2};

use crate::scenarios::check::{Outcome, allowed, refused, same};
use crate::scenarios::daemon;
use crate::scenarios::disk::Disk;
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, DISK, LOW, SYSTEM, TMPFS, USER, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, spawn, step};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "rename-failed",
        "a file is moved to a lower place, which its filesystem refuses: a lower process writes to it where it lies",
        failed,
    ),
    bypass(
        "rename-failed-exchange",
        "two files are to change places, which is refused of the second",
        failed_exchange,
    ),
    bypass(
        "rename-given-down",
        "a file with a level of its own is moved to a lower place, by a call that may fail",
        given_down,
    ),
    bypass(
        "unnamed-then-promoted",
        "a file that had no name at first is promoted and removed, while its maker has it open",
        unnamed_then_promoted,
    ),
];

/// struct fsxattr
#[repr(C)]
struct Attributes {
    flags: u32,
    extent: u32,
    extents: u32,
    project: u32,
    copied: u32,
    pad: [u8; 8],
}

/// Says whether files of another project may come into a directory.
fn takes_others(dir: &OwnedFd, others: bool) -> Result<(), Errno> {
    const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
    const FS_XFLAG_PROJINHERIT: u32 = 0x200;
    let wanted = Attributes {
        flags: if others { 0 } else { FS_XFLAG_PROJINHERIT },
        extent: 0,
        extents: 0,
        project: if others { 0 } else { 7 },
        copied: 0,
        pad: [0; 8],
    };
    sys::ioctl(dir, FS_IOC_FSSETXATTR, &raw const wanted as usize).map(drop)
}

fn failed() -> Outcome {
    let _disk = Disk::mount(&["-I", "256", "-O", "project"])?;
    let (file, low) = (format!("{DISK}/notes"), format!("{DISK}/low"));
    fs::write(&file, "notes")?;
    fs::create_dir(&low)?;
    fs::set_permissions(&low, fs::Permissions::from_mode(0o777))?;
    let dir = sys::open(&low, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
    takes_others(&dir, false)?;
    let moved = format!("{low}/notes");
    // the filesystem's own answer, after Tidegate's
    refused(Errno::EXDEV, fs::rename(&file, &moved))?;
    at(Untrusted, || refused(Errno::EPERM, sys::writes(&file)))?;
    object_is(&file, System)?;
    sys::drop_caches()?;
    object_is(&file, System)?;
    level::is(System)?;
    // where it may go it goes, and falls
    takes_others(&dir, true)?;
    allowed(fs::rename(&file, &moved))?;
    object_is(&moved, Untrusted)
}

fn failed_exchange() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let exchange = |one: &str, other: &str| {
        let flags = RenameFlags::RENAME_EXCHANGE;
        renameat2(AT_FDCWD, one, AT_FDCWD, other, flags)
    };
    // whichever is asked about first
    for (one, other) in [(&low, &high), (&high, &low)] {
        refused(Errno::EPERM, exchange(one, other))?;
        at(Untrusted, || refused(Errno::EPERM, sys::writes(&high)))?;
        object_is(&high, System)?;
        object_is(&low, Untrusted)?;
    }
    let other = place::file(SYSTEM, "other")?;
    allowed(exchange(&high, &other))?;
    allowed(fs::rename(&high, path(LOW, "moved")))?;
    object_is(&path(LOW, "moved"), Untrusted)
}

fn given_down() -> Outcome {
    // promoted, and made by a process that is lower than the place
    let promoted = place::file(USER, "promoted")?;
    same("promote", daemon::quietly(&["promote", &promoted])?, 0)?;
    let made = path(AREA, "made");
    at(User, || Ok(fs::write(&made, "user")?))?;
    let low = place::file(LOW, "low")?;
    for (file, level) in [(&promoted, System), (&made, User)] {
        refused(Errno::EXDEV, fs::rename(file, path(LOW, "moved")))?;
        // the level below it would be lowered for an exchange that is refused after that
        let flags = RenameFlags::RENAME_EXCHANGE;
        let exchanged = renameat2(AT_FDCWD, low.as_str(), AT_FDCWD, file.as_str(), flags);
        refused(Errno::EXDEV, exchanged)?;
        object_is(file, level)?;
    }
    // where it keeps its level it moves, and to a lower place mv(1) copies it
    let kept = path(AREA, "kept");
    at(User, || allowed(fs::rename(&made, &kept)))?;
    object_is(&kept, User)?;
    let moved = path(LOW, "moved");
    let status = Command::new("mv").args([&kept, &moved]).status()?;
    same("what mv says", status.code(), Some(0))?;
    object_is(&moved, Untrusted)?;
    Ok(fs::remove_file(&promoted)?)
}

/// Gives a name to a file that has none.
fn name(file: &OwnedFd, name: &str) -> Result<(), Errno> {
    let (from, to) = (c(format!("/proc/self/fd/{}", file.as_raw_fd())), c(name));
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    syscall!(
        libc::SYS_linkat,
        here,
        from.as_ptr(),
        here,
        to.as_ptr(),
        follow
    )
    .map(drop)
}

fn unnamed_then_promoted() -> Outcome {
    for promotes in [false, true] {
        let file = path(TMPFS, if promotes { "promoted" } else { "own" });
        let maker = spawn(User, || {
            let made = sys::open(TMPFS, OFlag::O_TMPFILE | OFlag::O_RDWR)?;
            name(&made, &file)?;
            step()?;
            let puts = || match promotes {
                true => refused(Errno::EIO, sys::put(&made)),
                false => allowed(sys::put(&made)),
            };
            puts()?;
            step()?;
            puts()
        })?;
        maker.stands()?;
        if promotes {
            same("promote", daemon::quietly(&["promote", &file])?, 0)?;
        }
        maker.go()?;
        maker.stands()?;
        fs::remove_file(&file)?;
        maker.join_after_step()?;
    }
    Ok(())
}
