//! Operations of unix sockets: played under the profiles whose names begin with `unix`, with two processes that
//! others belong to, one that nothing confines (`free`) and one under the profile `unix-server` (`server`).

use std::fs;
use std::io::{self, Read, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::thread;

use crate::profile_ops::ops::{Op, ops};
use crate::profile_ops::tree::TREE;
use crate::sys;

/// Where the paths of those processes' sockets are.
const SOCKETS: &str = "/srv/ops/sock";

fn check(ret: impl Into<i64>) -> io::Result<i32> {
    sys::answer(ret.into()).map(|done| done as i32)
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the call made it for us alone.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A name as it is written in rules: `@…` is abstract, nothing is for the kernel to choose, the rest a path.
fn address(name: &str) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    let text = name.replacen('@', "\0", 1);
    for (to, from) in address.sun_path.iter_mut().zip(text.bytes()) {
        *to = from as libc::c_char;
    }
    let end = if name.starts_with('/') { 1 } else { 0 };
    (address, (2 + text.len() + end) as libc::socklen_t)
}

fn socket(kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) }).map(owned)
}

fn pair(kind: i32) -> io::Result<[OwnedFd; 2]> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) })?;
    Ok(fds.map(owned))
}

fn bind(fd: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, len) = address(name);
    // SAFETY: an address and its length.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) }).map(drop)
}

fn connect(fd: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, len) = address(name);
    // SAFETY: an address and its length.
    check(unsafe { libc::connect(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) }).map(drop)
}

fn listen(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd.as_raw_fd(), 7) }).map(drop)
}

fn accept(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: no address is asked for.
    check(unsafe { libc::accept(fd.as_raw_fd(), ptr::null_mut(), ptr::null_mut()) }).map(owned)
}

fn bound(kind: i32, name: &str) -> io::Result<OwnedFd> {
    let fd = socket(kind)?;
    bind(&fd, name)?;
    Ok(fd)
}

fn listening(kind: i32, name: &str) -> io::Result<OwnedFd> {
    let fd = bound(kind, name)?;
    listen(&fd)?;
    Ok(fd)
}

fn connected(kind: i32, name: &str) -> io::Result<OwnedFd> {
    let fd = socket(kind)?;
    connect(&fd, name)?;
    Ok(fd)
}

fn send(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: one byte is read.
    check(unsafe { libc::send(fd.as_raw_fd(), c"x".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) } as i64)
        .map(drop)
}

fn write(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: one byte is read.
    check(unsafe { libc::write(fd.as_raw_fd(), c"x".as_ptr().cast(), 1) } as i64).map(drop)
}

fn send_to(fd: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, len) = address(name);
    // SAFETY: one byte is read; an address and its length.
    check(unsafe {
        let to = ptr::from_ref(&address).cast();
        libc::sendto(fd.as_raw_fd(), c"x".as_ptr().cast(), 1, 0, to, len)
    } as i64)
    .map(drop)
}

/// Waits for a message, and takes it.
fn receive(fd: &OwnedFd) -> io::Result<()> {
    let mut wanted = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry.
    if check(unsafe { libc::poll(&raw mut wanted, 1, 3000) })? == 0 {
        return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
    }
    let mut byte = 0u8;
    // SAFETY: room for one byte.
    check(unsafe { libc::recv(fd.as_raw_fd(), ptr::from_mut(&mut byte).cast(), 1, 0) } as i64)
        .map(drop)
}

fn own_name(fd: &OwnedFd) -> io::Result<()> {
    let (mut address, mut len) = address("/");
    // SAFETY: room for a short address.
    check(unsafe {
        libc::getsockname(
            fd.as_raw_fd(),
            ptr::from_mut(&mut address).cast(),
            &raw mut len,
        )
    })
    .map(drop)
}

fn other_name(fd: &OwnedFd) -> io::Result<()> {
    let (mut address, mut len) = address("/");
    // SAFETY: room for a short address.
    check(unsafe {
        libc::getpeername(
            fd.as_raw_fd(),
            ptr::from_mut(&mut address).cast(),
            &raw mut len,
        )
    })
    .map(drop)
}

fn see_option(fd: &OwnedFd) -> io::Result<()> {
    let (mut value, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: room for a number.
    check(unsafe {
        let value = ptr::from_mut(&mut value).cast();
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            value,
            &raw mut len,
        )
    })
    .map(drop)
}

fn set_option(fd: &OwnedFd, option: i32) -> io::Result<()> {
    let (value, len) = (1i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: a number.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            ptr::from_ref(&value).cast(),
            len,
        )
    })
    .map(drop)
}

fn shut_down(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) }).map(drop)
}

fn in_tree(name: &str) -> String {
    format!("{TREE}/{name}")
}

/// The name of a socket of one of the two processes.
fn of(who: &str, what: &str) -> String {
    match what.strip_prefix('/') {
        Some(what) => format!("{SOCKETS}/{who}-{what}"),
        None => format!("@ops-{who}-{what}"),
    }
}

/// A message with a descriptor.
fn pass(to: RawFd, fd: RawFd) -> io::Result<()> {
    with_descriptor(fd, |message| {
        // SAFETY: a whole message.
        check(unsafe { libc::sendmsg(to, message, libc::MSG_NOSIGNAL) } as i64).map(drop)
    })
}

/// Calls with a message of one byte, and room for a descriptor, which is `fd`.
fn with_descriptor(
    fd: RawFd,
    call: impl FnOnce(&mut libc::msghdr) -> io::Result<()>,
) -> io::Result<()> {
    let (mut byte, mut control) = ([b'x'], [0u64; 3]);
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: zeros are a valid message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: lengths alone, and the one header that there is room for.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
    }
    call(&mut message)
}

/// Is sent a descriptor by one of the two processes: an error if it does not come along.
fn be_sent(who: &str, what: &str) -> io::Result<()> {
    let from = connected(libc::SOCK_STREAM, &of(who, what))?;
    with_descriptor(-1, |message| {
        // SAFETY: a whole message.
        check(unsafe { libc::recvmsg(from.as_raw_fd(), message, 0) } as i64)?;
        match message.msg_flags & libc::MSG_CTRUNC {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EACCES)),
        }
    })
}

/// What a process serves: connections, which it answers with a byte, others by which it hands on a descriptor, and
/// datagrams, which it answers.
pub fn serve(who: &str) -> io::Result<()> {
    let mut served = Vec::new();
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        for name in [format!("{kind}"), format!("/{kind}")] {
            let fd = listening(kind, &of(who, &name))?;
            served.push(thread::spawn(move || {
                while let Ok(connection) = accept(&fd) {
                    let _ = send(&connection);
                    // it ends when the other one does
                    thread::spawn(move || fs::File::from(connection).read_to_end(&mut Vec::new()));
                }
            }));
        }
    }
    let pairs = [pair(libc::SOCK_STREAM)?, pair(libc::SOCK_DGRAM)?];
    for (name, fd) in ["pair", "datagrams"].into_iter().zip(pairs) {
        let from = listening(libc::SOCK_STREAM, &of(who, name))?;
        served.push(thread::spawn(move || {
            while let Ok(connection) = accept(&from) {
                let _ = pass(connection.as_raw_fd(), fd[0].as_raw_fd());
            }
        }));
    }
    let inet = std::net::UdpSocket::bind("127.0.0.1:0");
    let from = listening(libc::SOCK_STREAM, &of(who, "inet"))?;
    served.push(thread::spawn(move || {
        while let (Ok(connection), Ok(fd)) = (accept(&from), &inet) {
            let _ = pass(connection.as_raw_fd(), fd.as_raw_fd());
        }
    }));
    for name in ["2", "/2"] {
        let fd = bound(libc::SOCK_DGRAM, &of(who, name))?;
        served.push(thread::spawn(move || answer(&fd)));
    }
    println!("ready");
    io::stdout().flush()?;
    for thread in served {
        let _ = thread.join();
    }
    Ok(())
}

fn answer(fd: &OwnedFd) {
    loop {
        let mut byte = 0u8;
        // SAFETY: zeros are a valid address.
        let mut from: libc::sockaddr_un = unsafe { zeroed() };
        let mut len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: room for a byte, and for any address.
        let got = unsafe {
            let (byte, from) = (
                ptr::from_mut(&mut byte).cast(),
                ptr::from_mut(&mut from).cast(),
            );
            libc::recvfrom(fd.as_raw_fd(), byte, 1, 0, from, &raw mut len)
        };
        if got < 0 {
            return;
        }
        // SAFETY: one byte is read; the address that was written.
        unsafe {
            let from = ptr::from_ref(&from).cast();
            libc::sendto(
                fd.as_raw_fd(),
                c"x".as_ptr().cast(),
                1,
                libc::MSG_DONTWAIT,
                from,
                len,
            );
        }
    }
}

/// Makes the directory that those processes have paths in.
pub fn directory() -> io::Result<()> {
    fs::create_dir(SOCKETS)?;
    fs::set_permissions(SOCKETS, std::os::unix::fs::PermissionsExt::from_mode(0o777))
}

fn talk(one: &OwnedFd, two: &OwnedFd) -> io::Result<()> {
    send(one)?;
    receive(two)?;
    send(two)?;
    receive(one)
}

/// Connects to what it listens at itself, from a name if any is given.
fn to_itself(kind: i32, name: &str, from: Option<&str>) -> io::Result<[OwnedFd; 2]> {
    let fd = listening(kind, name)?;
    let to = socket(kind)?;
    if let Some(from) = from {
        bind(&to, from)?;
    }
    connect(&to, name)?;
    Ok([accept(&fd)?, to])
}

const STREAM: i32 = libc::SOCK_STREAM;
const DGRAM: i32 = libc::SOCK_DGRAM;
const SEQ: i32 = libc::SOCK_SEQPACKET;

/// All of them.
pub const UNIX: &[Op] = ops![
    "a stream" => socket(STREAM).map(drop),
    "a dgram" => socket(DGRAM).map(drop),
    "a seqpacket" => socket(SEQ).map(drop),
    "a raw one" => socket(libc::SOCK_RAW).map(drop),
    "a pair of streams" => pair(STREAM).map(drop),
    "a pair of dgrams" => pair(DGRAM).map(drop),
    "a pair of seqpackets" => pair(SEQ).map(drop),
    "bind a stream to @ops-a" => bound(STREAM, "@ops-a").map(drop),
    "bind a stream to @ops-b" => bound(STREAM, "@ops-b").map(drop),
    "bind a stream to a name with a NUL" => bound(STREAM, "@ops-a\0b").map(drop),
    "bind a stream to @ops-a and a NUL" => bound(STREAM, "@ops-a\0").map(drop),
    "bind a stream to @" => bound(STREAM, "@").map(drop),
    "bind a stream to any name" => bound(STREAM, "").map(drop),
    "bind a stream to a path" => bound(STREAM, &in_tree("socket")).map(drop),
    "bind a stream to a path of secret" => bound(STREAM, &in_tree("secret/socket")).map(drop),
    "bind a dgram to @ops-a" => bound(DGRAM, "@ops-a").map(drop),
    "bind a dgram to @ops-b" => bound(DGRAM, "@ops-b").map(drop),
    "bind a dgram to any name" => bound(DGRAM, "").map(drop),
    "bind a seqpacket to @ops-a" => bound(SEQ, "@ops-a").map(drop),
    "bind a seqpacket to a long name" => bound(SEQ, &format!("@{}", "ops-".repeat(26))).map(drop),
    "name of a stream" => own_name(&socket(STREAM)?),
    "name of a stream at @ops-a" => own_name(&bound(STREAM, "@ops-a")?),
    "name of a stream at a path" => own_name(&bound(STREAM, &in_tree("socket"))?),
    "name of a dgram at any name" => own_name(&bound(DGRAM, "")?),
    "name of the other of a pair" => other_name(&pair(STREAM)?[0]),
    "option of a stream" => see_option(&socket(STREAM)?),
    "option of a stream at @ops-a" => see_option(&bound(STREAM, "@ops-a")?),
    "option of a stream at a path" => see_option(&bound(STREAM, &in_tree("socket"))?),
    "option of a dgram" => see_option(&socket(DGRAM)?),
    "option of one of a pair" => see_option(&pair(SEQ)?[0]),
    "set an option of a stream" => set_option(&socket(STREAM)?, libc::SO_SNDBUF),
    "set an option of a stream at @ops-a" => set_option(&bound(STREAM, "@ops-a")?, libc::SO_SNDBUF),
    "set an option of a stream at a path" => set_option(&bound(STREAM, &in_tree("socket"))?, libc::SO_SNDBUF),
    "set an option of a dgram" => set_option(&socket(DGRAM)?, libc::SO_SNDBUF),
    "shut a pair down" => shut_down(&pair(STREAM)?[0]),
    "shut a connection to its own path down" => {
        shut_down(&to_itself(STREAM, &in_tree("socket"), None)?[1])
    },
    "shut an accepted connection at its own path down" => {
        shut_down(&to_itself(STREAM, &in_tree("socket"), None)?[0])
    },
    "shut a connection to free down" => shut_down(&connected(STREAM, &of("free", "1"))?),
    "listen at @ops-a" => listening(STREAM, "@ops-a").map(drop),
    "listen at @ops-b" => listening(STREAM, "@ops-b").map(drop),
    "listen at any name" => listening(STREAM, "").map(drop),
    "listen at a path" => listening(STREAM, &in_tree("socket")).map(drop),
    "listen at a path that was removed" => {
        let fd = bound(STREAM, &in_tree("socket"))?;
        fs::remove_file(in_tree("socket"))?;
        listen(&fd)
    },
    "listen at @ops-a for seqpackets" => listening(SEQ, "@ops-a").map(drop),
    "connect to itself at @ops-a" => to_itself(STREAM, "@ops-a", None).map(drop),
    "connect to itself at @ops-b" => to_itself(STREAM, "@ops-b", None).map(drop),
    "connect to itself at @ops-a from @ops-b" => to_itself(STREAM, "@ops-a", Some("@ops-b")).map(drop),
    "connect to itself at @ops-a from a path" => {
        to_itself(STREAM, "@ops-a", Some(&in_tree("socket"))).map(drop)
    },
    "connect to itself at a path" => to_itself(STREAM, &in_tree("socket"), None).map(drop),
    "connect to itself at a path from @ops-a" => {
        to_itself(STREAM, &in_tree("socket"), Some("@ops-a")).map(drop)
    },
    "connect to itself at @ops-a for seqpackets" => to_itself(SEQ, "@ops-a", None).map(drop),
    "connect to itself, and talk" => {
        let ends = to_itself(STREAM, "@ops-a", None)?;
        talk(&ends[0], &ends[1])
    },
    "connect to itself, and see the names" => {
        let ends = to_itself(STREAM, "@ops-a", None)?;
        own_name(&ends[0])?;
        other_name(&ends[0])?;
        own_name(&ends[1])?;
        other_name(&ends[1])
    },
    "connect to free" => connected(STREAM, &of("free", "1")).map(drop),
    "connect to free, and be answered" => receive(&connected(STREAM, &of("free", "1"))?),
    "connect to free from @ops-a" => {
        let fd = bound(STREAM, "@ops-a")?;
        connect(&fd, &of("free", "1"))
    },
    "connect to free by its path" => connected(STREAM, &of("free", "/1")).map(drop),
    "connect to free for seqpackets" => connected(SEQ, &of("free", "5")).map(drop),
    "connect to free for seqpackets by its path" => connected(SEQ, &of("free", "/5")).map(drop),
    "name of free" => other_name(&connected(STREAM, &of("free", "1"))?),
    "name of free at its path" => other_name(&connected(STREAM, &of("free", "/1"))?),
    "connect to server" => connected(STREAM, &of("server", "1")).map(drop),
    "connect to server, and be answered" => receive(&connected(STREAM, &of("server", "1"))?),
    "connect to server from @ops-a" => {
        let fd = bound(STREAM, "@ops-a")?;
        connect(&fd, &of("server", "1"))
    },
    "connect to server by its path" => connected(STREAM, &of("server", "/1")).map(drop),
    "connect to server for seqpackets" => connected(SEQ, &of("server", "5")).map(drop),
    "connect to what is not there" => connected(STREAM, "@ops-nowhere").map(drop),
    "talk over a pair of streams" => {
        let ends = pair(STREAM)?;
        talk(&ends[0], &ends[1])
    },
    "talk over a pair of dgrams" => {
        let ends = pair(DGRAM)?;
        talk(&ends[0], &ends[1])
    },
    "talk over a pair of seqpackets" => {
        let ends = pair(SEQ)?;
        talk(&ends[0], &ends[1])
    },
    "talk over a pair of dgrams twice" => {
        let ends = pair(DGRAM)?;
        talk(&ends[0], &ends[1])?;
        talk(&ends[0], &ends[1])
    },
    "write to a pair of dgrams" => write(&pair(DGRAM)?[0]),
    "write to free" => write(&connected(STREAM, &of("free", "1"))?),
    "write to server" => write(&connected(STREAM, &of("server", "1"))?),
    "write to itself at a path" => write(&to_itself(STREAM, &in_tree("socket"), None)?[1]),
    "send to itself at @ops-a" => {
        let to = bound(DGRAM, "@ops-a")?;
        send_to(&socket(DGRAM)?, "@ops-a")?;
        receive(&to)
    },
    "send to itself at @ops-b" => {
        let to = bound(DGRAM, "@ops-b")?;
        send_to(&socket(DGRAM)?, "@ops-b")?;
        receive(&to)
    },
    "send to itself at @ops-a, then at @ops-b" => {
        let (to, other) = (bound(DGRAM, "@ops-a")?, bound(DGRAM, "@ops-b")?);
        let from = socket(DGRAM)?;
        send_to(&from, "@ops-a")?;
        receive(&to)?;
        send_to(&from, "@ops-b")?;
        receive(&other)
    },
    "send to itself at @ops-a, then from @ops-b" => {
        let to = bound(DGRAM, "@ops-a")?;
        let from = socket(DGRAM)?;
        send_to(&from, "@ops-a")?;
        receive(&to)?;
        bind(&from, "@ops-b")?;
        send_to(&from, "@ops-a")
    },
    "send to itself from any name" => {
        let to = bound(DGRAM, "@ops-a")?;
        let from = socket(DGRAM)?;
        set_option(&from, libc::SO_PASSCRED)?;
        send_to(&from, "@ops-a")?;
        receive(&to)
    },
    "send to itself at a path" => {
        let to = bound(DGRAM, &in_tree("socket"))?;
        send_to(&socket(DGRAM)?, &in_tree("socket"))?;
        receive(&to)
    },
    "send to itself at a path from a path" => {
        let to = bound(DGRAM, &in_tree("socket"))?;
        send_to(&bound(DGRAM, &in_tree("dir/socket"))?, &in_tree("socket"))?;
        receive(&to)
    },
    "send to itself at @ops-a from a path" => {
        let to = bound(DGRAM, "@ops-a")?;
        send_to(&bound(DGRAM, &in_tree("socket"))?, "@ops-a")?;
        receive(&to)
    },
    "send to itself at a path that was removed" => {
        let to = bound(DGRAM, &in_tree("socket"))?;
        let from = connected(DGRAM, &in_tree("socket"))?;
        fs::remove_file(in_tree("socket"))?;
        send(&from)?;
        receive(&to)
    },
    "connect a dgram to itself, and send" => {
        let to = bound(DGRAM, "@ops-a")?;
        let from = connected(DGRAM, "@ops-a")?;
        send(&from)?;
        receive(&to)
    },
    "send to free" => send_to(&socket(DGRAM)?, &of("free", "2")),
    "send to free by its path" => send_to(&socket(DGRAM)?, &of("free", "/2")),
    "send to free, and be answered" => {
        let fd = bound(DGRAM, "@ops-a")?;
        send_to(&fd, &of("free", "2"))?;
        receive(&fd)
    },
    "connect a dgram to free, and send" => send(&connected(DGRAM, &of("free", "2"))?),
    "send to server" => send_to(&socket(DGRAM)?, &of("server", "2")),
    "send to server by its path" => send_to(&socket(DGRAM)?, &of("server", "/2")),
    "send to server, and be answered" => {
        let fd = bound(DGRAM, "@ops-a")?;
        send_to(&fd, &of("server", "2"))?;
        receive(&fd)
    },
    "send to server by a path, and be answered" => {
        let fd = bound(DGRAM, &in_tree("socket"))?;
        send_to(&fd, &of("server", "2"))?;
        receive(&fd)
    },
    "connect a dgram to server, and send twice" => {
        let fd = connected(DGRAM, &of("server", "2"))?;
        send(&fd)?;
        send(&fd)
    },
    "be sent a pair's end by free" => be_sent("free", "pair"),
    "be sent a pair of dgrams' end by free" => be_sent("free", "datagrams"),
    "be sent a pair's end by server" => be_sent("server", "pair"),
    "be sent a pair of dgrams' end by server" => be_sent("server", "datagrams"),
    "be sent an inet socket by server" => be_sent("server", "inet"),
];

/// What AppArmor asks about at the first write(2), though not at send(2).
pub const PAIRS: &[Op] = ops!["write to a pair of streams" => write(&pair(STREAM)?[0])];
