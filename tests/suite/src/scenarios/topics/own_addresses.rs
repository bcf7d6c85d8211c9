//! Addresses of networks above the lowest that are this machine's own, and not loopback's: a lower
//! subject sends from none.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, accept, bind,
    connect, listen, setsockopt, socket,
};
use nix::sys::time::TimeVal;

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused_any, same, soon,
};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, spawn, start, step, tell, told};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{Untrusted, User};

const NO: &[Errno] = &[Errno::EPERM, Errno::EIO, Errno::EACCES];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "net-own-address-answers",
        "a low server at such an address answers another machine, which takes it for no network of its own",
        answers,
    ),
    allow(
        "net-own-address-elsewhere",
        "a low subject sends datagrams from such an address to other machines, as whoever asks for a name has connected",
        elsewhere,
    ),
    bypass(
        "net-own-address",
        "a low server listens at this machine's own address in a higher network",
        server,
    ),
    bypass(
        "net-own-address-anywhere",
        "the same, by listening at every address",
        server_anywhere,
    ),
    bypass("net-own-address-v6", "the same of IPv6", server_v6),
    bypass(
        "net-own-address-datagrams",
        "datagrams are sent from this machine's own address in a higher network",
        datagrams,
    ),
    bypass(
        "net-own-address-datagrams-v6",
        "the same of IPv6",
        datagrams_v6,
    ),
    bypass(
        "net-own-address-said",
        "the datagram itself says that it comes from such an address (IP_PKTINFO)",
        said,
    ),
    bypass(
        "net-own-address-said-v6",
        "the same of IPv6 (IPV6_PKTINFO)",
        said_v6,
    ),
    bypass(
        "net-own-address-said-last",
        "the same of IPv4, behind more control messages than are looked at",
        said_last,
    ),
    bypass(
        "net-own-address-fast-open",
        "a low client speaks from such an address in the call that connects (TCP Fast Open)",
        fast_open,
    ),
    bypass(
        "net-own-address-waiting",
        "it speaks from there in a call that waits until it is connected",
        waiting,
    ),
    bypass(
        "net-own-address-nowhere",
        "it connects from there to the address of no host, which leads to its own",
        nowhere,
    ),
];

/// In a network that the policy gives the level `user`.
const USERS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(super) const USERS_V6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1);

/// In networks that no line names.
const OTHERS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const OTHERS_V6: Ipv6Addr = Ipv6Addr::new(0xfd0a, 0, 0, 0, 0, 0, 0, 9);

/// Gives the loopback device an address more; each name of it has one of IPv4's.
fn add(name: &str, address: IpAddr) -> Outcome {
    const SIOCSIFADDR: u64 = 0x8916;
    let mut request = [0u8; 40];
    let family = match address {
        IpAddr::V4(v4) => {
            // struct ifreq: the name, and a sockaddr_in
            request[..name.len()].copy_from_slice(name.as_bytes());
            request[16..18].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            request[20..24].copy_from_slice(&v4.octets());
            AddressFamily::Inet
        }
        IpAddr::V6(v6) => {
            // struct in6_ifreq: the address, the length of its network's, the device: 1 is loopback
            request[..16].copy_from_slice(&v6.octets());
            request[16..20].copy_from_slice(&128u32.to_ne_bytes());
            request[20..24].copy_from_slice(&1u32.to_ne_bytes());
            AddressFamily::Inet6
        }
    };
    let any = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    match sys::ioctl(&any, SIOCSIFADDR, request.as_ptr() as usize) {
        // another scenario has added it
        Ok(_) | Err(Errno::EEXIST) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn stream(at: IpAddr) -> Result<OwnedFd, Errno> {
    let family = match at {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn name(at: IpAddr, port: u16) -> SockaddrStorage {
    SocketAddr::new(at, port).into()
}

/// A low server that says `l` to its clients; it gives a sign when it listens, or cannot.
fn serves(listens: IpAddr, port: u16) -> Outcome {
    let server = stream(listens)?;
    let reuse = 1i32;
    syscall!(
        libc::SYS_setsockopt,
        server.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_REUSEADDR,
        &raw const reuse,
        size_of::<i32>()
    )?;
    let bound = bind(server.as_raw_fd(), &name(listens, port))
        .and_then(|()| listen(&server, Backlog::new(1)?));
    tell("listens")?;
    if let Err(e) = bound {
        return refused_any(&[Errno::EPERM, Errno::EACCES], Err::<(), _>(e));
    }
    let connection = sys::owned(accept(server.as_raw_fd())?)?;
    // where it may send, it keeps the connection until it is killed; else its end tells the client so
    if sys::put_all(&connection, b"l").is_ok() {
        nix::unistd::pause();
    }
    Ok(())
}

/// A client at `user`, which has an address of another network itself, hears nothing low from a `user` one.
fn heard(listens: IpAddr, at_address: IpAddr, from: IpAddr, port: u16) -> Outcome {
    let low = spawn(Untrusted, || serves(listens, port))?;
    told("listens")?;
    let played = at(User, || {
        let client = stream(from)?;
        setsockopt(
            &client,
            ReceiveTimeout,
            &TimeVal::new(PATIENCE.as_secs() as i64, 0),
        )?;
        bind(client.as_raw_fd(), &name(from, 0))?;
        if connect(client.as_raw_fd(), &name(at_address, port)).is_err() {
            return Ok(());
        }
        let heard = sys::get(&client).unwrap_or_default();
        let is = level::by_writing()?;
        ensure(
            heard.first() != Some(&b'l') || is == Untrusted,
            "a low server was heard, and its client still writes at `user`",
        )
    });
    low.kill()?;
    played
}

fn server() -> Outcome {
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    heard(USERS.into(), USERS.into(), OTHERS.into(), 7761)
}

fn server_anywhere() -> Outcome {
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    let anywhere = Ipv4Addr::UNSPECIFIED.into();
    heard(anywhere, USERS.into(), OTHERS.into(), 7762)
}

fn server_v6() -> Outcome {
    add_both_v6()?;
    heard(USERS_V6.into(), USERS_V6.into(), OTHERS_V6.into(), 7763)
}

/// Runs ip(8).
fn ip(words: &str) -> Outcome {
    let status = Command::new("ip").args(words.split(' ')).status()?;
    ensure(status.success(), &format!("ip {words} failed"))
}

fn answers() -> Outcome {
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 77, 1);
    const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
    const PORT: u16 = 7764;
    let _ = Command::new("modprobe").arg("veth").status();
    // another machine, as far as the network goes
    let other = start(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        step()?;
        ip("address add 198.51.100.2/24 dev scn1")?;
        ip("link set scn1 up")?;
        ip("route add 10.9.77.1/32 via 198.51.100.1")?;
        let client = stream(CLIENT.into())?;
        setsockopt(
            &client,
            ReceiveTimeout,
            &TimeVal::new(PATIENCE.as_secs() as i64, 0),
        )?;
        allowed(connect(client.as_raw_fd(), &name(SERVER.into(), PORT)))?;
        same("what is heard", sys::get(&client)?, b"l".to_vec())
    })?;
    other.stands()?;
    let pid = other.pid;
    ip(&format!(
        "link add scn0 type veth peer name scn1 netns {pid}"
    ))?;
    ip("address add 198.51.100.1/24 dev scn0")?;
    ip("address add 10.9.77.1/32 dev scn0")?;
    ip("link set scn0 up")?;
    let low = spawn(Untrusted, || serves(SERVER.into(), PORT))?;
    told("listens")?;
    let played = other.join_after_step();
    low.kill()?;
    // it goes with the other end, some time after that one's namespace
    let _ = ip("link delete scn0");
    played
}

/// From its own address in a higher network nobody lower sends datagrams to another one of this machine.
fn sends_datagrams(from: IpAddr, other: IpAddr) -> Outcome {
    let to = UdpSocket::bind((other, 0))?;
    let address = to.local_addr()?;
    at(Untrusted, || {
        let own = match UdpSocket::bind((from, 0)) {
            Ok(own) => own,
            Err(e) => return refused_any(NO, Err::<(), _>(e)),
        };
        refused_any(NO, own.send_to(b"l", address))?;
        own.connect(address)?;
        refused_any(NO, own.send(b"l"))
    })
}

pub(super) fn add_both_v6() -> Outcome {
    add("", USERS_V6.into())?;
    add("", OTHERS_V6.into())?;
    // an address is not to be bound while it is looked for on the network
    let usable = soon(|| {
        Ok([USERS_V6, OTHERS_V6]
            .iter()
            .all(|at| UdpSocket::bind((*at, 0)).is_ok()))
    })?;
    ensure(usable, "the addresses cannot be used")
}

fn datagrams() -> Outcome {
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    sends_datagrams(USERS.into(), OTHERS.into())
}

fn datagrams_v6() -> Outcome {
    add_both_v6()?;
    sends_datagrams(USERS_V6.into(), OTHERS_V6.into())
}

/// A control message, in words of the kernel's.
fn control(level: i32, kind: i32, data: &[u8]) -> Vec<u64> {
    let head = 16 + data.len() as u64;
    let mut words = vec![head, level as u64 & 0xffff_ffff | (kind as u64) << 32];
    words.extend(data.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(word)
    }));
    words
}

/// Sends a byte that says that it comes from an address, behind so many messages that say nothing.
pub(super) fn send_saying(
    socket: &UdpSocket,
    others: usize,
    from: IpAddr,
    to: SocketAddr,
) -> Result<(), Errno> {
    /// Of no protocol.
    const NOBODYS: i32 = 0x1234;
    let name = SockaddrStorage::from(to);
    let mut byte = *b"l";
    let mut data = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut words = control(NOBODYS, 0, &[]).repeat(others);
    words.extend(match from {
        IpAddr::V4(v4) => {
            // struct in_pktinfo: the device, the address to send from, another
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&v4.octets());
            control(libc::IPPROTO_IP, libc::IP_PKTINFO, &info)
        }
        IpAddr::V6(v6) => {
            // struct in6_pktinfo: the address, the device
            let mut info = [0; 20];
            info[..16].copy_from_slice(&v6.octets());
            control(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info)
        }
    });
    // SAFETY: integers and pointers, all of which may be 0.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = name.as_ptr().cast_mut().cast();
    message.msg_namelen = name.len();
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = words.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(words.as_slice());
    let fd = socket.as_raw_fd();
    syscall!(libc::SYS_sendmsg, fd, &raw const message, 0).map(drop)
}

/// Of a datagram that says whence it comes, a low subject may say an address of the lowest network, and not this one.
fn says(anywhere: IpAddr, from: IpAddr, other: IpAddr) -> Outcome {
    let to = UdpSocket::bind((other, 0))?;
    let address = to.local_addr()?;
    at(Untrusted, || {
        let own = UdpSocket::bind((anywhere, 0))?;
        refused_any(NO, send_saying(&own, 0, from, address))?;
        allowed(send_saying(&own, 0, other, address))
    })
}

fn said() -> Outcome {
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    says(Ipv4Addr::UNSPECIFIED.into(), USERS.into(), OTHERS.into())
}

fn said_v6() -> Outcome {
    add_both_v6()?;
    says(
        Ipv6Addr::UNSPECIFIED.into(),
        USERS_V6.into(),
        OTHERS_V6.into(),
    )
}

/// As many messages as root lets a datagram have, of which the last one says it.
fn said_last() -> Outcome {
    const SYSCTL: &str = "/proc/sys/net/core/optmem_max";
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    let before = fs::read_to_string(SYSCTL)?;
    fs::write(SYSCTL, "4194304")?;
    let played = said_behind(70_000);
    fs::write(SYSCTL, before)?;
    played
}

fn said_behind(others: usize) -> Outcome {
    let to = UdpSocket::bind((OTHERS, 0))?;
    let address = to.local_addr()?;
    at(Untrusted, || {
        let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let sent = send_saying(&own, others, USERS.into(), address);
        // there may be no memory for so many
        refused_any(&[NO, &[Errno::ENOBUFS]].concat(), sent)
    })
}

fn elsewhere() -> Outcome {
    let _ = Command::new("modprobe").arg("dummy").status();
    ip("link add scn5 type dummy")?;
    ip("address add 10.9.78.1/24 dev scn5")?;
    ip("link set scn5 up")?;
    ip("route add 203.0.113.0/24 dev scn5")?;
    let played = at(Untrusted, || {
        let own = UdpSocket::bind("10.9.78.1:0")?;
        allowed(own.send_to(b"l", "203.0.113.7:53"))?;
        own.connect("203.0.113.7:53")?;
        allowed(own.send(b"l")).map(drop)
    });
    ip("link delete scn5")?;
    played
}

/// Another server at an address, which takes so many connections before it accepts any.
fn listener(at: IpAddr, port: u16, backlog: i32) -> Outcome<OwnedFd> {
    let server = stream(at)?;
    bind(server.as_raw_fd(), &name(at, port))?;
    listen(&server, Backlog::new(backlog)?)?;
    Ok(server)
}

/// A low client with the address; none if it may not even have that.
fn client_at(from: IpAddr) -> Outcome<Option<OwnedFd>> {
    let client = stream(from)?;
    match bind(client.as_raw_fd(), &name(from, 0)) {
        Ok(()) => Ok(Some(client)),
        Err(e) => refused_any(NO, Err::<(), _>(e)).map(|()| None),
    }
}

/// Connects and sends a byte, all in one call.
fn sends_at_once(client: &OwnedFd, to: SockaddrStorage) -> Result<(), Errno> {
    syscall!(
        libc::SYS_sendto,
        client.as_raw_fd(),
        b"l".as_ptr(),
        1,
        libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL,
        to.as_ptr(),
        to.len()
    )
    .map(drop)
}

fn fast_open() -> Outcome {
    const PORT: u16 = 7765;
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    let _server = listener(OTHERS.into(), PORT, 8)?;
    at(Untrusted, || {
        for to in [OTHERS, Ipv4Addr::UNSPECIFIED] {
            if let Some(client) = client_at(USERS.into())? {
                refused_any(NO, sends_at_once(&client, name(to.into(), PORT)))?;
            }
        }
        match client_at(OTHERS.into())? {
            Some(client) => allowed(sends_at_once(&client, name(OTHERS.into(), PORT))),
            None => ensure(false, "it may not have an address of its own network"),
        }
    })
}

fn waiting() -> Outcome {
    const PORT: u16 = 7766;
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    let _server = listener(OTHERS.into(), PORT, 1)?;
    at(Untrusted, || {
        // as many as it takes
        let first = [stream(OTHERS.into())?, stream(OTHERS.into())?];
        for client in &first {
            connect(client.as_raw_fd(), &name(OTHERS.into(), PORT))?;
        }
        let Some(client) = client_at(USERS.into())? else {
            return Ok(());
        };
        setsockopt(&client, SendTimeout, &TimeVal::new(1, 0))?;
        sys::fcntl(&client, libc::F_SETFL, libc::O_NONBLOCK.into())?;
        match connect(client.as_raw_fd(), &name(OTHERS.into(), PORT)) {
            Err(Errno::EINPROGRESS) => {}
            Err(e) => return refused_any(NO, Err::<(), _>(e)),
            Ok(()) => return Err(Failed::because("the server is not full")),
        }
        sys::fcntl(&client, libc::F_SETFL, 0)?;
        refused_any(NO, sys::put_all(&client, b"l"))
    })
}

fn nowhere() -> Outcome {
    const PORT: u16 = 7767;
    const ANYWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    add("lo:1", USERS.into())?;
    add("lo:2", OTHERS.into())?;
    let _server = listener(ANYWHERE.into(), PORT, 8)?;
    at(Untrusted, || {
        if let Some(client) = client_at(USERS.into())? {
            let to = name(ANYWHERE.into(), PORT);
            refused_any(NO, connect(client.as_raw_fd(), &to))?;
        }
        let client = stream(OTHERS.into())?;
        bind(client.as_raw_fd(), &name(OTHERS.into(), 0))?;
        allowed(connect(client.as_raw_fd(), &name(ANYWHERE.into(), PORT)))
    })
}
