//! What is changed of an open description by calls that are not fcntl's flags: ioctl, a pipe's size, a weaker lock, a socket's
//! options and end. And what is changed of a file that is open for reading alone: a directory's lock, a delegation, a hint.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, SockaddrStorage, getsockname, sendto,
    socket,
};
use nix::unistd::pipe2;

use super::inherited::{NO, flags, lock_file, stays_above};
use crate::scenarios::check::{Outcome, allowed, ensure, refused_any, same};
use crate::scenarios::net::address;
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Child, Level, at, start, step};
use crate::scenarios::sys;
use crate::scenarios::uring::Ring;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "description-nonblocking-ioctl",
        "a child has the pipe that its parent writes not wait, by ioctl (FIONBIO)",
        nonblocking,
    ),
    bypass(
        "description-async-ioctl",
        "a child has its parent be sent signals of a socket, by ioctl (FIOASYNC)",
        asynchronous,
    ),
    bypass(
        "description-notify",
        "a child asks for signals about changes in a directory that it shares with its parent, and becomes the owner of the description (F_NOTIFY)",
        notified,
    ),
    bypass(
        "description-pipe-size",
        "a child has the pipe that its parent writes hold less",
        pipe_size,
    ),
    bypass(
        "description-lock-weakened",
        "a child makes a lock that its parent has for itself one that others have, too",
        weakened,
    ),
    bypass(
        "lock-exclusive-directory",
        "who may only read a higher directory has it locked for itself (flock)",
        directory_locked,
    ),
    bypass(
        "lease-directory",
        "who may only read a higher directory is asked before anybody changes it (F_SETDELEG)",
        directory_delegated,
    ),
    bypass(
        "file-write-hint",
        "root below the top says how long what is written to a higher file will stay (F_SET_RW_HINT)",
        hinted,
    ),
    bypass(
        "socket-end-shared",
        "a child ends the listener that it shares with its parent (shutdown)",
        ended,
    ),
    bypass(
        "socket-end-by-ring",
        "a child has a ring end its parent's listener, or give its socket an address, and closes it before",
        by_ring,
    ),
    bypass(
        "datagram-begun-shared",
        "a child begins a datagram by its parent's socket (MSG_MORE), or is the first to send by it",
        begun,
    ),
    bypass(
        "socket-option-shared",
        "a child sets how long a socket that it shares with its parent waits (SO_RCVTIMEO)",
        option,
    ),
];

/// A pipe whose reader may fall with its writer.
fn written() -> Outcome<(OwnedFd, Child)> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    let reader = start(|| {
        syscall!(libc::SYS_close, write.as_raw_fd())?;
        step()
    })?;
    reader.stands()?;
    drop(read);
    Ok((write, reader))
}

fn nonblocking() -> Outcome {
    const FIONBIO: u64 = 0x5421;
    let (write, reader) = written()?;
    start(|| {
        let on = 1i32;
        if !stays_above(|| sys::ioctl(&write, FIONBIO, &raw const on as usize).map(drop))? {
            return Ok(());
        }
        let has = flags(&write, OFlag::O_NONBLOCK)?;
        same("whether it blocks", has, OFlag::empty())
    })?
    .join()?;
    reader.kill()
}

fn asynchronous() -> Outcome {
    const FIOASYNC: u64 = 0x5452;
    start(|| {
        let socket: OwnedFd = UdpSocket::bind((address(System), 0))?.into();
        let on = 1i32;
        if !stays_above(|| sys::ioctl(&socket, FIOASYNC, &raw const on as usize).map(drop))? {
            return Ok(());
        }
        let has = flags(&socket, OFlag::O_ASYNC)?;
        same("whether it sends signals", has, OFlag::empty())
    })?
    .join()
}

fn notified() -> Outcome {
    /// DN_CREATE
    const CREATIONS: i64 = 4;
    let dir = place::directory(SYSTEM, "dir")?;
    start(|| {
        let dir = sys::reads(&dir)?;
        let asks = || sys::fcntl(&dir, libc::F_NOTIFY, CREATIONS).map(drop);
        if !stays_above(asks)? {
            return Ok(());
        }
        allowed(asks())?;
        let own = i64::from(std::process::id());
        same(
            "the owner of the description",
            sys::fcntl(&dir, libc::F_GETOWN, 0)?,
            own,
        )
    })?
    .join()
}

fn pipe_size() -> Outcome {
    let (write, reader) = written()?;
    start(|| {
        let before = sys::fcntl(&write, libc::F_GETPIPE_SZ, 0)?;
        let less = sys::PAGE as i64;
        if !stays_above(|| sys::fcntl(&write, libc::F_SETPIPE_SZ, less).map(drop))? {
            return Ok(());
        }
        let is = sys::fcntl(&write, libc::F_GETPIPE_SZ, 0)?;
        same("what the pipe holds", is, before)
    })?
    .join()?;
    reader.kill()
}

fn weakened() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    start(|| {
        let (fd, other) = (sys::both(&file)?, sys::both(&file)?);
        lock_file(&fd, libc::LOCK_EX)?;
        if !stays_above(|| lock_file(&fd, libc::LOCK_SH))? {
            return Ok(());
        }
        let tried = lock_file(&other, libc::LOCK_SH | libc::LOCK_NB);
        same("who takes a lock, too", tried, Err(Errno::EAGAIN))
    })?
    .join()
}

fn directory_locked() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let dir = sys::reads(SYSTEM)?;
            refused_any(NO, lock_file(&dir, libc::LOCK_EX | libc::LOCK_NB))
        })?;
    }
    Ok(())
}

fn directory_delegated() -> Outcome {
    /// F_SETDELEG, since Linux 6.19; its argument is a struct delegation: flags, the kind, padding.
    const SET_DELEGATION: i32 = 1040;
    for level in Level::LOWER {
        at(level, || {
            let dir = sys::reads(SYSTEM)?;
            for kind in [libc::F_RDLCK, libc::F_UNLCK] {
                let delegation = [0u32, kind as u32];
                let asked = &raw const delegation as i64;
                refused_any(NO, sys::fcntl(&dir, SET_DELEGATION, asked))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn hinted() -> Outcome {
    const SET_HINT: i32 = 1036;
    const SHORT: u64 = 2;
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        at(level, || {
            let file = sys::reads(&high)?;
            let hint = SHORT;
            refused_any(NO, sys::fcntl(&file, SET_HINT, &raw const hint as i64))
        })?;
    }
    Ok(())
}

fn ended() -> Outcome {
    start(|| {
        let listener = TcpListener::bind((address(System), 0))?;
        let (fd, to) = (listener.as_raw_fd(), listener.local_addr()?);
        let how = libc::SHUT_RDWR;
        if !stays_above(|| syscall!(libc::SYS_shutdown, fd, how).map(drop))? {
            return Ok(());
        }
        ensure(TcpStream::connect(to).is_ok(), "nobody listens any more")
    })?
    .join()
}

fn by_ring() -> Outcome {
    fn registered(fd: RawFd) -> Result<Ring, Errno> {
        let ring = Ring::new(0)?;
        ring.register(&[fd])?;
        syscall!(libc::SYS_close, fd)?;
        Ok(ring)
    }
    start(|| {
        let listener = TcpListener::bind((address(System), 0))?;
        let (fd, to) = (listener.as_raw_fd(), listener.local_addr()?);
        if !stays_above(|| registered(fd)?.shut_fixed(0))? {
            return Ok(());
        }
        let listens = TcpStream::connect(to).is_ok();
        ensure(listens, "nobody listens any more")?;
        let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
        let fresh = socket(family, SockType::Stream, flags, None)?;
        let (fd, name) = (fresh.as_raw_fd(), SockaddrIn::new(127, 0, 0, 1, 0));
        if !stays_above(|| registered(fd)?.bind_fixed(0, &name))? {
            return Ok(());
        }
        let has: SockaddrIn = getsockname(fd)?;
        same("its port", has.port(), 0)
    })?
    .join()
}

fn begun() -> Outcome {
    let send = |fd: RawFd, bytes: &[u8], to: SocketAddr, flags: MsgFlags| {
        sendto(fd, bytes, &SockaddrStorage::from(to), flags).map(drop)
    };
    let receiver = |level| -> Outcome<(UdpSocket, SocketAddr)> {
        let socket = UdpSocket::bind((address(level), 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        let name = socket.local_addr()?;
        Ok((socket, name))
    };
    let receive = |socket: &UdpSocket| -> Outcome<Vec<u8>> {
        let mut bytes = [0u8; 16];
        let n = socket.recv(&mut bytes)?;
        Ok(bytes[..n].to_vec())
    };
    let (more, whole) = (
        MsgFlags::from_bits_retain(libc::MSG_MORE),
        MsgFlags::empty(),
    );
    start(|| {
        let ((own, to), (_other, elsewhere)) = (receiver(System)?, receiver(Untrusted)?);
        let socket = UdpSocket::bind((address(Untrusted), 0))?;
        let fd = socket.as_raw_fd();
        if !stays_above(|| send(fd, b"forged", elsewhere, more))? {
            return Ok(());
        }
        send(fd, b"own", to, whole)?;
        same("what arrives", receive(&own)?, b"own".to_vec())
    })?
    .join()?;
    start(|| {
        let (_other, elsewhere) = receiver(Untrusted)?;
        let fresh = datagrams()?;
        let fd = fresh.as_raw_fd();
        if !stays_above(|| send(fd, b"x", elsewhere, whole))? {
            return Ok(());
        }
        let has: SockaddrIn = getsockname(fd)?;
        same("its port", has.port(), 0)
    })?
    .join()?;
    // a socket of one's own
    at(Untrusted, || {
        let (own, to) = receiver(Untrusted)?;
        let socket = datagrams()?;
        allowed(send(socket.as_raw_fd(), b"be", to, more))?;
        allowed(send(socket.as_raw_fd(), b"gun", to, whole))?;
        same("what arrives", receive(&own)?, b"begun".to_vec())
    })
}

fn datagrams() -> Result<OwnedFd, Errno> {
    let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
    socket(family, SockType::Datagram, flags, None)
}

fn option() -> Outcome {
    start(|| {
        let socket = UdpSocket::bind((address(System), 0))?;
        let fd = socket.as_raw_fd();
        let above = stays_above(|| {
            let moment = [0i64, 1];
            let (of, what) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
            syscall!(
                libc::SYS_setsockopt,
                fd,
                of,
                what,
                moment.as_ptr(),
                size_of_val(&moment)
            )
            .map(drop)
        })?;
        if !above {
            return Ok(());
        }
        let waits: Option<Duration> = socket.read_timeout()?;
        same("how long it waits", waits, None)
    })?
    .join()
}
