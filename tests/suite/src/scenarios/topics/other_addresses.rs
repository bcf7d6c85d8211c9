//! Addresses of other machines in networks above the lowest: a lower subject sends from none, wherever to. The kernel
//! lets a socket have any address that asks for that (IPV6_FREEBIND, IP_TRANSPARENT).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrLike, SockaddrStorage, bind, connect, socket,
};

use super::own_addresses::{USERS_V6, add_both_v6, name, send_saying};
use crate::scenarios::check::{Attempt, Outcome, ensure, refused_any};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start};
use crate::sys::syscall;

use Level::{Untrusted, User};

const NO: &[Errno] = &[Errno::EPERM, Errno::EIO, Errno::EACCES];

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "net-others-address",
        "a socket that may have any address is kept over a fall, and sends from one of a higher network (IP_TRANSPARENT)",
        transparent,
    ),
    bypass(
        "net-others-address-v6",
        "a low subject sends datagrams to another machine from an address of a higher network that is not its machine's (IPV6_FREEBIND)",
        datagrams,
    ),
    bypass(
        "net-others-address-said-v6",
        "the datagram itself says that it comes from such an address (IPV6_PKTINFO)",
        said,
    ),
    bypass(
        "net-others-address-connected",
        "a low client connects from there, or speaks in the call that connects",
        connected,
    ),
];

/// In networks that the policy gives the level `user`, and no machine's here.
const USERS_OTHER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 77);
const USERS_OTHER_V6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 0x77);

/// An address in that network whose last 64 bits are zero: all routers of a subnet have it (RFC 4291, 2.6.1).
const USERS_ROUTERS_V6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 1, 0, 0, 0, 0);

/// In a network that no line names.
const LOW_OTHER_V6: Ipv6Addr = Ipv6Addr::new(0xfd0b, 0, 0, 0, 0, 0, 0, 0x77);

/// Other machines; whether there is a way to them does not matter.
const FAR: &str = "203.0.113.7:53";
const FAR_V6: SocketAddr = SocketAddr::new(
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
    53,
);

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) -> Result<(), Errno> {
    syscall!(
        libc::SYS_setsockopt,
        socket.as_raw_fd(),
        level,
        option,
        &raw const value,
        size_of::<i32>()
    )
    .map(drop)
}

/// Whether a socket of IPv6 may have any address.
fn set_free(socket: &OwnedFd, free: bool) -> Result<(), Errno> {
    const FREEBIND: i32 = 78;
    set(socket, libc::IPPROTO_IPV6, FREEBIND, free.into())
}

/// A socket with an address of IPv6 that need not be this machine's.
fn at_any(kind: SockType, address: Ipv6Addr) -> Result<OwnedFd, Errno> {
    let own = socket(AddressFamily::Inet6, kind, SockFlag::SOCK_CLOEXEC, None)?;
    set_free(&own, true)?;
    bind(own.as_raw_fd(), &name(address.into(), 0))?;
    Ok(own)
}

/// No rule is in the way; the kernel may know none to that machine.
fn not_refused(attempt: impl Attempt) -> Outcome {
    let refused = attempt.made().is_err_and(|e| NO.contains(&e));
    ensure(!refused, "it is refused")
}

fn transparent() -> Outcome {
    start(|| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let own = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
        set(&own, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)?;
        lower(Untrusted)?;
        bind(own.as_raw_fd(), &name(USERS_OTHER.into(), 0))?;
        let own = UdpSocket::from(own);
        refused_any(NO, own.send_to(b"l", FAR))?;
        refused_any(NO, own.connect(FAR))
    })?
    .join()
}

fn datagrams() -> Outcome {
    at(Untrusted, || {
        for (from, stays_free) in [
            (USERS_OTHER_V6, true),
            (USERS_OTHER_V6, false),
            (USERS_ROUTERS_V6, true),
        ] {
            let own = at_any(SockType::Datagram, from)?;
            // the socket keeps its address
            set_free(&own, stays_free)?;
            let own = UdpSocket::from(own);
            refused_any(NO, own.send_to(b"l", FAR_V6))?;
            refused_any(NO, own.connect(FAR_V6))?;
        }
        let low = UdpSocket::from(at_any(SockType::Datagram, LOW_OTHER_V6)?);
        not_refused(low.send_to(b"l", FAR_V6))
    })
}

fn said() -> Outcome {
    add_both_v6()?;
    at(Untrusted, || {
        // a socket without an address, and one at this machine's own
        for address in [Ipv6Addr::UNSPECIFIED, USERS_V6] {
            let own = UdpSocket::from(at_any(SockType::Datagram, address)?);
            let says = |from: Ipv6Addr| send_saying(&own, 0, from.into(), FAR_V6);
            refused_any(NO, says(USERS_OTHER_V6))?;
            refused_any(NO, says(USERS_ROUTERS_V6))?;
            not_refused(says(USERS_V6))?;
            not_refused(says(LOW_OTHER_V6))?;
        }
        Ok(())
    })
}

fn connected() -> Outcome {
    // the connection itself makes the client fall
    at(User, || {
        for kind in [SockType::Stream, SockType::Datagram] {
            let client = at_any(kind, USERS_OTHER_V6)?;
            let to = SockaddrStorage::from(FAR_V6);
            refused_any(NO, connect(client.as_raw_fd(), &to))?;
        }
        level::is(Untrusted)
    })?;
    at(Untrusted, || {
        let to = SockaddrStorage::from(FAR_V6);
        let client = at_any(SockType::Stream, USERS_OTHER_V6)?;
        refused_any(NO, connect(client.as_raw_fd(), &to))?;
        let client = at_any(SockType::Stream, USERS_OTHER_V6)?;
        let sent = syscall!(
            libc::SYS_sendto,
            client.as_raw_fd(),
            b"l".as_ptr(),
            1,
            libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL,
            to.as_ptr(),
            to.len()
        );
        refused_any(NO, sent)
    })
}
