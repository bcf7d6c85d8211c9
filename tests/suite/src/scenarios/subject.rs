//! Processes at a wanted level.
//!
//! They share no channel: a pipe to hear from a lower child by would lower its
//! parent. A child answers by its exit status, says why it failed in a file that
//! only a trusted program reads, and keeps step with its parent by stopping.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, gettid, setgroups, setresgid, setresuid};

use crate::scenarios::check::{Failed, Outcome, ensure, soon};
use crate::scenarios::level;
use crate::scenarios::place;
use crate::scenarios::report;
use crate::wait;

/// The policy's levels, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Lowest.
    Untrusted,
    /// Between.
    User,
    /// Top.
    System,
}

use Level::{System, Untrusted, User};

impl Level {
    /// All of them, lowest first.
    pub const ALL: [Level; 3] = [Untrusted, User, System];
    /// All but the top.
    pub const LOWER: [Level; 2] = [Untrusted, User];

    /// Its name in the policy.
    pub fn name(self) -> &'static str {
        match self {
            Untrusted => "untrusted",
            User => "user",
            System => "system",
        }
    }

    /// The level of a name.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.name() == name)
    }
}

/// The exit status of a process that has reported a failure.
pub const FAILED: i32 = 250;

/// Runs this part of a scenario in a child at a level, to its end.
#[track_caller]
pub fn at(level: Level, part: impl FnOnce() -> Outcome) -> Outcome {
    spawn(level, part)?.join()
}

/// Starts this part of a scenario in a child at a level.
pub fn spawn(level: Level, part: impl FnOnce() -> Outcome) -> Outcome<Child> {
    start(|| {
        lower(level)?;
        part()
    })
}

/// Starts this part of a scenario in a child as it is.
pub fn start(part: impl FnOnce() -> Outcome) -> Outcome<Child> {
    // SAFETY: scenario processes have one thread when they fork.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Child { pid: child }),
        ForkResult::Child => finish(part),
    }
}

/// Runs a part of a scenario. The result is the exit status of its process; a failure is reported.
pub fn status_of(part: impl FnOnce() -> Outcome) -> i32 {
    match catch_unwind(AssertUnwindSafe(part)) {
        Ok(Ok(())) => 0,
        Ok(Err(failed)) => {
            report::write(failed.text());
            FAILED
        }
        Err(_) => {
            report::write("panicked");
            FAILED
        }
    }
}

/// Runs a part and ends the process with what came of it.
pub fn finish(part: impl FnOnce() -> Outcome) -> ! {
    let status = status_of(part);
    // SAFETY: ends the process without running what the parent registered.
    unsafe { libc::_exit(status) }
}

/// Makes a call by which this process falls; up to three times, as `tidegate run --level` does, where
/// others are not at rest in time, which the call says by `busy` (docs/how-to/compatibility.md).
pub fn falling<T>(busy: Errno, call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..2 {
        match call() {
            Err(e) if e == busy => std::thread::sleep(Duration::from_millis(50)),
            other => return other,
        }
    }
    call()
}

/// Lowers this process, as `tidegate run --level` does.
pub fn lower(level: Level) -> Outcome {
    if level == System {
        return Ok(());
    }
    falling(Errno::EAGAIN, || {
        fs::read(place::level_file(level))
            .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))
    })?;
    let is = level::by_writing()?;
    if is != level {
        let (is, level) = (is.name(), level.name());
        return Err(Failed::because(format_args!(
            "reading the level file gave {is}, not {level}"
        )));
    }
    Ok(())
}

/// Becomes an ordinary user, uid 1000 in the guest.
pub fn become_alice() -> Outcome {
    become_user(1000)
}

/// Becomes the user of a number, in the group of that number alone.
pub fn become_user(number: u32) -> Outcome {
    let (uid, gid) = (Uid::from_raw(number), Gid::from_raw(number));
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    // as a program is that a user has started: it sees its own threads in /proc
    nix::sys::prctl::set_dumpable(true)?;
    Ok(())
}

/// Moves into a user namespace of its own, as root in it, and into others.
pub fn own_namespaces(others: CloneFlags) -> Outcome {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER | others)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    Ok(())
}

/// A part of a scenario that runs in a process of its own.
#[derive(Debug)]
#[must_use]
pub struct Child {
    /// Its process id.
    pub pid: Pid,
}

impl Child {
    /// Waits until it stands still at its next [`step`].
    #[track_caller]
    pub fn stands(&self) -> Outcome {
        match waitpid(self.pid, Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(()),
            WaitStatus::Exited(_, FAILED) => Err(Failed::reported()),
            other => Err(Failed::because(format_args!(
                "the child did not stop: {other:?}"
            ))),
        }
    }

    /// Lets it go on.
    #[track_caller]
    pub fn go(&self) -> Outcome {
        Ok(kill(self.pid, Signal::SIGCONT)?)
    }

    /// Lets it go on from its first [`step`], and waits until it sleeps in the call that it makes then. Whether it has
    /// ended instead, [`Child::join`] says.
    #[track_caller]
    pub fn waits(&self) -> Outcome {
        self.stands()?;
        self.go()?;
        self.sleeps()
    }

    /// Waits until it sleeps in a call that waits for others.
    #[track_caller]
    pub fn sleeps(&self) -> Outcome {
        let task = format!("/proc/{}", self.pid);
        let sleeps = soon(|| Ok(matches!(wait::state(&task), None | Some('S' | 'Z'))))?;
        ensure(sleeps, "the child does not wait")
    }

    /// Waits for its end.
    #[track_caller]
    pub fn join(self) -> Outcome {
        match self.status()? {
            WaitStatus::Exited(_, 0) => Ok(()),
            WaitStatus::Exited(_, FAILED) => Err(Failed::reported()),
            other => Err(Failed::because(format_args!(
                "the child ended otherwise: {other:?}"
            ))),
        }
    }

    /// Lets it go on from its last [`step`] and waits for its end.
    #[track_caller]
    pub fn join_after_step(self) -> Outcome {
        self.go()?;
        self.join()
    }

    /// Waits for its end, whatever that is.
    pub fn status(self) -> Outcome<WaitStatus> {
        loop {
            match waitpid(self.pid, None) {
                Err(Errno::EINTR) => {}
                status => return Ok(status?),
            }
        }
    }

    /// Ends it.
    pub fn kill(self) -> Outcome {
        kill(self.pid, Signal::SIGKILL)?;
        self.status()?;
        Ok(())
    }
}

/// In a child: stands still until the parent lets it go on.
pub fn step() -> Outcome {
    Ok(raise(Signal::SIGSTOP)?)
}

/// Gives a sign to other processes of this scenario, whatever their levels.
pub fn tell(sign: &str) -> Outcome {
    Ok(fs::write(place::path(place::TMPFS_LOW, sign), "")?)
}

/// Waits until a sign is given. It is seen, and not read: nobody falls by it.
#[track_caller]
pub fn told(sign: &str) -> Outcome {
    let path = place::path(place::TMPFS_LOW, sign);
    let is = soon(|| Ok(fs::exists(&path)?))?;
    ensure(is, &format!("the sign `{sign}` does not come"))
}

/// Starts a thread, and waits until it sleeps in one of these system calls.
pub fn asleep<T: Send + 'static>(
    calls: &[libc::c_long],
    part: impl FnOnce() -> T + Send + 'static,
) -> Outcome<JoinHandle<T>> {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(gettid());
        part()
    });
    let id = told
        .recv()
        .map_err(|e| Failed::because(format_args!("no thread: {e}")))?;
    let task = format!("/proc/self/task/{id}");
    let sleeps = soon(|| Ok(wait::call(&task).is_some_and(|call| calls.contains(&call))))?;
    ensure(sleeps, "the thread does not wait")?;
    Ok(thread)
}

/// Awake for so long, and in no system call.
pub fn busy(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {}
}
