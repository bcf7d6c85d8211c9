//! A process of a sequence: does what it is told by real system calls.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::io::Errno;
use tidegate_model::{Act, Level, Op, Pid};

use crate::replay::attempt::{self, bytes};
use crate::replay::wire::{ANSWERS, Answer, NURSERY, REQUESTS, Request};

/// A descriptor that this process was born with.
fn inherited(fd: RawFd) -> ManuallyDrop<File> {
    // SAFETY: the controller has put a pipe there; it is never closed.
    ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

/// The second thread: a request to it, its result from it.
struct Second {
    asks: Sender<Task>,
    told: Receiver<attempt::Result>,
}

/// An operation, and what it needs to know.
#[derive(Debug)]
pub struct Task {
    /// What to try.
    pub op: Op,
    /// The sandbox.
    pub root: String,
    /// The kernel's number of what it names.
    pub number: i64,
    /// What a byte that it writes tells.
    pub voice: Level,
}

/// What a worker is, until it ends.
struct Worker {
    me: Pid,
    second: Option<Second>,
}

/// Lives as process `me` of a sequence, or as the nursery, from an exec on.
pub fn live(me: Pid, trusted: bool, seen: u16) -> io::Result<()> {
    attempt::prepare()?;
    bytes::begin(trusted, seen);
    let mut worker = Worker { me, second: None };
    if me == NURSERY {
        adopt_orphans()?;
    }
    answer(Ok(0))?;
    loop {
        let request = Request::receive(&mut *inherited(REQUESTS + RawFd::from(worker.me)))?;
        match request {
            Request::Spawn(child) => {
                let born = worker.birth(child, false);
                worker.tell_of_birth(child, born)?;
            }
            Request::Try {
                op,
                root,
                number,
                level,
                floor,
            } => worker.attempt(Task {
                op,
                root,
                number,
                voice: bytes::voice(level).max(floor),
            })?,
        }
    }
}

fn answer(result: attempt::Result) -> io::Result<()> {
    let answer = match result {
        Ok(value) => Answer {
            errno: 0,
            value,
            seen: bytes::seen(),
        },
        Err(e) => Answer {
            errno: e.raw_os_error(),
            value: 0,
            seen: bytes::seen(),
        },
    };
    answer.send(&mut *inherited(ANSWERS))
}

/// Children end without anybody waiting for them, and theirs come here.
fn adopt_orphans() -> io::Result<()> {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // SAFETY: a flag and no pointers.
    let set = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

impl Worker {
    fn attempt(&mut self, task: Task) -> io::Result<()> {
        match task.op.act {
            Act::Fork { child } => {
                let born = self.birth(child, false);
                self.tell_of_birth(child, born)
            }
            Act::Share { child } => {
                let born = self.birth(child, true);
                self.tell_of_birth(child, born)
            }
            Act::Thread => answer(self.start_second()),
            Act::Exit => {
                answer(Ok(0))?;
                // SAFETY: ends the process; nothing of it is needed any more.
                unsafe { libc::_exit(0) }
            }
            _ => answer(match (&self.second, task.op.second) {
                (Some(second), true) => second.attempt(task),
                _ => attempt::attempt(&task),
            }),
        }
    }

    /// Forks; with a shared descriptor table if asked. 0 in the child, which is
    /// then process `child`.
    fn birth(&mut self, child: Pid, share: bool) -> attempt::Result {
        let pid = if share {
            let flags = libc::CLONE_FILES | libc::SIGCHLD;
            // SAFETY: as fork; the second thread, if any, sleeps outside every lock.
            unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }
        } else {
            // SAFETY: the second thread, if any, sleeps outside every lock.
            i64::from(unsafe { libc::fork() })
        };
        if pid < 0 {
            return Err(attempt::last_error());
        }
        if pid == 0 {
            self.me = child;
            // the thread it belongs to is the parent's
            std::mem::forget(self.second.take());
        }
        Ok(pid)
    }

    /// Only the parent answers.
    fn tell_of_birth(&self, child: Pid, born: attempt::Result) -> io::Result<()> {
        if born == Ok(0) && self.me == child {
            Ok(())
        } else {
            answer(born)
        }
    }

    fn start_second(&mut self) -> attempt::Result {
        let (asks, asked) = channel::<Task>();
        let (tells, told) = channel();
        let (tells_tid, tid) = channel();
        thread::Builder::new()
            .spawn(move || {
                let _ = tells_tid.send(rustix::thread::gettid().as_raw_pid());
                while let Ok(task) = asked.recv() {
                    let _ = tells.send(attempt::attempt(&task));
                }
            })
            .map_err(|_| Errno::AGAIN)?;
        self.second = Some(Second { asks, told });
        tid.recv().map(i64::from).map_err(|_| Errno::AGAIN)
    }
}

impl Second {
    fn attempt(&self, task: Task) -> attempt::Result {
        self.asks.send(task).map_err(|_| Errno::SRCH)?;
        self.told.recv().map_err(|_| Errno::SRCH)?
    }
}
