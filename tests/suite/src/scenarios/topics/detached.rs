//! Mounts that hang nowhere yet (fsmount(2), open_tree(2)): the kernel lets whoever has one take it, and mount upon it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, umount2};
use nix::sched::CloneFlags;
use nix::sys::statvfs::{FsFlags, statvfs};

use super::mounts::{attach, detached_tmpfs, move_mount_tmpfs};
use super::system::tmpfs;
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any};
use crate::scenarios::level;
use crate::scenarios::place::{self, MOUNT, SYSTEM, VAULT};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, own_namespaces, start};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "mount-detached-own",
        "a lower subject makes mounts that hang nowhere, hands them to a namespace in its own, and mounts them",
        own,
    ),
    bypass(
        "mount-detached-taken",
        "who has fallen takes a mount that a higher process is about to mount, or mounts upon a directory of it",
        taken,
    ),
    bypass(
        "mount-detached-peers",
        "the same makes it shared, and mounts upon a copy, which is its peer from then on",
        peers,
    ),
    bypass(
        "mount-detached-label",
        "what was looked up before a filesystem was mounted keeps the rules that held then",
        label,
    ),
    bypass(
        "mount-detached-setattr",
        "who has fallen takes attributes from a mount that a higher process is about to mount",
        attributes,
    )
    .gap("Mounts in the making"),
];

const NOSUID: u32 = 2; // MOUNT_ATTR_NOSUID
const SHARED: u64 = 1 << 20; // MS_SHARED

/// What is mounted there, as every call takes it that takes a path.
fn name(of: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", of.as_raw_fd())
}

/// Takes attributes from a mount, and says what its propagation is to be; 0: as it is.
fn sets(mount: &OwnedFd, clear: u32, propagation: u64) -> Result<(), Errno> {
    // struct mount_attr: set, clear, propagation, user namespace
    let attributes = [0, u64::from(clear), propagation, 0];
    syscall!(
        libc::SYS_mount_setattr,
        mount.as_raw_fd(),
        c"".as_ptr(),
        libc::AT_EMPTY_PATH,
        attributes.as_ptr(),
        size_of_val(&attributes)
    )
    .map(drop)
}

/// A copy of a mount that hangs nowhere either. Kernels before 6.15 give none of such a one (EINVAL).
fn copied(mount: &OwnedFd) -> Result<OwnedFd, Errno> {
    const CLONE: i32 = 1;
    sys::owned(syscall!(
        libc::SYS_open_tree,
        mount.as_raw_fd(),
        c"".as_ptr(),
        CLONE | libc::AT_EMPTY_PATH
    )?)
}

/// Mounts it after all, and looks at it.
fn goes_on(made: &OwnedFd, then: impl FnOnce(&str) -> Outcome) -> Outcome {
    let dir = place::directory(SYSTEM, "mounted")?;
    allowed(attach(made, &dir))?;
    let seen = then(&dir);
    umount2(dir.as_str(), MntFlags::MNT_DETACH)?;
    seen
}

fn own() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            allowed(move_mount_tmpfs(MOUNT))?;
            let made = detached_tmpfs(0)?;
            allowed(sets(&made, NOSUID, SHARED))?;
            // as a container's engine does
            start(|| {
                own_namespaces(CloneFlags::CLONE_NEWNS)?;
                allowed(attach(&made, MOUNT))?;
                level::is(level)
            })?
            .join()?;
            allowed(umount2(MOUNT, MntFlags::MNT_DETACH))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn taken() -> Outcome {
    let made = detached_tmpfs(0)?;
    let dir = format!("{}/dir", name(&made));
    fs::create_dir(&dir)?;
    fs::write(format!("{dir}/own"), "own")?;
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            for upon in [&dir, &name(&made)] {
                refused(Errno::EPERM, tmpfs(upon))?;
                refused(Errno::EPERM, move_mount_tmpfs(upon))?;
            }
            refused(Errno::EPERM, attach(&made, MOUNT))
        })?;
    }
    goes_on(&made, |at| {
        let is = fs::exists(format!("{at}/dir/own"))?;
        ensure(is, "what it made is covered")
    })
}

fn peers() -> Outcome {
    let made = detached_tmpfs(0)?;
    fs::write(format!("{}/own", name(&made)), "own")?;
    at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        if let Err(e) = sets(&made, 0, SHARED) {
            return refused(Errno::EPERM, Err::<(), _>(e));
        }
        let copy = match copied(&made) {
            Ok(copy) => copy,
            Err(e) => return refused_any(&[Errno::EPERM, Errno::EINVAL], Err::<(), _>(e)),
        };
        refused(Errno::EPERM, tmpfs(&name(&copy)))?;
        refused(Errno::EPERM, attach(&copy, MOUNT))
    })?;
    goes_on(&made, |at| {
        let is = fs::exists(format!("{at}/own"))?;
        ensure(is, "what it made is covered")
    })
}

fn label() -> Outcome {
    // a directory where every level could make names as long as it hung nowhere
    let made = detached_tmpfs(0)?;
    let early = format!("{}/early", name(&made));
    at(Untrusted, || {
        allowed(sys::open(&early, OFlag::O_CREAT | OFlag::O_WRONLY)).map(drop)
    })?;
    goes_on(&made, |dir| {
        at(Untrusted, || {
            let late = format!("{dir}/late");
            refused(
                Errno::EPERM,
                sys::open(late, OFlag::O_CREAT | OFlag::O_WRONLY),
            )
        })
    })?;
    // a secret that was written before it was at its place
    let made = detached_tmpfs(0)?;
    fs::write(format!("{}/secret", name(&made)), "secret")?;
    let vault = place::directory(VAULT, "mounted")?;
    attach(&made, &vault)?;
    let secret = format!("{vault}/secret");
    let seen = at(Untrusted, || refused(Errno::EPERM, sys::reads(&secret)));
    let own = at(System, || allowed(sys::reads(&secret)).map(drop));
    umount2(vault.as_str(), MntFlags::MNT_DETACH)?;
    seen?;
    own
}

fn attributes() -> Outcome {
    let made = detached_tmpfs(NOSUID)?;
    at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        match sets(&made, NOSUID, 0) {
            Ok(()) => Ok(()),
            Err(e) => refused(Errno::EPERM, Err::<(), _>(e)),
        }
    })?;
    goes_on(&made, |dir| {
        let is = statvfs(dir)?.flags().contains(FsFlags::ST_NOSUID);
        ensure(is, "programs of what it mounted get their owners' rights")
    })
}
