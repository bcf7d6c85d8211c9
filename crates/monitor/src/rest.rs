//! Has threads be seen outside of whatever they began earlier.
//!
//! A read(2) that waits, or a mapping that is being made, was decided before it began to wait. So after a policy has
//! been put in force, each thread that it governs is made to leave the kernel once, where it is not already in a call
//! that only waits: ptrace(2), PTRACE_SEIZE and PTRACE_INTERRUPT, which the thread itself does not notice; a call that was
//! interrupted begins anew, or ends as after any other signal that is not handled (signal(7)). What it
//! does from then on is decided anew.
//!
//! Which call a thread is in the monitor's part in the kernel tells (`ps_call` of kernel/lomac/iter.h): procfs gives a number without
//! saying whose it is, though i386 has others, and waits for an execution that is under way, which may not end. Whatever a
//! thread has begun since it was told, it has begun after the policy was in force.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::param;

use crate::error::{Result, Trying};
use crate::event::boottime;

/// How long a thread may take to leave the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Calls that only wait: nothing is read, written, mapped or opened by them.
const WAITS: &[i64] = &[
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_wait4,
    libc::SYS_waitid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// Threads of io_uring and the like, which never leave the kernel: PF_IO_WORKER, PF_USER_WORKER (linux/sched.h).
const WORKER: u64 = 0x10 | 0x4000;

/// The call that each thread is in, or was in last, by its number; one that is no number of this machine's: in none that is known.
pub(crate) type Calls = HashMap<u32, u32>;

/// Has all threads of these processes be at rest once; the processes of those that were not to be had.
///
/// `calls` tells the call that each thread is in, by its number.
///
/// # Errors
/// [`crate::Error::Io`] if no thread can be started: then none was at rest; or those of `calls`.
pub(crate) fn bring(pids: &[u32], calls: impl Fn() -> Result<Calls> + Sync) -> Result<Vec<u32>> {
    // a thread lets go of the tasks that it traces when it ends, whether they have stopped or not
    thread::scope(|scope| {
        let all = thread::Builder::new()
            .name("rest".into())
            .spawn_scoped(scope, || bring_here(pids, &calls))
            .trying(|| "start a thread".into())?;
        all.join().unwrap_or_else(|_| Ok(pids.to_vec()))
    })
}

fn bring_here(pids: &[u32], calls: &dyn Fn() -> Result<Calls>) -> Result<Vec<u32>> {
    let (until, begun) = (Instant::now() + PATIENCE, boottime());
    let mut seen = HashSet::new();
    let mut late = HashSet::new();
    // a thread that is born meanwhile begins with nothing, and there may be no end of those;
    // another pass finds one that was missed in a list that changed
    loop {
        let fresh: Vec<Thread> = (pids.iter().flat_map(|&pid| threads(pid)))
            .filter(|thread| seen.insert(thread.tid) && thread.started <= begun)
            .collect();
        if fresh.is_empty() {
            return Ok(late.into_iter().collect());
        }
        late.extend(pass(fresh, until, calls)?);
    }
}

/// A thread.
#[derive(Debug, Clone, Copy)]
struct Thread {
    pid: u32,
    tid: u32,
    /// As [`Stat::started`]: what has its number later is another thread.
    started: u64,
}

fn threads(pid: u32) -> Vec<Thread> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let tids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    tids.filter_map(|tid| Thread::find(pid, tid)).collect()
}

/// How far a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It was asked to stop.
    Asked,
    /// Another traces it.
    Others,
}

/// The processes of those that were not at rest in time.
fn pass(
    threads: Vec<Thread>,
    until: Instant,
    calls: &dyn Fn() -> Result<Calls>,
) -> Result<Vec<u32>> {
    let mut under_way: Vec<(Thread, Stage)> = Vec::new();
    let mut now = calls()?;
    for thread in threads {
        if thread.rests(&now) {
            continue;
        }
        let tid = Pid::from_raw(thread.tid as i32);
        let stage = match ptrace::seize(tid, ptrace::Options::empty()) {
            Ok(()) => Stage::Asked,
            Err(nix::Error::ESRCH) => continue,
            Err(_) => Stage::Others,
        };
        if stage == Stage::Asked {
            // one that has died meanwhile is waited for like the rest
            let _ = ptrace::interrupt(tid);
        }
        under_way.push((thread, stage));
    }
    loop {
        under_way.retain(|(thread, stage)| match stage {
            Stage::Asked => !thread.stopped(),
            Stage::Others => !thread.rests(&now),
        });
        if under_way.is_empty() || Instant::now() > until {
            break;
        }
        thread::sleep(LOOK_AGAIN);
        if under_way.iter().any(|(_, stage)| *stage == Stage::Others) {
            now = calls()?;
        }
    }
    Ok(under_way.iter().map(|(thread, _)| thread.pid).collect())
}

/// What proc_pid_stat(5) says of a thread.
struct Stat {
    state: char,
    flags: u64,
    /// Nanoseconds after the machine's start, rounded down to a tick of its clock.
    started: u64,
}

impl Thread {
    /// None: there is none with this number.
    fn find(pid: u32, tid: u32) -> Option<Thread> {
        let nobody = Thread {
            pid,
            tid,
            started: 0,
        };
        let started = nobody.stat()?.started;
        Some(Thread { started, ..nobody })
    }

    fn file(self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/task/{}/{name}", self.pid, self.tid)).ok()
    }

    /// None: it has ended. Another's, if that has its number by now.
    fn stat(self) -> Option<Stat> {
        let stat = self.file("stat")?;
        // behind the name, which may have anything in it: from the third one on
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let flags = fields.nth(5)?.parse().ok()?;
        let ticks: u64 = fields.nth(12)?.parse().ok()?;
        Some(Stat {
            state,
            flags,
            started: ticks * (1_000_000_000 / param::clock_ticks_per_second()),
        })
    }

    /// Whether it is in no call that could use a permission. It may have begun one since: that is decided anew.
    fn rests(self, calls: &Calls) -> bool {
        let Some(stat) = self.stat().filter(|stat| stat.started == self.started) else {
            return true;
        };
        if matches!(stat.state, 't' | 'T' | 'Z' | 'X') || stat.flags & WORKER != 0 {
            return true;
        }
        // a thread that is not among them has ended since
        (calls.get(&self.tid)).is_none_or(|&number| WAITS.contains(&number.into()))
    }

    /// Whether it has stopped, and goes on; or has ended.
    fn stopped(self) -> bool {
        let tid = Pid::from_raw(self.tid as i32);
        let go_on = |signal: Option<Signal>| {
            let _ = ptrace::detach(tid, signal);
            true
        };
        match waitpid(tid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => false,
            // on its way to a handler: it takes the signal along
            Ok(WaitStatus::Stopped(_, signal)) => go_on(Some(signal)),
            Ok(WaitStatus::PtraceEvent(..)) => go_on(None),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    fn child(program: &str, args: &[&str]) -> std::process::Child {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    /// As procfs tells.
    fn calls(of: &[u32]) -> Result<Calls> {
        let number = |pid: u32| {
            let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
            Some((pid, call.split(' ').next()?.parse().unwrap_or(u32::MAX)))
        };
        Ok(of.iter().filter_map(|&pid| number(pid)).collect())
    }

    #[test]
    fn who_is_in_a_call_of_i386_is_not_known_to_wait() {
        let mut sleep = child("sleep", &["100"]);
        std::thread::sleep(Duration::from_millis(100));
        let pid = sleep.id();
        let thread = Thread::find(pid, pid).unwrap();
        assert!(thread.rests(&calls(&[pid]).unwrap()));
        let reads = HashMap::from([(pid, u32::MAX - 1)]);
        assert!(!thread.rests(&reads));
        // it has ended, and the number is another's
        let before = Thread {
            started: thread.started - 1,
            ..thread
        };
        assert!(before.rests(&reads));
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }

    #[test]
    fn who_reads_goes_on_reading_and_who_sleeps_is_left_alone() {
        let (mut cat, mut sleep) = (child("cat", &[]), child("sleep", &["100"]));
        let mut spins = child("sh", &["-c", "while :; do :; done"]);
        std::thread::sleep(Duration::from_millis(100));
        let all = [cat.id(), sleep.id(), spins.id()];
        let late = bring(&all, || calls(&all)).unwrap();
        assert!(late.is_empty(), "{late:?}");
        cat.stdin.take().unwrap().write_all(b"after").unwrap();
        let mut text = String::new();
        cat.stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "after");
        assert!(sleep.try_wait().unwrap().is_none() && spins.try_wait().unwrap().is_none());
        for mut one in [sleep, spins] {
            one.kill().unwrap();
            one.wait().unwrap();
        }
    }

    #[test]
    fn who_is_stopped_stays_so_and_who_is_gone_is_no_matter() {
        let mut stopped = child("cat", &[]);
        let pid = Pid::from_raw(stopped.id() as i32);
        nix::sys::signal::kill(pid, Signal::SIGSTOP).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(
            bring(&[stopped.id()], || calls(&[stopped.id()]))
                .unwrap()
                .is_empty()
        );
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        assert!(stat.contains(") T "), "{stat}");
        stopped.kill().unwrap();
        stopped.wait().unwrap();
        assert!(
            bring(&[stopped.id()], || calls(&[stopped.id()]))
                .unwrap()
                .is_empty()
        );
    }
}
