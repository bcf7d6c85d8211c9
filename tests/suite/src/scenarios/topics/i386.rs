//! Calls of 32-bit programs, which any program may make: they have numbers and ways into the kernel of their own, and are
//! judged as those of 64 bits.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::tasks::idle;
use crate::scenarios::check::{Outcome, allowed, refused, refused_any, same};
use crate::scenarios::compat::{Low, call};
use crate::scenarios::ipcs::{Queue, Segment, Semaphores};
use crate::scenarios::level;
use crate::scenarios::net::{address, listener};
use crate::scenarios::place::{self, AREA, LOW, SYSTEM, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "i386-own",
        "each level opens and writes its own files and sets its limits by 32-bit calls",
        own,
    ),
    bypass(
        "i386-files",
        "a higher file is opened and changed by 32-bit calls, a low one is read by them",
        files,
    ),
    bypass(
        "i386-ioctl",
        "a file's flags and generation are changed by ioctls of 32-bit programs",
        ioctls,
    ),
    bypass(
        "i386-sockets",
        "sockets are made and connected by socketcall(2)",
        sockets,
    ),
    bypass(
        "i386-ipc",
        "objects of System V are used by ipc(2)",
        objects,
    ),
    bypass(
        "i386-processes",
        "higher processes and the machine are changed by 32-bit calls",
        processes,
    ),
    bypass(
        "i386-limits",
        "limits of priority are raised by 32-bit calls",
        limits,
    ),
];

const WRITE: u32 = 4;
const OPEN: u32 = 5;
const UNLINK: u32 = 10;
const CHMOD: u32 = 15;
const MOUNT: u32 = 21;
const PTRACE: u32 = 26;
const KILL: u32 = 37;
const IOCTL: u32 = 54;
const SETHOSTNAME: u32 = 74;
const SETRLIMIT: u32 = 75;
const TRUNCATE: u32 = 92;
const SOCKETCALL: u32 = 102;
const IPC: u32 = 117;
const SETXATTR: u32 = 226;
const PRLIMIT64: u32 = 340;
const OPEN_BY_HANDLE_AT: u32 = 342;
const BPF: u32 = 357;
const SOCKET: u32 = 359;

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

/// A descriptor as an argument.
fn of(fd: &impl AsRawFd) -> u32 {
    fd.as_raw_fd() as u32
}

fn open(low: &Low, file: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    sys::owned(call(OPEN, &[low.put_text(file), flags.bits() as u32])?)
}

/// Sets a limit of this process, the hard one too, by the older call or by the newer one.
fn limit(low: &Low, number: u32, resource: u32, to: u32) -> Result<(), Errno> {
    let set = match number {
        SETRLIMIT => call(SETRLIMIT, &[resource, low.put_words(&[to, to])]),
        _ => call(PRLIMIT64, &[0, resource, low.put_words(&[to, 0, to, 0]), 0]),
    };
    set.map(drop)
}

fn own() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "")?;
            let low = Low::new()?;
            let fd = allowed(open(&low, &file, OFlag::O_RDWR))?;
            same(
                "bytes written",
                call(WRITE, &[of(&fd), low.put(b"own"), 3]),
                Ok(3),
            )?;
            same("the content", fs::read_to_string(&file)?.as_str(), "own")?;
            for (number, to) in [(SETRLIMIT, 1 << 29), (PRLIMIT64, 1 << 30)] {
                allowed(limit(&low, number, libc::RLIMIT_MSGQUEUE, to))?;
            }
            level::is(level)
        })?;
    }
    Ok(())
}

fn files() -> Outcome {
    let (high, below) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let handle = sys::handle_of(&high)?;
    for level in Level::LOWER {
        at(level, || {
            let low = Low::new()?;
            for flags in [OFlag::O_WRONLY, OFlag::O_RDWR | OFlag::O_TRUNC] {
                refused(Errno::EPERM, open(&low, &high, flags))?;
            }
            let (name, attribute) = (low.put_text(&high), low.put_text("user.word"));
            refused(Errno::EPERM, call(CHMOD, &[name, 0o777]))?;
            refused(Errno::EPERM, call(TRUNCATE, &[name, 0]))?;
            refused(Errno::EPERM, call(UNLINK, &[name]))?;
            let value = low.put(b"l");
            refused(
                Errno::EPERM,
                call(SETXATTR, &[name, attribute, value, 1, 0]),
            )?;
            // SAFETY: a structure of bytes and numbers.
            let bytes = unsafe {
                std::slice::from_raw_parts((&raw const handle).cast::<u8>(), size_of_val(&handle))
            };
            let root = sys::open("/", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            refused(
                Errno::EPERM,
                call(OPEN_BY_HANDLE_AT, &[of(&root), low.put(bytes), 0]),
            )
        })?;
    }
    same("the content", fs::read_to_string(&high)?.as_str(), "high")?;
    at(User, || {
        drop(allowed(open(&Low::new()?, &below, OFlag::O_RDONLY))?);
        level::is(Untrusted)
    })
}

fn ioctls() -> Outcome {
    const FS_IOC32_SETFLAGS: u32 = 0x4004_6602;
    const FS_IOC32_SETVERSION: u32 = 0x4004_7602;
    const EXT4_IOC32_SETVERSION: u32 = 0x4004_6604;
    const APPEND_ONLY: u32 = 0x20;
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        let own = path(AREA, &format!("own-{}", level.name()));
        at(level, || {
            let low = Low::new()?;
            let fd = sys::reads(&high)?;
            let (flags, generation) = (low.put_words(&[APPEND_ONLY]), low.put_words(&[7]));
            refused(
                Errno::EPERM,
                call(IOCTL, &[of(&fd), FS_IOC32_SETFLAGS, flags]),
            )?;
            fs::write(&own, "")?;
            // of its own files neither: the generation is part of a label's key
            for fd in [fd, sys::reads(&own)?] {
                for command in [FS_IOC32_SETVERSION, EXT4_IOC32_SETVERSION] {
                    refused(Errno::EPERM, call(IOCTL, &[of(&fd), command, generation]))?;
                }
            }
            level::is(level)
        })?;
    }
    Ok(())
}

const STREAM: u32 = libc::SOCK_STREAM as u32;
const INET: u32 = libc::AF_INET as u32;

/// A sockaddr_in.
fn name(at: IpAddr, port: u16) -> Vec<u8> {
    let mut name = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    name.extend(port.to_be_bytes());
    if let IpAddr::V4(v4) = at {
        name.extend(v4.octets());
    }
    name.resize(16, 0);
    name
}

/// socketcall(2): its own arguments lie in memory.
fn socketcall(low: &Low, what: u32, args: &[u32]) -> Result<u32, Errno> {
    call(SOCKETCALL, &[what, low.put_words(args)])
}

fn connect(low: &Low, fd: &OwnedFd, to: &[u8]) -> Result<(), Errno> {
    const CONNECT: u32 = 3;
    let name = low.put(to);
    socketcall(low, CONNECT, &[of(fd), name, to.len() as u32]).map(drop)
}

fn sockets() -> Outcome {
    const MAKE: u32 = 1;
    const SENDTO: u32 = 11;
    let sctp = libc::IPPROTO_SCTP as u32;
    let (_listener, to) = listener(address(System))?;
    let datagrams = UdpSocket::bind((address(System), 0))?;
    let to = name(to.ip(), to.port());
    let to_datagrams = name(address(System), datagrams.local_addr()?.port());
    for level in Level::LOWER {
        at(level, || {
            let low = Low::new()?;
            refused(Errno::EPERM, socketcall(&low, MAKE, &[INET, STREAM, sctp]))?;
            refused(Errno::EPERM, call(SOCKET, &[INET, STREAM, sctp]))?;
            let stream = sys::owned(socketcall(&low, MAKE, &[INET, STREAM, 0])?)?;
            refused(Errno::EPERM, connect(&low, &stream, &to))?;
            let socket: OwnedFd = UdpSocket::bind((address(level), 0))?.into();
            let (word, name) = (low.put(b"l"), low.put(&to_datagrams));
            let len = to_datagrams.len() as u32;
            refused(
                Errno::EPERM,
                socketcall(&low, SENDTO, &[of(&socket), word, 1, 0, name, len]),
            )?;
            level::is(level)
        })?;
    }
    at(User, || {
        let socket: OwnedFd = UdpSocket::bind((address(Untrusted), 0))?.into();
        allowed(connect(&Low::new()?, &socket, &name(address(Untrusted), 9)))?;
        level::is(Untrusted)
    })
}

fn objects() -> Outcome {
    const SEMOP: u32 = 1;
    const MSGSND: u32 = 11;
    const SHMAT: u32 = 21;
    let (segment, queue, semaphores) = (Segment::make(4096)?, Queue::make()?, Semaphores::make()?);
    let numbers = [
        segment.number() as u32,
        queue.number() as u32,
        semaphores.number() as u32,
    ];
    let played = Level::LOWER.into_iter().try_for_each(|level| {
        at(level, || {
            let [segment, queue, semaphores] = numbers;
            let low = Low::new()?;
            // struct sembuf: the first of the set, one more, and not to be waited for
            let step = low.put(&[0, 0, 1, 0, 0, 8, 0, 0]);
            // struct msgbuf: its type, and a byte
            let message = low.put_words(&[1, u32::from(b'l')]);
            let address = low.put_words(&[0]);
            refused_any(NO, call(IPC, &[SEMOP, semaphores, 1, 0, step]))?;
            refused_any(NO, call(IPC, &[MSGSND, queue, 1, 0o4000, message]))?;
            refused_any(NO, call(IPC, &[SHMAT, segment, 0, address, 0]))
        })
    });
    segment.remove()?;
    queue.remove()?;
    semaphores.remove()?;
    played
}

fn processes() -> Outcome {
    const ATTACH: u32 = 16;
    const REMOUNT: u32 = 32;
    let higher = idle(System)?;
    let pid = higher.pid.as_raw() as u32;
    let played = Level::LOWER.into_iter().try_for_each(|level| {
        at(level, || {
            let low = Low::new()?;
            for signal in [libc::SIGTERM, libc::SIGCONT] {
                refused(Errno::EPERM, call(KILL, &[pid, signal as u32]))?;
            }
            refused(Errno::EPERM, call(PTRACE, &[ATTACH, pid, 0, 0]))?;
            let at = low.put_text(place::TMPFS);
            refused(Errno::EPERM, call(MOUNT, &[at, at, 0, REMOUNT, 0]))?;
            refused(Errno::EPERM, call(SETHOSTNAME, &[low.put_text("low"), 3]))?;
            // BPF_MAP_CREATE
            let attributes = low.put(&[0; 128]);
            refused(Errno::EPERM, call(BPF, &[0, attributes, 128]))
        })
    });
    higher.kill()?;
    played
}

fn limits() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let low = Low::new()?;
            for resource in [libc::RLIMIT_NICE, libc::RLIMIT_RTPRIO] {
                for number in [SETRLIMIT, PRLIMIT64] {
                    refused(Errno::EPERM, limit(&low, number, resource, 30))?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
