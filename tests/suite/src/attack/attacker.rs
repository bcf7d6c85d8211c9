//! The attacker: opens higher objects, falls to the lowest level, and makes calls, in workers that it forks.
//!
//! A worker makes some calls one after another, so that what one leaves behind meets the next. One that ends, or that does not
//! get on, is followed by another one, after the call that ended it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Uid, fork, pause, setgroups, setresgid, setresuid, setsid};

use crate::attack::arena::Arena;
use crate::attack::calls::{self, Abi, Row};
use crate::attack::draw::Draw;
use crate::attack::given::{self, Given};
use crate::attack::log::Log;
use crate::attack::raw;
use crate::sys::{self, c};

/// Calls of one worker.
const RUN: u64 = 32;
/// How long a call may wait before a signal ends that, in microseconds.
const PATIENCE: libc::suseconds_t = 30_000;
/// How long a worker may take for a run.
const DEADLINE: Duration = Duration::from_secs(3);
/// What lowers its reader.
const LEVEL: &str = "/run/tidegate/level/untrusted";

/// What the attacker is to do; the judge hands it over as a word.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Order {
    /// What arguments are drawn by.
    pub seed: u64,
    /// The first call that is not made any more; where to begin, the log says.
    pub end: u64,
    /// Whether it is root.
    pub root: bool,
    /// What there is to attack.
    pub given: Given,
}

/// Makes the calls, and waits to be ended.
///
/// # Errors
/// What it needs for that is not there.
pub fn run(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order).context("the order")?;
    let rows = calls::rows()?;
    let mut held = hold(&order.given);
    let dropped = fall(&mut held)?;
    let log = Log::map()?;
    (0..dropped).for_each(|_| log.drop_descriptor());
    if !order.root {
        become_user()?;
    }
    let descriptors = held.iter().map(|fd| fd.as_raw_fd() + 1).max().unwrap_or(3);
    while log.next() < order.end {
        let begin = log.next();
        let end = order.end.min(begin + RUN);
        // SAFETY: this process has one thread.
        match unsafe { fork() }? {
            ForkResult::Child => {
                let played = play(&order, &rows, log, descriptors, end);
                // SAFETY: ends the worker without running what the parent registered.
                unsafe { libc::_exit(i32::from(played.is_err())) }
            }
            ForkResult::Parent { child } => {
                let process = sys::syscall!(libc::SYS_pidfd_open, child.as_raw(), 0)?;
                // SAFETY: the kernel has just made it for this process.
                let process = unsafe { OwnedFd::from_raw_fd(process as i32) };
                let patience = PollTimeout::try_from(DEADLINE).unwrap_or(PollTimeout::MAX);
                let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
                if poll(&mut fds, patience).unwrap_or(0) == 0 {
                    let _ = kill(child, Signal::SIGKILL);
                }
                // a child of its own that another's signal has ended is gone by then
                let _ = waitpid(child, None);
            }
        }
        // a worker that cannot even begin does not do so forever
        if log.next() == begin {
            log.skip();
        }
    }
    // the judge looks at the level, and ends it
    loop {
        pause();
    }
}

/// Makes calls up to this one, from where the log says.
fn play(order: &Order, rows: &[Row], log: &Log, descriptors: i32, end: u64) -> Result<()> {
    // signals to a group are to this worker's
    let _ = setsid();
    let mut draw = Draw::new(Arena::map()?, &order.given, descriptors);
    let me = std::process::id();
    let mut rounds = Rounds::new(order.seed, rows.len());
    for number in log.next()..end {
        let at = rounds.row(number);
        let row = &rows[at];
        arm();
        let args = draw.args(order.seed, number, row)?;
        log.begin(number, at, &args);
        let result = raw::call(row.abi, row.number, &args);
        // a call that returns twice
        if sys::syscall!(libc::SYS_getpid)? != i64::from(me) {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        arm();
        look_behind(row, result, &mut draw.arena);
        if draw.arena.end_call() {
            log.leaked(number);
        }
        log.end(number, at, result);
    }
    Ok(())
}

/// Which row each call is of: all of them once, and then again in another order.
#[derive(Debug)]
pub struct Rounds {
    seed: u64,
    /// A round, and its order.
    known: (u64, Vec<usize>),
    rows: usize,
}

impl Rounds {
    /// By a seed, of so many rows.
    pub fn new(seed: u64, rows: usize) -> Self {
        Self {
            seed,
            known: (0, Vec::new()),
            rows,
        }
    }

    /// The row of a call.
    pub fn row(&mut self, number: u64) -> usize {
        let (round, at) = (number / self.rows as u64, number % self.rows as u64);
        if self.known.0 != round || self.known.1.is_empty() {
            let mut order: Vec<usize> = (0..self.rows).collect();
            fastrand::Rng::with_seed(self.seed.wrapping_add(round)).shuffle(&mut order);
            self.known = (round, order);
        }
        self.known.1[at as usize]
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// Sees to it that the next call does not wait for long, whatever the last one has done to signals and timers.
fn arm() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    // SAFETY: integers and a pointer to a function, all of which may be 0.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    let timer = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: PATIENCE,
        },
        it_value: libc::timeval {
            tv_sec: 0,
            tv_usec: PATIENCE,
        },
    };
    // SAFETY: the handler does nothing, and the structures outlive the calls.
    unsafe {
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// Reads what a call has given access to: a new descriptor's content, or new memory.
fn look_behind(row: &Row, result: i64, arena: &mut Arena) {
    let opens = ["open", "creat", "pidfd_getfd", "mq_open", "memfd"];
    let maps = ["mmap", "ia32_mmap", "mmap_pgoff", "shmat", "mremap"];
    let out = arena.out();
    let length = 4096;
    if (0..4096).contains(&result) && opens.iter().any(|begin| row.call.starts_with(begin)) {
        let _ = sys::syscall!(libc::SYS_pread64, result, out, length, 0);
    } else if maps.contains(&row.call) {
        let at = match row.abi {
            Abi::X64 => result,
            Abi::I386 => i64::from(result as u32),
        };
        let vector = |base: i64| [base, length];
        let (to, from) = (vector(out as i64), vector(at));
        let _ = sys::syscall!(
            libc::SYS_process_vm_readv,
            std::process::id(),
            to.as_ptr(),
            1,
            from.as_ptr(),
            1,
            0
        );
    }
}

/// Is an ordinary user from now on.
fn become_user() -> Result<()> {
    let (uid, gid) = (Uid::from_raw(1000), Gid::from_raw(1000));
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    // SAFETY: numbers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    Ok(())
}

/// Falls to the lowest level. What hinders that is closed, from the last on: how much.
fn fall(held: &mut Vec<OwnedFd>) -> Result<u64> {
    let mut dropped = 0;
    loop {
        // what others do at the moment is let to pass
        let fell = (0..20).find_map(|_| match fs::read(LEVEL) {
            Ok(_) => Some(Ok(())),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                std::thread::yield_now();
                None
            }
            Err(e) => Some(Err(e)),
        });
        if let Some(Ok(())) = fell {
            return Ok(dropped);
        }
        match held.pop() {
            Some(last) => drop(last),
            None => bail!("cannot fall: {fell:?}"),
        }
        dropped += 1;
    }
}

/// Opens higher objects in every way there is, while this process is at the top. What may hinder a fall comes last.
fn hold(given: &Given) -> Vec<OwnedFd> {
    let mut held = Vec::new();
    let mut open = |path: &str, flags: i32| {
        let write = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let read = flags & libc::O_ACCMODE != libc::O_WRONLY;
        let opened = OpenOptions::new()
            .read(read)
            .write(write)
            .custom_flags(flags | libc::O_NONBLOCK)
            .open(path);
        held.extend(opened.ok().map(OwnedFd::from));
    };
    for root in given::ROOTS {
        for file in ["plain", "theirs", "log", "dir/inner"] {
            for flags in [
                libc::O_RDONLY,
                libc::O_WRONLY,
                libc::O_RDWR | libc::O_APPEND,
                libc::O_PATH,
            ] {
                open(&format!("{root}/top/{file}"), flags);
            }
        }
        for dir in ["top", "top/dir", "top/theirs-dir", "low"] {
            open(&format!("{root}/{dir}"), libc::O_RDONLY | libc::O_DIRECTORY);
        }
        open(&format!("{root}/low/file"), libc::O_RDWR);
        open(&format!("{root}/secret"), libc::O_PATH);
    }
    for path in [
        "/",
        "/etc",
        "/proc",
        "/sys/fs/cgroup",
        "/proc/1/ns/mnt",
        "/proc/1/ns/uts",
        "/proc/1/ns/net",
        "/proc/1/ns/user",
    ] {
        open(path, libc::O_RDONLY);
    }
    for process in given.processes.iter().take(2) {
        open(&format!("/proc/{process}"), libc::O_RDONLY);
    }
    for path in [
        "/dev/null",
        "/dev/random",
        "/dev/loop-control",
        "/dev/loop0",
        "/dev/vda",
        "/dev/fuse",
        "/dev/net/tun",
        "/dev/tty0",
        "/dev/tty1",
        "/dev/ptmx",
        "/dev/rtc0",
        "/dev/kmsg",
        "/dev/snapshot",
        "/dev/cpu_dma_latency",
        "/dev/uinput",
    ] {
        open(path, libc::O_RDWR);
    }
    sockets(&mut held);
    for process in &given.processes {
        own(&mut held, sys::syscall!(libc::SYS_pidfd_open, *process, 0));
    }
    let (name, here, fs) = (c(given::NAME), c("/"), c("tmpfs"));
    own(
        &mut held,
        sys::syscall!(
            libc::SYS_mq_open,
            name.as_ptr(),
            libc::O_RDWR | libc::O_NONBLOCK,
            0,
            0
        ),
    );
    own(
        &mut held,
        sys::syscall!(libc::SYS_open_tree, libc::AT_FDCWD, here.as_ptr(), 1),
    );
    own(&mut held, sys::syscall!(libc::SYS_fsopen, fs.as_ptr(), 0));
    own(&mut held, sys::syscall!(libc::SYS_inotify_init1, 0));
    own(&mut held, sys::syscall!(libc::SYS_epoll_create1, 0));
    held
}

/// Keeps what a call has made, if it has.
fn own(held: &mut Vec<OwnedFd>, fd: Result<libc::c_long, nix::errno::Errno>) {
    // SAFETY: the kernel has just made it for this process.
    held.extend(fd.ok().map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) }));
}

/// Sockets of kinds that a fall does not look at.
fn sockets(held: &mut Vec<OwnedFd>) {
    use AddressFamily::{Inet, Inet6, Unix};
    use SockType::{Datagram, SeqPacket, Stream};
    for (family, kind) in [
        (Unix, Stream),
        (Unix, Datagram),
        (Unix, SeqPacket),
        (Inet, Stream),
        (Inet, Datagram),
        (Inet6, Stream),
        (Inet6, Datagram),
    ] {
        held.extend(socket(family, kind, SockFlag::SOCK_NONBLOCK, None).ok());
    }
    // route, diagnosis, netfilter, audit, events of devices, generic
    for protocol in [0, 4, 12, 9, 15, 16] {
        own(
            held,
            sys::syscall!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, protocol),
        );
    }
    own(held, sys::syscall!(libc::SYS_eventfd2, 0, 0x800));
    own(held, sys::syscall!(libc::SYS_timerfd_create, 1, 0x800));
}

/// Lives as a higher process that is attacked: says where its secret is, and then, for each line, what its memory comes to.
///
/// # Errors
/// Nobody asks or hears it any more.
pub fn be_victim() -> Result<()> {
    let memory: Vec<u8> = given::secret().repeat(256);
    println!("{}", memory.as_ptr() as u64);
    for line in io::stdin().lines() {
        line?;
        let sum: u64 = memory
            .iter()
            .map(|byte| u64::from(std::hint::black_box(*byte)))
            .sum();
        println!("{sum}");
    }
    Ok(())
}

/// Puts the open files that the judge shares where the attacker has them.
///
/// # Errors
/// One cannot be put there.
pub fn share(files: &[File; 2]) -> io::Result<()> {
    for (file, to) in files.iter().zip(given::SHARED) {
        // SAFETY: dup2 may be called between fork and exec.
        if unsafe { libc::dup2(file.as_raw_fd(), to) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_round_has_each_row_once() {
        let mut rounds = Rounds::new(7, 50);
        let mut round = |round: u64| -> Vec<usize> {
            (round * 50..(round + 1) * 50)
                .map(|number| rounds.row(number))
                .collect()
        };
        let (first, second) = (round(0), round(1));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 50);
        assert_ne!(first, second);
        assert_eq!(Rounds::new(7, 50).row(57), second[7]);
    }
}
