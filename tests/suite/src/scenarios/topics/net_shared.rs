//! A socket that two subjects have before it is connected: the one that falls connects it, and the other takes what
//! comes by calls of which no hook of sockets tells.

use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrLike, SockaddrStorage, socket};
use nix::unistd::{pause, pipe2};

use crate::scenarios::check::{Failed, Outcome, PATIENCE, allowed, ensure, refused_any};
use crate::scenarios::level;
use crate::scenarios::net::{address, listener};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, asleep, at, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, fresh, named, receive, send};
use crate::scenarios::uring::Ring;
use crate::sys::syscall;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "net-connected-own",
        "a socket of one's own is connected, by its first message too, also with a second descriptor, and one that an equal has",
        own,
    ),
    bypass(
        "net-connected-by-child",
        "a socket is connected by a child that fell, and its parent reads by splice",
        by_child,
    ),
    bypass(
        "net-connected-by-fast-open",
        "the same, connected by the first message",
        by_fast_open,
    ),
    bypass(
        "net-connected-by-ring",
        "the same, connected by a ring that alone has the socket in the child",
        by_ring,
    ),
    bypass(
        "net-connected-unseen",
        "a child connects a socket that its parent has in a ring alone, or in a splice that waits, and no more in its table",
        unseen,
    ),
    bypass(
        "net-connected-by-stranger",
        "a socket is handed to a low subject, which connects it, and who handed it over reads by splice",
        by_stranger,
    ),
    bypass(
        "net-connected-sendfile",
        "what a fallen child has connected is read by sendfile",
        by_sendfile,
    ),
    bypass(
        "net-connected-zero-copy",
        "what a fallen child has connected is read by an option of the socket",
        by_option,
    ),
];

/// What refuses a connection.
const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES, Errno::EAGAIN];

/// A server in the lowest network that says `l` to its clients, and stays.
fn server() -> Outcome<(Child, SocketAddr)> {
    let (listener, to) = listener(address(Untrusted))?;
    let child = start(|| {
        // until nobody else has the listener
        step()?;
        lower(Untrusted)?;
        let (stream, _) = listener.accept()?;
        sys::put_all(&stream, b"l")?;
        pause();
        Ok(())
    })?;
    child.stands()?;
    drop(listener);
    child.go()?;
    Ok((child, to))
}

fn tcp() -> Result<OwnedFd, Errno> {
    let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
    socket(family, SockType::Stream, flags, None)
}

fn connect(socket: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to))
}

fn connect_by_message(socket: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    let to = SockaddrStorage::from(to);
    syscall!(
        libc::SYS_sendto,
        socket.as_raw_fd(),
        b"x".as_ptr(),
        1,
        libc::MSG_FASTOPEN,
        to.as_ptr(),
        to.len()
    )
    .map(drop)
}

/// By a worker of a ring, whose request has no reference of its own to the socket, as nothing else of this process has.
fn connect_by_ring(socket: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    let ring = Ring::new(0)?;
    ring.register(&[socket.as_raw_fd()])?;
    syscall!(libc::SYS_close, socket.as_raw_fd())?;
    ring.connect_fixed(0, &SockaddrStorage::from(to))
}

/// Whoever has taken what a low server said must have fallen. Nothing comes where it was not connected.
fn not_above(taken: Result<Vec<u8>, Errno>) -> Outcome {
    match taken {
        Ok(bytes) => {
            let is = level::by_writing()?;
            ensure(
                bytes.first() != Some(&b'l') || is == Untrusted,
                "low data was read, and its reader still writes at the top",
            )
        }
        Err(e) => refused_any(
            &[NO, &[Errno::ENOTCONN, Errno::EIO]].concat(),
            Err::<(), _>(e),
        ),
    }
}

type Connects = fn(&OwnedFd, SocketAddr) -> Result<(), Errno>;
type Takes = fn(&OwnedFd) -> Result<Vec<u8>, Errno>;

/// A child falls, if it may, and connects a socket that it has from its parent; the parent takes what comes.
fn connected_by_child(connects: Connects, takes: Takes) -> Outcome {
    let (server, to) = server()?;
    let played = start(|| {
        let socket = tcp()?;
        let child = start(|| {
            if lower(Untrusted).is_ok()
                && let Err(e) = connects(&socket, to)
            {
                refused_any(NO, Err::<(), _>(e))?;
            }
            Ok(())
        })?;
        child.join()?;
        not_above(takes(&socket))
    })?
    .join();
    server.kill()?;
    played
}

fn own() -> Outcome {
    for connects in [connect as Connects, connect_by_message] {
        let (server, to) = server()?;
        let played = at(User, || {
            let socket = tcp()?;
            let _again = socket.try_clone()?;
            allowed(connects(&socket, to))?;
            level::is(Untrusted)
        });
        server.kill()?;
        played?;
    }
    let (server, to) = server()?;
    let played = at(Untrusted, || {
        let socket = tcp()?;
        let equal = start(step)?;
        equal.stands()?;
        allowed(connect(&socket, to))?;
        equal.kill()
    });
    server.kill()?;
    played
}

fn by_splice(socket: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    sys::splice(socket, &write, 16)?;
    sys::get(&read)
}

fn by_child() -> Outcome {
    connected_by_child(connect, by_splice)
}

fn by_fast_open() -> Outcome {
    connected_by_child(connect_by_message, by_splice)
}

fn by_ring() -> Outcome {
    connected_by_child(connect_by_ring, by_splice)?;
    // a socket of one's own is connected so
    let (server, to) = server()?;
    let played = at(Untrusted, || {
        let socket = ManuallyDrop::new(tcp()?);
        allowed(connect_by_ring(&socket, to))
    });
    server.kill()?;
    played
}

/// A child connects a socket once its parent has hidden it; the parent takes what comes.
fn hidden<H>(
    hides: impl FnOnce(OwnedFd) -> Outcome<H>,
    takes: impl FnOnce(H) -> Outcome<Result<Vec<u8>, Errno>>,
) -> Outcome {
    let (server, to) = server()?;
    let played = start(|| {
        let socket = tcp()?;
        let child = start(|| {
            step()?;
            if lower(Untrusted).is_ok()
                && let Err(e) = connect(&socket, to)
            {
                refused_any(NO, Err::<(), _>(e))?;
            }
            Ok(())
        })?;
        child.stands()?;
        let held = hides(socket)?;
        child.join_after_step()?;
        not_above(takes(held)?)
    })?
    .join();
    server.kill()?;
    played
}

fn unseen() -> Outcome {
    let in_ring = |socket: OwnedFd| -> Outcome<Ring> {
        let ring = Ring::new(0)?;
        ring.register(&[socket.as_raw_fd()])?;
        Ok(ring)
    };
    hidden(in_ring, |ring| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let spliced = ring.splice_fixed(0, write.as_raw_fd(), 16);
        Ok(spliced.and_then(|_| sys::get(&read)))
    })?;
    let in_splice = |socket: OwnedFd| -> Outcome<(_, OwnedFd, OwnedFd)> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        sys::fcntl(&write, libc::F_SETPIPE_SZ, sys::PAGE as i64)?;
        sys::put_all(&write, &[0; sys::PAGE])?;
        let (from, to) = (socket.as_raw_fd(), write.as_raw_fd());
        let waits = asleep(&[libc::SYS_splice], move || {
            syscall!(libc::SYS_splice, from, 0, to, 0, 16, 0)
        })?;
        Ok((waits, read, write))
    };
    hidden(in_splice, |(waits, read, _write)| {
        // now there is room
        sys::get(&read)?;
        let spliced = waits.join();
        let spliced = spliced.map_err(|_| Failed::because("the thread panicked"))?;
        Ok(spliced.and_then(|_| sys::get(&read)))
    })
}

fn by_sendfile() -> Outcome {
    connected_by_child(connect, |socket| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let (to, from) = (write.as_raw_fd(), socket.as_raw_fd());
        syscall!(libc::SYS_sendfile, to, from, 0, 16)?;
        sys::get(&read)
    })
}

fn by_option() -> Outcome {
    connected_by_child(connect, |socket| {
        const ZEROCOPY_RECEIVE: i32 = 35;
        // until something is there, or nothing will come
        let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        poll(
            &mut ready,
            PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX),
        )?;
        let mut bytes = [0u8; 16];
        // struct tcp_zerocopy_receive: what is no whole page is copied to the fourth word's address, at most so many bytes
        let mut request = [0u64; 8];
        (request[3], request[4]) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
        let mut len = size_of_val(&request) as u32;
        syscall!(
            libc::SYS_getsockopt,
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            ZEROCOPY_RECEIVE,
            request.as_mut_ptr(),
            &raw mut len
        )?;
        let copied = request[4] as u32 as usize;
        Ok(bytes[..copied.min(bytes.len())].to_vec())
    })
}

fn by_stranger() -> Outcome {
    let (server, to) = server()?;
    let name = abstract_name("stranger")?;
    let played = start(|| {
        let stranger = spawn(Untrusted, || {
            let own = named(SockType::Datagram, &name)?;
            step()?;
            match receive(&own)?.fds.first().map(|socket| connect(socket, to)) {
                Some(Err(e)) => refused_any(NO, Err::<(), _>(e)),
                // or it did not arrive
                _ => Ok(()),
            }
        })?;
        stranger.stands()?;
        let socket = tcp()?;
        let from = fresh(SockType::Datagram)?;
        send(&from, Some(&name), &[socket.as_raw_fd()])?;
        stranger.join_after_step()?;
        not_above(by_splice(&socket))
    })?
    .join();
    server.kill()?;
    played
}
