//! Ways around a check by another door: another call, another address, another
//! holder of the same thing.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::daemon;
use crate::scenarios::level;
use crate::scenarios::net::{address, connect, listener};
use crate::scenarios::place::{self, LOW, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::sys::{self, Map};
use crate::scenarios::uring::Ring;
use crate::sys::{c, syscall};

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "memory-written-by-mapping",
        "memory that a falling child has mapped and its parent reads by a descriptor",
        by_mapping,
    ),
    bypass(
        "uring-hides-descriptor",
        "a revoked descriptor kept in a ring's own table until the guard has gone",
        hidden_in_ring,
    ),
    bypass(
        "net-ignored-name",
        "a connected socket is sent to with another address, which TCP ignores",
        ignored_name,
    ),
    bypass(
        "net-family-none",
        "a datagram to an address of no family, which UDP takes for IPv4's",
        family_none,
    ),
    bypass("net-any-address", "[::] written for ::1", any_address),
    bypass(
        "owner-by-ioctl",
        "a descriptor's owner chosen by FIOSETOWN",
        owner_by_ioctl,
    ),
    bypass(
        "uevent-forged",
        "root speaks to the listeners for devices as the kernel does",
        uevent,
    ),
    bypass(
        "open-tree-attr",
        "a read-only mount made writable by open_tree_attr",
        tree_attr,
    ),
    bypass(
        "host-name",
        "the machine's name, and its terminals hung up",
        host,
    ),
    bypass(
        "revoke-ioctl",
        "blocks moved by an ioctl on a descriptor opened before the fall",
        revoked_ioctl,
    ),
    bypass(
        "memory-read-by-ring",
        "memory that a falling child writes, whose parent has it in a ring's table alone",
        by_ring,
    ),
    bypass(
        "seccomp-listener",
        "a falling child answers its parent's system calls",
        listens,
    ),
    bypass(
        "seccomp-hands-over",
        "a descriptor that a listener hands to a thread in a call for whose end no fall waits",
        handed_at_rest,
    ),
    bypass(
        "terminal-by-signal",
        "a signal for each key that a higher session presses",
        key_signal,
    ),
    bypass(
        "credentials-forged",
        "root sends a message in another process's name",
        forged,
    ),
];

fn by_mapping() -> Outcome {
    start(|| {
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, b"high")?;
        let fd = memory.as_raw_fd();
        let child = start(|| {
            let map = Map::of(&memory, PROT_READ | PROT_WRITE, MAP_SHARED)?;
            syscall!(libc::SYS_close, fd)?;
            // refused, or the parent falls, too
            if lower(Untrusted).is_ok() {
                map.poke(b'l');
            }
            Ok(())
        })?;
        child.join()?;
        let mut byte = [0u8];
        syscall!(libc::SYS_pread64, fd, byte.as_mut_ptr(), 1, 0)?;
        level::is(if byte == *b"l" { Untrusted } else { System })
    })?
    .join()
}

fn hidden_in_ring() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    start(|| {
        let fd = sys::writes(&high)?;
        lower(Untrusted)?;
        refused(Errno::EIO, sys::put(&fd))?;
        let ring = Ring::new(0)?;
        ring.register(&[fd.as_raw_fd()])?;
        drop(fd);
        daemon::past_guard(|| {
            let wrote = ring.write_fixed(0, b"evil");
            ensure(!matches!(wrote, Ok(1..)), "written through the ring")
        })
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

/// A sockaddr_in.
fn ipv4(family: u16, port: u16, ip: [u8; 4]) -> [u8; 16] {
    let mut name = [0u8; 16];
    name[..2].copy_from_slice(&family.to_ne_bytes());
    name[2..4].copy_from_slice(&port.to_be_bytes());
    name[4..8].copy_from_slice(&ip);
    name
}

fn send_to(socket: &impl AsRawFd, name: &[u8]) -> Result<(), Errno> {
    syscall!(
        libc::SYS_sendto,
        socket.as_raw_fd(),
        b"x".as_ptr(),
        1,
        libc::MSG_NOSIGNAL,
        name.as_ptr(),
        name.len()
    )
    .map(drop)
}

fn ignored_name() -> Outcome {
    let (listener, to) = listener(address(System))?;
    let client = start(|| {
        let stream = connect(to)?;
        lower(Untrusted)?;
        refused_any(
            &[Errno::EIO, Errno::EPERM],
            send_to(&stream, &ipv4(2, 9, [8, 8, 8, 8])),
        )?;
        refused(Errno::EIO, sys::put(&stream))
    })?;
    client.join()?;
    drop(listener);
    Ok(())
}

fn family_none() -> Outcome {
    let high = UdpSocket::bind((address(System), 0))?;
    let to = high.local_addr()?;
    let std::net::IpAddr::V4(ip) = to.ip() else {
        return ensure(false, "the network of the system is not IPv4's");
    };
    at(Untrusted, || {
        let own = UdpSocket::bind("0.0.0.0:0")?;
        refused(Errno::EPERM, own.send_to(b"n", to))?;
        refused(
            Errno::EPERM,
            send_to(&own, &ipv4(0, to.port(), ip.octets())),
        )
    })?;
    high.set_nonblocking(true)?;
    refused(Errno::EAGAIN, high.recv(&mut [0; 8]))
}

fn any_address() -> Outcome {
    let user = UdpSocket::bind("[::1]:0")?;
    let to = user.local_addr()?;
    at(Untrusted, || {
        let own = UdpSocket::bind("[::]:0")?;
        refused(Errno::EPERM, own.send_to(b"n", to))?;
        refused(Errno::EPERM, own.send_to(b"n", ("::", to.port())))?;
        refused(Errno::EPERM, own.connect(("::", to.port())))
    })
}

fn owner_by_ioctl() -> Outcome {
    const FIOSETOWN: u64 = 0x8901;
    const SIOCSPGRP: u64 = 0x8902;
    let victim = start(step)?;
    victim.stands()?;
    let pid = victim.pid.as_raw();
    for level in Level::LOWER {
        at(level, || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            for set in [FIOSETOWN, SIOCSPGRP] {
                refused(
                    Errno::EPERM,
                    sys::ioctl(&socket, set, &raw const pid as usize),
                )?;
            }
            Ok(())
        })?;
    }
    victim.kill()
}

fn netlink(protocol: i32) -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_NETLINK,
        libc::SOCK_RAW,
        protocol
    )?)
}

fn uevent() -> Outcome {
    const UEVENTS: i32 = 15;
    const NAME: [u32; 3] = [libc::AF_NETLINK as u32, 0, 0];
    let text = b"add@/devices/forged\0ACTION=add\0DEVPATH=/devices/forged\0SUBSYSTEM=x\0";
    let mut message = Vec::new();
    message.extend(((16 + text.len()) as u32).to_ne_bytes());
    message.extend([0x10, 0, 1, 0]);
    message.extend([0u8; 8]);
    message.extend(text);
    for level in Level::LOWER {
        at(level, || {
            let socket = netlink(UEVENTS)?;
            let sent = syscall!(
                libc::SYS_sendto,
                socket.as_raw_fd(),
                message.as_ptr(),
                message.len(),
                0,
                NAME.as_ptr(),
                12
            );
            refused(Errno::EPERM, sent)
        })?;
    }
    Ok(())
}

fn tree_attr() -> Outcome {
    const OPEN_TREE_ATTR: i64 = 467;
    const READ_ONLY: u64 = 1;
    let dir = place::directory(place::ROOT, "read-only")?;
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let none = None::<&str>;
    mount(
        Some("x"),
        dir.as_str(),
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )?;
    mount(none, dir.as_str(), none, flags, none)?;
    at(Untrusted, || {
        let (path, attributes) = (c(&dir), [0, READ_ONLY, 0, 0]);
        let tried = syscall!(
            OPEN_TREE_ATTR,
            libc::AT_FDCWD,
            path.as_ptr(),
            0,
            attributes.as_ptr(),
            32
        );
        // 6.12 does not have it
        refused_any(&[Errno::EPERM, Errno::ENOSYS], tried)
    })?;
    refused(Errno::EROFS, fs::write(format!("{dir}/file"), "x"))?;
    nix::mount::umount(dir.as_str())?;
    Ok(fs::remove_dir(dir)?)
}

fn host() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let name = c"low";
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_sethostname, name.as_ptr(), 3),
            )?;
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_setdomainname, name.as_ptr(), 3),
            )?;
            refused(Errno::EPERM, syscall!(libc::SYS_vhangup, 0))
        })?;
    }
    Ok(())
}

fn revoked_ioctl() -> Outcome {
    /// EXT4_IOC_MOVE_EXT
    const MOVE_BLOCKS: u64 = 0xc028_660f;
    let high = place::file(SYSTEM, "high")?;
    let low = place::file(LOW, "low")?;
    start(|| {
        let fd = sys::open(&high, OFlag::O_RDWR)?;
        lower(Untrusted)?;
        let donor = sys::both(&low)?;
        let blocks = [donor.as_raw_fd() as u64, 0, 0, 1, 0];
        refused(
            Errno::EPERM,
            sys::ioctl(&fd, MOVE_BLOCKS, blocks.as_ptr() as usize),
        )
    })?
    .join()
}

fn by_ring() -> Outcome {
    start(|| {
        let ring = Ring::new(0)?;
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, b"high")?;
        let (memory_fd, ring_fd) = (memory.as_raw_fd(), ring.fd.as_raw_fd());
        ring.register(&[memory_fd])?;
        let child = start(|| {
            syscall!(libc::SYS_close, ring_fd)?;
            if lower(Untrusted).is_ok() {
                syscall!(libc::SYS_pwrite64, memory_fd, b"l".as_ptr(), 1, 0)?;
            }
            Ok(())
        })?;
        drop(memory);
        child.join()?;
        let mut byte = [0u8];
        ring.read_fixed(0, &mut byte)?;
        level::is(if byte == *b"l" { Untrusted } else { System })
    })?
    .join()
}

/// A listener that answers one call of the calling thread; every other is allowed.
pub(super) fn answers(call: libc::c_long) -> Result<OwnedFd, Errno> {
    const NEW_LISTENER: i64 = 8;
    const SET_FILTER: i64 = 1;
    let filter: [libc::sock_filter; 4] = [
        (0x20, 0, 0, 0),
        (0x15, 0, 1, call as u32),
        (6, 0, 0, 0x7fc0_0000),
        (6, 0, 0, 0x7fff_0000),
    ]
    .map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_ptr().cast_mut(),
    };
    syscall!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
    sys::owned(syscall!(
        libc::SYS_seccomp,
        SET_FILTER,
        NEW_LISTENER,
        &raw const program
    )?)
}

/// What becomes of a descriptor that a listener hands to a thread in this call, which it then answers.
fn handed_in(call: libc::c_long, file: &OwnedFd) -> Outcome<Result<i64, Errno>> {
    const RECEIVE: u64 = 0xc050_2100;
    const ANSWER: u64 = 0xc018_2101;
    const ADD_FD: u64 = 0x4018_2103;
    let (tell, told) = std::sync::mpsc::channel();
    let caller = std::thread::spawn(move || {
        let _ = tell.send(answers(call));
        let _ = syscall!(call);
    });
    let listener = told
        .recv()
        .map_err(|e| Failed::because(format_args!("no listener: {e}")))??;
    let mut call = [0u64; 10];
    sys::ioctl(&listener, RECEIVE, call.as_mut_ptr() as usize)?;
    // of whose call, without flags; the file, and any free number
    let add = [call[0], (file.as_raw_fd() as u64) << 32, 0];
    let added = sys::ioctl(&listener, ADD_FD, add.as_ptr() as usize);
    let answer = [call[0], 0, 0];
    sys::ioctl(&listener, ANSWER, answer.as_ptr() as usize)?;
    let _ = caller.join();
    Ok(added)
}

fn handed_at_rest() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    start(|| {
        let file = sys::both(&high)?;
        refused(Errno::EPERM, handed_in(libc::SYS_flock, &file)?)?;
        allowed(handed_in(libc::SYS_getpriority, &file)?).map(drop)
    })?
    .join()?;
    Ok(fs::remove_file(&high)?)
}

fn listens() -> Outcome {
    start(|| {
        let listener = answers(libc::SYS_getpriority)?;
        let child = start(|| refused(Errno::EACCES, fs::read(place::level_file(Untrusted))))?;
        drop(listener);
        child.join()
    })?
    .join()
}

fn key_signal() -> Outcome {
    use nix::fcntl::{FcntlArg, fcntl};
    const SET_SIGNAL: i64 = 10;
    const FIOASYNC: u64 = 0x5452;
    let master = nix::pty::posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY)?;
    nix::pty::grantpt(&master)?;
    nix::pty::unlockpt(&master)?;
    let name = nix::pty::ptsname_r(&master)?;
    let victim = start(|| {
        nix::unistd::setsid()?;
        let _terminal = sys::both(&name)?;
        step()
    })?;
    victim.stands()?;
    at(Untrusted, || {
        let terminal = sys::open(&name, OFlag::O_RDWR | OFlag::O_NOCTTY)?;
        let fd = terminal.as_raw_fd();
        refused(
            Errno::EPERM,
            syscall!(libc::SYS_fcntl, fd, SET_SIGNAL, libc::SIGKILL),
        )?;
        refused(
            Errno::EPERM,
            fcntl(&terminal, FcntlArg::F_SETFL(OFlag::O_ASYNC)),
        )?;
        refused(
            Errno::EPERM,
            sys::ioctl(&terminal, FIOASYNC, &raw const fd as usize),
        )
    })?;
    victim.kill()
}

fn forged() -> Outcome {
    use nix::sys::socket::{ControlMessage, MsgFlags, UnixCredentials, sendmsg};
    let credentials = libc::ucred {
        pid: 1,
        uid: 0,
        gid: 0,
    };
    for level in Level::LOWER {
        at(level, || {
            let (one, _two) = socketpair(
                AddressFamily::Unix,
                SockType::Datagram,
                None,
                SockFlag::empty(),
            )?;
            let forged = UnixCredentials::from(credentials);
            let sent = sendmsg::<()>(
                one.as_raw_fd(),
                &[std::io::IoSlice::new(b"READY=1")],
                &[ControlMessage::ScmCredentials(&forged)],
                MsgFlags::empty(),
                None,
            );
            refused(Errno::EPERM, sent)
        })?;
    }
    Ok(())
}
