//! Servers that keep their level whatever they hear: the clients that they hear, and what they pass
//! on or do for them.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::CloneFlags;
use nix::sys::socket::SockType::{self, Datagram, SeqPacket, Stream};
use nix::sys::socket::{MsgFlags, UnixAddr, sendto};
use nix::sys::wait::WaitStatus;
use nix::unistd::{Uid, setresuid};

use super::life::reload;
use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused_any, same, soon};
use crate::scenarios::devfuse::Fuse;
use crate::scenarios::level;
use crate::scenarios::place::{self, BIN, MOUNT, OPEN_SOCKET, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::setup;
use crate::scenarios::subject::{
    Child, Level, at, become_alice, lower, own_namespaces, spawn, start, step, tell, told,
};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{
    abstract_name, connected, file_name, fresh, named, receive, send,
};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "relay-abstract",
        "a trusted bus on an abstract socket, which has no file, passes on to higher clients what a lower one says",
        relayed,
    ),
    bypass(
        "relay-abstract-packets",
        "the same by packets",
        relayed_packets,
    ),
    bypass(
        "relay-abstract-datagrams",
        "the same by datagrams",
        relayed_datagrams,
    ),
    bypass(
        "relay-abstract-passed",
        "a low process is handed a connection to the bus by one that stands where the bus does",
        relayed_passed,
    ),
    bypass(
        "relay-abstract-connected",
        "a low process connects a socket for datagrams to the bus, and writes",
        relayed_connected,
    ),
    bypass(
        "fuse-handed-to-server",
        "a trusted server is sent a file of FUSE, whose close waits for a low process that never answers",
        fuse_handed,
    ),
    bypass(
        "notify-main-pid",
        "root below the top tells systemd that another process is its service's (MAINPID=)",
        main_process,
    )
    .last(),
    bypass(
        "notify-watchdog",
        "the same has systemd kill it (WATCHDOG=trigger), over a connected socket",
        watchdog,
    )
    .last(),
    bypass(
        "notify-kept",
        "the same by a socket that was connected before the fall",
        kept,
    )
    .last(),
    bypass(
        "notify-saved-number",
        "the same by root that is another user, and may be root again; who is not root is heard",
        saved_number,
    )
    .last(),
    bypass(
        "notify-by-capability",
        "the same by another user who may say that it is any (CAP_SETUID)",
        by_capability,
    )
    .last(),
];

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES, Errno::EIO];

/// Starts a trusted program at a level, which gives this sign when it listens.
fn trusted(level: Level, words: &[&str]) -> Outcome<Child> {
    let sign = path(TMPFS_LOW, "listens");
    let _ = fs::remove_file(&sign);
    let server = spawn(level, || {
        let mut command = Command::new(format!("{BIN}/trusted"));
        Err(command.arg("--helper").args(words).arg(&sign).exec().into())
    })?;
    told("listens")?;
    Ok(server)
}

fn says(kind: SockType, to: &UnixAddr) -> Result<(), Errno> {
    if kind == Datagram {
        let own = fresh(kind)?;
        return sendto(own.as_raw_fd(), b"l", to, MsgFlags::empty()).map(drop);
    }
    sys::put_all(&connected(kind, to)?, b"l").map(drop)
}

/// In a low process: says something to the bus, or tells that it could not.
fn says_or_tells(said: Result<(), Errno>) -> Outcome {
    let Err(e) = said else { return Ok(()) };
    tell("over")?;
    refused_any(
        &[
            Errno::EPERM,
            Errno::EACCES,
            Errno::EAGAIN,
            Errno::ECONNREFUSED,
        ],
        Err::<(), _>(e),
    )
}

/// What a lower client says to a bus does not reach a higher one, or that falls.
fn passes_on(kind: SockType, word: &str) -> Outcome {
    passes_on_by(kind, word, |name| {
        at(Untrusted, || says_or_tells(says(kind, name)))
    })
}

fn passes_on_by(kind: SockType, word: &str, speaks: impl FnOnce(&UnixAddr) -> Outcome) -> Outcome {
    let text = format!("{}-bus", place::scenario());
    let name = UnixAddr::new_abstract(text.as_bytes())?;
    let bus = trusted(User, &["relay", word, &text])?;
    let reader = spawn(User, || {
        let socket = if kind == Datagram {
            named(
                kind,
                &UnixAddr::new_abstract(format!("{text}-reader").as_bytes())?,
            )?
        } else {
            connected(kind, &name)?
        };
        tell("reads")?;
        let (over, mut heard) = (path(TMPFS_LOW, "over"), Vec::new());
        soon(|| match receive(&socket) {
            Ok(got) => {
                heard = got.data;
                Ok(true)
            }
            Err(_) => Ok(fs::exists(&over)?),
        })?;
        let is = level::by_writing()?;
        ensure(
            heard.first() != Some(&b'l') || is == Untrusted,
            "what a low client said was heard, and its reader still writes at `user`",
        )
    })?;
    told("reads")?;
    speaks(&name)?;
    let played = reader.join();
    bus.kill()?;
    played
}

fn relayed() -> Outcome {
    passes_on(Stream, "connections")
}

fn relayed_packets() -> Outcome {
    passes_on(SeqPacket, "packets")
}

fn relayed_datagrams() -> Outcome {
    passes_on(Datagram, "datagrams")
}

/// A process at the bus's level connects, and hands the connection down.
fn relayed_passed() -> Outcome {
    passes_on_by(Stream, "connections", |name| {
        let taker = abstract_name("taker")?;
        let low = spawn(Untrusted, || {
            let socket = named(Datagram, &taker)?;
            step()?;
            let got = receive(&socket).unwrap_or_default();
            let said = got.fds.first().map_or(Err(Errno::EPERM), |connection| {
                sys::put_all(connection, b"l").map(drop)
            });
            says_or_tells(said)
        })?;
        low.stands()?;
        at(User, || {
            let connection = connected(Stream, name)?;
            let sent = send(&fresh(Datagram)?, Some(&taker), &[connection.as_raw_fd()]);
            sent.or_else(|e| refused_any(NO, Err::<(), _>(e)))
        })?;
        low.join_after_step()
    })
}

fn relayed_connected() -> Outcome {
    passes_on_by(Datagram, "datagrams", |name| {
        at(Untrusted, || {
            let socket = connected(Datagram, name);
            says_or_tells(socket.and_then(|it| sys::put_all(&it, b"l").map(drop)))
        })
    })
}

/// Of what a low process sends it a server takes a file, and what only names a file of FUSE, and not such a file.
fn fuse_handed() -> Outcome {
    let plain = place::file(TMPFS_LOW, "plain")?;
    let sender = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let fuse = Fuse::mount(MOUNT)?;
        let sent = [
            sys::reads(&plain)?,
            sys::open(fuse.file(), OFlag::O_PATH)?,
            sys::reads(fuse.file())?,
        ];
        let to = file_name(OPEN_SOCKET)?;
        for (n, file) in sent.iter().enumerate() {
            told(&n.to_string())?;
            allowed(send(&fresh(Datagram)?, Some(&to), &[file.as_raw_fd()]))?;
        }
        told("over")
    })?;
    let answers = [0, 0, Errno::ENODATA as i32];
    let played = answers.into_iter().enumerate().try_for_each(|(n, answer)| {
        let _ = fs::remove_file(OPEN_SOCKET);
        let server = trusted(System, &["take", OPEN_SOCKET])?;
        let pid = server.pid;
        tell(&n.to_string())?;
        let expected = WaitStatus::Exited(pid, answer);
        same("what the server took", server.status()?, expected)
    });
    let _ = fs::remove_file(OPEN_SOCKET);
    tell("over")?;
    let over = sender.join();
    played.and(over)
}

/// Where systemd hears its services.
const NOTIFY: &str = "/run/systemd/notify";

/// A preset as it is shipped, and what scenarios need.
const WORKSTATION: &str = "include workstation
user /scn/user
untrusted /scn/low
system /scn/tmp creator
untrusted /scn/tmp/low
system /scn/tmp/report creator
system /scn/bin/trusted nodemote
system /scn/bin/reporter nodemote
";

/// Under a preset, while a trusted program has the socket of systemd, which hears everybody.
fn notified(part: impl FnOnce(&UnixAddr) -> Outcome) -> Outcome {
    fs::create_dir_all("/run/systemd")?;
    if fs::exists(NOTIFY)? {
        return Err(Failed::because("there is a systemd"));
    }
    reload(WORKSTATION, &[])?;
    let played = trusted(System, &["listen", NOTIFY]).and_then(|server| {
        let played = file_name(NOTIFY)
            .map_err(Failed::from)
            .and_then(|to| part(&to));
        server.kill()?;
        played
    });
    reload(setup::POLICY, &[])?;
    let _ = fs::remove_file(NOTIFY);
    played
}

fn main_process() -> Outcome {
    notified(|to| {
        for level in Level::LOWER {
            at(level, || {
                let own = fresh(Datagram)?;
                for said in [
                    &b"MAINPID=1"[..],
                    b"MAINPID=1\nREADY=1",
                    b"READY=1\nMAINPID=1",
                ] {
                    let sent = sendto(own.as_raw_fd(), said, to, MsgFlags::empty());
                    refused_any(NO, sent)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

fn watchdog() -> Outcome {
    notified(|to| {
        for level in Level::LOWER {
            at(level, || {
                let own = match connected(Datagram, to) {
                    Ok(own) => own,
                    Err(e) => return refused_any(NO, Err::<(), _>(e)),
                };
                refused_any(NO, sys::put_all(&own, b"WATCHDOG=trigger"))
            })?;
        }
        Ok(())
    })
}

fn kept() -> Outcome {
    notified(|to| {
        start(|| {
            let own = allowed(connected(Datagram, to))?;
            lower(Untrusted)?;
            refused_any(NO, sys::put_all(&own, b"MAINPID=1"))
        })?
        .join()
    })
}

fn tells_main_pid(to: &UnixAddr) -> Result<(), Errno> {
    let own = fresh(Datagram)?;
    sendto(own.as_raw_fd(), b"MAINPID=1", to, MsgFlags::empty()).map(drop)
}

fn saved_number() -> Outcome {
    notified(|to| {
        fs::set_permissions(NOTIFY, fs::Permissions::from_mode(0o777))?;
        let (alice, root) = (Uid::from_raw(1000), Uid::from_raw(0));
        at(Untrusted, || {
            setresuid(alice, alice, root)?;
            refused_any(NO, tells_main_pid(to))
        })?;
        // systemd asks which unit's process it is
        at(Untrusted, || {
            become_alice()?;
            allowed(tells_main_pid(to))
        })
    })
}

fn by_capability() -> Outcome {
    notified(|to| {
        fs::set_permissions(NOTIFY, fs::Permissions::from_mode(0o777))?;
        at(Untrusted, || {
            // capabilities outlive the last number of root's
            syscall!(libc::SYS_prctl, libc::PR_SET_KEEPCAPS, 1, 0, 0, 0)?;
            become_alice()?;
            has_setuid()?;
            refused_any(NO, tells_main_pid(to))
        })
    })
}

/// Takes CAP_SETUID back, of what is permitted.
fn has_setuid() -> Outcome {
    /// _LINUX_CAPABILITY_VERSION_3
    const VERSION: u32 = 0x2008_0522;
    const SETUID: u32 = 1 << 7;
    let who = [VERSION, 0];
    // effective, permitted, inheritable: the lower 32 of each, then the higher
    let sets = [SETUID, SETUID, 0, 0, 0, 0u32];
    syscall!(libc::SYS_capset, who.as_ptr(), sets.as_ptr())?;
    Ok(())
}
