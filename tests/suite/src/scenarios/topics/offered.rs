//! Capabilities that ordinary work seldom needs, which the census lists (docs/dev/census.md).

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::chown;

use libc::MAP_PRIVATE;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::scenarios::check::{Outcome, ensure, refused};
use crate::scenarios::place::{home, path};
use crate::scenarios::scenario::{Scenario, deny};
use crate::scenarios::subject::{Level, at, become_alice, start, step};
use crate::scenarios::sys::{self, Map};
use crate::sys::syscall;

use Level::System;

pub const SCENARIOS: &[Scenario] = &[deny(
    "capabilities-refused",
    "calls that need a rarely used capability, by root below the top",
    capabilities,
)];

/// A call for which the kernel asks for one capability, on a file of the caller's level.
type Call = fn(&str) -> Result<(), Errno>;

const CALLS: &[(&str, Call)] = &[
    ("linux_immutable", immutable),
    ("net_broadcast", listens_to_all_namespaces),
    ("ipc_lock", locks_memory),
    ("sys_ptrace", handles_faults),
    ("sys_resource", enlarges_pipe),
    ("lease", leases),
    ("audit_control", asks_audit),
    ("audit_read", listens_to_audit),
    ("syslog", looks_at_log),
    ("wake_alarm", has_alarm),
    ("perfmon", counts_kernel),
    ("checkpoint_restore", chooses_pid),
];

fn capabilities() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let file = path(home(level), level.name());
            fs::write(&file, "x")?;
            chown(&file, Some(1000), Some(1000))?;
            for (capability, call) in CALLS {
                let answer = call(&file);
                let so = match level {
                    System => answer.is_ok(),
                    _ => matches!(answer, Err(Errno::EPERM | Errno::EACCES)),
                };
                ensure(so, &format!("{capability}: {answer:?}"))?;
            }
            // the call succeeds, and the kernel leaves the flag out
            ensure(level == System || !wakes()?, "block_suspend: given")?;
            others_segment(level)
        })?;
    }
    Ok(())
}

/// The file is made immutable, and changeable again.
fn immutable(file: &str) -> Result<(), Errno> {
    const GETFLAGS: u64 = 0x8008_6601;
    const SETFLAGS: u64 = 0x4008_6602;
    const IMMUTABLE: u32 = 0x10;
    let file = sys::reads(file)?;
    let mut flags = 0u32;
    sys::ioctl(&file, GETFLAGS, &raw mut flags as usize)?;
    let changed = flags | IMMUTABLE;
    sys::ioctl(&file, SETFLAGS, &raw const changed as usize)?;
    sys::ioctl(&file, SETFLAGS, &raw const flags as usize).map(drop)
}

fn netlink(protocol: i32) -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_NETLINK,
        libc::SOCK_RAW | libc::SOCK_CLOEXEC,
        protocol
    )?)
}

/// NETLINK_LISTEN_ALL_NSID: what is told in every network namespace.
fn listens_to_all_namespaces(_: &str) -> Result<(), Errno> {
    const LISTEN_ALL: i32 = 8;
    let (socket, on) = (netlink(libc::NETLINK_ROUTE)?, 1i32);
    syscall!(
        libc::SYS_setsockopt,
        socket.as_raw_fd(),
        libc::SOL_NETLINK,
        LISTEN_ALL,
        &raw const on,
        size_of_val(&on)
    )
    .map(drop)
}

/// A page is locked, of which the limit allows none.
fn locks_memory(_: &str) -> Result<(), Errno> {
    let (page, none) = (Map::anonymous(MAP_PRIVATE)?, [0u64; 2]);
    syscall!(
        libc::SYS_prlimit64,
        0,
        libc::RLIMIT_MEMLOCK,
        none.as_ptr(),
        0
    )?;
    syscall!(libc::SYS_mlock, page.address(), sys::PAGE).map(drop)
}

/// Page faults of the kernel, too.
fn handles_faults(_: &str) -> Result<(), Errno> {
    sys::owned(syscall!(libc::SYS_userfaultfd, libc::O_CLOEXEC)?).map(drop)
}

/// Beyond what /proc/sys/fs/pipe-max-size allows.
fn enlarges_pipe(_: &str) -> Result<(), Errno> {
    let (read, _write) = pipe2(OFlag::O_CLOEXEC)?;
    sys::fcntl(&read, libc::F_SETPIPE_SZ, 1 << 24).map(drop)
}

/// On a file that another user owns.
fn leases(file: &str) -> Result<(), Errno> {
    let file = sys::reads(file)?;
    sys::fcntl(&file, libc::F_SETLEASE, libc::F_RDLCK.into()).map(drop)
}

/// AUDIT_GET: what the state of auditing is.
fn asks_audit(_: &str) -> Result<(), Errno> {
    const AUDIT: i32 = 9;
    const GET: u16 = 1000;
    const ERROR: u16 = 2;
    let socket = netlink(AUDIT)?;
    // struct nlmsghdr, and NLM_F_REQUEST
    let mut message = [0u8; 16];
    message[..4].copy_from_slice(&16u32.to_ne_bytes());
    message[4..6].copy_from_slice(&GET.to_ne_bytes());
    message[6] = 1;
    sys::put_all(&socket, &message)?;
    let answer = sys::get(&socket)?;
    // struct nlmsgerr is behind the header
    let error = match (answer.get(4..6), answer.get(16..20)) {
        (Some(kind), Some(&[a, b, c, d])) if *kind == ERROR.to_ne_bytes() => {
            i32::from_ne_bytes([a, b, c, d])
        }
        _ => 0,
    };
    match error {
        0 => Ok(()),
        error => Err(Errno::from_raw(-error)),
    }
}

/// The group of those that read the records.
fn listens_to_audit(_: &str) -> Result<(), Errno> {
    const AUDIT: i32 = 9;
    let socket = netlink(AUDIT)?;
    // struct sockaddr_nl: the family, a number that the kernel chooses, AUDIT_NLGRP_READLOG
    let name = [libc::AF_NETLINK as u32, 0, 1];
    syscall!(
        libc::SYS_bind,
        socket.as_raw_fd(),
        name.as_ptr(),
        size_of_val(&name)
    )
    .map(drop)
}

/// SYSLOG_ACTION_SIZE_UNREAD
fn looks_at_log(_: &str) -> Result<(), Errno> {
    syscall!(libc::SYS_syslog, 9, 0, 0).map(drop)
}

/// A timer that wakes the machine.
fn has_alarm(_: &str) -> Result<(), Errno> {
    sys::owned(syscall!(
        libc::SYS_timerfd_create,
        libc::CLOCK_BOOTTIME_ALARM,
        libc::O_CLOEXEC
    )?)
    .map(drop)
}

/// A counter that runs in the kernel, too.
fn counts_kernel(_: &str) -> Result<(), Errno> {
    // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY
    let mut attributes = [0u64; 16];
    attributes[0] = 1 | 128 << 32;
    attributes[1] = 9;
    let counter = syscall!(
        libc::SYS_perf_event_open,
        attributes.as_ptr(),
        0,
        -1i32,
        -1i32,
        0
    )?;
    sys::owned(counter).map(drop)
}

/// A child whose process number its parent chooses.
pub(super) fn chooses_pid(_: &str) -> Result<(), Errno> {
    let pid = 32_000i32;
    // struct clone_args
    let mut how = [0u64; 11];
    how[4] = libc::SIGCHLD as u64;
    how[8] = &raw const pid as u64;
    how[9] = 1;
    let born = syscall!(libc::SYS_clone3, how.as_ptr(), 88)?;
    if born == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    syscall!(libc::SYS_wait4, born, 0, 0, 0).map(drop)
}

/// Does an event of an epoll instance keep the machine awake, which the caller asks for?
fn wakes() -> Outcome<bool> {
    const WAKEUP: u32 = 1 << 29;
    let (read, _write) = pipe2(OFlag::O_CLOEXEC)?;
    let epoll = sys::epoll()?;
    sys::epoll_add(&epoll, &read, WAKEUP, 0)?;
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", epoll.as_raw_fd()))?;
    let events = told
        .lines()
        .find_map(|line| line.split("events:").nth(1)?.split_whitespace().next())
        .and_then(|word| u32::from_str_radix(word, 16).ok());
    ensure(events.is_some(), "no events are told")?;
    Ok(events.is_some_and(|events| events & WAKEUP != 0))
}

/// Root reaches a segment of another user's only at the top.
fn others_segment(level: Level) -> Outcome {
    const CREATE: i32 = 0o1000;
    const REMOVE: i32 = 0;
    let key = 0x7467_0000 + level as i32;
    let owner = start(|| {
        become_alice()?;
        let segment = syscall!(libc::SYS_shmget, key, sys::PAGE, CREATE | 0o600)?;
        step()?;
        syscall!(libc::SYS_shmctl, segment, REMOVE, 0)?;
        Ok(())
    })?;
    owner.stands()?;
    let found = syscall!(libc::SYS_shmget, key, 0, 0o600);
    owner.join_after_step()?;
    match level {
        System => ensure(found.is_ok(), "ipc_owner: refused at the top"),
        _ => refused(Errno::EACCES, found),
    }
}
