//! A socket that two subjects have, and one of them connects it, gives it a name or has it listen.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::SockType::{self, Datagram, SeqPacket, Stream};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockaddrStorage, UnixAddr, bind, connect, getpeername,
    getsockopt, listen, socket, sockopt,
};
use nix::unistd::pause;

use super::inherited::stays_above;
use crate::scenarios::check::{Outcome, allowed, ensure, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::net::address;
use crate::scenarios::place::{USER, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, falling, lower, spawn, start, step, tell, told};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, accepted, connected, file_name, fresh, named};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "unix-connected-own",
        "a Unix socket is connected that an equal has, too",
        own,
    ),
    bypass(
        "unix-connected-by-child",
        "a child connects its parent's Unix socket to a low server, and the parent reads",
        by_child,
    ),
    bypass(
        "unix-connected-shared",
        "who connects a Unix socket is high, and a fallen child speaks by it",
        speaks_to_abstract,
    ),
    bypass(
        "unix-connected-shared-named",
        "the same to a server that has a file",
        speaks_to_named,
    ),
    bypass(
        "unix-datagrams-redirected",
        "a child connects its parent's Unix socket for datagrams to a server of its own",
        redirected,
    ),
    bypass(
        "socket-bind-shared",
        "a child gives its parent's socket an address",
        addressed,
    ),
    bypass(
        "socket-listen-shared",
        "a child has its parent's socket listen, so that it connects nowhere",
        listens,
    ),
];

/// What refuses a connection: where a socket is shared, as if nobody listened.
const NO: &[Errno] = &[
    Errno::EPERM,
    Errno::EACCES,
    Errno::EAGAIN,
    Errno::ECONNREFUSED,
];

/// Connects; again where the guard has to be there first.
fn connects(own: &OwnedFd, name: &UnixAddr) -> Result<(), Errno> {
    falling(Errno::EAGAIN, || connect(own.as_raw_fd(), name))
}

fn own() -> Outcome {
    for (n, kind) in [Stream, SeqPacket, Datagram].into_iter().enumerate() {
        let name = abstract_name(&format!("server-{n}"))?;
        at(User, || {
            let _server = named(kind, &name)?;
            let client = fresh(kind)?;
            let equal = start(step)?;
            equal.stands()?;
            allowed(connects(&client, &name))?;
            equal.kill()?;
            level::is(User)
        })?;
    }
    Ok(())
}

fn by_child() -> Outcome {
    for (n, kind) in [Stream, SeqPacket].into_iter().enumerate() {
        let name = abstract_name(&format!("server-{n}"))?;
        let server = spawn(Untrusted, || {
            let listener = named(kind, &name)?;
            step()?;
            let client = accepted(&listener)?;
            sys::put_all(&client, b"l")?;
            pause();
            Ok(())
        })?;
        server.stands()?;
        server.go()?;
        let played = start(|| {
            let client = fresh(kind)?;
            let child = start(|| match connects(&client, &name) {
                Ok(()) => Ok(()),
                Err(e) => refused_any(NO, Err::<(), _>(e)),
            })?;
            child.join()?;
            // nothing comes where it was not connected: then this fails at once
            let heard = sys::get(&client).unwrap_or_default();
            let is = level::by_writing()?;
            ensure(
                heard.first() != Some(&b'l') || is == Untrusted,
                "what a low server said was heard, and its reader still writes at the top",
            )
        })?
        .join();
        server.kill()?;
        played?;
    }
    Ok(())
}

/// A fallen child has a socket of its parent, which connects it; and what the child says then is not heard at `user`.
fn speaks(kind: SockType, n: usize, name: &UnixAddr) -> Outcome {
    let (fallen, over) = (format!("fallen-{n}"), format!("over-{n}"));
    let server = spawn(User, || {
        let listener = named(kind, name)?;
        sys::fcntl(&listener, libc::F_SETFL, libc::O_NONBLOCK.into())?;
        step()?;
        // the first is the client's other connection
        let mut heard = Vec::new();
        while let Ok(connection) = accepted(&listener) {
            sys::fcntl(&connection, libc::F_SETFL, libc::O_NONBLOCK.into())?;
            heard.extend(sys::get(&connection).unwrap_or_default());
        }
        let is = level::by_writing()?;
        ensure(
            !heard.contains(&b'l') || is == Untrusted,
            "what a low process said was heard, and its reader still writes at `user`",
        )
    })?;
    server.stands()?;
    let client = spawn(User, || {
        let shared = fresh(kind)?;
        let child = start(|| {
            lower(Untrusted)?;
            tell(&fallen)?;
            told(&over)?;
            // it is not connected, or may not write
            let _ = sys::put_all(&shared, b"l");
            // what was written stays where its reader finds it
            step()
        })?;
        told(&fallen)?;
        // what is asked about a socket of one's own is remembered, and says nothing of another
        let _own = falling(Errno::EAGAIN, || connected(kind, name))?;
        if let Err(e) = connects(&shared, name) {
            refused_any(NO, Err::<(), _>(e))?;
        }
        tell(&over)?;
        child.stands()?;
        server.go()?;
        step()?;
        child.kill()
    })?;
    client.stands()?;
    let played = server.join();
    client.join_after_step()?;
    played
}

fn speaks_to_abstract() -> Outcome {
    for (n, kind) in [Stream, SeqPacket].into_iter().enumerate() {
        speaks(kind, n, &abstract_name(&format!("server-{n}"))?)?;
    }
    Ok(())
}

fn speaks_to_named() -> Outcome {
    for (n, kind) in [Stream, SeqPacket].into_iter().enumerate() {
        speaks(
            kind,
            n,
            &file_name(&format!("{}-{n}", path(USER, "socket")))?,
        )?;
    }
    Ok(())
}

fn redirected() -> Outcome {
    let name = abstract_name("server")?;
    start(|| {
        let shared = fresh(Datagram)?;
        let above = stays_above(|| {
            let _server = named(Datagram, &name)?;
            connect(shared.as_raw_fd(), &name)
        })?;
        if !above {
            return Ok(());
        }
        let peer = getpeername::<UnixAddr>(shared.as_raw_fd()).err();
        same("whom it is connected to", peer, Some(Errno::ENOTCONN))
    })?
    .join()
}

fn tcp() -> Result<OwnedFd, Errno> {
    let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
    socket(family, Stream, flags, None)
}

fn addressed() -> Outcome {
    let low = SockaddrStorage::from(std::net::SocketAddr::from((address(Untrusted), 0)));
    let own = SockaddrStorage::from(std::net::SocketAddr::from((address(System), 0)));
    start(|| {
        let (shared, unix) = (tcp()?, fresh(Datagram)?);
        let (low_name, own_name) = (abstract_name("low")?, abstract_name("own")?);
        let above = stays_above(|| {
            let by_unix = bind(unix.as_raw_fd(), &low_name);
            bind(shared.as_raw_fd(), &low).and(by_unix)
        })?;
        if !above {
            return Ok(());
        }
        // what has an address takes no other
        allowed(bind(shared.as_raw_fd(), &own))?;
        allowed(bind(unix.as_raw_fd(), &own_name))
    })?
    .join()
}

fn listens() -> Outcome {
    let name = abstract_name("shared")?;
    start(|| {
        let (shared, unix) = (tcp()?, fresh(Stream)?);
        bind(unix.as_raw_fd(), &name)?;
        let above = stays_above(|| {
            let by_unix = listen(&unix, Backlog::new(0)?);
            listen(&shared, Backlog::new(0)?).and(by_unix)
        })?;
        if !above {
            return Ok(());
        }
        for socket in [&shared, &unix] {
            let is = getsockopt(socket, sockopt::AcceptConn)?;
            same("whether it listens", is, false)?;
        }
        Ok(())
    })?
    .join()
}
