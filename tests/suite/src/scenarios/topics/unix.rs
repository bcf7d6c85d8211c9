//! Unix sockets, named and not, and descriptors passed through them.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::SockType::{Datagram, SeqPacket, Stream};
use nix::sys::socket::UnixAddr;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::daemon;
use crate::scenarios::level;
use crate::scenarios::place::{self, AREA, BIN, LOW, OPEN_SOCKET, SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, falling, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{
    abstract_name, accepted, connected, file_name, fresh, named, pair, receive, send,
};

use Level::{System, Untrusted, User};

const NAMED: &str = "named Unix socket";
const FLOATS: &str = "socketpair, abstract";
const READ: &str = "open for reading";
const WRITE: &str = "open for writing";

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "unix-own",
        "servers and clients of one level, of every kind",
        own,
    )
    .of(NAMED),
    allow("unix-abstract-own", "the same without a file", abstract_own).of(FLOATS),
    allow(
        "unix-connect-down",
        "a higher client may connect to a lower server",
        connect_down,
    )
    .of(NAMED),
    allow("scm-own", "descriptors passed within one level", scm_own).of(READ),
    allow(
        "scm-read-only-down",
        "a lower subject receives a descriptor to read from",
        scm_read_down,
    )
    .of(WRITE),
    allow(
        "scm-path-of-socket",
        "a descriptor that only names a Unix socket (O_PATH) brings nothing from a network",
        path_of_socket,
    )
    .of(READ),
    allow(
        "unix-connect-under-load",
        "connecting while others fall",
        under_load,
    )
    .of(NAMED),
    deny(
        "unix-connect-up",
        "a lower client may neither connect nor send to a higher server",
        connect_up,
    )
    .of(NAMED),
    deny(
        "unix-lowwrite",
        "a lowwrite socket admits lower clients; its server observes them",
        lowwrite,
    )
    .of(NAMED),
    deny(
        "unix-abstract-floats",
        "the server of an abstract socket falls with its clients",
        abstract_floats,
    )
    .of(FLOATS),
    deny(
        "unix-pair-floats",
        "both ends of a socketpair fall together",
        pair_floats,
    )
    .of(FLOATS),
    deny(
        "scm-writable-down",
        "a descriptor to write to a higher object does not arrive",
        scm_writable_down,
    )
    .of(WRITE),
    deny(
        "scm-readable-up",
        "who receives a descriptor of a low file falls",
        scm_readable_up,
    )
    .of(READ),
    bypass(
        "unix-connected-before",
        "sending on a connection made before the demotion",
        connected_before,
    ),
    bypass(
        "unix-sent-at-once",
        "messages sent by one call, of which socket_sendmsg sees the first to each name",
        sent_at_once,
    ),
    bypass(
        "unix-socket-passed",
        "a connected socket handed to a lower subject",
        socket_passed,
    ),
    bypass(
        "unix-datagram-retarget",
        "a datagram socket connected to a low peer, then to a high one",
        retarget,
    ),
    bypass(
        "unix-rebind",
        "a low server in the place of a higher one's socket file",
        rebind,
    ),
    bypass(
        "unix-promoted",
        "a client goes on connecting and sending to a socket whose file is promoted",
        promoted,
    ),
    bypass(
        "unix-moved",
        "it goes on connecting to a socket whose file has been moved from a place that admits it to one that does not",
        moved,
    ),
];

fn talk(kind: nix::sys::socket::SockType, name: &UnixAddr) -> Outcome {
    let server = named(kind, name)?;
    let client = connected(kind, name)?;
    send(&client, None, &[])?;
    let end = if kind == Datagram {
        server
    } else {
        accepted(&server)?
    };
    same("what was received", receive(&end)?.data, b"m".to_vec())
}

fn own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            for (n, kind) in [Stream, SeqPacket, Datagram].into_iter().enumerate() {
                talk(
                    kind,
                    &file_name(&format!("{}-{n}", path(home(level), "s")))?,
                )?;
                talk(
                    kind,
                    &file_name(&format!("{}-{}-{n}", path(AREA, "s"), level.name()))?,
                )?;
            }
            level::is(level)
        })?;
    }
    Ok(())
}

fn abstract_own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            for (n, kind) in [Stream, SeqPacket, Datagram].into_iter().enumerate() {
                talk(kind, &abstract_name(&format!("{}-{n}", level.name()))?)?;
                let (one, two) = pair(kind)?;
                send(&one, None, &[])?;
                same("what was received", receive(&two)?.data, b"m".to_vec())?;
            }
            level::is(level)
        })?;
    }
    Ok(())
}

fn connect_down() -> Outcome {
    let name = file_name(&path(USER, "socket"))?;
    let server = spawn(User, || {
        let socket = named(Stream, &name)?;
        step()?;
        let end = accepted(&socket)?;
        same("what was received", receive(&end)?.data, b"m".to_vec())?;
        level::is(User)
    })?;
    server.stands()?;
    let client = allowed(connected(Stream, &name))?;
    allowed(send(&client, None, &[]))?;
    server.go()?;
    server.join()
}

fn under_load() -> Outcome {
    let fallers = start(|| {
        loop {
            // each is a process of its own, with descriptors to look at
            at(Untrusted, || Ok(()))?;
        }
    })?;
    let name = file_name(&path(USER, "socket"))?;
    let result = at(User, || {
        let server = named(Stream, &name)?;
        for _ in 0..40 {
            let client = allowed(falling(Errno::EAGAIN, || connected(Stream, &name)))?;
            let end = accepted(&server)?;
            allowed(send(&client, None, &[]))?;
            same("what was received", receive(&end)?.data, b"m".to_vec())?;
        }
        level::is(User)
    });
    fallers.kill()?;
    result
}

fn scm_own() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "x")?;
            let (from, to) = pair(Datagram)?;
            let (pipe, _) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            let memory = sys::memfd(0)?;
            let fds = [sys::both(&file)?, pipe, memory, sys::both("/dev/null")?];
            let raw: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
            send(&from, None, &raw)?;
            let got = receive(&to)?;
            same("how many arrived", got.fds.len(), 4)?;
            sys::put(&got.fds[0])?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn path_of_socket() -> Outcome {
    let socket = path(USER, "socket");
    at(User, || {
        let _server = named(Stream, &file_name(&socket)?)?;
        let place = sys::open(&socket, OFlag::O_PATH)?;
        let (from, to) = pair(Datagram)?;
        send(&from, None, &[place.as_raw_fd()])?;
        same("how many arrived", receive(&to)?.fds.len(), 1)?;
        level::is(User)
    })
}

/// A low process that takes descriptors at an abstract name, and what it does with them.
fn taker(
    name: &UnixAddr,
    then: impl FnOnce(crate::scenarios::unixsock::Received) -> Outcome,
) -> Outcome<crate::scenarios::subject::Child> {
    let child = spawn(Untrusted, || {
        let socket = named(Datagram, name)?;
        step()?;
        then(receive(&socket)?)
    })?;
    child.stands()?;
    Ok(child)
}

fn scm_read_down() -> Outcome {
    let (name, file) = (abstract_name("taker")?, place::file(SYSTEM, "high")?);
    let child = taker(&name, |got| {
        same("how many arrived", got.fds.len(), 1)?;
        same("the content", sys::get(&got.fds[0])?, b"high".to_vec())?;
        level::is(Untrusted)
    })?;
    let socket = fresh(Datagram)?;
    allowed(send(
        &socket,
        Some(&name),
        &[sys::reads(&file)?.as_raw_fd()],
    ))?;
    level::is(System)?;
    child.join_after_step()
}

fn scm_writable_down() -> Outcome {
    passed_down(&place::file(SYSTEM, "high")?)
}

/// A high file, opened to be written, does not arrive at a lower subject.
pub(super) fn passed_down(file: &str) -> Outcome {
    let (name, before) = (abstract_name("taker")?, fs::read_to_string(file)?);
    let child = taker(&name, |got| {
        ensure(got.fds.is_empty() && got.cut, "a descriptor arrived")?;
        same("the message", got.data, b"m".to_vec())
    })?;
    let socket = fresh(Datagram)?;
    let fds = [sys::both(file)?, sys::writes(file)?];
    send(
        &socket,
        Some(&name),
        &[fds[0].as_raw_fd(), fds[1].as_raw_fd()],
    )?;
    child.join_after_step()?;
    same("the content", fs::read_to_string(file)?, before)
}

fn scm_readable_up() -> Outcome {
    passed_up(&place::file(LOW, "low")?)
}

/// A receiver of a descriptor of a low file falls; from a trusted sender, so that it is the
/// descriptor and not the channel.
pub(super) fn passed_up(low: &str) -> Outcome {
    let name = abstract_name("taker")?;
    let text = format!("{}-taker", place::scenario());
    let taker = spawn(User, || {
        let socket = named(Datagram, &name)?;
        step()?;
        level::is(User)?;
        let got = receive(&socket)?;
        same("how many arrived", got.fds.len(), 1)?;
        level::is(Untrusted)
    })?;
    taker.stands()?;
    let sent = std::process::Command::new(format!("{BIN}/trusted"))
        .args(["--helper", "send-descriptor", &text, low])
        .status()?;
    same("the sender's status", sent.code(), Some(0))?;
    taker.join_after_step()
}

fn connect_up() -> Outcome {
    for (n, kind) in [Stream, SeqPacket, Datagram].into_iter().enumerate() {
        let name = file_name(&format!("{}-{n}", path(SYSTEM, "socket")))?;
        let _server = named(kind, &name)?;
        for level in Level::LOWER {
            at(level, || {
                refused(Errno::EPERM, connected(kind, &name))?;
                if kind == Datagram {
                    refused(Errno::EPERM, send(&fresh(kind)?, Some(&name), &[]))?;
                }
                level::is(level)
            })?;
        }
    }
    level::is(System)
}

fn lowwrite() -> Outcome {
    let name = file_name(OPEN_SOCKET)?;
    for kind in [Stream, Datagram] {
        let _ = fs::remove_file(OPEN_SOCKET);
        let listener = named(kind, &name)?;
        fs::set_permissions(OPEN_SOCKET, PermissionsExt::from_mode(0o666))?;
        let server = start(|| {
            step()?;
            let end = if kind == Datagram {
                listener.try_clone()?
            } else {
                accepted(&listener)?
            };
            same("what was received", receive(&end)?.data, b"m".to_vec())?;
            level::is(Untrusted)
        })?;
        drop(listener);
        server.stands()?;
        let client = spawn(Untrusted, || {
            let client = allowed(connected(kind, &name))?;
            allowed(send(&client, None, &[]))?;
            step()
        })?;
        client.stands()?;
        server.go()?;
        server.join()?;
        client.kill()?;
    }
    level::is(System)
}

fn abstract_floats() -> Outcome {
    for (n, kind) in [Stream, SeqPacket, Datagram].into_iter().enumerate() {
        let name = abstract_name(&format!("server-{n}"))?;
        let server = spawn(User, || {
            let socket = named(kind, &name)?;
            step()?;
            level::is(Untrusted)?;
            let end = if kind == Datagram {
                socket
            } else {
                accepted(&socket)?
            };
            same("what was received", receive(&end)?.data, b"m".to_vec())
        })?;
        server.stands()?;
        let client = spawn(Untrusted, || {
            let socket = allowed(connected(kind, &name))?;
            allowed(send(&socket, None, &[]))?;
            step()
        })?;
        client.stands()?;
        server.go()?;
        server.join()?;
        client.kill()?;
    }
    level::is(System)
}

fn pair_floats() -> Outcome {
    for kind in [Stream, Datagram] {
        start(|| {
            let (one, two) = pair(kind)?;
            for level in [User, Untrusted] {
                start(|| {
                    lower(level)?;
                    Ok(send(&two, None, &[])?)
                })?
                .join()?;
                level::is(level)?;
                receive(&one)?;
            }
            Ok(())
        })?
        .join()?;
    }
    level::is(System)
}

fn connected_before() -> Outcome {
    let low = place::file(LOW, "low")?;
    for (n, kind) in [Stream, Datagram].into_iter().enumerate() {
        let name = file_name(&format!("{}-{n}", path(SYSTEM, "socket")))?;
        let server = named(kind, &name)?;
        let client = start(|| {
            let socket = connected(kind, &name)?;
            // SAFETY: only this child's copy of the descriptor.
            unsafe { libc::close(server.as_raw_fd()) };
            if fs::read(&low).is_err() {
                return level::is(System);
            }
            level::is(Untrusted)?;
            refused_any(&[Errno::EIO, Errno::EPERM], send(&socket, None, &[]))?;
            refused_any(&[Errno::EIO, Errno::EPERM], sys::put(&socket))?;
            let file = sys::reads(&low)?;
            let sent = nix::sys::sendfile::sendfile(&socket, &file, None, 3);
            refused_any(&[Errno::EIO, Errno::EPERM], sent)?;
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            sys::put(&write)?;
            let spliced = crate::sys::syscall!(
                libc::SYS_splice,
                read.as_raw_fd(),
                0,
                socket.as_raw_fd(),
                0,
                1,
                0
            );
            refused_any(&[Errno::EIO, Errno::EPERM], spliced)?;
            refused_any(&[Errno::EIO, Errno::EPERM], connected(kind, &name))
        })?;
        client.join()?;
        let end = if kind == Datagram {
            server
        } else {
            accepted(&server)?
        };
        if let Ok(got) = receive(&end) {
            same("what arrived", got.data, Vec::new())?;
        }
    }
    level::is(System)
}

fn socket_passed() -> Outcome {
    // a descriptor connected to a higher server is one to write to a higher object
    let (server_name, name) = (file_name(&path(SYSTEM, "socket"))?, abstract_name("taker")?);
    let server = named(Stream, &server_name)?;
    let child = taker(&name, |got| match got.fds.first() {
        None => Ok(()),
        Some(fd) => refused_any(&[Errno::EIO, Errno::EPERM], send(fd, None, &[])),
    })?;
    let connection = connected(Stream, &server_name)?;
    let end = accepted(&server)?;
    send(&fresh(Datagram)?, Some(&name), &[connection.as_raw_fd()])?;
    drop(connection);
    child.join_after_step()?;
    match receive(&end) {
        Ok(got) if !got.data.is_empty() => level::is(Untrusted),
        _ => Ok(()),
    }
}

fn retarget() -> Outcome {
    let (high_name, low_name) = (file_name(&path(SYSTEM, "socket"))?, abstract_name("low")?);
    let high = named(Datagram, &high_name)?;
    at(Untrusted, || {
        let _low = named(Datagram, &low_name)?;
        let socket = connected(Datagram, &low_name)?;
        send(&socket, None, &[])?;
        refused(
            Errno::EPERM,
            nix::sys::socket::connect(socket.as_raw_fd(), &high_name),
        )?;
        refused(Errno::EPERM, send(&socket, Some(&high_name), &[]))
    })?;
    refused(Errno::EAGAIN, receive(&high))?;
    level::is(System)
}

fn rebind() -> Outcome {
    let socket = path(AREA, "socket");
    let _server = named(Stream, &file_name(&socket)?)?;
    at(Untrusted, || {
        refused(Errno::EPERM, fs::remove_file(&socket))?;
        let own = path(AREA, "own");
        let _low = named(Stream, &file_name(&own)?)?;
        refused(Errno::EPERM, fs::rename(&own, &socket))
    })
}

/// That a client was let in is remembered, until something changes.
fn promoted() -> Outcome {
    for (n, kind) in [Stream, Datagram].into_iter().enumerate() {
        let file = format!("{}-{n}", path(AREA, "socket"));
        let name = file_name(&file)?;
        let client = spawn(Untrusted, || {
            let _server = named(kind, &name)?;
            let kept = allowed(connected(kind, &name))?;
            allowed(send(&kept, None, &[]))?;
            drop(allowed(connected(kind, &name))?);
            step()?;
            refused(Errno::EPERM, connected(kind, &name))?;
            if kind == Datagram {
                refused(Errno::EPERM, send(&fresh(kind)?, Some(&name), &[]))?;
            }
            refused(Errno::EIO, send(&kept, None, &[]))
        })?;
        client.stands()?;
        same("promote", daemon::quietly(&["promote", &file])?, 0)?;
        client.join_after_step()?;
    }
    Ok(())
}

fn moved() -> Outcome {
    let _ = fs::remove_file(OPEN_SOCKET);
    let (open, file) = (file_name(OPEN_SOCKET)?, path(SYSTEM, "moved"));
    let name = file_name(&file)?;
    let server = start(|| {
        let _server = named(Stream, &open)?;
        fs::set_permissions(OPEN_SOCKET, PermissionsExt::from_mode(0o666))?;
        step()
    })?;
    server.stands()?;
    let client = spawn(Untrusted, || {
        // the second time it is remembered
        drop(allowed(connected(Stream, &open))?);
        drop(allowed(connected(Stream, &open))?);
        step()?;
        refused(Errno::EPERM, connected(Stream, &name))
    })?;
    client.stands()?;
    fs::rename(OPEN_SOCKET, &file)?;
    let seen = client.join_after_step();
    server.kill()?;
    seen
}

fn sent_at_once() -> Outcome {
    let high = file_name(&path(SYSTEM, "socket"))?;
    let server = named(Datagram, &high)?;
    at(Untrusted, || {
        let own = abstract_name("own")?;
        let _own = named(Datagram, &own)?;
        let sent = sys::send_at_once(&fresh(Datagram)?, &[own, own, high], None)?;
        same("how many went", sent, 2)
    })?;
    refused(Errno::EAGAIN, receive(&server))?;
    // with the second message a descriptor that the receiver may not have
    let (name, file) = (abstract_name("taker")?, place::file(SYSTEM, "high")?);
    let child = spawn(Untrusted, || {
        let socket = named(Datagram, &name)?;
        step()?;
        ensure(!receive(&socket)?.cut, "the first brought something")?;
        let got = receive(&socket)?;
        ensure(got.fds.is_empty() && got.cut, "a descriptor arrived")
    })?;
    child.stands()?;
    let file = sys::writes(&file)?;
    let sent = sys::send_at_once(&fresh(Datagram)?, &[name, name], Some(file.as_raw_fd()))?;
    same("how many went", sent, 2)?;
    child.join_after_step()
}
