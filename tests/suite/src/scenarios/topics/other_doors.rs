//! Objects that two levels hold and no rule sees: neutral handles with memory behind
//! them, sockets of other families, names of what has none.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Command;

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, clone};
use nix::sys::wait::waitpid;
use nix::unistd::pipe2;

use super::overlays::Overlay;
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, BIN, LOW, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::sys::{self, Map};
use crate::sys::{c, syscall};

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "overlay-exec-low-layer",
        "a low program is executed through an overlay",
        overlay_exec,
    ),
    bypass(
        "revoke-ioctl-donor",
        "blocks of a low file are swapped into a file opened before the fall",
        donor,
    ),
    bypass(
        "revoke-ioctl-move-range",
        "the same by F2FS's ioctl, which moves them into the file that is its argument",
        move_range,
    ),
    bypass(
        "proc-mem-of-vfork",
        "/proc/PID/mem of a child that shares its parent's memory, until it executes",
        vfork_mem,
    ),
    bypass(
        "memfd-truncate-by-path",
        "a higher subject's memory is cut to nothing by its name in /proc",
        truncated,
    ),
    bypass(
        "mmap-neutral-handle",
        "the page of a performance counter, mapped by a child that fell",
        counter,
    ),
    bypass(
        "netlink-echo",
        "the kernel's answer to a child that fell is read by its parent",
        echo,
    ),
    bypass(
        "key-session-to-parent",
        "a child that fell replaces its parent's session keyring",
        || session_to_parent(libc::SYS_keyctl),
    ),
    bypass(
        "key-session-to-parent-x32",
        "the same by a call of x32, which has another number",
        || session_to_parent(libc::SYS_keyctl | X32_CALL),
    ),
    bypass(
        "key-session-to-equal",
        "the same of an equal, in whose place another may be the parent by the time that it is done",
        session_to_equal,
    ),
    bypass(
        "key-invalidate",
        "root below the top invalidates a key made at the top",
        invalidate,
    ),
    bypass(
        "filesystem-uuid-ioctl",
        "root below the top changes a filesystem by an ioctl on a directory",
        uuid,
    ),
    bypass(
        "xattr-of-root",
        "root below the top leaves a trusted.* attribute, which root at the top reads",
        trusted_xattr,
    ),
    bypass(
        "splice-lent",
        "a page of memory lent to a pipe by splice is changed after the fall",
        splice_lent,
    )
    .gap("vmsplice"),
    bypass(
        "packet-socket-passed",
        "a packet socket made by a trusted program is passed to one that is not",
        packet_passed,
    ),
];

/// A subject that has got what begins with `l`, which a low subject wrote, must not be at the top.
fn not_above(byte: u8) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        byte != b'l' || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

fn overlay_exec() -> Outcome {
    let layer = place::directory(LOW, "layer")?;
    let program = format!("{layer}/program");
    at(Untrusted, || {
        fs::copy(format!("{BIN}/scenarios"), &program)?;
        Ok(())
    })?;
    let dir = place::directory(SYSTEM, "merged")?;
    let _overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    let status = Command::new(format!("{dir}/program"))
        .args(["--helper", "level"])
        .status()?;
    same(
        "the level it ran at",
        crate::scenarios::helper::level_of_status(status.code().unwrap_or(0)),
        Some(Untrusted),
    )
}

/// F2FS moves blocks into the file that is the argument. What it would do is asked about whatever the filesystem is.
fn move_range() -> Outcome {
    /// F2FS_IOC_MOVE_RANGE
    const MOVE_RANGE: u64 = 0xc020_f509;
    let high = place::file(SYSTEM, "high")?;
    let low = place::file(LOW, "low")?;
    start(|| {
        let fd = sys::both(&high)?;
        let own = sys::both(&low)?;
        let range = [fd.as_raw_fd() as u64, 0, 0, sys::PAGE as u64];
        let moves = || sys::ioctl(&own, MOVE_RANGE, range.as_ptr() as usize);
        lower(Untrusted)?;
        refused(Errno::EPERM, moves())
    })?
    .join()
}

fn donor() -> Outcome {
    /// EXT4_IOC_MOVE_EXT
    const MOVE_BLOCKS: u64 = 0xc028_660f;
    let high = place::file(SYSTEM, "high")?;
    let low = place::file(LOW, "low")?;
    fs::write(&high, [b'h'; sys::PAGE])?;
    fs::write(&low, [b'l'; sys::PAGE])?;
    sys::drop_caches()?;
    let refused = start(|| {
        let fd = sys::both(&high)?;
        lower(Untrusted)?;
        let own = sys::both(&low)?;
        let mut blocks = [(fd.as_raw_fd() as u64) << 32, 0, 0, 1, 0];
        refused_any(
            &[Errno::EPERM, Errno::EIO],
            sys::ioctl(&own, MOVE_BLOCKS, blocks.as_mut_ptr() as usize),
        )
    })?
    .join();
    sys::drop_caches()?;
    ensure(
        fs::read(&high)? == [b'h'; sys::PAGE],
        "the blocks of a low file are in a system file",
    )?;
    refused
}

fn vfork_mem() -> Outcome {
    start(|| {
        let memory = Map::anonymous(MAP_PRIVATE)?;
        memory.poke(b'h');
        let program = c(format!("{BIN}/scenarios"));
        let address = format!("{}", memory.0 as usize);
        let words = [
            program.clone(),
            c("--helper"),
            c("fall-and-poke"),
            c(&address),
        ];
        let mut stack = vec![0u8; 256 * 1024];
        let run = Box::new(|| {
            let Ok(fd) = sys::open("/proc/self/mem", OFlag::O_RDWR) else {
                return 1;
            };
            if sys::keep_as(&fd, 100).is_err() {
                return 1;
            }
            let _ = nix::unistd::execv(&program, &words);
            1
        });
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: the stack lives until the child has executed: vfork waits.
        let child = unsafe { clone(run, &mut stack, flags, Some(libc::SIGCHLD)) }?;
        waitpid(child, None)?;
        not_above(memory.peek())
    })?
    .join()
}

/// A process with memory that holds `with`, as descriptor 100.
fn holder(
    with: &'static [u8],
    check: impl FnOnce() -> Outcome,
) -> Outcome<crate::scenarios::subject::Child> {
    start(|| {
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, with)?;
        sys::keep_as(&memory, 100)?;
        step()?;
        check()
    })
}

fn truncated() -> Outcome {
    let victim = holder(b"high", || {
        let size = syscall!(libc::SYS_lseek, 100, 0, libc::SEEK_END)?;
        same("the size of its memory", size, 4)
    })?;
    victim.stands()?;
    let name = format!("/proc/{}/fd/100", victim.pid);
    for level in Level::LOWER {
        at(level, || {
            refused_any(
                &[Errno::EPERM, Errno::EACCES],
                nix::unistd::truncate(name.as_str(), 0),
            )
        })?;
    }
    victim.join_after_step()
}

fn counter() -> Outcome {
    start(|| {
        // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY
        let mut attributes = [0u64; 16];
        attributes[0] = 1 | 128 << 32;
        attributes[1] = 9;
        let counter = sys::owned(syscall!(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0,
            -1i32,
            -1i32,
            0
        )?)?;
        let page = Map::of(&counter, PROT_READ | PROT_WRITE, MAP_SHARED)?;
        start(|| {
            if lower(Untrusted).is_ok()
                && let Ok(page) = Map::of(&counter, PROT_READ | PROT_WRITE, MAP_SHARED)
            {
                // SAFETY: the page is mapped writable.
                unsafe { page.0.add(2048).write_volatile(b'l') };
            }
            Ok(())
        })?
        .join()?;
        // SAFETY: the page is mapped readable.
        not_above(unsafe { page.0.add(2048).read_volatile() })
    })?
    .join()
}

fn echo() -> Outcome {
    start(|| {
        let socket = sys::owned(syscall!(
            libc::SYS_socket,
            libc::AF_NETLINK,
            libc::SOCK_RAW,
            0
        )?)?;
        start(|| {
            if lower(Untrusted).is_ok() {
                let mut message = Vec::new();
                message.extend(20u32.to_ne_bytes());
                // a type that there is not; NLM_F_REQUEST | NLM_F_ACK
                message.extend([0xff, 0x0f, 5, 0]);
                message.extend([0u8; 8]);
                message.extend(b"llll");
                let _ = sys::put_all(&socket, &message);
            }
            Ok(())
        })?
        .join()?;
        let mut answer = [0u8; 256];
        let n = syscall!(
            libc::SYS_recvfrom,
            socket.as_raw_fd(),
            answer.as_mut_ptr(),
            answer.len(),
            libc::MSG_DONTWAIT,
            0,
            0
        )
        .unwrap_or(0) as usize;
        not_above(if n > 3 { answer[n - 1] } else { 0 })
    })?
    .join()
}

const SESSION: i32 = -3;
const USER: i32 = -4;

fn add_key(payload: &[u8], keyring: i32) -> Result<i64, Errno> {
    let (kind, name) = (c"user", c(place::scenario()));
    syscall!(
        libc::SYS_add_key,
        kind.as_ptr(),
        name.as_ptr(),
        payload.as_ptr(),
        payload.len(),
        keyring
    )
}

fn read_key(key: i64) -> Result<u8, Errno> {
    const READ: i32 = 11;
    let mut payload = [0u8; 8];
    syscall!(
        libc::SYS_keyctl,
        READ,
        key,
        payload.as_mut_ptr(),
        payload.len()
    )?;
    Ok(payload[0])
}

/// A new session's key ring, and the parent is given it.
const JOIN: i32 = 1;
const TO_PARENT: i32 = 18;

fn session_to_equal() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            start(|| {
                syscall!(libc::SYS_keyctl, JOIN, 0)?;
                refused(Errno::EPERM, syscall!(libc::SYS_keyctl, TO_PARENT))?;
                // the kernel takes the lower half for the number
                let number = libc::SYS_keyctl | 1 << 32;
                refused(Errno::EPERM, syscall!(number, TO_PARENT))
            })?
            .join()
        })?;
    }
    start(|| {
        syscall!(libc::SYS_keyctl, JOIN, 0)?;
        allowed(syscall!(libc::SYS_keyctl, TO_PARENT)).map(drop)
    })?
    .join()
}

/// In the number of a call of x32, which a kernel has that is started with `syscall.x32=y`.
const X32_CALL: libc::c_long = 0x4000_0000;

fn session_to_parent(call: libc::c_long) -> Outcome {
    const SEARCH: i32 = 10;
    start(|| {
        syscall!(libc::SYS_keyctl, JOIN, 0)?;
        add_key(b"high", SESSION)?;
        start(|| {
            if lower(Untrusted).is_ok() {
                syscall!(libc::SYS_keyctl, JOIN, 0)?;
                add_key(b"low", SESSION)?;
                refused_any(
                    &[Errno::EPERM, Errno::EACCES, Errno::ENOSYS],
                    syscall!(call, TO_PARENT),
                )?;
            }
            Ok(())
        })?
        .join()
        .or_else(|failed| {
            let (kind, name) = (c"user", c(place::scenario()));
            let key = syscall!(
                libc::SYS_keyctl,
                SEARCH,
                SESSION,
                kind.as_ptr(),
                name.as_ptr(),
                0
            )?;
            not_above(read_key(key)?)?;
            Err(failed)
        })
    })?
    .join()
}

fn invalidate() -> Outcome {
    const LINK: i32 = 8;
    const INVALIDATE: i32 = 21;
    let key = add_key(b"high", USER)?;
    let _ = syscall!(libc::SYS_keyctl, LINK, USER, SESSION);
    at(Untrusted, || {
        refused_any(
            &[Errno::EPERM, Errno::EACCES],
            syscall!(libc::SYS_keyctl, INVALIDATE, key),
        )
    })?;
    same("the key", read_key(key), Ok(b'h'))
}

fn uuid() -> Outcome {
    const GET: u64 = 0x8008_662c;
    const SET: u64 = 0x4008_662c;
    let mut uuid = [16u32, 0, 0, 0, 0, 0];
    sys::ioctl(&sys::reads(LOW)?, GET, uuid.as_mut_ptr() as usize)?;
    at(Untrusted, || {
        let dir = sys::reads(LOW)?;
        refused(Errno::EPERM, sys::ioctl(&dir, SET, uuid.as_ptr() as usize))
    })
}

fn trusted_xattr() -> Outcome {
    let file = path(LOW, "file");
    at(Untrusted, || {
        fs::write(&file, "low")?;
        refused(Errno::EPERM, sys::setxattr(&file, "trusted.word", b"l"))
    })?;
    // whoever has left one there, it is a low file's
    sys::setxattr(&file, "trusted.word", b"h")?;
    at(System, || {
        same(
            "the size of it",
            sys::getxattr(&file, "trusted.word"),
            Ok(1),
        )?;
        same(
            "the level by what may be written",
            level::by_writing()?,
            Untrusted,
        )
    })
}

fn splice_lent() -> Outcome {
    start(|| {
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, b"high")?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let mut offset = 0u64;
        syscall!(
            libc::SYS_splice,
            memory.as_raw_fd(),
            &raw mut offset,
            write.as_raw_fd(),
            0,
            4,
            0
        )?;
        let fd = memory.as_raw_fd();
        let child = start(|| {
            syscall!(libc::SYS_close, read.as_raw_fd())?;
            syscall!(libc::SYS_close, write.as_raw_fd())?;
            step()?;
            if lower(Untrusted).is_ok() {
                syscall!(libc::SYS_pwrite64, fd, b"low!".as_ptr(), 4, 0)?;
            }
            Ok(())
        })?;
        child.stands()?;
        drop(memory);
        child.join_after_step()?;
        not_above(sys::get(&read)?.first().copied().unwrap_or(0))
    })?
    .join()
}

fn packet_passed() -> Outcome {
    use nix::sys::socket::SockType;
    let name = crate::scenarios::unixsock::abstract_name("packets")?;
    start(|| {
        let own = crate::scenarios::unixsock::named(SockType::Datagram, &name)?;
        let status = Command::new(format!("{BIN}/netd"))
            .args([
                "--helper",
                "send-socket",
                &format!("{}-packets", place::scenario()),
                &libc::AF_PACKET.to_string(),
                &libc::SOCK_RAW.to_string(),
            ])
            .status()?;
        same("what the trusted program did", status.code(), Some(0))?;
        let received = crate::scenarios::unixsock::receive(&own)?;
        if received.fds.is_empty() {
            return Ok(());
        }
        same(
            "the level by what may be written",
            level::by_writing()?,
            Untrusted,
        )
    })?
    .join()
}
