//! What root below the top asks of the kernel by number, where no object of the system is named.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use libc::MAP_PRIVATE;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{Pid, getpgrp, pipe2, setpgid};

use super::tasks::idle;
use crate::scenarios::check::{Failed, Outcome, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, falling, lower, spawn, start, step};
use crate::scenarios::sys::{self, Map};
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "entropy-forged",
        "root below the top gives the kernel's random numbers a seed that it knows",
        seeded,
    ),
    bypass(
        "entropy-counted",
        "the same, and it says how much there is in that, or begins anew",
        counted,
    ),
    bypass(
        "entropy-by-descriptor",
        "the same by a descriptor from before the fall",
        seeded_after_fall,
    ),
    bypass(
        "autofs-catatonic",
        "root below the top ends the mounting of what others look up (AUTOFS_IOC_CATATONIC)",
        catatonic,
    ),
    bypass(
        "autofs-expire",
        "the same by a time after which all is unmounted, and by unmounting it at once",
        expired,
    ),
    bypass(
        "autofs-device",
        "the same by the device for all of autofs",
        by_autofs_device,
    ),
    bypass(
        "process-madvise",
        "root below the top has a higher process's memory written to swap, or thrown away (process_madvise)",
        advised,
    ),
    bypass(
        "process-move-pages",
        "the same has its pages moved between nodes of memory (move_pages)",
        pages_moved,
    ),
    bypass(
        "sched-core",
        "who is lower has a higher process share processors with nobody but its own (PR_SCHED_CORE)",
        core_shared,
    ),
    bypass(
        "sched-core-taken",
        "who is lower takes the group of a higher process, to share a processor with it",
        core_taken,
    ),
    bypass(
        "sched-core-group",
        "who is lower gives all of its process group, in which others are higher, a group of its own",
        core_of_group,
    ),
    bypass(
        "key-cache-cleared",
        "root below the top empties the kernel's cache of looked up names (KEYCTL_CLEAR)",
        cache_cleared,
    ),
    bypass(
        "key-ring-cleared",
        "the same of a key ring that was made at the top",
        ring_cleared,
    ),
    bypass(
        "key-given-away",
        "the same gives a key of the top away, opens it to all, revokes it, or has it end",
        key_changed,
    ),
    bypass(
        "key-read-below",
        "root at the top reads what root below it has put into a key",
        key_read,
    ),
];

pub(super) const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

const RNDADDTOENTCNT: u64 = 0x4004_5201;
const RNDADDENTROPY: u64 = 0x4008_5203;
const RNDZAPENTCNT: u64 = 0x5204;
const RNDCLEARPOOL: u64 = 0x5206;
const RNDRESEEDCRNG: u64 = 0x5207;

/// Adds bytes that everybody knows, as if each bit of them could be anything.
fn adds(device: &OwnedFd) -> Result<i64, Errno> {
    // struct rand_pool_info: bits, bytes, and what they are
    let seed = [256u32, 32, 0, 0, 0, 0, 0, 0, 0, 0];
    sys::ioctl(device, RNDADDENTROPY, seed.as_ptr() as usize)
}

fn seeded() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for device in ["/dev/random", "/dev/urandom"] {
                refused(Errno::EPERM, adds(&sys::reads(device)?))?;
                refused(Errno::EPERM, adds(&sys::both(device)?))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn counted() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let device = sys::reads("/dev/random")?;
            let bits = 256i32;
            let address = &raw const bits as usize;
            refused(Errno::EPERM, sys::ioctl(&device, RNDADDTOENTCNT, address))?;
            for command in [RNDZAPENTCNT, RNDCLEARPOOL, RNDRESEEDCRNG] {
                refused(Errno::EPERM, sys::ioctl(&device, command, 0))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn seeded_after_fall() -> Outcome {
    for level in Level::LOWER {
        start(|| {
            let device = sys::both("/dev/random")?;
            lower(level)?;
            refused_any(&[Errno::EPERM, Errno::EIO], adds(&device))
        })?
        .join()?;
    }
    Ok(())
}

/// An automounter's filesystem, which it serves by a pipe.
struct Autofs {
    at: String,
    read: OwnedFd,
}

impl Autofs {
    fn mount() -> Outcome<Autofs> {
        let at = place::directory(SYSTEM, "auto")?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let options = format!(
            "fd={},pgrp={},minproto=5,maxproto=5,indirect",
            write.as_raw_fd(),
            getpgrp()
        );
        mount(
            Some("scenario"),
            at.as_str(),
            Some("autofs"),
            MsFlags::empty(),
            Some(options.as_str()),
        )?;
        Ok(Autofs { at, read })
    }

    /// Each of these is refused to lower subjects that are not of the automounter's group, and the automounter is asked as before.
    fn refuses(&self, commands: &[(u64, usize)]) -> Outcome {
        for level in Level::LOWER {
            at(level, || {
                setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
                let root = sys::open(&self.at, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
                for (command, argument) in commands {
                    refused(Errno::EPERM, sys::ioctl(&root, *command, *argument))?;
                }
                Ok(())
            })?;
        }
        self.is_served()
    }

    /// The filesystem has the other end of the pipe still.
    fn is_served(&self) -> Outcome {
        same(
            "what is in the pipe",
            sys::get(&self.read),
            Err(Errno::EAGAIN),
        )
    }
}

impl Drop for Autofs {
    fn drop(&mut self) {
        let _ = umount2(self.at.as_str(), MntFlags::MNT_DETACH);
    }
}

fn catatonic() -> Outcome {
    const CATATONIC: u64 = 0x9362;
    Autofs::mount()?.refuses(&[(CATATONIC, 0)])
}

fn expired() -> Outcome {
    const SETTIMEOUT: u64 = 0xc008_9364;
    const EXPIRE_MULTI: u64 = 0x4004_9366;
    let (seconds, how) = (1u64, 1i32);
    Autofs::mount()?.refuses(&[
        (SETTIMEOUT, &raw const seconds as usize),
        (EXPIRE_MULTI, &raw const how as usize),
    ])
}

fn by_autofs_device() -> Outcome {
    /// AUTOFS_DEV_IOCTL_CATATONIC and AUTOFS_DEV_IOCTL_TIMEOUT
    const COMMANDS: [u64; 2] = [0xc018_9379, 0xc018_937a];
    let autofs = Autofs::mount()?;
    for level in Level::LOWER {
        at(level, || {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            let root = sys::open(&autofs.at, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            let device = match sys::reads("/dev/autofs") {
                Ok(device) => device,
                Err(e) => return refused_any(NO, Err::<(), _>(e)),
            };
            for command in COMMANDS {
                // struct autofs_dev_ioctl: the version, its size, the descriptor, the argument
                let mut question = [1u32, 1, 24, root.as_raw_fd() as u32, 1, 0];
                let address = question.as_mut_ptr() as usize;
                refused_any(NO, sys::ioctl(&device, command, address))?;
            }
            Ok(())
        })?;
    }
    autofs.is_served()
}

fn advised() -> Outcome {
    const COLLAPSE: i32 = 25;
    let page = Map::anonymous(MAP_PRIVATE)?;
    page.poke(b'h');
    // its copy of the page is at the same address
    let higher = idle(System)?;
    let all = libc::iovec {
        iov_base: page.address(),
        iov_len: sys::PAGE,
    };
    for level in Level::LOWER {
        at(level, || {
            let process = sys::pidfd_open(higher.pid.as_raw())?;
            for advice in [
                libc::MADV_COLD,
                libc::MADV_PAGEOUT,
                libc::MADV_WILLNEED,
                COLLAPSE,
            ] {
                let advised = syscall!(
                    libc::SYS_process_madvise,
                    process.as_raw_fd(),
                    &raw const all,
                    1,
                    advice,
                    0
                );
                refused_any(NO, advised)?;
            }
            Ok(())
        })?;
    }
    higher.kill()
}

fn pages_moved() -> Outcome {
    const MOVE_ALL: i32 = 4;
    let page = Map::anonymous(MAP_PRIVATE)?;
    page.poke(b'h');
    let higher = idle(System)?;
    for level in Level::LOWER {
        at(level, || {
            let (pages, nodes, mut states) = ([page.address()], [0i32], [0i32]);
            let moved = syscall!(
                libc::SYS_move_pages,
                higher.pid.as_raw(),
                1,
                pages.as_ptr(),
                nodes.as_ptr(),
                states.as_mut_ptr(),
                MOVE_ALL
            );
            refused_any(&[Errno::EPERM, Errno::EACCES, Errno::ENOSYS], moved)
        })?;
    }
    higher.kill()
}

fn core_shared() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let higher = idle(high)?;
        at(low, || {
            for (command, who) in [
                (libc::PR_SCHED_CORE_CREATE, higher.pid.as_raw()),
                (libc::PR_SCHED_CORE_SHARE_TO, higher.pid.as_raw()),
            ] {
                let shared = syscall!(libc::SYS_prctl, libc::PR_SCHED_CORE, command, who, 0, 0);
                // not every kernel has it, and not every processor
                refused_any(&[Errno::EPERM, Errno::EINVAL, Errno::ENODEV], shared)?;
            }
            Ok(())
        })?;
        higher.kill()?;
    }
    Ok(())
}

/// The monitor is asked before the kernel knows whether it has the call.
fn core(command: i32, who: i32, reach: i32) -> Result<(), Errno> {
    let option = libc::PR_SCHED_CORE;
    syscall!(libc::SYS_prctl, option, command, who, reach, 0).map(drop)
}

fn core_taken() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let higher = idle(high)?;
        at(low, || {
            let taken = core(libc::PR_SCHED_CORE_SHARE_FROM, higher.pid.as_raw(), 0);
            refused(Errno::EPERM, taken)
        })?;
        higher.kill()?;
    }
    Ok(())
}

fn core_of_group() -> Outcome {
    const PROCESS_GROUP: i32 = 2;
    for level in Level::LOWER {
        at(level, || {
            for who in [0, getpgrp().as_raw()] {
                let made = core(libc::PR_SCHED_CORE_CREATE, who, PROCESS_GROUP);
                refused(Errno::EPERM, made)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) const KEYCTL_REVOKE: i32 = 3;
const KEYCTL_CHOWN: i32 = 4;
const KEYCTL_SETPERM: i32 = 5;
pub(super) const KEYCTL_CLEAR: i32 = 7;
const KEYCTL_LINK: i32 = 8;
const KEYCTL_READ: i32 = 11;
pub(super) const KEYCTL_SET_TIMEOUT: i32 = 15;
pub(super) const SESSION_KEYRING: i32 = -3;
const USER_KEYRING: i32 = -4;

pub(super) fn keyctl(operation: i32, key: i64, argument: i64, more: i64) -> Result<i64, Errno> {
    syscall!(libc::SYS_keyctl, operation, key, argument, more)
}

/// A key, or a key ring, in a key ring.
pub(super) fn add_key(kind: &str, payload: &[u8], ring: i64) -> Result<i64, Errno> {
    let (kind, name) = (c(kind), c(place::scenario()));
    let data = if payload.is_empty() {
        std::ptr::null()
    } else {
        payload.as_ptr()
    };
    syscall!(
        libc::SYS_add_key,
        kind.as_ptr(),
        name.as_ptr(),
        data,
        payload.len(),
        ring
    )
}

/// The size of what a key, or a key ring, has.
pub(super) fn size(key: i64) -> Result<i64, Errno> {
    let mut bytes = [0u8; 64];
    keyctl(
        KEYCTL_READ,
        key,
        bytes.as_mut_ptr() as i64,
        bytes.len() as i64,
    )
}

/// A key ring of root's, made at the top, and a key in it.
pub(super) fn ring() -> Outcome<(i64, i64)> {
    let ring = add_key("keyring", b"", i64::from(USER_KEYRING))?;
    // a process has what its session has, or its user's
    let _ = keyctl(
        KEYCTL_LINK,
        i64::from(USER_KEYRING),
        i64::from(SESSION_KEYRING),
        0,
    );
    Ok((ring, add_key("user", b"high", ring)?))
}

/// The number of the kernel's cache of names that it has had looked up.
fn cache() -> Outcome<i64> {
    let loaded = Command::new("modprobe").arg("dns_resolver").status()?;
    ensure(loaded.success(), "there is no dns_resolver")?;
    let keys = std::fs::read_to_string("/proc/keys")?;
    keys.lines()
        .filter(|line| line.contains(".dns_resolver"))
        .find_map(|line| i64::from_str_radix(line.split(' ').next()?, 16).ok())
        .ok_or_else(|| Failed::because("the kernel's cache is not to be seen"))
}

fn cache_cleared() -> Outcome {
    let cache = cache()?;
    for level in Level::LOWER {
        at(level, || refused_any(NO, keyctl(KEYCTL_CLEAR, cache, 0, 0)))?;
    }
    Ok(())
}

fn ring_cleared() -> Outcome {
    let (ring, _) = ring()?;
    for level in Level::LOWER {
        at(level, || refused_any(NO, keyctl(KEYCTL_CLEAR, ring, 0, 0)))?;
    }
    // the number of one key
    same("the size of the key ring", size(ring), Ok(4))
}

fn key_changed() -> Outcome {
    const ALL: i64 = 0x3f3f_3f3f;
    let (_, key) = ring()?;
    for level in Level::LOWER {
        at(level, || {
            refused_any(NO, keyctl(KEYCTL_CHOWN, key, 1000, 1000))?;
            refused_any(NO, keyctl(KEYCTL_SETPERM, key, ALL, 0))?;
            refused_any(NO, keyctl(KEYCTL_SET_TIMEOUT, key, 1, 0))?;
            refused_any(NO, keyctl(KEYCTL_REVOKE, key, 0, 0))
        })?;
    }
    same("the size of the key", size(key), Ok(4))
}

/// The number of a key, by the name that this scenario gives to its own.
fn key_of_scenario() -> Outcome<i64> {
    let keys = std::fs::read_to_string("/proc/keys")?;
    keys.lines()
        .filter(|line| line.contains(&format!(" {}:", place::scenario())))
        .find_map(|line| i64::from_str_radix(line.split(' ').next()?, 16).ok())
        .ok_or_else(|| Failed::because("the key is not to be seen"))
}

fn key_read() -> Outcome {
    const JOIN: i32 = 1;
    /// Its possessor, and its user, may do all.
    const TO_USER: i64 = 0x3f3f_0000;
    let low = spawn(Untrusted, || {
        keyctl(JOIN, 0, 0, 0)?;
        let key = add_key("user", b"low", i64::from(SESSION_KEYRING))?;
        keyctl(KEYCTL_SETPERM, key, TO_USER, 0)?;
        step()
    })?;
    low.stands()?;
    start(|| {
        let key = key_of_scenario()?;
        same("its size", falling(Errno::EAGAIN, || size(key))?, 3)?;
        level::is(Untrusted)
    })?
    .join()?;
    low.kill()
}
