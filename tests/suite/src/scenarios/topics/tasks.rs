//! Processes: what one may do to another.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::mpsc;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, setpgid};

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Child, Level, at, lower, spawn, start, step, tell, told};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub(super) const ROW: &str = "kill, ptrace";

pub const SCENARIOS: &[Scenario] = &[
    allow("task-own", "a subject acts on its equals", own).of(ROW),
    allow(
        "task-down",
        "and on lower ones, which it may stop and end",
        down,
    )
    .of(ROW),
    allow(
        "task-look-up",
        "and asks whether a higher one exists",
        look_up,
    ),
    allow(
        "proc-self-write",
        "a subject writes to its own files in /proc",
        proc_self,
    ),
    allow(
        "proc-look-down",
        "ps reads of lower processes what it needs, and stays",
        proc_look_down,
    ),
    deny(
        "task-signal-up",
        "no signal to a higher subject, by any call",
        signal_up,
    )
    .of(ROW),
    deny(
        "task-priority-up",
        "nor its priority, affinity, limits or group",
        priority_up,
    )
    .of(ROW),
    deny("proc-write-up", "nor its files in /proc", proc_write_up),
    bypass(
        "signal-by-owner",
        "a signal sent by the kernel to a descriptor's owner",
        by_owner,
    ),
    bypass(
        "signal-to-group",
        "a signal to a group, or to all",
        to_group,
    ),
    bypass(
        "signal-at-death",
        "the signal asked for at a lower parent's end comes by that end alone",
        at_death,
    ),
    bypass(
        "signal-at-thread-end",
        "and not by the end of the parent's thread that forked",
        at_thread_end,
    ),
];

/// A process at a level that does nothing.
pub(super) fn idle(level: Level) -> Outcome<Child> {
    let child = spawn(level, step)?;
    child.stands()?;
    Ok(child)
}

/// Each way of sending a signal.
fn signals(pid: Pid, signal: i32) -> Vec<Result<(), Errno>> {
    let mut info = [0i32; 32];
    (info[0], info[2]) = (signal, -1); // SI_QUEUE
    let raw = pid.as_raw();
    let pidfd = sys::pidfd_open(raw);
    vec![
        syscall!(libc::SYS_kill, raw, signal).map(drop),
        syscall!(libc::SYS_tkill, raw, signal).map(drop),
        syscall!(libc::SYS_tgkill, raw, raw, signal).map(drop),
        syscall!(libc::SYS_rt_sigqueueinfo, raw, signal, info.as_ptr()).map(drop),
        syscall!(libc::SYS_rt_tgsigqueueinfo, raw, raw, signal, info.as_ptr()).map(drop),
        pidfd
            .and_then(|fd| syscall!(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal, 0, 0))
            .map(drop),
    ]
}

fn own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let other = idle_here()?;
            for sent in signals(other.pid, libc::SIGCONT) {
                allowed(sent)?;
            }
            other.kill()?;
            let other = idle_here()?;
            for done in adjust(other.pid) {
                allowed(done)?;
            }
            allowed(write_memory(other.pid))?;
            allowed(ptrace::seize(other.pid, ptrace::Options::empty()))?;
            allowed(ptrace::detach(other.pid, None))?;
            level::is(level)?;
            other.kill()
        })?;
    }
    Ok(())
}

/// A process like this one that does nothing.
fn idle_here() -> Outcome<Child> {
    let child = start(step)?;
    child.stands()?;
    Ok(child)
}

fn down() -> Outcome {
    for (high, low) in [(System, Untrusted), (System, User), (User, Untrusted)] {
        at(high, || {
            let other = idle(low)?;
            for done in adjust(other.pid) {
                allowed(done)?;
            }
            for sent in signals(other.pid, libc::SIGCONT) {
                allowed(sent)?;
            }
            other.kill()?;
            level::is(high)
        })?;
    }
    Ok(())
}

fn look_up() -> Outcome {
    let high = idle(System)?;
    at(Untrusted, || {
        for sent in signals(high.pid, 0) {
            allowed(sent)?;
        }
        allowed(syscall!(
            libc::SYS_getpriority,
            libc::PRIO_PROCESS,
            high.pid.as_raw()
        ))?;
        allowed(nix::unistd::getpgid(Some(high.pid)))?;
        allowed(fs::read(format!("/proc/{}/stat", high.pid)))?;
        level::is(Untrusted)
    })?;
    high.kill()
}

fn proc_self() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            allowed(fs::write("/proc/self/oom_score_adj", "500"))?;
            allowed(fs::write("/proc/self/comm", "scenario"))?;
            allowed(fs::write("/proc/self/coredump_filter", "0x33"))?;
            allowed(fs::write("/proc/self/timerslack_ns", "50000"))?;
            allowed(sys::both("/proc/self/mem"))?;
            allowed(fs::write("/proc/thread-self/comm", "scenario"))?;
            let child = idle_here()?;
            allowed(fs::write(
                format!("/proc/{}/oom_score_adj", child.pid),
                "600",
            ))?;
            child.kill()?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn proc_look_down() -> Outcome {
    let low = idle(Untrusted)?;
    for file in [
        "stat",
        "status",
        "statm",
        "cgroup",
        "wchan",
        "limits",
        "mountinfo",
        "task",
    ] {
        let path = format!("/proc/{}/{file}", low.pid);
        if file == "task" {
            allowed(fs::read_dir(path))?;
        } else {
            allowed(fs::read(path))?;
        }
    }
    fs::read_link(format!("/proc/{}/exe", low.pid))?;
    level::is(System)?;
    low.kill()
}

fn signal_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let target = idle(high)?;
        at(low, || {
            for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGCONT, libc::SIGURG] {
                for sent in signals(target.pid, signal) {
                    refused(Errno::EPERM, sent)?;
                }
            }
            Ok(())
        })?;
        target.kill()?;
    }
    at(Untrusted, || {
        let Some(daemon) = crate::scenarios::daemon::pid() else {
            return Ok(());
        };
        refused(Errno::EPERM, kill(Pid::from_raw(daemon), Signal::SIGKILL))?;
        refused(Errno::EPERM, kill(Pid::from_raw(daemon), Signal::SIGSTOP))?;
        refused(Errno::EPERM, kill(Pid::from_raw(1), Signal::SIGTERM))
    })
}

/// Memory of this process that a child has at the same address.
pub(super) static WORD: u64 = 0x5ca1_ab1e;

pub(super) fn vectors() -> ([u64; 1], libc::iovec) {
    let local = [0u64];
    (
        local,
        libc::iovec {
            iov_base: (&raw const WORD).cast_mut().cast(),
            iov_len: 8,
        },
    )
}

pub(super) fn read_memory(pid: Pid) -> Result<u64, Errno> {
    let (mut word, there) = vectors();
    let here = libc::iovec {
        iov_base: word.as_mut_ptr().cast(),
        iov_len: 8,
    };
    syscall!(
        libc::SYS_process_vm_readv,
        pid.as_raw(),
        &raw const here,
        1,
        &raw const there,
        1,
        0
    )?;
    Ok(word[0])
}

pub(super) fn write_memory(pid: Pid) -> Result<(), Errno> {
    // to the stack: what is on it there nobody reads any more
    let target = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let stack = target
        .lines()
        .find(|l| l.ends_with("[stack]"))
        .and_then(|l| l.split('-').next());
    let address = stack
        .and_then(|a| usize::from_str_radix(a, 16).ok())
        .unwrap_or(0);
    let word = [7u64];
    let here = libc::iovec {
        iov_base: word.as_ptr().cast_mut().cast(),
        iov_len: 8,
    };
    let there = libc::iovec {
        iov_base: address as *mut _,
        iov_len: 8,
    };
    syscall!(
        libc::SYS_process_vm_writev,
        pid.as_raw(),
        &raw const here,
        1,
        &raw const there,
        1,
        0
    )
    .map(drop)
}

/// Each way of changing how another process runs.
fn adjust(pid: Pid) -> Vec<Result<(), Errno>> {
    const IOPRIO_WHO_PROCESS: i32 = 1;
    let raw = pid.as_raw();
    let (mask, priority) = (3u64, 0i32);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 4096));
    let limit = [soft, hard];
    // struct sched_attr: its size, and fifth the nice value, which goes no further down without privilege
    let attributes: [u32; 12] = [48, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    vec![
        syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, raw, 1).map(drop),
        syscall!(libc::SYS_sched_setaffinity, raw, 8, &raw const mask).map(drop),
        syscall!(
            libc::SYS_sched_setscheduler,
            raw,
            libc::SCHED_BATCH,
            &raw const priority
        )
        .map(drop),
        syscall!(libc::SYS_sched_setparam, raw, &raw const priority).map(drop),
        syscall!(libc::SYS_sched_setattr, raw, attributes.as_ptr(), 0).map(drop),
        syscall!(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, raw, 2 << 13 | 4).map(drop),
        syscall!(
            libc::SYS_prlimit64,
            raw,
            libc::RLIMIT_NOFILE,
            limit.as_ptr(),
            0
        )
        .map(drop),
    ]
}

fn priority_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let target = idle(high)?;
        at(low, || {
            for done in adjust(target.pid) {
                refused(Errno::EPERM, done)?;
            }
            let nodes = 1u64;
            let moved = syscall!(
                libc::SYS_migrate_pages,
                target.pid.as_raw(),
                8,
                &raw const nodes,
                &raw const nodes
            );
            refused_any(&[Errno::EPERM, Errno::ENOSYS], moved)
        })?;
        target.kill()?;
    }
    // a parent that fell may not move its child to another group
    let parent = start(|| {
        let child = idle_here()?;
        lower(Untrusted)?;
        refused(Errno::EPERM, setpgid(child.pid, child.pid))?;
        // it can end it no more: the scenario's player does
        Ok(())
    })?;
    parent.join()
}

fn proc_write_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let target = idle(high)?;
        let proc = format!("/proc/{}", target.pid);
        at(low, || {
            for file in [
                "oom_score_adj",
                "comm",
                "coredump_filter",
                "clear_refs",
                "autogroup",
                "timerslack_ns",
            ] {
                refused_any(
                    &[Errno::EPERM, Errno::EACCES],
                    sys::writes(format!("{proc}/{file}")),
                )?;
            }
            Ok(())
        })?;
        target.kill()?;
    }
    Ok(())
}

fn by_owner() -> Outcome {
    const F_SETSIG: i32 = 10;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let high = idle(User)?;
        at(Untrusted, || {
            let (read, write) =
                nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC | nix::fcntl::OFlag::O_NONBLOCK)?;
            let owned = syscall!(
                libc::SYS_fcntl,
                read.as_raw_fd(),
                libc::F_SETOWN,
                high.pid.as_raw()
            );
            if owned.is_ok() {
                syscall!(libc::SYS_fcntl, read.as_raw_fd(), F_SETSIG, signal)?;
                syscall!(
                    libc::SYS_fcntl,
                    read.as_raw_fd(),
                    libc::F_SETFL,
                    libc::O_ASYNC | libc::O_NONBLOCK
                )?;
                sys::put(&write)?;
            }
            Ok(())
        })?;
        // a stopped process keeps a signal that it was sent
        let status = fs::read_to_string(format!("/proc/{}/status", high.pid))?;
        let pending = status
            .lines()
            .find_map(|l| l.strip_prefix("ShdPnd:\t"))
            .unwrap_or("");
        ensure(
            u64::from_str_radix(pending, 16) == Ok(0),
            "the signal was sent",
        )?;
        high.kill()?;
    }
    Ok(())
}

fn to_group() -> Outcome {
    let (high, low) = (idle(User)?, idle(Untrusted)?);
    for child in [&high, &low] {
        setpgid(child.pid, high.pid)?;
    }
    at(Untrusted, || {
        // some of the group could be reached, so the call itself says nothing
        let _ = kill(Pid::from_raw(-high.pid.as_raw()), Signal::SIGTERM);
        let _ = syscall!(libc::SYS_setpriority, libc::PRIO_PGRP, high.pid.as_raw(), 7);
        Ok(())
    })?;
    let status = fs::read_to_string(format!("/proc/{}/status", high.pid))?;
    ensure(
        status.contains("ShdPnd:\t0000000000000000"),
        "the signal was sent",
    )?;
    let nice = syscall!(libc::SYS_getpriority, libc::PRIO_PROCESS, high.pid.as_raw())?;
    same("its priority", 20 - nice, 0)?;
    high.kill()?;
    low.kill()
}

fn at_death() -> Outcome {
    // the kernel sends a lower parent's end to the child that asked to hear of it, and
    // nothing else gets from the one to the other
    start(|| {
        // SAFETY: no argument is a pointer.
        Errno::result(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
        start(|| {
            let asked = start(|| {
                let end = SigSet::from(Signal::SIGUSR1);
                end.thread_block()?;
                // SAFETY: no argument is a pointer.
                Errno::result(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR1) })?;
                step()?;
                // SAFETY: an alarm ends a process that waits in vain.
                unsafe { libc::alarm(300) };
                same("what came", end.wait()?, Signal::SIGUSR1)
            })?;
            asked.stands()?;
            asked.go()?;
            lower(Untrusted)?;
            for sent in signals(asked.pid, libc::SIGUSR1) {
                refused(Errno::EPERM, sent)?;
            }
            Ok(())
        })?
        .join()?;
        signal_came()
    })?
    .join()
}

/// Of the child that its subreaper is left with.
fn signal_came() -> Outcome {
    match wait()? {
        WaitStatus::Exited(_, 0) => Ok(()),
        other => Err(Failed::because(format_args!(
            "the signal did not come: {other:?}"
        ))),
    }
}

fn at_thread_end() -> Outcome {
    start(|| {
        // SAFETY: no argument is a pointer.
        Errno::result(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
        start(|| {
            let (born, child) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let forks = std::thread::spawn(move || {
                let task = format!("/proc/self/task/{}", nix::unistd::gettid());
                // SAFETY: the child makes system calls only, none that needs a lock of the other thread.
                let _ = born.send(start(|| {
                    let end = SigSet::from(Signal::SIGUSR1);
                    end.thread_block()?;
                    // SAFETY: no argument is a pointer.
                    Errno::result(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR1) })?;
                    step()?;
                    told("thread-has-ended")?;
                    let status = fs::read_to_string("/proc/self/status")?;
                    ensure(
                        status.contains("ShdPnd:\t0000000000000000"),
                        "the signal was sent at a thread's end",
                    )?;
                    tell("has-looked")?;
                    // SAFETY: an alarm ends a process that waits in vain.
                    unsafe { libc::alarm(300) };
                    same("what came", end.wait()?, Signal::SIGUSR1)
                }));
                let _ = ends.recv();
                task
            });
            let Ok(asked) = child.recv() else {
                return Err(Failed::because("no child"));
            };
            let asked = asked?;
            asked.stands()?;
            asked.go()?;
            // still there when the process ends
            std::thread::spawn(|| std::thread::sleep(2 * PATIENCE));
            lower(Untrusted)?;
            drop(end);
            let task = forks
                .join()
                .map_err(|_| Failed::because("a thread panicked"))?;
            // the kernel sends what is to be sent before that
            ensure(soon(|| Ok(!fs::exists(&task)?))?, "the thread does not end")?;
            tell("thread-has-ended")?;
            told("has-looked")
        })?
        .join()?;
        signal_came()
    })?
    .join()
}
