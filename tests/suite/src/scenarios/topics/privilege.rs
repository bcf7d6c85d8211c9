//! What root may do below the top: nothing for which the kernel asks a capability over the whole machine, by whatever call.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::system::NO;
use crate::scenarios::check::{Failed, Outcome, allowed, refused_any, same};
use crate::scenarios::disk::Disk;
use crate::scenarios::place::{self, DISK, TMPFS_SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, start};
use crate::scenarios::sys::{self, Map};
use crate::sys::syscall;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "memory-poisoned",
        "a page of a system file, which may be read, is declared broken hardware",
        poisoned,
    ),
    bypass(
        "memory-poisoned-shared",
        "so is a page that a fallen child still shares with its parent",
        poisoned_shared,
    ),
    bypass(
        "memory-poisoned-by-pidfd",
        "the same by process_madvise",
        poisoned_by_pidfd,
    ),
    bypass(
        "memory-offlined",
        "the page is taken out of use, its content moved elsewhere",
        offlined,
    ),
    bypass(
        "filesystem-shutdown",
        "a filesystem is taken down by an ioctl on its directory",
        shut_down,
    ),
    bypass(
        "filesystem-held-up",
        "a filesystem is frozen, trimmed, or has its journal emptied",
        held_up,
    ),
    bypass(
        "filesystem-boot-loader",
        "a low file's blocks are swapped with those of the disk's boot loader",
        boot_loader,
    ),
    bypass(
        "filesystem-tuned",
        "what a disk does on errors is changed: the machine is to panic",
        tuned,
    ),
    bypass(
        "disk-by-pwritev2",
        "a netlink message about a disk is written by pwritev2",
        by_pwritev2,
    ),
    bypass("disk-by-aio", "the same by io_submit", by_aio),
    bypass("disk-by-sendfile", "the same by sendfile", by_sendfile),
    bypass("disk-by-splice", "the same by splice", by_splice),
];

/// MADV_HWPOISON
const POISON: i32 = 100;
/// MADV_SOFT_OFFLINE
const OFFLINE: i32 = 101;

fn advise(page: &Map, advice: i32) -> Result<(), Errno> {
    syscall!(libc::SYS_madvise, page.address(), sys::PAGE, advice).map(drop)
}

/// Gives advice about a page of a system file, which must go on being whole.
fn advises(advice: impl FnOnce(&Map) -> Outcome) -> Outcome {
    let high = place::file(TMPFS_SYSTEM, "high")?;
    let advised = at(Untrusted, || {
        let page = Map::of(&sys::reads(&high)?, PROT_READ, MAP_SHARED)?;
        same("the memory", page.peek(), b'h')?;
        advice(&page)
    });
    same("the content", fs::read_to_string(&high)?.as_str(), "high")?;
    advised
}

fn poisoned() -> Outcome {
    advises(|page| refused_any(NO, advise(page, POISON)))
}

fn offlined() -> Outcome {
    advises(|page| refused_any(NO, advise(page, OFFLINE)))
}

fn poisoned_by_pidfd() -> Outcome {
    advises(|page| {
        let own = sys::pidfd_open(std::process::id() as i32)?;
        let range = [page.0 as usize, sys::PAGE];
        let tried = syscall!(
            libc::SYS_process_madvise,
            own.as_raw_fd(),
            range.as_ptr(),
            1,
            POISON,
            0
        );
        // 6.12 takes no such advice by this call
        refused_any(&[Errno::EPERM, Errno::EACCES, Errno::EINVAL], tried)
    })
}

fn poisoned_shared() -> Outcome {
    start(|| {
        let page = Map::anonymous(MAP_PRIVATE)?;
        page.poke(b'h');
        let advised = at(Untrusted, || refused_any(NO, advise(&page, POISON)));
        // a process that has lost it is killed here
        same("the memory", page.peek(), b'h')?;
        advised
    })?
    .join()
}

fn shut_down() -> Outcome {
    /// EXT4_IOC_SHUTDOWN, which has the numbers of XFS's and F2FS's
    const SHUTDOWN: u64 = 0x8004_587d;
    let _disk = Disk::mount(&[])?;
    let asked = at(Untrusted, || {
        // what is not written yet is lost
        let how = 2u32;
        let dir = sys::reads(DISK)?;
        refused_any(NO, sys::ioctl(&dir, SHUTDOWN, &raw const how as usize))
    });
    allowed(fs::write(format!("{DISK}/after"), "x"))?;
    asked
}

fn held_up() -> Outcome {
    /// FIFREEZE
    const FREEZE: u64 = 0xc004_5877;
    /// FITHAW
    const THAW: u64 = 0xc004_5878;
    /// FITRIM
    const TRIM: u64 = 0xc018_5879;
    /// EXT4_IOC_CHECKPOINT
    const CHECKPOINT: u64 = 0x4004_662b;
    let _disk = Disk::mount(&[])?;
    let asked = at(Untrusted, || {
        let dir = sys::reads(DISK)?;
        let (all, how) = ([0, u64::MAX, 0], 0u32);
        refused_any(NO, sys::ioctl(&dir, FREEZE, 0))?;
        refused_any(NO, sys::ioctl(&dir, TRIM, all.as_ptr() as usize))?;
        refused_any(NO, sys::ioctl(&dir, CHECKPOINT, &raw const how as usize))
    });
    let _ = sys::ioctl(&sys::reads(DISK)?, THAW, 0);
    asked
}

fn boot_loader() -> Outcome {
    /// EXT4_IOC_SWAP_BOOT
    const SWAP_BOOT: u64 = 0x6611;
    let _disk = Disk::mount(&[])?;
    let dir = format!("{DISK}/low");
    fs::create_dir(&dir)?;
    at(Untrusted, || {
        let own = format!("{dir}/loader");
        allowed(fs::write(&own, "low"))?;
        refused_any(NO, sys::ioctl(&sys::both(&own)?, SWAP_BOOT, 0))
    })
}

fn tuned() -> Outcome {
    /// EXT4_IOC_SET_TUNE_SB_PARAM
    const TUNE: u64 = 0x40e8_662e;
    const ERRORS_BEHAVIOR: u64 = 1;
    const PANIC: u64 = 3;
    let _disk = Disk::mount(&[])?;
    at(Untrusted, || {
        let mut parameters = [0u64; 29];
        (parameters[0], parameters[1]) = (ERRORS_BEHAVIOR, PANIC);
        let tried = sys::ioctl(&sys::reads(DISK)?, TUNE, parameters.as_ptr() as usize);
        // 6.12 does not have it
        refused_any(&[Errno::EPERM, Errno::EACCES, Errno::ENOTTY], tried)
    })
}

/// A message of generic netlink to a family, with one attribute.
fn message(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    const REQUEST_AND_ACKNOWLEDGE: u16 = 5;
    let len = 24 + value.len().next_multiple_of(4);
    let mut message = Vec::new();
    message.extend((len as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend([0u8; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(len, 0);
    message
}

fn generic_netlink() -> Result<OwnedFd, Errno> {
    const GENERIC: i32 = 16;
    sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_NETLINK,
        libc::SOCK_RAW | libc::SOCK_CLOEXEC,
        GENERIC
    )?)
}

/// What the kernel has answered to a message: it does so before the message's call returns.
pub(super) fn answer(socket: &OwnedFd) -> Result<Vec<u8>, Errno> {
    const ERROR: u16 = 2;
    let mut bytes = vec![0u8; 4096];
    let n = syscall!(
        libc::SYS_recvfrom,
        socket.as_raw_fd(),
        bytes.as_mut_ptr(),
        bytes.len(),
        libc::MSG_DONTWAIT,
        0,
        0
    )?;
    bytes.truncate(n as usize);
    let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
    let code = i32::from_ne_bytes(bytes[16..20].try_into().unwrap_or_default());
    match code {
        0 => Ok(bytes),
        _ if kind != ERROR => Ok(bytes),
        code => Err(Errno::from_raw(-code)),
    }
}

/// The number of the family of network block devices.
fn disks() -> Outcome<u16> {
    const CONTROL: u16 = 16;
    const GET_FAMILY: u8 = 3;
    const NAME: u16 = 2;
    const NUMBER: u16 = 1;
    let _ = Command::new("modprobe").arg("nbd").status();
    let socket = generic_netlink()?;
    sys::put_all(&socket, &message(CONTROL, GET_FAMILY, NAME, b"nbd\0"))?;
    let bytes = answer(&socket)?;
    let mut attributes = &bytes[20..];
    while let [a, b, c, d, rest @ ..] = attributes {
        let (len, kind) = (
            u16::from_ne_bytes([*a, *b]) as usize,
            u16::from_ne_bytes([*c, *d]),
        );
        if let (NUMBER, [low, high, ..]) = (kind, rest) {
            return Ok(u16::from_ne_bytes([*low, *high]));
        }
        attributes = attributes
            .get(len.next_multiple_of(4).max(4)..)
            .unwrap_or_default();
    }
    Err(Failed::because("there is no family of disks"))
}

/// Root asks the kernel to let go of the first such disk, which nobody has set up: only the privilege decides.
fn asks(write: impl FnOnce(&OwnedFd, &[u8]) -> Result<(), Errno>) -> Outcome {
    const DISCONNECT: u8 = 2;
    const INDEX: u16 = 1;
    let message = message(disks()?, DISCONNECT, INDEX, &0u32.to_ne_bytes());
    let socket = generic_netlink()?;
    sys::put_all(&socket, &message)?;
    allowed(answer(&socket))?;
    at(Untrusted, || {
        let socket = generic_netlink()?;
        refused_any(
            NO,
            sys::put_all(&socket, &message).and_then(|_| answer(&socket)),
        )?;
        refused_any(NO, write(&socket, &message).and_then(|()| answer(&socket)))
    })
}

fn by_pwritev2() -> Outcome {
    asks(|socket, message| {
        let vec = libc::iovec {
            iov_base: message.as_ptr().cast_mut().cast(),
            iov_len: message.len(),
        };
        // at the current position
        let (fd, at) = (socket.as_raw_fd(), -1);
        syscall!(libc::SYS_pwritev2, fd, &raw const vec, 1, at, at, 0).map(drop)
    })
}

fn by_aio() -> Outcome {
    asks(|socket, message| {
        const WRITE: u64 = 1;
        let mut context = 0u64;
        syscall!(libc::SYS_io_setup, 1, &raw mut context)?;
        // struct iocb
        let mut block = [0u64; 8];
        block[2] = WRITE | (socket.as_raw_fd() as u64) << 32;
        (block[3], block[4]) = (message.as_ptr() as u64, message.len() as u64);
        let list = [&raw const block];
        syscall!(libc::SYS_io_submit, context, 1, list.as_ptr()).map(drop)
    })
}

fn by_sendfile() -> Outcome {
    asks(|socket, message| {
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, message)?;
        let (to, from, mut at) = (socket.as_raw_fd(), memory.as_raw_fd(), 0u64);
        syscall!(libc::SYS_sendfile, to, from, &raw mut at, message.len()).map(drop)
    })
}

fn by_splice() -> Outcome {
    asks(|socket, message| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        sys::put_all(&write, message)?;
        sys::splice(&read, socket, message.len()).map(drop)
    })
}
