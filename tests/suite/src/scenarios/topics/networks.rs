//! Networks by other ways than a connection of one's own: ends of tunnels, sockets that are handed over or that two have,
//! namespaces, and what the kernel does for a process that only asks it to.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{SockType, SockaddrLike, SockaddrStorage};

use super::inherited::{NO, stays_above};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::net::{address, connect, listener};
use crate::scenarios::place::{self, BIN};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, own_namespaces, start};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, named, receive};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "net-datagrams-own",
        "a socket for datagrams of one's own is connected, and to others, and to nobody any more",
        datagrams_own,
    ),
    allow(
        "net-private-namespace",
        "in a network namespace of the machine's own, as services have one, networks have the levels that they have outside",
        private,
    ),
    allow(
        "net-namespace-loopback",
        "a low subject talks to itself in a network namespace of its own, whatever its loopback's addresses are outside",
        loopback,
    ),
    bypass(
        "net-namespace-named",
        "a network namespace that is one's own has addresses of higher networks",
        namespace,
    ),
    bypass(
        "net-connector",
        "a low subject tells the kernel's connector that it listens no more to processes' ends",
        connector,
    ),
    bypass(
        "net-tunnel",
        "what a network sends is read at the end of a tunnel (/dev/net/tun)",
        tunnel,
    ),
    bypass(
        "net-tunnel-passed",
        "such an end is handed over by a trusted program",
        tunnel_passed,
    ),
    bypass(
        "net-tap-of-device",
        "what a network sends is read at the tap of a macvtap device",
        tap,
    ),
    bypass(
        "net-family-passed",
        "a socket of a family that takes others over is handed over by a trusted program",
        family_passed,
    ),
    bypass(
        "net-sctp-kept",
        "a socket of SCTP is kept over a fall, and connects by an option and by a message",
        sctp,
    ),
    bypass(
        "net-datagrams-disconnected",
        "a child ends the connection of a socket for datagrams that its parent has, too (AF_UNSPEC)",
        disconnected,
    ),
    bypass(
        "net-datagrams-redirected",
        "a child connects such a socket to somebody else",
        redirected,
    ),
];

fn modprobe(module: &str) {
    let _ = Command::new("modprobe").arg(module).status();
}

/// Runs ip(8).
fn ip(words: &str) -> Outcome {
    let status = Command::new("ip").args(words.split(' ')).status()?;
    ensure(status.success(), &format!("ip {words} failed"))
}

fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    let kind = kind | libc::SOCK_CLOEXEC;
    sys::owned(syscall!(libc::SYS_socket, family, kind, protocol)?)
}

/// Ends a socket's connection.
fn disconnect(socket: &UdpSocket) -> Result<(), Errno> {
    let nobody = [0u8; 16];
    let fd = socket.as_raw_fd();
    syscall!(libc::SYS_connect, fd, nobody.as_ptr(), size_of_val(&nobody)).map(drop)
}

fn datagrams_own() -> Outcome {
    at(User, || {
        let (one, two) = (
            UdpSocket::bind((address(User), 0))?,
            UdpSocket::bind((address(User), 0))?,
        );
        let own = UdpSocket::bind("0.0.0.0:0")?;
        for to in [&one, &two] {
            allowed(own.connect(to.local_addr()?))?;
        }
        allowed(disconnect(&own))?;
        allowed(own.connect(one.local_addr()?))?;
        level::is(User)
    })
}

/// A parent with a socket that is connected to `system`; a child falls and does something; its peer
/// then.
fn stays_connected(act: impl FnOnce(&UdpSocket) -> Result<(), Errno>) -> Outcome {
    start(|| {
        let peer = UdpSocket::bind((address(System), 0))?;
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(peer.local_addr()?)?;
        if !stays_above(|| act(&socket))? {
            return Ok(());
        }
        same(
            "whom it is connected to",
            socket.peer_addr().ok(),
            Some(peer.local_addr()?),
        )
    })?
    .join()
}

fn disconnected() -> Outcome {
    stays_connected(disconnect)
}

fn redirected() -> Outcome {
    let other = SocketAddr::new(address(Untrusted), 9);
    stays_connected(|socket| {
        let to = SockaddrStorage::from(other);
        nix::sys::socket::connect(socket.as_raw_fd(), &to)
    })
}

fn private() -> Outcome {
    start(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        ip("link set lo up")?;
        for network in [System, User] {
            let (_listener, to) = listener(address(network))?;
            start(|| {
                allowed(connect(to))?;
                level::is(network)
            })?
            .join()?;
        }
        level::is(System)
    })?
    .join()
}

/// Moves into a network namespace of its own, in which it has all privileges.
fn own_network() -> Outcome {
    own_namespaces(CloneFlags::CLONE_NEWNET)?;
    ip("link set lo up")
}

fn loopback() -> Outcome {
    at(Untrusted, || {
        own_network()?;
        for network in Level::ALL {
            let (listener, to) = listener(address(network))?;
            let mut client = allowed(connect(to))?;
            let (mut server, _) = listener.accept()?;
            allowed(server.write_all(b"n"))?;
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            same("what was received", byte[0], b'n')?;
        }
        Ok(())
    })
}

fn namespace() -> Outcome {
    const USERS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    at(User, || {
        own_network()?;
        ip("address add 10.9.0.1/32 dev lo")?;
        let named: [IpAddr; 3] = [USERS.into(), address(User), Ipv6Addr::LOCALHOST.into()];
        for at in named {
            start(|| {
                let (_listener, to) = listener(at)?;
                if let Err(e) = connect(to) {
                    refused_any(NO, Err::<(), _>(e))?;
                }
                same("the level", level::by_writing()?, Untrusted)
            })?
            .join()?;
        }
        same("the level", level::by_writing()?, User)
    })
}

fn connector() -> Outcome {
    const CONNECTOR: i32 = 11;
    const LISTEN: u32 = 1;
    const IGNORE: u32 = 2;
    // struct nlmsghdr: length, kind (NLMSG_DONE), number, sender; struct cn_msg: CN_IDX_PROC, CN_VAL_PROC, two numbers,
    // the length of what follows
    let tell = |what: u32| {
        let message: Vec<u8> = [40, 3, 0, 0, 1, 1, 0, 0, 4, what]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let socket = socket(libc::AF_NETLINK, libc::SOCK_DGRAM, CONNECTOR)?;
        sys::put_all(&socket, &message)
    };
    for level in Level::LOWER {
        at(level, || refused(Errno::EPERM, tell(IGNORE)))?;
    }
    allowed(tell(LISTEN)).map(drop)
}

const TUNNELS: &str = "/dev/net/tun";

/// Whoever opens it to read has fallen, whether it then may have it or not.
fn opened_by_who_falls(device: &str) -> Outcome {
    for flags in [OFlag::O_RDONLY, OFlag::O_RDWR] {
        start(|| {
            if let Err(e) = sys::open(device, flags) {
                refused(Errno::EPERM, Err::<(), _>(e))?;
            }
            level::is(Untrusted)
        })?
        .join()?;
    }
    start(|| {
        allowed(sys::writes(device))?;
        level::is(System)
    })?
    .join()
}

fn tunnel() -> Outcome {
    modprobe("tun");
    opened_by_who_falls(TUNNELS)
}

fn tap() -> Outcome {
    modprobe("dummy");
    modprobe("macvtap");
    ip("link add scn6 type dummy")?;
    ip("link set scn6 up")?;
    ip("link add link scn6 name scn7 type macvtap")?;
    let number = fs::read_to_string("/sys/class/net/scn7/ifindex")?;
    let played = opened_by_who_falls(&format!("/dev/tap{}", number.trim()));
    // the other goes with it
    ip("link delete scn6")?;
    played
}

/// What a helper of a program that is trusted with the network sends; a receiver of it must fall.
fn passed(words: &[&str], is_there: bool) -> Outcome {
    const MISSING: [i32; 3] = [
        libc::EAFNOSUPPORT,
        libc::EPROTONOSUPPORT,
        libc::ESOCKTNOSUPPORT,
    ];
    start(|| {
        let name = format!("{}-passed", place::scenario());
        let own = named(SockType::Datagram, &abstract_name("passed")?)?;
        let status = Command::new(format!("{BIN}/netd"))
            .args(["--helper", words[0], &name])
            .args(&words[1..])
            .status()?;
        let code = status.code().unwrap_or(-1);
        if !is_there && MISSING.contains(&code) {
            return Ok(());
        }
        same("what the trusted program did", code, 0)?;
        let received = receive(&own)?;
        // it may be refused, by what the path of a device says, too
        let is = level::by_writing()?;
        ensure(
            received.fds.is_empty() || is == Untrusted,
            "it arrived, and who received it still writes at the top",
        )
    })?
    .join()
}

fn tunnel_passed() -> Outcome {
    modprobe("tun");
    passed(&["send-descriptor", TUNNELS], true)
}

fn family_passed() -> Outcome {
    const KCM: i32 = 41;
    const SMC: i32 = 43;
    modprobe("kcm");
    for (family, kind, is_there) in [
        (KCM, libc::SOCK_DGRAM, true),
        (SMC, libc::SOCK_STREAM, false),
        (libc::AF_VSOCK, libc::SOCK_STREAM, false),
    ] {
        let (family, kind) = (family.to_string(), kind.to_string());
        passed(&["send-socket", &family, &kind], is_there)?;
    }
    Ok(())
}

fn sctp() -> Outcome {
    const CONNECTX: i32 = 110;
    modprobe("sctp");
    let to = SockaddrStorage::from(SocketAddr::new(address(Untrusted), 9));
    start(|| {
        let kept = socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)?;
        lower(Untrusted)?;
        let (fd, of) = (kept.as_raw_fd(), libc::IPPROTO_SCTP);
        refused(
            Errno::EPERM,
            syscall!(
                libc::SYS_setsockopt,
                fd,
                of,
                CONNECTX,
                to.as_ptr(),
                to.len()
            ),
        )?;
        refused(
            Errno::EPERM,
            syscall!(
                libc::SYS_sendto,
                fd,
                b"x".as_ptr(),
                1,
                0,
                to.as_ptr(),
                to.len()
            ),
        )
    })?
    .join()
}
