//! Mounts that hang nowhere yet (fsmount(2), open_tree(2)): the kernel lets whoever has one take it, and mount upon it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::fchdir;

use super::mounts::{attach, detached_tmpfs, move_mount_tmpfs};
use super::system::tmpfs;
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any};
use crate::scenarios::level;
use crate::scenarios::place::{self, MOUNT, SYSTEM, VAULT};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, own_namespaces, spawn, start, step};
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
        "mount-detached-moved",
        "who has fallen takes such a mount by mount(2), as its descriptor's name or its own directory",
        moved,
    ),
    bypass(
        "mount-detached-peers",
        "the same makes it shared, and mounts upon a copy, which is its peer from then on",
        peers,
    ),
    bypass(
        "mount-detached-slaves",
        "the same makes the mount of the other a slave of the copy, which has no peer then, and mounts that",
        slaves,
    ),
    bypass(
        "mount-detached-label-copied",
        "who looks at what is in such a mount has mounted a copy of it, which is in an ordinary namespace",
        label_copied,
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
const SLAVE: u64 = 1 << 19; // MS_SLAVE

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

fn moved() -> Outcome {
    let made = detached_tmpfs(0)?;
    fs::write(format!("{}/own", name(&made)), "own")?;
    let moves = |from: &str| {
        let none = None::<&str>;
        mount(Some(from), MOUNT, none, MsFlags::MS_MOVE, none)
    };
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            refused(Errno::EPERM, moves(&name(&made)))?;
            fchdir(&made)?;
            refused(Errno::EPERM, moves("."))
        })?;
    }
    goes_on(&made, |at| {
        let is = fs::exists(format!("{at}/own"))?;
        ensure(is, "what it made is elsewhere")
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

fn slaves() -> Outcome {
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
        if let Err(e) = sets(&made, 0, SLAVE) {
            return refused(Errno::EPERM, Err::<(), _>(e));
        }
        refused(Errno::EPERM, tmpfs(&name(&copy)))?;
        refused(Errno::EPERM, attach(&copy, MOUNT))
    })?;
    goes_on(&made, |at| {
        let is = fs::exists(format!("{at}/own"))?;
        ensure(is, "what it made is covered")
    })
}

fn label_copied() -> Outcome {
    let made = detached_tmpfs(0)?;
    fs::write(format!("{}/secret", name(&made)), "secret")?;
    // it keeps the copy until its end
    let low = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        match copied(&made) {
            Ok(copy) => allowed(attach(&copy, MOUNT))?,
            Err(e) => refused(Errno::EINVAL, Err::<(), _>(e))?,
        }
        let early = format!("{}/early", name(&made));
        allowed(sys::open(early, OFlag::O_CREAT | OFlag::O_WRONLY))?;
        allowed(sys::reads(format!("{}/secret", name(&made))))?;
        step()
    })?;
    low.stands()?;
    let vault = place::directory(VAULT, "mounted")?;
    attach(&made, &vault)?;
    let seen = at(Untrusted, || {
        refused(Errno::EPERM, sys::reads(format!("{vault}/secret")))
    });
    umount2(vault.as_str(), MntFlags::MNT_DETACH)?;
    low.kill()?;
    seen
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
