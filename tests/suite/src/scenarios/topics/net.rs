//! The network: what comes from it has its level.

use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::SockaddrStorage;

use crate::scenarios::check::{Outcome, PATIENCE, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::net::{address, connect, listener};
use crate::scenarios::place::{self, BIN, LOW, SYSTEM};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Child, Level, at, spawn, start};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

const INET: &str = "inet, inet6";
const OTHER: &str = "other socket families";

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "net-trusted",
        "a network that the policy names leaves the level",
        trusted,
    )
    .of(INET),
    allow(
        "net-trusted-udp",
        "datagrams of a network that the policy names",
        trusted_udp,
    )
    .of(INET),
    allow(
        "net-sending-is-free",
        "sending to the lowest network",
        sending,
    )
    .of(INET),
    allow(
        "net-nonetdemote",
        "a nonetdemote program talks to any network",
        nonetdemote,
    )
    .of(INET),
    allow(
        "net-netlink",
        "netlink sockets are not observations",
        netlink,
    )
    .of(OTHER),
    deny(
        "net-connect",
        "connecting lowers to the network's level, IPv4 and IPv6",
        connecting,
    )
    .of(INET),
    deny("net-accept", "so does accepting", accepting).of(INET),
    deny("net-receive", "and receiving datagrams", receiving).of(INET),
    deny(
        "net-send-up",
        "nothing is sent from below to a network above the lowest",
        send_up,
    )
    .of(INET),
    deny(
        "net-nonetdemote-files",
        "a nonetdemote program falls by files",
        nonetdemote_files,
    ),
    deny(
        "net-raw",
        "raw and packet sockets lower who makes them, and are refused below the networks that have a line",
        raw,
    )
    .of(OTHER),
    deny(
        "net-sctp",
        "sockets of SCTP, which connect and send unasked, are the top level's",
        sctp,
    )
    .of(OTHER),
    bypass(
        "net-mapped-address",
        "an untrusted address written as ::ffff:127.0.0.1",
        mapped,
    ),
    bypass(
        "net-fast-open",
        "a connection by sendto(MSG_FASTOPEN), read by splice",
        fast_open,
    ),
    bypass(
        "net-splice",
        "what was accepted is read by splice, which no hook sees",
        splice,
    ),
    bypass(
        "net-accepted-by-child",
        "a connection accepted by a child and handed up",
        handed_up,
    ),
    bypass(
        "net-send-after-demotion",
        "a connection to a higher network kept over a demotion",
        send_after,
    ),
    bypass(
        "net-peek-and-errors",
        "MSG_PEEK, recvmmsg and the error queue",
        other_receives,
    ),
    bypass(
        "net-received-at-once",
        "messages received by one call, of which the first alone is asked about",
        received_at_once,
    ),
    bypass(
        "net-sent-at-once",
        "messages sent by one call, of which the first to each name alone is asked about",
        sent_at_once,
    ),
];

/// A child that accepts one connection, sends a byte and waits for the other's end.
fn server(at: IpAddr) -> Outcome<(Child, SocketAddr)> {
    let (listener, to) = listener(at)?;
    let child = start(|| {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(b"n")?;
        let _ = stream.read(&mut [0]);
        Ok(())
    })?;
    Ok((child, to))
}

fn one_byte(stream: &mut impl Read) -> Outcome {
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    same("what was received", byte[0], b'n')
}

fn trusted() -> Outcome {
    let (server, to) = server(address(System))?;
    let mut stream = connect(to)?;
    one_byte(&mut stream)?;
    stream.write_all(b"x")?;
    level::is(System)?;
    drop(stream);
    server.join()?;
    at(User, || {
        let (server, to) = self::server(address(User))?;
        one_byte(&mut connect(to)?)?;
        level::is(User)?;
        server.join()
    })
}

fn trusted_udp() -> Outcome {
    for connected in [true, false] {
        at(System, || {
            let (one, two) = udp_pair(address(System))?;
            if connected {
                two.connect(one.local_addr()?)?;
            }
            one.send_to(b"n", two.local_addr()?)?;
            two.recv(&mut [0; 8])?;
            level::is(System)
        })?;
    }
    Ok(())
}

fn udp_pair(at: IpAddr) -> Outcome<(UdpSocket, UdpSocket)> {
    let pair = (UdpSocket::bind((at, 0))?, UdpSocket::bind((at, 0))?);
    pair.1.set_read_timeout(Some(PATIENCE))?;
    Ok(pair)
}

fn sending() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let (one, two) = udp_pair(address(Untrusted))?;
            one.send_to(b"n", two.local_addr()?)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn nonetdemote() -> Outcome {
    let (server, to) = server(address(Untrusted))?;
    let high = place::file(SYSTEM, "high")?;
    let status = Command::new(format!("{BIN}/netd"))
        .args(["--helper", "net-write", &to.to_string(), &high])
        .status()?;
    same("its status", status.code(), Some(0))?;
    server.join()
}

fn netlink() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let fd = socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)?;
            // a dump of the links: RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP
            let mut ask = vec![0u8; 32];
            ask[0] = 32;
            ask[4] = 18;
            ask[6..8].copy_from_slice(&0x301u16.to_ne_bytes());
            sys::put_all(&fd, &ask)?;
            ensure(!sys::get(&fd)?.is_empty(), "no answer")?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    sys::owned(crate::sys::syscall!(
        libc::SYS_socket,
        family,
        kind | libc::SOCK_CLOEXEC,
        protocol
    )?)
}

fn connecting() -> Outcome {
    let v6: IpAddr = Ipv6Addr::LOCALHOST.into();
    for (at, to) in [
        (address(Untrusted), Untrusted),
        (address(User), User),
        (v6, User),
    ] {
        let (server, address) = server(at)?;
        start(|| {
            let mut stream = allowed(connect(address))?;
            level::is(to)?;
            one_byte(&mut stream)
        })?
        .join()?;
        // the server fell with its accept; it ends by itself
        server.join()?;
    }
    let udp = start(|| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect("127.0.0.1:9")?;
        level::is(Untrusted)
    })?;
    udp.join()?;
    level::is(System)
}

fn accepting() -> Outcome {
    for (at, level) in [(address(Untrusted), Untrusted), (address(User), User)] {
        let (listener, to) = listener(at)?;
        let client = spawn(level, || {
            drop(connect(to)?);
            Ok(())
        })?;
        start(|| {
            let (_stream, _) = listener.accept()?;
            level::is(level)
        })?
        .join()?;
        client.status()?;
    }
    level::is(System)
}

fn receiving() -> Outcome {
    let receiver = UdpSocket::bind("0.0.0.0:0")?;
    let port = receiver.local_addr()?.port();
    let sender = UdpSocket::bind((address(Untrusted), 0))?;
    sender.send_to(b"n", (address(Untrusted), port))?;
    start(|| {
        receiver.recv(&mut [0; 8])?;
        level::is(Untrusted)
    })?
    .join()?;
    level::is(System)
}

fn send_up() -> Outcome {
    let (_listener, to) = listener(address(System))?;
    let datagrams = UdpSocket::bind((address(System), 0))?;
    let to_datagrams = datagrams.local_addr()?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, connect(to))?;
            let socket = UdpSocket::bind((address(level), 0))?;
            refused(Errno::EPERM, socket.send_to(b"n", to_datagrams))?;
            refused(Errno::EPERM, socket.connect(to_datagrams))?;
            level::is(level)
        })?;
    }
    at(Untrusted, || {
        let (_listener, to) = listener(address(User))?;
        refused(Errno::EPERM, connect(to))
    })
}

fn nonetdemote_files() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    let status = Command::new(format!("{BIN}/netd"))
        .args(["--helper", "read-write", &low, &high])
        .status()?;
    same("its errno", status.code(), Some(libc::EPERM))
}

fn raw() -> Outcome {
    let sockets = [
        (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6),
        (libc::AF_PACKET, libc::SOCK_RAW, 0),
        (libc::AF_PACKET, libc::SOCK_DGRAM, 0),
    ];
    for level in Level::ALL {
        for (family, kind, protocol) in sockets {
            at(level, || {
                // packet sockets may not be there at all
                refused_any(
                    &[Errno::EPERM, Errno::EAFNOSUPPORT],
                    socket(family, kind, protocol),
                )?;
                level::is(Untrusted)
            })?;
        }
    }
    // what needs no capability is made, where the kernel has it, and the network's lowest level is its maker's
    start(|| {
        if let Err(e) = socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) {
            refused(Errno::EAFNOSUPPORT, Err::<(), _>(e))?;
        }
        level::is(Untrusted)
    })?
    .join()?;
    level::is(System)
}

fn sctp() -> Outcome {
    let make = |family, kind| socket(family, kind, libc::IPPROTO_SCTP);
    let kinds = [
        (libc::AF_INET, libc::SOCK_STREAM),
        (libc::AF_INET, libc::SOCK_SEQPACKET),
        (libc::AF_INET6, libc::SOCK_STREAM),
    ];
    for level in Level::LOWER {
        at(level, || {
            for (family, kind) in kinds {
                refused(Errno::EPERM, make(family, kind))?;
            }
            level::is(level)
        })?;
    }
    for (family, kind) in kinds {
        if let Err(e) = make(family, kind) {
            // where the kernel has it not
            refused_any(
                &[
                    Errno::EPROTONOSUPPORT,
                    Errno::ESOCKTNOSUPPORT,
                    Errno::EAFNOSUPPORT,
                ],
                Err::<(), _>(e),
            )?;
        }
    }
    level::is(System)
}

fn mapped() -> Outcome {
    let (server, to) = server(address(Untrusted))?;
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    start(|| {
        one_byte(&mut allowed(connect(SocketAddr::new(
            mapped.into(),
            to.port(),
        )))?)?;
        level::is(Untrusted)
    })?
    .join()?;
    server.join()
}

/// Moves what a socket has received into a pipe, and reads it there.
fn spliced(socket: &impl AsRawFd) -> Outcome<Vec<u8>> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    crate::sys::syscall!(
        libc::SYS_splice,
        socket.as_raw_fd(),
        0,
        write.as_raw_fd(),
        0,
        16,
        0
    )?;
    Ok(sys::get(&read)?)
}

fn fast_open() -> Outcome {
    let (server, to) = server(address(Untrusted))?;
    start(|| {
        let fd = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let mut name = [0u8; 16];
        name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        name[2..4].copy_from_slice(&to.port().to_be_bytes());
        name[4..8].copy_from_slice(&Ipv4Addr::LOCALHOST.octets());
        let sent = crate::sys::syscall!(
            libc::SYS_sendto,
            fd.as_raw_fd(),
            b"x".as_ptr(),
            1,
            libc::MSG_FASTOPEN,
            name.as_ptr(),
            name.len(),
        );
        match sent {
            Ok(_) => {
                same("what was received", spliced(&fd)?, b"n".to_vec())?;
                level::is(Untrusted)
            }
            Err(e) => refused_any(
                &[Errno::EPERM, Errno::EACCES, Errno::EAGAIN],
                Err::<(), _>(e),
            ),
        }
    })?
    .join()?;
    server.status()?;
    Ok(())
}

fn splice() -> Outcome {
    let (listener, to) = listener(address(Untrusted))?;
    let client = spawn(Untrusted, || {
        connect(to)?.write_all(b"n")?;
        Ok(())
    })?;
    start(|| {
        let (stream, _) = listener.accept()?;
        same("what was received", spliced(&stream)?, b"n".to_vec())?;
        level::is(Untrusted)
    })?
    .join()?;
    client.join()
}

fn handed_up() -> Outcome {
    // the child falls when it accepts; so does a process that takes the connection from it
    let (listener, to) = listener(address(Untrusted))?;
    let client = spawn(Untrusted, || {
        connect(to)?.write_all(b"n")?;
        Ok(())
    })?;
    let acceptor = start(|| {
        let (stream, _) = listener.accept()?;
        sys::keep_as(&stream, 100)?;
        crate::scenarios::subject::step()
    })?;
    acceptor.stands()?;
    at(User, || {
        let process = sys::pidfd_open(acceptor.pid.as_raw())?;
        match sys::pidfd_getfd(&process, 100) {
            Ok(fd) => {
                same("what was received", spliced(&fd)?, b"n".to_vec())?;
                level::is(Untrusted)
            }
            Err(e) => refused_any(
                &[Errno::EPERM, Errno::EACCES, Errno::EAGAIN],
                Err::<(), _>(e),
            ),
        }
    })?;
    acceptor.kill()?;
    client.join()
}

fn send_after() -> Outcome {
    let (listener, to) = listener(address(System))?;
    let low = place::file(LOW, "low")?;
    let client = start(|| {
        let stream = connect(to)?;
        let datagrams = UdpSocket::bind((address(System), 0))?;
        datagrams.connect(to)?;
        if std::fs::read(&low).is_err() {
            return level::is(System);
        }
        level::is(Untrusted)?;
        refused_any(&[Errno::EPERM, Errno::EIO], sys::put(&stream))?;
        refused_any(&[Errno::EPERM, Errno::EIO], datagrams.send(b"x"))
    })?;
    client.join()?;
    let (stream, _) = listener.accept()?;
    let mut stream = ManuallyDrop::new(stream);
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut got = [0u8; 1];
    ensure(!matches!(stream.read(&mut got), Ok(1)), "a byte arrived")
}

fn other_receives() -> Outcome {
    for flags in [libc::MSG_PEEK, 0] {
        let (one, two) = udp_pair(address(Untrusted))?;
        one.send_to(b"n", two.local_addr()?)?;
        start(|| {
            let mut byte = [0u8; 8];
            let vec = libc::iovec {
                iov_base: byte.as_mut_ptr().cast(),
                iov_len: 8,
            };
            let mut message = [0u64; 8];
            message[2] = &raw const vec as u64;
            message[3] = 1;
            crate::sys::syscall!(
                libc::SYS_recvmmsg,
                two.as_raw_fd(),
                message.as_mut_ptr(),
                1,
                flags,
                0
            )?;
            level::is(Untrusted)
        })?
        .join()?;
    }
    Ok(())
}

fn received_at_once() -> Outcome {
    let two = UdpSocket::bind("0.0.0.0:0")?;
    let port = two.local_addr()?.port();
    for level in [System, Untrusted] {
        let one = UdpSocket::bind((address(level), 0))?;
        one.send_to(b"n", (address(level), port))?;
    }
    start(|| {
        let mut byte = 0u8;
        let mut vec = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        // SAFETY: integers and pointers, all of which may be 0.
        let mut messages: [libc::mmsghdr; 2] = unsafe { std::mem::zeroed() };
        for message in &mut messages {
            message.msg_hdr.msg_iov = &raw mut vec;
            message.msg_hdr.msg_iovlen = 1;
        }
        let (fd, to) = (two.as_raw_fd(), messages.as_mut_ptr());
        let came = crate::sys::syscall!(libc::SYS_recvmmsg, fd, to, 2, 0, 0)?;
        same("how many came", came, 2)?;
        level::is(Untrusted)
    })?
    .join()
}

fn sent_at_once() -> Outcome {
    let own = UdpSocket::bind((address(Untrusted), 0))?.local_addr()?;
    let high = UdpSocket::bind((address(System), 0))?;
    high.set_nonblocking(true)?;
    let to = [own, own, high.local_addr()?].map(SockaddrStorage::from);
    at(Untrusted, || {
        let socket = UdpSocket::bind((address(Untrusted), 0))?;
        same("how many went", sys::send_at_once(&socket, &to, None)?, 2)
    })?;
    ensure(high.recv(&mut [0]).is_err(), "it came up")
}
