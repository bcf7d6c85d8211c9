//! Descriptors that reach a task: by a performance counter it is stopped, and a pidfd's end may be its own. A process that
//! falls below the task does not keep them, nor is one handed them there.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::SockType::Datagram;

use crate::scenarios::check::{Attempt, Failed, Outcome, allowed, ensure, refused, refused_any};
use crate::scenarios::level;
use crate::scenarios::place;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, falling, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, fresh, named, receive, send};
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "counter-own",
        "a process that falls keeps a counter of its own work, and one of a task that has ended",
        counter_own,
    ),
    bypass(
        "counter-inherited",
        "a process that falls stops its higher child by a counter that the child has inherited, or looks at all of a processor",
        counter_inherited,
    ),
    bypass(
        "counter-of-another",
        "a process that falls, or a lower one that receives the descriptor, stops a higher process by a counter",
        counter_of_another,
    ),
    bypass(
        "pidfd-autokill",
        "a process that falls, or a lower one that receives the pidfd, kills a higher process by closing it (CLONE_PIDFD_AUTOKILL)",
        autokill,
    ),
];

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES, Errno::EAGAIN];

/// A task clock that looks at the task each millisecond, once it is switched on.
fn counts(pid: i32, processor: i32, inherited: bool) -> Outcome<OwnedFd> {
    // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
    let mut attributes = [0u64; 16];
    attributes[0] = 1 | 128 << 32;
    attributes[2] = 1_000_000;
    // disabled, inherit, exclude_kernel
    attributes[5] = 1 | u64::from(inherited) << 1 | 1 << 5;
    Ok(sys::owned(syscall!(
        libc::SYS_perf_event_open,
        attributes.as_ptr(),
        pid,
        processor,
        -1i32,
        0
    )?)?)
}

fn falls() -> Result<(), Errno> {
    falling(Errno::EAGAIN, || {
        fs::read(place::level_file(Untrusted)).made().map(drop)
    })
}

/// Cannot fall while it has the descriptor, and can then.
fn falls_without(fd: OwnedFd) -> Outcome {
    refused(Errno::EACCES, falls())?;
    level::is(System)?;
    drop(fd);
    allowed(falls())?;
    level::is(Untrusted)
}

fn counter_own() -> Outcome {
    start(|| {
        let own = counts(0, -1, false)?;
        let inherited = counts(0, -1, true)?;
        start(|| Ok(()))?.join()?;
        let ended = start(step)?;
        ended.stands()?;
        let of_ended = counts(ended.pid.as_raw(), -1, false)?;
        ended.kill()?;
        allowed(falls())?;
        for counter in [&own, &inherited, &of_ended] {
            allowed(sys::get(counter))?;
        }
        level::is(Untrusted)
    })?
    .join()
}

fn counter_inherited() -> Outcome {
    start(|| {
        let counter = counts(0, -1, true)?;
        let child = start(|| {
            // it counts all the same
            syscall!(libc::SYS_close, counter.as_raw_fd())?;
            step()
        })?;
        child.stands()?;
        let tried = refused(Errno::EACCES, falls());
        child.kill()?;
        tried?;
        // it counts nobody else any more
        allowed(falls())?;
        allowed(sys::get(&counter))?;
        level::is(Untrusted)
    })?
    .join()?;
    start(|| falls_without(counts(-1, 0, false)?))?.join()
}

fn counter_of_another() -> Outcome {
    let equal = start(step)?;
    equal.stands()?;
    let pid = equal.pid.as_raw();
    let kept = start(|| falls_without(counts(pid, -1, false)?))?.join();
    // by prctl(2) it switches what it has opened, though another process has the descriptor alone
    let opened = start(|| {
        let counter = counts(pid, -1, false)?;
        let holder = start(step)?;
        holder.stands()?;
        drop(counter);
        let tried = refused(Errno::EACCES, falls());
        holder.kill()?;
        tried?;
        allowed(falls())
    })?
    .join();
    let taken = handed(|| counts(pid, -1, false));
    equal.kill()?;
    kept?;
    opened?;
    taken
}

/// What a process at the top sends, and does not keep, no low process gets.
fn handed(make: impl FnOnce() -> Outcome<OwnedFd>) -> Outcome {
    let name = abstract_name("taker")?;
    let low = spawn(Untrusted, || {
        let socket = named(Datagram, &name)?;
        step()?;
        let got = receive(&socket).unwrap_or_default();
        ensure(got.fds.is_empty(), "it was handed to a lower process")
    })?;
    low.stands()?;
    start(|| {
        let sent = send(&fresh(Datagram)?, Some(&name), &[make()?.as_raw_fd()]);
        match sent {
            Ok(()) => Ok(()),
            Err(e) => refused_any(NO, Err::<(), _>(e)),
        }
    })?
    .join()?;
    low.join_after_step()
}

/// A child that waits until it is killed, as soon as nobody has what this gives; `None` where the kernel cannot.
fn doomed() -> Outcome<Option<OwnedFd>> {
    const PIDFD: u64 = 0x1000;
    /// CLONE_AUTOREAP, CLONE_NNP and CLONE_PIDFD_AUTOKILL
    const AUTOKILL: u64 = 7 << 34;
    let mut fd = -1i32;
    // struct clone_args
    let mut how = [0u64; 11];
    how[0] = PIDFD | AUTOKILL;
    how[1] = &raw mut fd as u64;
    match syscall!(libc::SYS_clone3, how.as_ptr(), 88) {
        Ok(0) => loop {
            nix::unistd::pause();
        },
        Ok(_) => Ok(Some(sys::owned(fd)?)),
        // since 7.1
        Err(Errno::EINVAL) => Ok(None),
        Err(e) => Err(e)?,
    }
}

fn autokill() -> Outcome {
    if doomed()?.is_none() {
        return Ok(());
    }
    start(|| match doomed()? {
        Some(child) => falls_without(child),
        None => Ok(()),
    })?
    .join()?;
    // one at the same level is one's own to end
    start(|| {
        lower(Untrusted)?;
        let child = doomed()?;
        level::is(Untrusted)?;
        drop(child);
        Ok(())
    })?
    .join()?;
    handed(|| doomed()?.ok_or_else(|| Failed::because("it could be made before")))
}
