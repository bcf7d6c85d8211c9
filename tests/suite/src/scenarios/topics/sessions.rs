//! What the processes of a session have in common: its terminal, whoever holds the other end of that, a console, and its
//! share of the processor. A lower one of them, or one that fell, takes none of that from a higher one.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::sleep;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::SockType::Datagram;
use nix::unistd::setsid;

use super::tty::{take, terminal};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same, soon};
use crate::scenarios::daemon::{self, GUARD_QUIET};
use crate::scenarios::level;
use crate::scenarios::place::{TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, at, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, fresh, named, receive, send};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "tty-master-own",
        "each level types by the master of a terminal of its own, also when it has fallen with the session",
        master_own,
    ),
    bypass(
        "tty-master-kept",
        "who holds a pty's master falls, and types on into the higher session at the other end",
        master_kept,
    ),
    bypass(
        "tty-master-later",
        "who shares a pty's master falls before a higher session takes the other end, and waits for the guard to go",
        master_later,
    )
    .slow(),
    bypass(
        "tty-master-passed",
        "a lower process is handed the master of a higher session's terminal",
        master_passed,
    ),
    bypass(
        "tty-master-interrupts",
        "who holds the master interrupts the higher session (TIOCSIG), for which the kernel asks nobody",
        master_interrupts,
    ),
    bypass(
        "tty-master-stops",
        "who holds the master stops the higher session's terminal (TCXONC)",
        master_stops,
    ),
    bypass(
        "tty-exclusive",
        "a lower job keeps its higher session from opening its terminal again (TIOCEXCL)",
        exclusive,
    ),
    bypass(
        "tty-console-modes",
        "a lower job of a higher session switches the console's keyboard off, blanks it, or keeps it from being left",
        console_modes,
    ),
    bypass(
        "tty-console-all",
        "a lower session changes the colours and the size of all consoles by its own",
        console_all,
    ),
    bypass(
        "tty-console-shown",
        "a lower session has its own console shown, in place of a higher one's, whose person then types for it",
        console_shown,
    ),
    bypass(
        "session-autogroup",
        "a lower process of a session changes the share of the processor that the session has",
        autogroup,
    ),
    bypass(
        "session-autogroup-kept",
        "the same by a descriptor from before the fall",
        autogroup_kept,
    ),
];

/// A session with a terminal that stands still; when it goes on, it must read just this.
fn reader(name: &str, line: &[u8]) -> Outcome<Child> {
    let session = start(|| {
        let slave = take(name)?;
        let is = level::by_writing()?;
        step()?;
        sys::fcntl(&slave, libc::F_SETFL, libc::O_NONBLOCK.into())?;
        let typed = sys::get(&slave).unwrap_or_default();
        same("what was typed", typed.as_slice(), line)?;
        same("its level", level::by_writing()?, is)
    })?;
    session.stands()?;
    Ok(session)
}

fn master_own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let (master, name) = terminal()?;
            let session = reader(&name, b"own\n")?;
            allowed(sys::put_all(&master, b"own\n"))?;
            session.join_after_step()?;
            level::is(level)
        })?;
    }
    start(|| {
        let (master, name) = terminal()?;
        lower(Untrusted)?;
        let session = reader(&name, b"own\n")?;
        allowed(sys::put_all(&master, b"own\n"))?;
        session.join_after_step()?;
        level::is(Untrusted)
    })?
    .join()
}

fn master_kept() -> Outcome {
    for high in [System, User] {
        at(high, || {
            let (master, name) = terminal()?;
            let session = reader(&name, b"")?;
            start(|| {
                lower(Untrusted)?;
                refused(Errno::EIO, sys::put_all(&master, b"low\n"))?;
                // as long as it has it
                sleep(5 * GUARD_QUIET);
                refused(Errno::EIO, sys::put_all(&master, b"low\n"))
            })?
            .join()?;
            session.join_after_step()
        })?;
    }
    Ok(())
}

fn master_later() -> Outcome {
    at(User, || {
        let (master, name) = terminal()?;
        let low = start(|| {
            lower(Untrusted)?;
            daemon::past_guard(|| ensure(daemon::guard_armed()?, "the guard has gone"))?;
            step()?;
            refused(Errno::EIO, sys::put_all(&master, b"low\n"))
        })?;
        low.stands()?;
        let session = reader(&name, b"")?;
        low.join_after_step()?;
        session.join_after_step()
    })
}

/// Hands the master of a session's terminal to a low process; whether it arrives.
fn passes(of: Level) -> Outcome<bool> {
    let (taker, arrived) = (abstract_name(of.name())?, path(TMPFS_LOW, of.name()));
    let low = spawn(Untrusted, || {
        let socket = named(Datagram, &taker)?;
        step()?;
        if !receive(&socket).unwrap_or_default().fds.is_empty() {
            fs::write(&arrived, "")?;
        }
        Ok(())
    })?;
    low.stands()?;
    let (master, name) = terminal()?;
    let session = spawn(of, || {
        let _slave = take(&name)?;
        step()
    })?;
    session.stands()?;
    start(|| {
        let fd = master.as_raw_fd();
        Ok(send(&fresh(Datagram)?, Some(&taker), &[fd])?)
    })?
    .join()?;
    low.join_after_step()?;
    session.join_after_step()?;
    Ok(fs::exists(&arrived)?)
}

fn master_passed() -> Outcome {
    for (of, arrives) in [(System, false), (User, false), (Untrusted, true)] {
        let what = format!("whether the master of {} arrives", of.name());
        same(&what, passes(of)?, arrives)?;
    }
    Ok(())
}

fn master_interrupts() -> Outcome {
    const TIOCSIG: u64 = 0x4004_5436;
    let interrupt = libc::SIGINT as usize;
    start(|| {
        let (master, name) = terminal()?;
        let session = reader(&name, b"")?;
        start(|| {
            lower(Untrusted)?;
            refused(Errno::EPERM, sys::ioctl(&master, TIOCSIG, interrupt))
        })?
        .join()?;
        // it is there still
        session.join_after_step()
    })?
    .join()
}

fn master_stops() -> Outcome {
    const TCXONC: u64 = 0x540a;
    // the letters that stop a terminal, and start it
    const TCIOFF: usize = 2;
    const TCION: usize = 3;
    start(|| {
        let (master, name) = terminal()?;
        let session = reader(&name, b"own\n")?;
        start(|| {
            lower(Untrusted)?;
            refused(Errno::EPERM, sys::ioctl(&master, TCXONC, TCIOFF))?;
            refused(Errno::EPERM, sys::ioctl(&master, TCXONC, TCION))
        })?
        .join()?;
        allowed(sys::put_all(&master, b"own\n"))?;
        session.join_after_step()
    })?
    .join()?;
    at(Untrusted, || {
        let (master, name) = terminal()?;
        let _own = sys::open(&name, OFlag::O_RDWR | OFlag::O_NOCTTY)?;
        allowed(sys::ioctl(&master, TCXONC, TCION)).map(drop)
    })
}

fn exclusive() -> Outcome {
    const TIOCEXCL: u64 = 0x540c;
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        at(high, || {
            let (_master, name) = terminal()?;
            start(|| {
                let slave = take(&name)?;
                at(low, || {
                    refused(Errno::EPERM, sys::ioctl(&slave, TIOCEXCL, 0))
                })?;
                allowed(sys::both("/dev/tty")).map(drop)
            })?
            .join()
        })?;
    }
    at(Untrusted, || {
        let (_master, name) = terminal()?;
        start(|| {
            let slave = take(&name)?;
            allowed(sys::ioctl(&slave, TIOCEXCL, 0)).map(drop)
        })?
        .join()?;
        // as a process that talks to a device over a serial line does
        let (_master, name) = terminal()?;
        let line = sys::open(&name, OFlag::O_RDWR | OFlag::O_NOCTTY)?;
        allowed(sys::ioctl(&line, TIOCEXCL, 0)).map(drop)
    })
}

/// One that nobody uses.
const CONSOLE: &str = "/dev/tty9";

const KDSETMODE: u64 = 0x4b3a;

/// What a console's session does to it: for the most part with the argument that changes nothing.
const MODES: &[(u64, usize)] = &[
    (KDSETMODE, 0),
    (0x4b45, 3),    // KDSKBMODE
    (0x4b63, 3),    // KDSKBMETA
    (0x4b65, 0),    // KDSKBLED
    (0x4b32, 0xff), // KDSETLED
    (0x4b72, 0),    // KDFONTOP
    (0x4b61, 0),    // PIO_FONT
    (0x4b6c, 0),    // PIO_FONTX
    (0x4b6d, 0),    // PIO_FONTRESET
    (0x4b41, 0),    // PIO_SCRNMAP
    (0x4b6a, 0),    // PIO_UNISCRNMAP
    (0x4b67, 0),    // PIO_UNIMAP
    (0x4b68, 0),    // PIO_UNIMAPCLR
    (0x5602, 0),    // VT_SETMODE
    (0x5605, 2),    // VT_RELDISP
    (0x5606, 0),    // VT_ACTIVATE
    (0x560f, 0),    // VT_SETACTIVATE
];

fn console_modes() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        at(high, || {
            let console = take(CONSOLE)?;
            start(|| {
                lower(low)?;
                for &(command, argument) in MODES {
                    refused(Errno::EPERM, sys::ioctl(&console, command, argument))?;
                }
                Ok(())
            })?
            .join()?;
            // the session itself may
            allowed(sys::ioctl(&console, KDSETMODE, 0))?;
            same("its level", level::by_writing()?, high)
        })?;
    }
    at(Untrusted, || {
        let console = take(CONSOLE)?;
        allowed(sys::ioctl(&console, KDSETMODE, 0)).map(drop)
    })
}

fn console_all() -> Outcome {
    const GIO_CMAP: u64 = 0x4b70;
    const PIO_CMAP: u64 = 0x4b71;
    const VT_RESIZE: u64 = 0x5609;
    const VT_RESIZEX: u64 = 0x560a;
    // the colours as they are: sixteen of three bytes
    let mut colours = [0u8; 48];
    let colours = colours.as_mut_ptr() as usize;
    let none = [0u16; 6];
    let none = none.as_ptr() as usize;
    for level in Level::LOWER {
        at(level, || {
            let console = take(CONSOLE)?;
            sys::ioctl(&console, GIO_CMAP, colours)?;
            refused(Errno::EPERM, sys::ioctl(&console, PIO_CMAP, colours))?;
            refused(Errno::EPERM, sys::ioctl(&console, VT_RESIZE, none))?;
            refused(Errno::EPERM, sys::ioctl(&console, VT_RESIZEX, none))
        })?;
    }
    start(|| {
        let console = take(CONSOLE)?;
        sys::ioctl(&console, GIO_CMAP, colours)?;
        allowed(sys::ioctl(&console, PIO_CMAP, colours)).map(drop)
    })?
    .join()
}

const VT_ACTIVATE: u64 = 0x5606;
const VT_SETACTIVATE: u64 = 0x560f;

/// Which console is shown.
fn shown(screen: &OwnedFd) -> Outcome<u16> {
    const VT_GETSTATE: u64 = 0x5603;
    // struct vt_stat begins with it
    let mut state = [0u16; 3];
    sys::ioctl(screen, VT_GETSTATE, state.as_mut_ptr() as usize)?;
    Ok(state[0])
}

/// Has a console shown, as the top may.
fn show(screen: &OwnedFd, number: u16) -> Outcome {
    sys::ioctl(screen, VT_ACTIVATE, number.into())?;
    let is = soon(|| Ok(shown(screen)? == number))?;
    ensure(is, "the console is not shown")
}

fn console_shown() -> Outcome {
    let screen = sys::open("/dev/tty1", OFlag::O_RDWR | OFlag::O_NOCTTY)?;
    let before = shown(&screen)?;
    let played = takes_screen(&screen);
    show(&screen, before)?;
    played
}

fn takes_screen(screen: &OwnedFd) -> Outcome {
    const OTHER: &str = "/dev/tty10";
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let session = spawn(high, || {
            let _console = take(CONSOLE)?;
            step()
        })?;
        session.stands()?;
        show(screen, 9)?;
        let tried = at(low, || {
            let own = take(OTHER)?;
            refused(Errno::EPERM, sys::ioctl(&own, VT_ACTIVATE, 10))?;
            // struct vt_setactivate: the console, and how it is to be left
            let how = [10u32, 0, 0];
            let how = how.as_ptr() as usize;
            refused(Errno::EPERM, sys::ioctl(&own, VT_SETACTIVATE, how))
        });
        let is = shown(screen)?;
        session.kill()?;
        tried?;
        same("the console that is shown", is, 9)?;
    }
    // a session that has its own shown leaves it for another
    at(Untrusted, || {
        let own = take(CONSOLE)?;
        allowed(sys::ioctl(&own, VT_ACTIVATE, 10)).map(drop)
    })
}

const AUTOGROUP: &str = "/proc/self/autogroup";

fn autogroup() -> Outcome {
    start(|| {
        setsid()?;
        let share = fs::read_to_string(AUTOGROUP)?;
        for level in Level::LOWER {
            at(level, || {
                let written = sys::writes(AUTOGROUP).and_then(|file| sys::put_all(&file, b"19"));
                refused_any(&[Errno::EPERM, Errno::EACCES], written)
            })?;
        }
        same("its share", fs::read_to_string(AUTOGROUP)?, share)?;
        allowed(fs::write(AUTOGROUP, "1"))
    })?
    .join()
}

fn autogroup_kept() -> Outcome {
    start(|| {
        setsid()?;
        let (file, share) = (sys::writes(AUTOGROUP)?, fs::read_to_string(AUTOGROUP)?);
        start(|| {
            lower(Untrusted)?;
            refused(Errno::EIO, sys::put_all(&file, b"19"))
        })?
        .join()?;
        same("its share", fs::read_to_string(AUTOGROUP)?, share)
    })?
    .join()
}
