//! Descriptors from before a demotion: what they could do, they can do no more.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, sleep};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pipe2};

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::place::{self, AREA, LOG, LOW, SYSTEM, TMPFS_SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, asleep, at, lower, spawn, start, step, tell, told};
use crate::scenarios::{daemon, level, sys};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

/// What a revoked descriptor gives; where the call changes an attribute, EPERM.
const NO: &[Errno] = &[Errno::EIO, Errno::EPERM];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "revoke-not-own",
        "descriptors of what one still may write go on working",
        not_own,
    ),
    allow(
        "revoke-reading",
        "so does reading by every old descriptor",
        reading,
    ),
    allow(
        "revoke-not-others",
        "and the descriptors of those who did not fall",
        not_others,
    ),
    allow(
        "revoke-guard-idle",
        "without such descriptors the guard goes idle again",
        guard_idle,
    ),
    allow(
        "revoke-guard-idle-calls",
        "nor does who waits for a message keep it",
        idle_in_calls,
    ),
    bypass(
        "revoke-guard-waits",
        "a thread is in a call that could bring a descriptor back, where nobody looks for one",
        guard_waits,
    )
    .slow(),
    bypass(
        "revoke-guard-writes",
        "a thread is in a call that writes, and what it writes to has been closed since",
        guard_writes,
    )
    .slow(),
    bypass(
        "revoke-guard-waits-promoted",
        "the same by who did not fall, after a promotion",
        guard_waits_promoted,
    )
    .slow(),
    bypass(
        "revoke-moved",
        "a descriptor moved to and fro in its table while the guard is to go",
        moved,
    )
    .slow(),
    bypass(
        "revoke-moved-in-fall",
        "the same while its process falls",
        moved_in_fall,
    )
    .slow(),
    allow(
        "revoke-guard-late",
        "a demotion waits for a guard that takes seconds to come",
        guard_late,
    ),
    allow(
        "revoke-guard-leaving",
        "and for one that is just being taken off",
        guard_leaving,
    ),
    deny(
        "revoke-write",
        "a descriptor from before the demotion writes no more: EIO",
        write,
    ),
    bypass(
        "revoke-every-write",
        "write, writev, pwrite, pwritev2, with O_APPEND and O_DIRECT",
        every_write,
    ),
    bypass(
        "revoke-truncate",
        "ftruncate, fallocate, holes and ranges",
        truncate,
    ),
    bypass(
        "revoke-copying",
        "sendfile, splice and copy_file_range into the file",
        copying,
    ),
    bypass(
        "revoke-attributes",
        "fchmod, futimens, fsetxattr and flags by descriptor",
        attributes,
    ),
    bypass(
        "revoke-duplicate",
        "duplicates, and copies that a child inherits",
        duplicates,
    ),
    bypass(
        "revoke-exec",
        "a program that is executed with the descriptor",
        by_exec,
    ),
    bypass(
        "revoke-begun-before-guard",
        "a splice that another thread begins, and that stalls, while the guard is awaited",
        begun_before_guard,
    ),
    bypass("revoke-device", "a device opened before", device),
    bypass(
        "revoke-directory",
        "names made below a directory opened before",
        directory,
    ),
    bypass(
        "revoke-own-then-lower",
        "a file of the level between, two falls later",
        between,
    ),
    bypass(
        "descriptors-by-million",
        "two processes have more descriptors than the kernel lists at once, and the guard is to go all the same",
        by_million,
    )
    .slow(),
];

/// A process at the top level that opens a file, falls, and then does what it likes.
fn fallen(dir: &'static str, flags: OFlag, then: impl FnOnce(OwnedFd) -> Outcome) -> Outcome {
    let (high, low) = (place::file(dir, "high")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::open(&high, flags)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        then(fd)
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")?;
    fs::remove_file(&high)?;
    Ok(fs::remove_file(&low)?)
}

fn not_own() -> Outcome {
    let low = place::file(LOW, "low")?;
    let user = place::file(USER, "user")?;
    start(|| {
        let of_user = sys::open(&user, OFlag::O_WRONLY)?;
        let log = sys::open(LOG, OFlag::O_WRONLY | OFlag::O_APPEND)?;
        let of_low = sys::writes(path(LOW, "low"))?;
        let null = sys::both("/dev/null")?;
        lower(User)?;
        for fd in [&of_user, &log, &of_low, &null] {
            allowed(sys::put(fd))?;
        }
        allowed(fs::read(&low))?;
        for fd in [&log, &of_low, &null] {
            allowed(sys::put(fd))?;
        }
        refused(Errno::EIO, sys::put(&of_user))?;
        level::is(Untrusted)
    })?
    .join()
}

fn reading() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        same("the content", sys::get(&fd)?, b"high".to_vec())?;
        nix::unistd::lseek(&fd, 0, nix::unistd::Whence::SeekSet)?;
        nix::sys::stat::fstat(&fd)?;
        allowed(nix::unistd::fsync(&fd))
    })
}

fn not_others() -> Outcome {
    let file = place::file(SYSTEM, "high")?;
    let fd = sys::both(&file)?;
    start(|| {
        lower(Untrusted)?;
        refused(Errno::EIO, sys::put(&fd))?;
        step()
    })
    .and_then(|child| {
        child.stands()?;
        for _ in 0..20 {
            allowed(sys::put(&fd))?;
        }
        child.join_after_step()
    })?;
    level::is(System)
}

fn guard_idle() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        refused(Errno::EIO, sys::put(&fd))?;
        ensure(daemon::guard_armed()?, "the guard is not armed")
    })?;
    until_idle()
}

/// Half of what the kernel's iterators go through before they give up, and some more.
const HALF_A_MILLION: u64 = (1 << 19) + 10;

fn by_million() -> Outcome {
    let holders = (0..2)
        .map(|_| {
            let holder = spawn(Untrusted, || {
                setrlimit(Resource::RLIMIT_NOFILE, HALF_A_MILLION, HALF_A_MILLION)?;
                let held = sys::open("/dev/null", OFlag::O_RDONLY)?;
                for fd in 100..HALF_A_MILLION {
                    syscall!(libc::SYS_dup2, held.as_raw_fd(), fd)?;
                }
                step()
            })?;
            holder.stands()?;
            Ok(holder)
        })
        .collect::<Outcome<Vec<_>>>()?;
    let idle = guard_idle();
    for holder in holders {
        holder.kill()?;
    }
    idle
}

fn until_idle() -> Outcome {
    ensure(
        soon(|| Ok(!daemon::guard_armed()?))?,
        "the guard stays armed",
    )
}

/// While a thread waits in a call that could bring a descriptor the guard stays, and goes once the process rests.
fn until_it_rests(armed: impl FnOnce() -> Outcome) -> Outcome {
    let fifo = place::fifo(LOW, "opens")?;
    let opened = fifo.clone();
    let waiter = asleep(&[libc::SYS_openat], move || fs::File::open(opened))?;
    let stays = armed()
        .and_then(|()| daemon::past_guard(|| ensure(daemon::guard_armed()?, "the guard has gone")));
    let _other = sys::writes(&fifo)?;
    let reader = waiter.join();
    stays?;
    let _reader = allowed(reader.map_err(|_| Failed::because("the thread failed"))?)?;
    fs::remove_file(&fifo)?;
    until_idle()
}

/// Waits for a byte by recvmsg(2), which could bring descriptors, too.
fn receive(from: &UnixDatagram) -> Result<(), Errno> {
    let mut byte = [0u8];
    let mut into = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: a plain structure, of which zeros say that there is nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut into;
    message.msg_iovlen = 1;
    syscall!(libc::SYS_recvmsg, from.as_raw_fd(), &raw mut message, 0).map(drop)
}

fn idle_in_calls() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        drop(fd);
        let (mine, other) = UnixDatagram::pair()?;
        let receives = asleep(&[libc::SYS_recvmsg], move || receive(&mine))?;
        let idle = until_idle();
        other.send(b"x")?;
        let received = receives.join();
        allowed(received.map_err(|_| Failed::because("the thread failed"))?)?;
        idle
    })
}

fn guard_waits() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        drop(fd);
        until_it_rests(|| Ok(()))
    })
}

/// What a call writes to may be in no table any more, and the call was asked about nothing yet: the guard stays for its end.
fn guard_writes() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        drop(fd);
        let (full_out, full_in) = nix::unistd::pipe()?;
        let writes = asleep(&[libc::SYS_write], move || {
            nix::unistd::write(&full_in, &[0; 1 << 20])
        })?;
        let stays = daemon::past_guard(|| ensure(daemon::guard_armed()?, "the guard has gone"));
        drop(full_out);
        let _written = writes.join();
        stays?;
        until_idle()
    })
}

fn guard_waits_promoted() -> Outcome {
    let rises = place::file(LOW, "rises")?;
    let child = start(|| {
        lower(Untrusted)?;
        until_it_rests(|| {
            tell("waits")?;
            ensure(soon(daemon::guard_armed)?, "the guard does not come")
        })
    })?;
    told("waits")?;
    same("promote", daemon::quietly(&["promote", &rises])?, 0)?;
    child.join()?;
    Ok(fs::remove_file(&rises)?)
}

/// Where a thread of [`Juggler`] has a descriptor, in turn.
const PLACES: [libc::c_int; 2] = [300, 900];

/// A thread that moves a descriptor to and fro, so that there is always one.
struct Juggler {
    ends: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Juggler {
    fn start(fd: OwnedFd) -> Outcome<Juggler> {
        let ends = Arc::new(AtomicBool::new(false));
        sys::keep_as(&fd, PLACES[0])?;
        drop(fd);
        let told = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let [mut from, mut to] = PLACES;
            while !told.load(Ordering::Relaxed) {
                let _ = syscall!(libc::SYS_dup2, from, to);
                let _ = syscall!(libc::SYS_close, from);
                (from, to) = (to, from);
            }
        });
        Ok(Juggler { ends, thread })
    }

    /// Nothing is written by it, wherever it is just now.
    fn writes_nothing() -> Outcome {
        for place in PLACES {
            refused_any(
                &[Errno::EIO, Errno::EPERM, Errno::EBADF],
                syscall!(libc::SYS_pwrite64, place, b"evil".as_ptr(), 4, 0),
            )?;
        }
        Ok(())
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

fn moved() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        let juggler = Juggler::start(fd)?;
        daemon::past_guard(|| {
            Juggler::writes_nothing()?;
            ensure(daemon::guard_armed()?, "the guard has gone")
        })?;
        juggler.end();
        Juggler::writes_nothing()
    })
}

fn moved_in_fall() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    for _ in 0..16 {
        until_idle()?;
        start(|| {
            let juggler = Juggler::start(sys::both(&high)?)?;
            allowed(fs::read(&low))?;
            level::is(Untrusted)?;
            let kept = Juggler::writes_nothing();
            juggler.end();
            kept.and_then(|()| Juggler::writes_nothing())
        })?
        .join()?;
    }
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn guard_late() -> Outcome {
    until_idle()?;
    let daemon = daemon::pid().ok_or_else(|| Failed::because("no daemon runs"))?;
    let daemon = Pid::from_raw(daemon);
    let waker = start(|| {
        sleep(Duration::from_secs(4));
        Ok(kill(daemon, Signal::SIGCONT)?)
    })?;
    kill(daemon, Signal::SIGSTOP)?;
    let fell = fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        refused(Errno::EIO, sys::put(&fd))
    });
    waker.join()?;
    fell
}

/// The kernel lets go of a program some time after it was told to, and does not take it
/// back before that.
fn guard_leaving() -> Outcome {
    for later in [0, 200] {
        until_idle()?;
        sleep(Duration::from_millis(later));
        fallen(SYSTEM, OFlag::O_RDWR, |fd| {
            refused(Errno::EIO, sys::put(&fd))
        })?;
    }
    Ok(())
}

fn begun_before_guard() -> Outcome {
    until_idle()?;
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let probe = place::file(SYSTEM, "probe")?;
    start(|| {
        let fd = sys::both(&high)?;
        let (reads, writes) = pipe2(OFlag::O_CLOEXEC)?;
        let (to, from) = (fd.as_raw_fd(), reads.as_raw_fd());
        let (told, spliced) = mpsc::channel();
        thread::spawn(move || {
            // until the level has fallen
            while sys::writes(&probe).is_ok() {}
            let _ = told.send(syscall!(libc::SYS_splice, from, 0, to, 0, 3, 0));
        });
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        allowed(nix::unistd::write(&writes, b"low"))?;
        let result = spliced.recv_timeout(PATIENCE);
        refused_any(NO, result.unwrap_or(Err(Errno::ETIMEDOUT)))
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn write() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| refused(Errno::EIO, sys::put(&fd)))?;
    }
    let low = place::file(LOW, "low")?;
    for level in [User, System] {
        let own = place::file(home(level), "own")?;
        at(level, || {
            let fd = sys::both(&own)?;
            allowed(fs::read(&low))?;
            refused(Errno::EIO, sys::put(&fd))
        })?;
    }
    Ok(())
}

fn every_write() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        for flags in [
            OFlag::O_RDWR,
            OFlag::O_WRONLY | OFlag::O_APPEND,
            OFlag::O_WRONLY | OFlag::O_DIRECT,
            OFlag::O_WRONLY | OFlag::O_SYNC,
        ] {
            fallen(dir, flags, |fd| {
                let page = vec![b'l'; 8192];
                // aligned, for O_DIRECT
                let start = page.as_ptr().align_offset(4096);
                let vec = libc::iovec {
                    iov_base: page[start..].as_ptr().cast_mut().cast(),
                    iov_len: 4096,
                };
                let (raw, vec) = (fd.as_raw_fd(), &raw const vec);
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_write, raw, page[start..].as_ptr(), 4096),
                )?;
                refused(Errno::EIO, syscall!(libc::SYS_writev, raw, vec, 1))?;
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwrite64, raw, page[start..].as_ptr(), 4096, 0),
                )?;
                refused(Errno::EIO, syscall!(libc::SYS_pwritev, raw, vec, 1, 0, 0))?;
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwritev2, raw, vec, 1, 0, 0, 0),
                )?;
                // RWF_APPEND
                refused(
                    Errno::EIO,
                    syscall!(libc::SYS_pwritev2, raw, vec, 1, 0, 0, 0x10),
                )
            })?;
        }
    }
    Ok(())
}

fn truncate() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| {
            refused_any(NO, nix::unistd::ftruncate(&fd, 0))?;
            refused_any(NO, nix::unistd::ftruncate(&fd, 100))?;
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            for mode in [
                FallocateFlags::empty(),
                FallocateFlags::FALLOC_FL_KEEP_SIZE,
                hole,
            ] {
                refused_any(NO, fallocate(&fd, mode, 0, 2))?;
            }
            // ZERO_RANGE, COLLAPSE_RANGE, INSERT_RANGE
            for mode in [0x10, 0x08, 0x20] {
                let done = syscall!(libc::SYS_fallocate, fd.as_raw_fd(), mode, 0, 4096);
                refused_any(&[Errno::EIO, Errno::EPERM, Errno::EOPNOTSUPP], done)?;
            }
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            refused_any(NO, nix::unistd::truncate(path.as_str(), 0))
        })?;
    }
    Ok(())
}

fn copying() -> Outcome {
    for dir in [SYSTEM, TMPFS_SYSTEM] {
        fallen(dir, OFlag::O_RDWR, |fd| {
            let low = sys::reads(path(LOW, "low"))?;
            refused_any(NO, nix::sys::sendfile::sendfile(&fd, &low, None, 3))?;
            let copied = syscall!(
                libc::SYS_copy_file_range,
                low.as_raw_fd(),
                0,
                fd.as_raw_fd(),
                0,
                3,
                0
            );
            // between filesystems it may not be possible at all
            refused_any(&[Errno::EIO, Errno::EPERM, Errno::EXDEV], copied)?;
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            sys::put_all(&write, b"low")?;
            refused_any(
                NO,
                syscall!(
                    libc::SYS_splice,
                    read.as_raw_fd(),
                    0,
                    fd.as_raw_fd(),
                    0,
                    3,
                    0
                ),
            )?;
            const FICLONE: u64 = 0x4004_9409;
            let cloned = sys::ioctl(&fd, FICLONE, low.as_raw_fd() as usize);
            refused_any(
                &[
                    Errno::EIO,
                    Errno::EPERM,
                    Errno::EOPNOTSUPP,
                    Errno::EXDEV,
                    Errno::ENOTTY,
                ],
                cloned,
            )
        })?;
    }
    Ok(())
}

fn attributes() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        let raw = fd.as_raw_fd();
        refused_any(NO, syscall!(libc::SYS_fchmod, raw, 0o777))?;
        refused_any(NO, syscall!(libc::SYS_fchown, raw, 1000, 1000))?;
        refused_any(NO, syscall!(libc::SYS_utimensat, raw, 0, 0, 0))?;
        let (name, value) = (c"user.low", b"low");
        refused_any(
            NO,
            syscall!(
                libc::SYS_fsetxattr,
                raw,
                name.as_ptr(),
                value.as_ptr(),
                3,
                0
            ),
        )?;
        let flags: libc::c_long = 0x20;
        refused_any(NO, sys::ioctl(&fd, 0x4008_6602, &raw const flags as usize))
    })
}

fn duplicates() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        let copy = fd.try_clone()?;
        refused(Errno::EIO, sys::put(&copy))?;
        sys::keep_as(&fd, 100)?;
        refused(Errno::EIO, syscall!(libc::SYS_write, 100, b"x".as_ptr(), 1))?;
        refused(Errno::EPERM, sys::again(&fd, OFlag::O_WRONLY))?;
        start(|| refused(Errno::EIO, sys::put(&copy)))?.join()
    })
}

fn by_exec() -> Outcome {
    fallen(SYSTEM, OFlag::O_RDWR, |fd| {
        sys::keep_as(&fd, 100)?;
        let status = std::process::Command::new(format!("{}/scenarios", place::BIN))
            .args(["--helper", "write-fd", "100"])
            .status()?;
        same("its errno", status.code(), Some(libc::EIO))
    })
}

fn device() -> Outcome {
    let low = place::file(LOW, "low")?;
    start(|| {
        let log = sys::writes("/dev/kmsg")?;
        allowed(fs::read(&low))?;
        refused(Errno::EIO, sys::put_all(&log, b"<7>low\n"))
    })?
    .join()
}

fn directory() -> Outcome {
    let (dir, low) = (place::directory(SYSTEM, "dir")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::open(&dir, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        allowed(fs::read(&low))?;
        let make = OFlag::O_CREAT | OFlag::O_WRONLY;
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o666);
        refused(Errno::EPERM, nix::fcntl::openat(&fd, "new", make, mode))?;
        refused(Errno::EPERM, nix::sys::stat::mkdirat(&fd, "new", mode))
    })?
    .join()
}

fn between() -> Outcome {
    let (user, low) = (path(AREA, "user"), place::file(LOW, "low")?);
    at(User, || {
        fs::write(&user, "user")?;
        let fd = sys::both(&user)?;
        allowed(sys::put_all(&fd, b"u"))?;
        allowed(fs::read(&low))?;
        refused(Errno::EIO, sys::put(&fd))
    })?;
    at(User, || {
        same("the content", fs::read_to_string(&user)?.as_str(), "user")
    })
}
