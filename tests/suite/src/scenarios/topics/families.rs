//! Sockets of other kinds: what no rule tells apart is the network's lowest, or nobody's below the top.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, connect};

use crate::scenarios::check::{Outcome, allowed, refused};
use crate::scenarios::level;
use crate::scenarios::net::{address, listener};
use crate::scenarios::scenario::{Scenario, deny};
use crate::scenarios::subject::{Level, at, start};
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
    deny(
        "net-smc",
        "sockets of SMC, which connect and send so, too, are nobody's above the lowest level",
        shared_memory,
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
