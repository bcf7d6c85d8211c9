//! Terminals: neutral to read and write, but nobody types into a higher session.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::unistd::setsid;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted, User};

const ROW: &str = "TIOCSTI";
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const TIOCSCTTY: u64 = 0x540e;
const TIOCSPGRP: u64 = 0x5410;

/// With EIO the kernel itself refuses TIOCSTI, if it has been told to.
const NO: &[Errno] = &[Errno::EPERM, Errno::EIO];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "tty-own",
        "each level uses terminals, and types into its own session's",
        own,
    )
    .of(ROW),
    allow(
        "tty-shared",
        "a lower job writes to its session's terminal and reads from it",
        shared,
    ),
    deny(
        "tty-type-up",
        "nobody types into the terminal of a higher session",
        type_up,
    )
    .of(ROW),
    deny(
        "tty-console-paste",
        "nor pastes the console's selection",
        paste,
    )
    .of(ROW),
    deny(
        "tty-privileged",
        "nor is its own terminal made the console, given another discipline or hung up",
        privileged,
    )
    .of(ROW),
    deny(
        "tty-keymap",
        "nor are the console's keys given other meanings, or those that change consoles taken away",
        keymap,
    )
    .of(ROW),
    bypass(
        "tty-steal",
        "a higher session's terminal stolen with TIOCSCTTY",
        steal,
    ),
    bypass(
        "tty-reopened",
        "typed through a descriptor opened before the fall, or another name",
        reopened,
    ),
];

/// A new terminal: its master and its name.
pub(super) fn terminal() -> Outcome<(OwnedFd, String)> {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname_r(&master)?;
    fs::set_permissions(&name, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
    Ok((master.into(), name))
}

pub(super) fn take(name: &str) -> Outcome<OwnedFd> {
    setsid()?;
    let slave = sys::both(name)?;
    sys::ioctl(&slave, TIOCSCTTY, 0)?;
    Ok(slave)
}

fn type_into(fd: &impl AsRawFd) -> Result<(), Errno> {
    sys::ioctl(fd, TIOCSTI, b"x".as_ptr() as usize).map(drop)
}

/// Plays a part while the kernel lets everybody type into terminals of their own sessions, as it did before 6.2: what is
/// refused then, Tidegate refuses.
fn while_typing_is_let(part: impl FnOnce() -> Outcome) -> Outcome {
    const SETTING: &str = "/proc/sys/dev/tty/legacy_tiocsti";
    let before = fs::read_to_string(SETTING)?;
    fs::write(SETTING, "1")?;
    let played = part();
    fs::write(SETTING, before.trim())?;
    played
}

fn own() -> Outcome {
    while_typing_is_let(|| Level::ALL.into_iter().try_for_each(types))
}

fn types(level: Level) -> Outcome {
    at(level, || {
        let (master, name) = terminal()?;
        start(|| {
            let slave = take(&name)?;
            sys::put_all(&slave, b"hello\n")?;
            allowed(type_into(&slave))?;
            level::is(level)
        })?
        .join()?;
        ensure(sys::get(&master)?.starts_with(b"hello"), "nothing arrived")?;
        level::is(level)
    })
}

fn shared() -> Outcome {
    let (master, name) = terminal()?;
    start(|| {
        let slave = take(&name)?;
        start(|| {
            lower(Untrusted)?;
            sys::put_all(&slave, b"low\n")?;
            let tty = sys::both("/dev/tty")?;
            sys::put_all(&tty, b"low\n")?;
            same("the terminal", nix::unistd::isatty(&tty)?, true)?;
            nix::sys::termios::tcgetattr(&tty)?;
            level::is(Untrusted)
        })?
        .join()?;
        level::is(System)
    })?
    .join()?;
    sys::get(&master)?;
    level::is(System)
}

fn type_up() -> Outcome {
    while_typing_is_let(types_up)
}

fn types_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let (master, name) = terminal()?;
        let session = start(|| {
            lower(high)?;
            let slave = take(&name)?;
            let job = start(|| {
                lower(low)?;
                refused_any(NO, type_into(&slave))?;
                refused_any(NO, type_into(&sys::both("/dev/tty")?))?;
                refused_any(NO, type_into(&sys::reads(&name)?))
            })?;
            job.join()?;
            level::is(high)
        })?;
        session.join()?;
        syscall!(
            libc::SYS_fcntl,
            master.as_raw_fd(),
            libc::F_SETFL,
            libc::O_NONBLOCK
        )?;
        same(
            "what was typed",
            sys::get(&master).unwrap_or_default(),
            Vec::new(),
        )?;
    }
    Ok(())
}

fn paste() -> Outcome {
    // TIOCL_SETSEL, TIOCL_PASTESEL
    let console = sys::both("/dev/tty1")?;
    for level in Level::LOWER {
        at(level, || {
            for command in [2u8, 3] {
                let argument = [command, 1, 0, 1, 0, 5, 0, 1, 0, 0, 0, 0];
                refused_any(
                    NO,
                    sys::ioctl(&console, TIOCLINUX, argument.as_ptr() as usize),
                )?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn privileged() -> Outcome {
    const TIOCCONS: u64 = 0x541d;
    const TIOCSETD: u64 = 0x5423;
    const TIOCVHANGUP: u64 = 0x5437;
    let as_before = 0i32;
    let commands = [
        (TIOCCONS, 0),
        (TIOCSETD, &raw const as_before as usize),
        (TIOCVHANGUP, 0),
    ];
    for level in Level::LOWER {
        at(level, || {
            let (_master, name) = terminal()?;
            start(|| {
                let slave = take(&name)?;
                for (command, argument) in commands {
                    refused(Errno::EPERM, sys::ioctl(&slave, command, argument))?;
                }
                // it is there still
                allowed(sys::put(&slave))
            })?
            .join()
        })?;
    }
    let (_master, name) = terminal()?;
    start(|| {
        let slave = take(&name)?;
        let (command, argument) = commands[1];
        allowed(sys::ioctl(&slave, command, argument)).map(drop)
    })?
    .join()
}

fn keymap() -> Outcome {
    const KDGKBENT: u64 = 0x4b46;
    const KDSKBENT: u64 = 0x4b47;
    const KDSKBSENT: u64 = 0x4b49;
    const KDSKBDIACR: u64 = 0x4b4b;
    const KDSETKEYCODE: u64 = 0x4b4d;
    const KDSIGACCEPT: u64 = 0x4b4e;
    const KDSKBDIACRUC: u64 = 0x4bfb;
    const VT_LOCKSWITCH: u64 = 0x560b;
    let console = sys::both("/dev/tty1")?;
    // the meaning of a key, as it is: struct kbentry has the table, the key and the meaning
    let mut key = [0u8, 1, 0, 0];
    let key = key.as_mut_ptr() as usize;
    sys::ioctl(&console, KDGKBENT, key)?;
    // more than any of the others has
    let none = vec![0u8; sys::PAGE];
    let none = none.as_ptr() as usize;
    for level in Level::LOWER {
        at(level, || {
            for (command, argument) in [
                (KDSKBENT, key),
                (KDSKBSENT, none),
                (KDSKBDIACR, none),
                (KDSKBDIACRUC, none),
                (KDSETKEYCODE, none),
                (KDSIGACCEPT, libc::SIGTERM as usize),
                (VT_LOCKSWITCH, 0),
            ] {
                refused(Errno::EPERM, sys::ioctl(&console, command, argument))?;
            }
            level::is(level)
        })?;
    }
    allowed(sys::ioctl(&console, KDSKBENT, key)).map(drop)
}

fn steal() -> Outcome {
    let (_master, name) = terminal()?;
    let victim = spawn(User, || {
        let _slave = take(&name)?;
        step()
    })?;
    victim.stands()?;
    at(Untrusted, || {
        start(|| {
            setsid()?;
            let slave = sys::both(&name)?;
            refused_any(NO, sys::ioctl(&slave, TIOCSCTTY, 1))?;
            refused_any(&[Errno::EPERM, Errno::ENOTTY], set_group(&slave))
        })?
        .join()
    })?;
    // one that is nobody's may be taken
    victim.kill()?;
    at(Untrusted, || {
        start(|| {
            setsid()?;
            allowed(sys::ioctl(&sys::both(&name)?, TIOCSCTTY, 1)).map(drop)
        })?
        .join()
    })
}

fn set_group(fd: &impl AsRawFd) -> Result<(), Errno> {
    let group = std::process::id();
    sys::ioctl(fd, TIOCSPGRP, &raw const group as usize).map(drop)
}

fn reopened() -> Outcome {
    while_typing_is_let(types_by_other_names)
}

fn types_by_other_names() -> Outcome {
    let (_master, name) = terminal()?;
    let session = start(|| {
        let slave = take(&name)?;
        let job = start(|| {
            let tty = sys::both("/dev/tty")?;
            lower(Untrusted)?;
            for fd in [&slave, &tty] {
                refused_any(NO, type_into(fd))?;
                refused_any(NO, type_into(&sys::again(fd, OFlag::O_WRONLY)?))?;
            }
            let again = sys::both(format!("/proc/self/fd/{}", slave.as_raw_fd()))?;
            refused_any(NO, type_into(&again))
        })?;
        job.join()
    })?;
    session.join()
}
