//! The guard, which revokes descriptors: it comes in time, stays for as long as somebody may hold one, and goes.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, sleep};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pipe2};

use super::revocation::{NO, fallen};
use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::place::{self, LOW, SYSTEM};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, asleep, lower, spawn, start, step, tell, told};
use crate::scenarios::{daemon, level, sys};
use crate::sys::syscall;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
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
    bypass(
        "revoke-begun-before-guard",
        "a splice that another thread begins, and that stalls, while the guard is awaited",
        begun_before_guard,
    ),
    bypass(
        "descriptors-by-million",
        "two processes have more descriptors than the kernel lists at once, and the guard is to go all the same",
        by_million,
    )
    .slow(),
];

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
        // of the ten seconds that a fall waits
        sleep(Duration::from_secs(2));
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
