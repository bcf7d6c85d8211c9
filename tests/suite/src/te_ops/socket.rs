//! Sockets.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::te_ops::capability;
use crate::te_ops::op::Ops;
use crate::te_ops::peers::{SERVED, accept, giving, send_fd, server, take_fd, unix_server};
use crate::te_ops::sys::{at, fd, past, so, sys};

/// A port that the policy has a type for.
const PORT: u16 = 4001;

pub fn inet(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as _,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: 0x0100_007f,
        },
        sin_zero: [0; 8],
    }
}

fn inet6(port: u16) -> libc::sockaddr_in6 {
    // SAFETY: zeroes are an address.
    let mut address: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    address.sin6_family = libc::AF_INET6 as _;
    address.sin6_port = port.to_be();
    address.sin6_addr.s6_addr[15] = 1;
    address
}

pub fn netlink(groups: u32) -> libc::sockaddr_nl {
    // SAFETY: zeroes are an address.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as _;
    address.nl_groups = groups;
    address
}

/// A Unix socket's address: a path, or if it begins with @ a name without a file.
fn unix(name: &str) -> (libc::sockaddr_un, u32) {
    // SAFETY: zeroes are an address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    for (to, from) in address.sun_path.iter_mut().zip(name.bytes()) {
        *to = if from == b'@' { 0 } else { from as _ };
    }
    (address, 2 + name.len() as u32)
}

pub fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    sys!(libc::socket(family, kind, protocol)).map(fd)
}

fn connect_in(socket: &OwnedFd, port: u16) -> io::Result<()> {
    let address = inet(port);
    sys!(libc::connect(
        socket.as_raw_fd(),
        (&raw const address).cast(),
        16
    ))
    .map(drop)
}

/// A connection to a port.
pub fn connected(port: u16) -> io::Result<()> {
    connect_in(&socket(libc::AF_INET, libc::SOCK_STREAM, 0)?, port)
}

pub fn bind_un(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, len) = unix(name);
    sys!(libc::bind(
        socket.as_raw_fd(),
        (&raw const address).cast(),
        len
    ))
    .map(drop)
}

fn connect_un(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, len) = unix(name);
    sys!(libc::connect(
        socket.as_raw_fd(),
        (&raw const address).cast(),
        len
    ))
    .map(drop)
}

fn pair(kind: i32) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    sys!(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
    Ok((fd(ends[0].into()), fd(ends[1].into())))
}

fn option(socket: &OwnedFd, set: bool) -> io::Result<()> {
    let (mut value, mut len) = (4096, 4);
    let (to, at) = (socket.as_raw_fd(), (&raw mut value).cast());
    let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
    match set {
        true => sys!(libc::setsockopt(to, level, name, at, 4)),
        false => sys!(libc::getsockopt(to, level, name, at, &raw mut len)),
    }
    .map(drop)
}

/// What can be asked of any socket, whatever comes of it beyond the decision.
type Does = fn(&OwnedFd) -> io::Result<()>;

const ON_ANY: &[(&str, Does)] = &[
    ("getsockname", |s| {
        let mut name = [0u64; 16];
        let mut len = 128;
        past(sys!(libc::getsockname(
            s.as_raw_fd(),
            name.as_mut_ptr().cast(),
            &raw mut len
        )))
    }),
    ("getpeername", |s| {
        let mut name = [0u64; 16];
        let mut len = 128;
        past(sys!(libc::getpeername(
            s.as_raw_fd(),
            name.as_mut_ptr().cast(),
            &raw mut len
        )))
    }),
    ("getsockopt", |s| option(s, false)),
    ("setsockopt", |s| option(s, true)),
    ("shutdown", |s| {
        past(sys!(libc::shutdown(s.as_raw_fd(), libc::SHUT_RDWR)))
    }),
    ("listen", |s| past(sys!(libc::listen(s.as_raw_fd(), 1)))),
    ("accept", |s| {
        sys!(libc::fcntl(s.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))?;
        past(accept(s).map(|_| 0))
    }),
    ("send", |s| {
        past(sys!(libc::send(
            s.as_raw_fd(),
            c"x".as_ptr().cast(),
            1,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT
        )))
    }),
    ("receive", |s| {
        let mut byte = 0u8;
        past(sys!(libc::recv(
            s.as_raw_fd(),
            (&raw mut byte).cast(),
            1,
            libc::MSG_DONTWAIT
        )))
    }),
    ("ioctl", |s| {
        let mut value = 0u64;
        past(sys!(libc::ioctl(
            s.as_raw_fd(),
            libc::FIONREAD,
            &raw mut value
        )))?;
        past(sys!(libc::ioctl(s.as_raw_fd(), 0x89f0, &raw mut value)))
    }),
    ("fstat", |s| {
        // SAFETY: zeroes are a status.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        sys!(libc::fstat(s.as_raw_fd(), &raw mut status)).map(drop)
    }),
    ("fchown", |s| {
        sys!(libc::fchown(s.as_raw_fd(), 1000, 1000)).map(drop)
    }),
    ("lock", |s| {
        past(sys!(libc::flock(
            s.as_raw_fd(),
            libc::LOCK_EX | libc::LOCK_NB
        )))
    }),
];

const FAMILIES: &[(&str, i32)] = &[
    ("inet", 2),
    ("ax25", 3),
    ("ipx", 4),
    ("appletalk", 5),
    ("netrom", 6),
    ("atmpvc", 8),
    ("x25", 9),
    ("inet6", 10),
    ("rose", 11),
    ("decnet", 12),
    ("key", 15),
    ("packet", 17),
    ("atmsvc", 20),
    ("rds", 21),
    ("irda", 23),
    ("pppox", 24),
    ("llc", 26),
    ("infiniband", 27),
    ("mpls", 28),
    ("can", 29),
    ("tipc", 30),
    ("bluetooth", 31),
    ("iucv", 32),
    ("rxrpc", 33),
    ("isdn", 34),
    ("phonet", 35),
    ("ieee802154", 36),
    ("caif", 37),
    ("alg", 38),
    ("nfc", 39),
    ("vsock", 40),
    ("kcm", 41),
    ("qipcrtr", 42),
    ("smc", 43),
    ("xdp", 44),
    ("mctp", 45),
];

const NETLINKS: &[(&str, i32)] = &[
    ("route", 0),
    ("usersock", 2),
    ("firewall", 3),
    ("sock_diag", 4),
    ("nflog", 5),
    ("xfrm", 6),
    ("selinux", 7),
    ("iscsi", 8),
    ("audit", 9),
    ("fib_lookup", 10),
    ("connector", 11),
    ("netfilter", 12),
    ("ip6_fw", 13),
    ("dnrtmsg", 14),
    ("kobject_uevent", 15),
    ("generic", 16),
    ("scsitransport", 18),
    ("ecryptfs", 19),
    ("rdma", 20),
    ("crypto", 21),
    ("smc", 22),
];

/// Sockets of which everything is asked.
const WHOLE: &[(&str, i32, i32, i32)] = &[
    ("tcp", libc::AF_INET, libc::SOCK_STREAM, 0),
    ("tcp of IPv6", libc::AF_INET6, libc::SOCK_STREAM, 0),
    ("udp", libc::AF_INET, libc::SOCK_DGRAM, 0),
    ("raw", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
    ("ping", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
    ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0),
    ("unix stream", libc::AF_UNIX, libc::SOCK_STREAM, 0),
    ("unix datagram", libc::AF_UNIX, libc::SOCK_DGRAM, 0),
    ("unix seqpacket", libc::AF_UNIX, libc::SOCK_SEQPACKET, 0),
    ("netlink route", libc::AF_NETLINK, libc::SOCK_RAW, 0),
    ("netlink audit", libc::AF_NETLINK, libc::SOCK_RAW, 9),
    ("netlink generic", libc::AF_NETLINK, libc::SOCK_RAW, 16),
    ("netlink uevent", libc::AF_NETLINK, libc::SOCK_RAW, 15),
];

/// A netlink message of a kind, with an acknowledgement; the error in that.
fn ask(protocol: i32, kind: u16, body: &[u32]) -> io::Result<()> {
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
    let len = 16 + 4 * body.len() as u32;
    // NLM_F_REQUEST | NLM_F_ACK
    let words: Vec<u32> = [len, u32::from(kind) | 5 << 16, 1, 0]
        .iter()
        .chain(body)
        .copied()
        .collect();
    sys!(libc::send(
        socket.as_raw_fd(),
        words.as_ptr().cast(),
        len as usize,
        0
    ))?;
    let mut answer = [0i32; 2048];
    // what is no error comes first
    for _ in 0..8 {
        sys!(libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            8192,
            libc::MSG_DONTWAIT
        ))
        .or_else(|e| {
            if e.kind() == io::ErrorKind::WouldBlock {
                Ok(0)
            } else {
                Err(e)
            }
        })?;
        if answer[1] & 0xffff == 2 {
            break;
        }
    }
    if answer[1] & 0xffff == 2 && answer[4] < 0 {
        return past(Err(io::Error::from_raw_os_error(-answer[4])));
    }
    Ok(())
}

pub fn add(ops: &mut Ops) {
    for &(name, family) in FAMILIES {
        for (kind, number) in [("stream", 1), ("datagram", 2), ("raw", 3)] {
            if number == 3 || matches!(family, 2 | 10 | 40 | 31 | 43) {
                ops.plain(format!("socket of {name}, {kind}"), move || {
                    past(
                        socket(
                            family,
                            number,
                            if family <= 10 && number == 3 { 1 } else { 0 },
                        )
                        .map(|_| 0),
                    )
                });
            }
        }
    }
    for (name, family, kind, protocol) in [
        ("dccp", 2, 6, 33),
        ("sctp", 2, 5, 132),
        ("sctp stream", 2, 1, 132),
        ("mptcp", 2, 1, 262),
        ("ping of IPv6", 10, 2, 58),
        ("udplite", 2, 2, 136),
        ("xdp", 44, 3, 0),
        ("can datagram", 29, 2, 1),
    ] {
        ops.plain(format!("socket of {name}"), move || {
            past(socket(family, kind, protocol).map(|_| 0))
        });
    }
    for &(name, protocol) in NETLINKS {
        ops.plain(format!("socket of netlink {name}"), move || {
            past(socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol).map(|_| 0))
        });
        ops.plain(format!("bind, netlink {name}"), move || {
            let socket = match socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol) {
                Ok(socket) => socket,
                Err(e) => return past(Err(e)),
            };
            let address = netlink(0);
            past(sys!(libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                12
            )))
        });
    }
    for &(name, family, kind, protocol) in WHOLE {
        ops.plain(format!("create, {name}"), move || {
            socket(family, kind, protocol).map(drop)
        });
        for (what, does) in ON_ANY {
            ops.plain(format!("{what}, {name}"), move || {
                does(&socket(family, kind, protocol)?)
            });
        }
    }
    for (name, kind) in [("tcp", libc::SOCK_STREAM), ("udp", libc::SOCK_DGRAM)] {
        ops.plain(format!("bind, {name}"), move || {
            capability::bind(libc::AF_INET, kind, PORT).map(drop)
        });
        ops.plain(format!("bind to no port, {name}"), move || {
            capability::bind(libc::AF_INET, kind, 0).map(drop)
        });
        ops.plain(format!("bind, {name} of IPv6"), move || {
            let socket = socket(libc::AF_INET6, kind, 0)?;
            let address = inet6(PORT);
            let len = size_of_val(&address) as u32;
            past(sys!(libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                len
            )))
        });
        ops.plain(format!("bind to another type of port, {name}"), move || {
            capability::bind(libc::AF_INET, kind, 5001).map(drop)
        });
    }
    ops.with("connect, tcp", server, |()| {
        connect_in(&socket(libc::AF_INET, libc::SOCK_STREAM, 0)?, SERVED)
    });
    ops.with("connect and receive, tcp", server, |()| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        connect_in(&socket, SERVED)?;
        take_fd(&socket).map(drop)
    });
    ops.with("send with the connection, tcp", server, |()| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let address = inet(SERVED);
        past(sys!(libc::sendto(
            socket.as_raw_fd(),
            c"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            (&raw const address).cast(),
            16
        )))
    });
    ops.plain("connect, tcp, to nobody", || {
        past(connect_in(&socket(libc::AF_INET, libc::SOCK_STREAM, 0)?, SERVED).map(|()| 0))
    });
    ops.plain("connect, udp", || {
        connect_in(&socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?, SERVED)
    });
    ops.plain("send to, udp", || {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let address = inet(SERVED);
        sys!(libc::sendto(
            socket.as_raw_fd(),
            c"x".as_ptr().cast(),
            1,
            0,
            (&raw const address).cast(),
            16
        ))
        .map(drop)
    });
    ops.plain("accept from oneself, tcp", || {
        let listener = fd(capability::bind(libc::AF_INET, libc::SOCK_STREAM, PORT)?);
        sys!(libc::listen(listener.as_raw_fd(), 1))?;
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        connect_in(&socket, PORT)?;
        accept(&listener).map(drop)
    });
    ops.with("connect, unix", unix_server("s"), |()| {
        connect_un(&socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?, &at("s"))
    });
    ops.with("connect, unix, without a file", unix_server("@ops"), |()| {
        connect_un(&socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?, "@ops")
    });
    ops.with("connect and receive, unix", unix_server("s"), |()| {
        let socket = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
        connect_un(&socket, &at("s"))?;
        take_fd(&socket).map(drop)
    });
    for (name, flags) in [("read", libc::O_RDONLY), ("write", libc::O_WRONLY)] {
        ops.with(
            format!("take a descriptor to {name}"),
            move || {
                crate::te_ops::file::make()?;
                giving("s", Some(crate::te_ops::sys::open(&at("f"), flags)?.into()))
            },
            |()| {
                let socket = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
                connect_un(&socket, &at("s"))?;
                so(take_fd(&socket)?)
            },
        );
    }
    ops.plain("bind, unix", || {
        bind_un(&socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?, &at("new"))
    })
    .labels("new");
    ops.plain("bind, unix, without a file", || {
        bind_un(&socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, "@new")
    });
    let datagrams = || {
        let server = socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
        bind_un(&server, &at("s"))?;
        Ok(server)
    };
    ops.with("connect, unix datagrams", datagrams, |()| {
        connect_un(&socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, &at("s"))
    });
    ops.with("send to, unix datagrams", datagrams, |()| {
        let socket = socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?;
        let (address, len) = unix(&at("s"));
        sys!(libc::sendto(
            socket.as_raw_fd(),
            c"x".as_ptr().cast(),
            1,
            0,
            (&raw const address).cast(),
            len
        ))
        .map(drop)
    });
    for (name, kind) in [
        ("streams", libc::SOCK_STREAM),
        ("datagrams", libc::SOCK_DGRAM),
    ] {
        ops.plain(format!("a pair of {name}"), move || pair(kind).map(drop));
        ops.plain(format!("send and receive by a pair of {name}"), move || {
            let (one, other) = pair(kind)?;
            send_fd(&one, None)?;
            take_fd(&other).map(drop)
        });
        ops.plain(format!("read and write a pair of {name}"), move || {
            let (one, other) = pair(kind)?;
            let mut byte = 0u8;
            sys!(libc::write(one.as_raw_fd(), c"x".as_ptr().cast(), 1))?;
            sys!(libc::read(other.as_raw_fd(), (&raw mut byte).cast(), 1)).map(drop)
        });
    }
    ops.plain("pass a descriptor to oneself", || {
        let (one, other) = pair(libc::SOCK_STREAM)?;
        let (from, _to) = io::pipe()?;
        send_fd(&one, Some(&from.into()))?;
        so(take_fd(&other)?)
    });
    ops.plain("who is at the other end", || {
        let (one, _other) = pair(libc::SOCK_STREAM)?;
        let mut label = [0u8; 256];
        let mut len = 256;
        sys!(libc::getsockopt(
            one.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERSEC,
            label.as_mut_ptr().cast(),
            &raw mut len
        ))
        .map(drop)
    })
    .own();
    for (name, protocol, kind, body) in [
        ("route RTM_GETLINK", 0, 18, &[0u32; 4][..]),
        ("route RTM_NEWLINK", 0, 16, &[0, 1, 0, 0]),
        ("route RTM_GETROUTE", 0, 26, &[2, 0, 0]),
        ("route RTM_DELROUTE", 0, 25, &[2, 0, 0]),
        ("route RTM_GETNEIGH", 0, 30, &[0, 0, 0]),
        (
            "sock_diag",
            4,
            20,
            &[0x0000_0602, 0xfff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        ("xfrm XFRM_MSG_GETSA", 6, 0x12, &[0; 6]),
        ("xfrm XFRM_MSG_FLUSHSA", 6, 0x1c, &[0; 2]),
        ("audit AUDIT_GET", 9, 1000, &[]),
        ("audit AUDIT_SET", 9, 1001, &[0; 10]),
        ("audit AUDIT_LIST_RULES", 9, 1013, &[]),
        ("audit AUDIT_USER", 9, 1005, &[0x73706f]),
        ("audit AUDIT_TTY_GET", 9, 1016, &[]),
        ("audit, unknown", 9, 1999, &[]),
        ("route, unknown", 0, 999, &[0; 4]),
        ("generic", 16, 16, &[0x0103]),
    ] {
        let body = body.to_vec();
        ops.plain(format!("ask netlink: {name}"), move || {
            ask(protocol, kind, &body)
        });
    }
    ops.plain("a device of one's own, tun", || {
        past(crate::te_ops::sys::open("/dev/net/tun", libc::O_RDWR).map(|_| 0))
    });
}
