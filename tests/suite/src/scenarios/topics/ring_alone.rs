//! Channels whose reader has its end in a ring of io_uring alone: no table of descriptors shows that it reads. A low
//! stranger who would write there is refused, or the reader falls.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::SockType::{Datagram, Stream};
use nix::sys::socket::UnixAddr;
use nix::unistd::{Pid, pipe2};

use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, at, spawn, start, step, tell, told};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, connected, fresh, named, pair, receive, send};
use crate::scenarios::uring::Ring;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "ends-on-their-way",
        "two processes get an end each of a pair of sockets, at once or while the other is on its way",
        on_their_way,
    ),
    bypass(
        "ring-alone-listens",
        "a low client connects to a server that has its listener in a ring alone",
        listens,
    ),
    bypass(
        "ring-alone-made",
        "the same where the listener was made in the ring, and nobody ever had a descriptor",
        made,
    ),
    bypass(
        "ring-alone-receives",
        "a low client sends to a server that has its datagram socket in a ring alone",
        receives,
    ),
    bypass(
        "ring-alone-pipe-by-name",
        "a low subject opens a pipe by its name in /proc, whose end to read a ring alone has",
        pipe_by_name,
    ),
    bypass(
        "ring-alone-pipe",
        "the end of such a pipe is handed to a low subject",
        pipe,
    ),
    bypass(
        "ring-alone-pair",
        "a socket is handed to a low subject, whose other end a ring alone has",
        socket_pair,
    ),
    bypass(
        "ring-alone-memory",
        "memory that a ring alone has is handed to a low subject",
        memory,
    ),
];

/// What refuses the stranger.
const NO: &[Errno] = &[Errno::EAGAIN, Errno::EACCES, Errno::EPERM];

/// A subject that has got what begins with `l`, which a low subject wrote, must not be at the top.
fn not_above(bytes: &[u8]) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        bytes.first() != Some(&b'l') || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// A server at the top reads by its ring what a low stranger, which has nothing of the server's,
/// has sent. The stranger is told the server's process.
fn serves(
    prepare: impl FnOnce() -> Outcome<Ring>,
    takes: impl FnOnce(&Ring) -> Outcome<Vec<u8>>,
    sends: impl FnOnce(Pid) -> Result<usize, Errno>,
) -> Outcome {
    let sent = path(TMPFS_LOW, "sent");
    let server = start(|| {
        let ring = prepare()?;
        tell("serves")?;
        told("tried")?;
        if !fs::exists(&sent)? {
            return Ok(());
        }
        not_above(&takes(&ring)?)
    })?;
    told("serves")?;
    let tried = at(Untrusted, || match sends(server.pid) {
        Ok(_) => tell("sent"),
        Err(e) => refused_any(NO, Err::<(), _>(e)),
    });
    tell("tried")?;
    server.join()?;
    tried
}

/// A process that takes what it is sent, once it is let go on, and does something with it.
fn takes(name: UnixAddr, uses: impl FnOnce(&OwnedFd) -> Outcome) -> Outcome<Child> {
    let child = spawn(User, || {
        let socket = named(Datagram, &name)?;
        step()?;
        let got = receive(&socket)?;
        let end = got.fds.first();
        uses(end.ok_or_else(|| Failed::because("it does not arrive"))?)?;
        level::is(User)
    })?;
    child.stands()?;
    Ok(child)
}

fn on_their_way() -> Outcome {
    for at_once in [true, false] {
        let (first, second) = (abstract_name("first")?, abstract_name("second")?);
        let writes = takes(first, |end| allowed(sys::put(end)))?;
        let reads = takes(second, |end| {
            same("what is said", sys::get(end)?, b"x".to_vec())
        })?;
        at(User, || {
            let (one, two) = pair(Stream)?;
            let from = fresh(Datagram)?;
            send(&from, Some(&first), &[one.as_raw_fd()])?;
            Ok(send(&from, Some(&second), &[two.as_raw_fd()])?)
        })?;
        if at_once {
            reads.go()?;
        }
        writes.join_after_step()?;
        reads.join_after_step()?;
    }
    Ok(())
}

fn one_byte(ring: &Ring) -> Outcome<Vec<u8>> {
    let mut byte = [0u8];
    let n = ring.read_fixed(0, &mut byte)?;
    Ok(byte[..n as usize].to_vec())
}

fn accepted_byte(ring: &Ring) -> Outcome<Vec<u8>> {
    Ok(sys::get(&ring.accept_fixed(0)?)?)
}

fn listens() -> Outcome {
    let name = abstract_name("server")?;
    let prepare = || -> Outcome<Ring> {
        let (ring, listener) = (Ring::new(0)?, named(Stream, &name)?);
        ring.register(&[listener.as_raw_fd()])?;
        Ok(ring)
    };
    serves(prepare, accepted_byte, |_| {
        sys::put_all(&connected(Stream, &name)?, b"l")
    })
}

fn made() -> Outcome {
    let name = abstract_name("server")?;
    let prepare = || -> Outcome<Ring> {
        let ring = Ring::new(0)?;
        ring.register(&[-1])?;
        ring.listen_fixed(0, &name)?;
        Ok(ring)
    };
    serves(prepare, accepted_byte, |_| {
        sys::put_all(&connected(Stream, &name)?, b"l")
    })
}

fn receives() -> Outcome {
    let name = abstract_name("server")?;
    let prepare = || -> Outcome<Ring> {
        let (ring, socket) = (Ring::new(0)?, named(Datagram, &name)?);
        ring.register(&[socket.as_raw_fd()])?;
        Ok(ring)
    };
    serves(prepare, one_byte, |_| {
        sys::put_all(&connected(Datagram, &name)?, b"l")
    })
}

fn pipe_by_name() -> Outcome {
    let prepare = || -> Outcome<Ring> {
        let (ring, (read, write)) = (Ring::new(0)?, pipe2(OFlag::O_CLOEXEC)?);
        ring.register(&[read.as_raw_fd()])?;
        // stays open there
        sys::keep_as(&write, 100)?;
        Ok(ring)
    };
    serves(prepare, one_byte, |server| {
        sys::put_all(&sys::writes(format!("/proc/{server}/fd/100"))?, b"l")
    })
}

/// A subject at the top hands something to a low one, and keeps what it reads there in its ring alone.
fn hands(make: impl FnOnce(&Ring) -> Outcome<OwnedFd>) -> Outcome {
    let (name, sent) = (abstract_name("stranger")?, path(TMPFS_LOW, "sent"));
    start(|| {
        let stranger = spawn(Untrusted, || {
            let socket = named(Datagram, &name)?;
            step()?;
            match receive(&socket)?
                .fds
                .first()
                .map(|fd| sys::put_all(fd, b"l"))
            {
                Some(Ok(_)) => tell("sent"),
                Some(Err(e)) => refused_any(NO, Err::<(), _>(e)),
                // it did not arrive
                None => Ok(()),
            }
        })?;
        stranger.stands()?;
        let ring = Ring::new(0)?;
        let given = make(&ring)?;
        send(&fresh(Datagram)?, Some(&name), &[given.as_raw_fd()])?;
        drop(given);
        stranger.join_after_step()?;
        if !fs::exists(&sent)? {
            return Ok(());
        }
        not_above(&one_byte(&ring)?)
    })?
    .join()
}

fn pipe() -> Outcome {
    hands(|ring| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        ring.register(&[read.as_raw_fd()])?;
        Ok(write)
    })
}

fn socket_pair() -> Outcome {
    hands(|ring| {
        let (one, two) = pair(Stream)?;
        ring.register(&[one.as_raw_fd()])?;
        Ok(two)
    })
}

fn memory() -> Outcome {
    hands(|ring| {
        let memory = sys::memfd(0)?;
        ring.register(&[memory.as_raw_fd()])?;
        // each has a position of its own
        Ok(sys::again(&memory, OFlag::O_RDWR)?)
    })
}
