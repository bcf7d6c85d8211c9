//! Sockets that were made to say something before a fall, or that share something with those of higher subjects.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{SockaddrIn, SockaddrStorage, bind, getsockname};
use nix::unistd::getpid;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, same, soon};
use crate::scenarios::level;
use crate::scenarios::net::address;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "net-corked-lite",
        "a datagram of UDP-Lite begun before the fall is finished after it",
        corked_lite,
    ),
    bypass(
        "netlink-connected-before",
        "a netlink socket that was connected to another process before the fall speaks to it after it",
        netlink_connected,
    ),
    bypass(
        "net-port-program",
        "who shares a higher one's port sets the program that chooses among their sockets",
        port_program,
    ),
    bypass(
        "net-packet-signal",
        "a higher process asks to be told of packets, and a lower one is at work as they come",
        packet_signal,
    ),
];

fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(
        libc::SYS_socket,
        family,
        kind | libc::SOCK_CLOEXEC,
        protocol
    )?)
}

/// A sockaddr of a netlink socket: its process's number for it.
type NetlinkName = [u32; 3];

fn send_to(socket: &OwnedFd, flags: i32, name: *const u8, len: usize) -> Result<(), Errno> {
    let (bytes, fd) = (b"word", socket.as_raw_fd());
    syscall!(
        libc::SYS_sendto,
        fd,
        bytes.as_ptr(),
        bytes.len(),
        flags,
        name,
        len
    )
    .map(drop)
}

fn corked_lite() -> Outcome {
    const UDP_LITE: i32 = 136;
    let named = |level: Level| match address(level) {
        IpAddr::V4(ip) => {
            let ip = ip.octets();
            // a port that nobody has: what is refused is not to leave
            [
                2, 0, 0, 9, ip[0], ip[1], ip[2], ip[3], 0, 0, 0, 0, 0, 0, 0, 0,
            ]
        }
        IpAddr::V6(_) => [0u8; 16],
    };
    start(|| {
        let own = match socket(libc::AF_INET, libc::SOCK_DGRAM, UDP_LITE) {
            // Linux does without it since 7.1
            Err(Errno::EPROTONOSUPPORT) => return Ok(()),
            own => own?,
        };
        let (high, low) = (named(System), named(Untrusted));
        send_to(&own, libc::MSG_MORE, high.as_ptr(), high.len())?;
        lower(Untrusted)?;
        // it goes where it was to go, whatever the message says
        refused(Errno::EIO, send_to(&own, 0, low.as_ptr(), low.len()))
    })?
    .join()
}

fn netlink_connected() -> Outcome {
    let end = || socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_USERSOCK);
    let heard = |hears: &OwnedFd| {
        let mut word = [0u8; 8];
        let (fd, flags) = (hears.as_raw_fd(), libc::MSG_DONTWAIT);
        syscall!(
            libc::SYS_recvfrom,
            fd,
            word.as_mut_ptr(),
            word.len(),
            flags,
            0,
            0
        )
    };
    start(|| {
        let (hears, speaks) = (end()?, end()?);
        let family = libc::AF_NETLINK as u32;
        let mut name: NetlinkName = [family, 0, 0];
        let mut len = size_of_val(&name) as u32;
        let fd = hears.as_raw_fd();
        syscall!(libc::SYS_bind, fd, name.as_ptr(), len)?;
        syscall!(libc::SYS_getsockname, fd, name.as_mut_ptr(), &raw mut len)?;
        syscall!(libc::SYS_connect, speaks.as_raw_fd(), name.as_ptr(), len)?;
        allowed(sys::put(&speaks))?;
        same("what came", heard(&hears), Ok(1))?;
        lower(Untrusted)?;
        refused(Errno::EPERM, sys::put(&speaks))?;
        // a name of no length is none, whatever it says
        let nobody: NetlinkName = [family, 0, 0];
        refused(Errno::EPERM, send_to(&speaks, 0, nobody.as_ptr().cast(), 0))?;
        refused(Errno::EAGAIN, heard(&hears))?;
        // to the kernel it may speak, which does not listen there
        let len = size_of_val(&nobody);
        refused(
            Errno::ECONNREFUSED,
            send_to(&speaks, 0, nobody.as_ptr().cast(), len),
        )
    })?
    .join()
}

/// A socket for datagrams at a port that others may have, too; 0: any.
fn shares_port(port: u16) -> Result<OwnedFd, Errno> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let on = 1i32;
    set(&socket, libc::SO_REUSEPORT, (&raw const on).cast(), 4)?;
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port))?;
    Ok(socket)
}

fn set(socket: &OwnedFd, option: i32, value: *const u8, len: usize) -> Result<(), Errno> {
    let (fd, level) = (socket.as_raw_fd(), libc::SOL_SOCKET);
    syscall!(libc::SYS_setsockopt, fd, level, option, value, len).map(drop)
}

/// Sets a program for all sockets of the port: the first one has everything.
fn chooses(socket: &OwnedFd) -> Result<(), Errno> {
    /// SO_ATTACH_REUSEPORT_CBPF
    const ATTACH: i32 = 51;
    let first = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: first.as_ptr().cast_mut(),
    };
    set(
        socket,
        ATTACH,
        (&raw const program).cast(),
        size_of_val(&program),
    )
}

fn port_program() -> Outcome {
    /// SO_DETACH_REUSEPORT_BPF: it takes the program away.
    const DETACH: i32 = 68;
    at(User, || {
        let high = shares_port(0)?;
        let name = getsockname::<SockaddrStorage>(high.as_raw_fd())?;
        let port = name.as_sockaddr_in().map_or(0, SockaddrIn::port);
        at(Untrusted, || {
            let low = shares_port(port)?;
            refused(Errno::EPERM, chooses(&low))?;
            let none = 0i32;
            refused(Errno::EPERM, set(&low, DETACH, (&raw const none).cast(), 4))?;
            // at a port that is its own it may
            allowed(chooses(&shares_port(0)?))
        })?;
        allowed(chooses(&high))?;
        level::is(User)
    })
}

/// Has this process got a signal that it keeps waiting?
fn waits(signal: Signal) -> Outcome<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let pending = status.lines().find_map(|l| l.strip_prefix("ShdPnd:\t"));
    let pending = pending.and_then(|hex| u64::from_str_radix(hex, 16).ok());
    Ok(pending.unwrap_or(0) >> (signal as i32 - 1) & 1 != 0)
}

fn packet_signal() -> Outcome {
    at(User, || {
        let socket = UdpSocket::bind((address(Untrusted), 0))?;
        SigSet::from_iter([Signal::SIGIO]).thread_block()?;
        sys::fcntl(&socket, libc::F_SETOWN, getpid().as_raw().into())?;
        let flags = libc::O_ASYNC | libc::O_NONBLOCK;
        sys::fcntl(&socket, libc::F_SETFL, flags.into())?;
        let to = socket.local_addr()?;
        at(Untrusted, || {
            let own = UdpSocket::bind((address(Untrusted), 0))?;
            // the kernel hands it over at once, in an interrupt of its own on top of this call
            allowed(own.send_to(b"x", to)).map(drop)
        })?;
        ensure(soon(|| waits(Signal::SIGIO))?, "the signal does not come")?;
        level::is(User)
    })
}
