//! What a child shares by clone(2), or by a descriptor of rules, and what its parent then has of it: a priority for disks,
//! semaphores that are to be undone, Landlock's rules, a mount in the making. A child that falls changes none of that for
//! a parent that stays above it.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::{WaitStatus, waitpid};

use super::inherited::{NO, falls_and, stays_above};
use super::threads::clone_here;
use crate::scenarios::check::{Failed, Outcome, ensure, refused, refused_any, same};
use crate::scenarios::ipcs::Semaphores;
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, lower, start, tell, told};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "clone-io-priority",
        "a child that shares its parent's priority for disks falls, and has it wait for everybody (CLONE_IO)",
        io_priority,
    ),
    bypass(
        "clone-semaphore-undo",
        "a child that shares its parent's list of semaphores outlives it, and keeps what that had (CLONE_SYSVSEM)",
        undone,
    ),
    bypass(
        "landlock-rules-shared",
        "a child adds a rule to those that its parent is about to confine itself by",
        rules,
    ),
    bypass(
        "mount-options-shared",
        "a child says how what its parent is about to mount is mounted",
        options,
    ),
];

fn io_priority() -> Outcome {
    const PROCESS: i32 = 1;
    const BEST_EFFORT: i32 = 2 << 13 | 4;
    const IDLE: i32 = 3 << 13;
    let set = |priority: i32| syscall!(libc::SYS_ioprio_set, PROCESS, 0, priority).map(drop);
    start(|| {
        set(BEST_EFFORT)?;
        let child = clone_here(libc::CLONE_IO, || falls_and(|| set(IDLE)))?;
        if !matches!(waitpid(child, None)?, WaitStatus::Exited(_, 0)) {
            return Err(Failed::reported());
        }
        let is = syscall!(libc::SYS_ioprio_get, PROCESS, 0)?;
        ensure(
            is == i64::from(BEST_EFFORT) || level::by_writing()? == Untrusted,
            "its priority is another",
        )
    })?
    .join()
}

fn undone() -> Outcome {
    let semaphore = Semaphores::make()?;
    semaphore.set(1)?;
    let owner = start(|| {
        clone_here(libc::CLONE_SYSVSEM, || {
            // it may be refused; or its parent falls, too
            let _ = lower(Untrusted);
            tell("fallen")?;
            told("over")
        })?;
        told("fallen")?;
        match semaphore.add_until_end(-1) {
            Ok(()) => Ok(()),
            Err(e) => refused_any(NO, Err::<(), _>(e)),
        }
    })?;
    let ended = owner.join();
    let is = semaphore.value();
    semaphore.remove()?;
    tell("over")?;
    ended?;
    same("the semaphore, once its owner has ended", is, Ok(1))
}

/// LANDLOCK_ACCESS_FS_WRITE_FILE
const WRITE_FILE: u64 = 2;

/// A set of rules about writing files; none where the kernel has no Landlock.
fn ruleset() -> Outcome<Option<OwnedFd>> {
    let handled = WRITE_FILE;
    let size = size_of_val(&handled);
    let made = syscall!(
        libc::SYS_landlock_create_ruleset,
        &raw const handled,
        size,
        0
    );
    match made {
        Err(Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(None),
        made => Ok(Some(sys::owned(made?)?)),
    }
}

/// Adds that files below a directory may be written.
fn add_rule(rules: &OwnedFd, dir: &str) -> Result<(), Errno> {
    const PATH_BENEATH: i32 = 1;
    let dir = sys::open(dir, OFlag::O_PATH)?;
    // struct landlock_path_beneath_attr: 64 bits of accesses, and a descriptor
    let allowed = [
        WRITE_FILE as u32,
        (WRITE_FILE >> 32) as u32,
        dir.as_raw_fd() as u32,
    ];
    syscall!(
        libc::SYS_landlock_add_rule,
        rules.as_raw_fd(),
        PATH_BENEATH,
        allowed.as_ptr(),
        0
    )
    .map(drop)
}

fn rules() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    start(|| {
        let Some(rules) = ruleset()? else {
            return Ok(());
        };
        if !stays_above(|| add_rule(&rules, SYSTEM))? {
            return Ok(());
        }
        syscall!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
        syscall!(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0)?;
        refused(Errno::EACCES, sys::writes(&high))
    })?
    .join()
}

fn options() -> Outcome {
    const SET_STRING: i32 = 1;
    const CREATE: i32 = 6;
    start(|| {
        let made = sys::owned(syscall!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)?)?;
        let fd = made.as_raw_fd();
        let above = stays_above(|| {
            let (name, value) = (c"mode", c"0700");
            syscall!(
                libc::SYS_fsconfig,
                fd,
                SET_STRING,
                name.as_ptr(),
                value.as_ptr(),
                0
            )
            .map(drop)
        })?;
        if !above {
            return Ok(());
        }
        syscall!(libc::SYS_fsconfig, fd, CREATE, 0, 0, 0)?;
        let mount = sys::owned(syscall!(libc::SYS_fsmount, fd, 0, 0)?)?;
        let mode = nix::sys::stat::fstat(&mount)?.st_mode & 0o7777;
        same("the mode of what is mounted", mode, 0o1777)
    })?
    .join()
}
