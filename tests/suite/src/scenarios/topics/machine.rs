//! What the machine has once for all: its log, what it audits, the policy of another security module, what a crash has
//! left. Whoever is root below the top has no privilege over any of it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::privilege::answer;
use super::system::{NO, ROW};
use crate::scenarios::check::{Outcome, allowed, refused, refused_any};
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM, home, path};
use crate::scenarios::scenario::{Scenario, allow, deny};
use crate::scenarios::subject::{Level, at, lower, start};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

pub const SCENARIOS: &[Scenario] = &[
    deny(
        "kernel-log",
        "root below the top neither reads nor clears the kernel's messages",
        log,
    )
    .of(ROW),
    allow(
        "audit-own-line",
        "root at every level has a line of its own audited, as PAM does",
        audit_line,
    ),
    deny(
        "audit-settings",
        "root below the top neither sees nor sets what is audited, nor hears what is",
        audit_settings,
    )
    .of(ROW),
    deny(
        "mac-policy",
        "root below the top loads no policy of AppArmor's",
        mac_policy,
    )
    .of(ROW),
    deny(
        "pstore-write",
        "what a crash has left of messages is nobody's to change below the top",
        pstore,
    )
    .of(ROW),
    allow(
        "fanotify-own",
        "each level watches its own directories, as any user may",
        fanotify_own,
    ),
    deny(
        "fanotify-privileged",
        "root below the top has no fanotify instance that a user has not",
        fanotify,
    )
    .of(ROW),
];

fn log() -> Outcome {
    const RESTRICT: &str = "/proc/sys/kernel/dmesg_restrict";
    const READ_ALL: i32 = 3;
    const READ_CLEAR: i32 = 4;
    const CLEAR: i32 = 5;
    const CONSOLE_OFF: i32 = 6;
    const CONSOLE_ON: i32 = 7;
    const CONSOLE_LEVEL: i32 = 8;
    const SIZE_UNREAD: i32 = 9;
    let ask = |action: i32| {
        let mut bytes = [0u8; 8];
        syscall!(libc::SYS_syslog, action, bytes.as_mut_ptr(), bytes.len())
    };
    let before = fs::read_to_string(RESTRICT)?;
    fs::write(RESTRICT, "1")?;
    let played = Level::LOWER.into_iter().try_for_each(|level| {
        at(level, || {
            for action in [
                READ_ALL,
                READ_CLEAR,
                CLEAR,
                CONSOLE_OFF,
                CONSOLE_ON,
                CONSOLE_LEVEL,
                SIZE_UNREAD,
            ] {
                refused(Errno::EPERM, ask(action))?;
            }
            refused(Errno::EPERM, sys::reads("/proc/kmsg"))?;
            level::is(level)
        })
    });
    fs::write(RESTRICT, before.trim())?;
    played?;
    allowed(ask(READ_ALL)).map(drop)
}

fn audit_socket() -> Result<OwnedFd, Errno> {
    const AUDIT: i32 = 9;
    sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_NETLINK,
        libc::SOCK_RAW | libc::SOCK_CLOEXEC,
        AUDIT
    )?)
}

/// Says something to the audit system; what it answers.
fn audit(kind: u16, what: &[u8]) -> Result<(), Errno> {
    const REQUEST_AND_ACKNOWLEDGE: u16 = 5;
    let socket = audit_socket()?;
    // struct nlmsghdr: its length, its type, flags, two numbers
    let mut message = ((16 + what.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(what);
    sys::put_all(&socket, &message)?;
    answer(&socket).map(drop)
}

fn audit_line() -> Outcome {
    /// AUDIT_USER_LOGIN
    const LOGIN: u16 = 1112;
    for level in Level::ALL {
        at(level, || {
            allowed(audit(LOGIN, b"op=scenario res=success\0"))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn audit_settings() -> Outcome {
    const GET: u16 = 1000;
    const SET: u16 = 1001;
    const SIGNAL_INFO: u16 = 1010;
    const ADD_RULE: u16 = 1011;
    const DEL_RULE: u16 = 1012;
    const LIST_RULES: u16 = 1013;
    const TRIM: u16 = 1014;
    const TTY_SET: u16 = 1017;
    const SET_FEATURE: u16 = 1018;
    // a struct audit_status that has nothing set
    let none = [0u8; 40];
    for level in Level::LOWER {
        at(level, || {
            for kind in [
                GET,
                SET,
                SIGNAL_INFO,
                ADD_RULE,
                DEL_RULE,
                LIST_RULES,
                TRIM,
                TTY_SET,
                SET_FEATURE,
            ] {
                refused(Errno::EPERM, audit(kind, &none))?;
            }
            refused(Errno::EPERM, hears_audit())?;
            level::is(level)
        })?;
    }
    for kind in [GET, SET] {
        allowed(audit(kind, &none))?;
    }
    allowed(hears_audit())
}

/// Joins those who are told what is audited.
fn hears_audit() -> Result<(), Errno> {
    const NETLINK: i32 = 270;
    const ADD_MEMBERSHIP: i32 = 1;
    let (socket, readers) = (audit_socket()?, 1u32);
    syscall!(
        libc::SYS_setsockopt,
        socket.as_raw_fd(),
        NETLINK,
        ADD_MEMBERSHIP,
        &raw const readers,
        size_of::<u32>()
    )
    .map(drop)
}

fn mac_policy() -> Outcome {
    // not every machine has AppArmor on
    for file in [".load", ".replace", ".remove"] {
        let file = format!("/sys/kernel/security/apparmor/{file}");
        if !fs::exists(&file)? {
            continue;
        }
        for level in Level::LOWER {
            at(level, || refused_any(NO, sys::writes(&file)))?;
            // by a descriptor from before the fall
            start(|| {
                let fd = sys::writes(&file)?;
                lower(level)?;
                refused_any(
                    &[Errno::EPERM, Errno::EACCES, Errno::EIO],
                    sys::put_all(&fd, b"profile"),
                )
            })?
            .join()?;
        }
    }
    Ok(())
}

fn pstore() -> Outcome {
    const MESSAGES: &str = "/dev/pmsg0";
    let dir = place::directory(SYSTEM, "pstore")?;
    mount(
        Some("pstore"),
        dir.as_str(),
        Some("pstore"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    let records = fs::read_dir(&dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, _>>()?;
    let played = Level::LOWER.into_iter().try_for_each(|level| {
        at(level, || {
            refused(Errno::EPERM, level::touch(&dir))?;
            refused_any(NO, fs::write(format!("{dir}/record"), "x"))?;
            for record in &records {
                refused(Errno::EPERM, sys::writes(record))?;
                refused_any(NO, fs::remove_file(record))?;
            }
            // where something keeps messages over a crash
            if fs::exists(MESSAGES)? {
                refused(Errno::EPERM, sys::writes(MESSAGES))?;
            }
            level::is(level)
        })
    });
    umount2(dir.as_str(), MntFlags::MNT_DETACH)?;
    played
}

/// FAN_REPORT_FID: events have names, and no descriptors.
const BY_NAME: i32 = 0x200;
const CLOSED_BY_EXEC: i32 = 1;

fn instance(flags: i32) -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(
        libc::SYS_fanotify_init,
        flags | CLOSED_BY_EXEC,
        0
    )?)
}

/// Has it told what is made in a directory, or more than there.
fn mark(instance: &OwnedFd, dir: &str, more: u32) -> Result<(), Errno> {
    const ADD: u32 = 1;
    const MADE: u64 = 0x100;
    let dir = c(dir);
    syscall!(
        libc::SYS_fanotify_mark,
        instance.as_raw_fd(),
        ADD | more,
        MADE,
        libc::AT_FDCWD,
        dir.as_ptr()
    )
    .map(drop)
}

fn fanotify_own() -> Outcome {
    for level in Level::ALL {
        let dir = path(home(level), level.name());
        at(level, || {
            fs::create_dir(&dir)?;
            let instance = allowed(instance(BY_NAME))?;
            allowed(mark(&instance, &dir, 0))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn fanotify() -> Outcome {
    const CONTENT: i32 = 4;
    const PRE_CONTENT: i32 = 8;
    const UNLIMITED_QUEUE: i32 = 0x10;
    const UNLIMITED_MARKS: i32 = 0x20;
    /// FAN_MARK_FILESYSTEM
    const EVERYWHERE: u32 = 0x100;
    for level in Level::LOWER {
        let dir = path(home(level), level.name());
        at(level, || {
            for flags in [
                0,
                CONTENT,
                PRE_CONTENT,
                BY_NAME | UNLIMITED_QUEUE,
                BY_NAME | UNLIMITED_MARKS,
            ] {
                refused(Errno::EPERM, instance(flags))?;
            }
            fs::create_dir(&dir)?;
            let own = instance(BY_NAME)?;
            refused(Errno::EPERM, mark(&own, &dir, EVERYWHERE))?;
            level::is(level)
        })?;
    }
    for flags in [0, CONTENT, BY_NAME | UNLIMITED_QUEUE] {
        allowed(instance(flags))?;
    }
    Ok(())
}
