//! Sockets of other kinds: what no rule tells apart is the network's lowest, or nobody's below the top.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    Backlog, SockaddrLike, SockaddrStorage, bind, connect, getsockname, listen,
};
use nix::unistd::pipe2;

use crate::scenarios::check::{Outcome, allowed, refused};
use crate::scenarios::level;
use crate::scenarios::net::{address, listener};
use crate::scenarios::scenario::{Scenario, bypass, deny};
use crate::scenarios::subject::{Level, at, lower, spawn, start};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    deny(
        "net-other-families",
        "sockets whose addresses no rule tells apart lower who makes them",
        other_families,
    ),
    deny(
        "net-multipath",
        "a connection of several paths lowers to its network's level, and none goes up",
        multipath,
    ),
    bypass(
        "net-multipath-put-off",
        "a connection of several paths is put off and ended, and a message with a name makes another one",
        put_off,
    ),
    deny(
        "net-smc",
        "sockets of SMC, which connect and send so, too, are nobody's above the lowest level",
        shared_memory,
    ),
    bypass(
        "net-smc-by-option",
        "a listener of TCP becomes one of SMC by an option, and what it accepts is read by splice",
        by_option,
    ),
];

/// AF_XDP
const XDP: i32 = 44;
const MULTIPATH: i32 = libc::IPPROTO_MPTCP;
/// IPPROTO_SMC
const SMC: i32 = 256;

fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    let kind = kind | libc::SOCK_CLOEXEC;
    sys::owned(syscall!(libc::SYS_socket, family, kind, protocol)?)
}

fn other_families() -> Outcome {
    for (family, kind) in [
        (libc::AF_VSOCK, libc::SOCK_STREAM),
        (libc::AF_VSOCK, libc::SOCK_DGRAM),
        (XDP, libc::SOCK_RAW),
        (libc::AF_CAN, libc::SOCK_RAW),
        (libc::AF_BLUETOOTH, libc::SOCK_SEQPACKET),
    ] {
        // whether this kernel has such sockets does not matter: the subject that asks has fallen
        start(|| {
            let _ = socket(family, kind, 0);
            level::is(Untrusted)
        })?
        .join()?;
    }
    level::is(System)
}

fn multipath() -> Outcome {
    for network in [Untrusted, User] {
        let (_listener, to) = listener(address(network))?;
        start(|| {
            let socket = socket(libc::AF_INET, libc::SOCK_STREAM, MULTIPATH)?;
            level::is(System)?;
            allowed(connect(socket.as_raw_fd(), &SockaddrStorage::from(to)))?;
            level::is(network)
        })?
        .join()?;
    }
    let (_listener, to) = listener(address(System))?;
    for level in Level::LOWER {
        at(level, || {
            let socket = socket(libc::AF_INET, libc::SOCK_STREAM, MULTIPATH)?;
            refused(
                Errno::EPERM,
                connect(socket.as_raw_fd(), &SockaddrStorage::from(to)),
            )?;
            level::is(level)
        })?;
    }
    Ok(())
}

/// Sends a byte to an address, which MPTCP takes for one to connect to.
fn send_to(socket: &OwnedFd, to: SocketAddr, flags: i32) -> Result<(), Errno> {
    let to = SockaddrStorage::from(to);
    syscall!(
        libc::SYS_sendto,
        socket.as_raw_fd(),
        b"x".as_ptr(),
        1,
        flags | libc::MSG_NOSIGNAL,
        to.as_ptr(),
        to.len()
    )
    .map(drop)
}

/// Has a connection put off until the first message, which needs nothing from the server (TCP_FASTOPEN_CONNECT,
/// TCP_FASTOPEN_NO_COOKIE).
fn puts_off(socket: &OwnedFd) -> Result<(), Errno> {
    let on = 1i32;
    for option in [30, 34] {
        syscall!(
            libc::SYS_setsockopt,
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            &raw const on,
            size_of_val(&on)
        )?;
    }
    Ok(())
}

fn put_off() -> Outcome {
    let (at_low, low) = listener(address(Untrusted))?;
    let server = start(|| {
        lower(Untrusted)?;
        loop {
            sys::put_all(&at_low.accept()?.0, b"n")?;
        }
    })?;
    let attack = start(|| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, MULTIPATH)?;
        let first = SockaddrStorage::from(SocketAddr::new(address(System), 9));
        allowed(puts_off(&socket))?;
        allowed(connect(socket.as_raw_fd(), &first))?;
        let nowhere = [0u8; 16]; // AF_UNSPEC
        allowed(syscall!(
            libc::SYS_connect,
            socket.as_raw_fd(),
            nowhere.as_ptr(),
            nowhere.len()
        ))?;
        level::is(System)?;
        if send_to(&socket, low, 0).is_ok() {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            sys::splice(&socket, &write, 16)?;
            sys::get(&read)?;
        }
        level::is(Untrusted)
    })?
    .join();
    server.kill()?;
    attack?;
    // a name that is allowed, on a connection and before it
    let (_listener, to) = listener(address(System))?;
    start(|| {
        for flags in [0, libc::MSG_FASTOPEN] {
            let socket = socket(libc::AF_INET, libc::SOCK_STREAM, MULTIPATH)?;
            if flags == 0 {
                allowed(connect(socket.as_raw_fd(), &SockaddrStorage::from(to)))?;
                allowed(sys::put(&socket))?;
            }
            allowed(send_to(&socket, to, flags))?;
        }
        level::is(System)
    })?
    .join()
}

fn shared_memory() -> Outcome {
    for family in [libc::AF_INET, libc::AF_INET6] {
        at(User, || {
            match socket(family, libc::SOCK_STREAM, SMC) {
                Ok(_) => level::is(Untrusted),
                // 7.2 has no such sockets
                Err(Errno::EPERM | Errno::EPROTONOSUPPORT) => Ok(()),
                Err(e) => Err(e)?,
            }
        })?;
    }
    Ok(())
}

fn by_option() -> Outcome {
    const SHARED_MEMORY: i32 = 43; // AF_SMC
    const BY_NAME: i32 = 31; // TCP_ULP
    // whoever asks for one has the kernel bring in the module, and falls
    start(|| {
        let _ = socket(SHARED_MEMORY, libc::SOCK_STREAM, 0);
        Ok(())
    })?
    .join()?;
    start(|| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let (fd, kind) = (socket.as_raw_fd(), b"smc");
        let (tcp, name) = (libc::IPPROTO_TCP, kind.as_ptr());
        if syscall!(libc::SYS_setsockopt, fd, tcp, BY_NAME, name, kind.len()).is_err() {
            // 7.2 has no such sockets
            return Ok(());
        }
        bind(
            fd,
            &SockaddrStorage::from(SocketAddr::new(address(Untrusted), 0)),
        )?;
        listen(&socket, Backlog::new(1)?)?;
        let to: SockaddrStorage = getsockname(fd)?;
        let client = spawn(Untrusted, || {
            let client = self::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            connect(client.as_raw_fd(), &to)?;
            allowed(sys::put(&client))
        })?;
        let connection = sys::owned(syscall!(libc::SYS_accept4, fd, 0, 0, libc::SOCK_CLOEXEC)?)?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        sys::splice(&connection, &write, 16)?;
        sys::get(&read)?;
        level::is(Untrusted)?;
        client.join()
    })?
    .join()
}
