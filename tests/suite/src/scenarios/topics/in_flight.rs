//! What lies in a Unix socket, on its way from one who is gone: descriptors, datagrams and connections.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::sys::socket::SockType::{Datagram, Stream};

use crate::scenarios::check::{Outcome, same};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{
    abstract_name, accepted, connected, fresh, named, pair, receive, send,
};

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "scm-inflight-pipe",
        "a pipe's read end travels while a low writer fills it and ends",
        inflight_pipe,
    ),
    bypass(
        "scm-inflight-socket",
        "the same with a connected socket",
        inflight_socket,
    ),
    bypass("scm-inflight-memfd", "the same with memory", inflight_memfd),
    bypass(
        "unix-datagrams-left",
        "datagrams of a sender that is gone, in a socket nobody held",
        datagrams_left,
    ),
    bypass(
        "unix-accept-queue",
        "a low client's connection waits in the queue when it ends",
        accept_queue,
    ),
];

/// Sends one end of a channel into a socket that only this process has, and lets
/// a low child write to the other end meanwhile. What then arrives is given to `use_it`.
fn in_flight(
    travels: OwnedFd,
    low: impl FnOnce() -> Outcome,
    use_it: impl FnOnce(OwnedFd) -> Outcome<bool>,
) -> Outcome {
    let (from, to) = pair(Datagram)?;
    send(&from, None, &[travels.as_raw_fd()])?;
    drop((travels, from));
    let child = start(move || {
        lower(Untrusted)?;
        low()
    })?;
    if child.join().is_err() {
        // the fall may have been refused, because somebody unseen could read
        return level::is(System);
    }
    match receive(&to)?.fds.pop() {
        None => Ok(()),
        Some(fd) => {
            if use_it(fd)? {
                level::is(Untrusted)?;
            }
            Ok(())
        }
    }
}

fn got_low(fd: OwnedFd) -> Outcome<bool> {
    crate::sys::syscall!(
        libc::SYS_fcntl,
        fd.as_raw_fd(),
        libc::F_SETFL,
        libc::O_NONBLOCK
    )?;
    Ok(sys::get(&fd).is_ok_and(|data| !data.is_empty()))
}

fn inflight_pipe() -> Outcome {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    in_flight(read, move || Ok(sys::put(&write)?), got_low)
}

fn inflight_socket() -> Outcome {
    let (one, two) = pair(Stream)?;
    in_flight(one, move || Ok(sys::put(&two)?), got_low)
}

fn inflight_memfd() -> Outcome {
    let memory = sys::memfd(0)?;
    let again = sys::again(&memory, OFlag::O_RDWR)?;
    in_flight(memory, move || Ok(sys::put(&again)?), got_low)
}

fn datagrams_left() -> Outcome {
    let name = abstract_name("box")?;
    let socket = named(Datagram, &name)?;
    in_flight(
        socket,
        move || Ok(send(&fresh(Datagram)?, Some(&name), &[])?),
        |fd| Ok(receive(&fd).is_ok_and(|got| !got.data.is_empty())),
    )
}

fn accept_queue() -> Outcome {
    let name = abstract_name("server")?;
    let listener = named(Stream, &name)?;
    let server = start(|| {
        step()?;
        let end = accepted(&listener)?;
        same("what was received", receive(&end)?.data, b"m".to_vec())?;
        level::is(Untrusted)
    })?;
    drop(listener);
    server.stands()?;
    at(Untrusted, || {
        let client = connected(Stream, &name)?;
        Ok(send(&client, None, &[])?)
    })?;
    server.go()?;
    server.join()
}
