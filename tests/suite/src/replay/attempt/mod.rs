//! One operation by real system calls.
//!
//! Descriptors and mappings of a sequence have fixed numbers and addresses, so
//! that they are the same after fork and exec.

pub mod bytes;
pub mod files;
mod memory;
mod sockets;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open};
use tidegate_model::{Act, Program, Slot};

pub use self::sockets::network;
use crate::replay::wire::SLOTS;
use crate::replay::worker::Task;

/// The kernel's number of what was made, or why nothing was.
pub type Result<T = i64> = std::result::Result<T, Errno>;

/// A page that every worker has, for others to look at.
const PAGE: usize = 0x10_0000_0000;
const PAGE_SIZE: usize = 4096;

/// What must be there before anything is tried.
pub fn prepare() -> io::Result<()> {
    memory::map_page(PAGE)?;
    Ok(())
}

/// Tries an operation.
pub fn attempt(task: &Task) -> Result {
    let Task { op, number, .. } = task;
    let number = *number;
    match &op.act {
        Act::Pipe { .. }
        | Act::Pair { .. }
        | Act::Listen { .. }
        | Act::Mailbox { .. }
        | Act::Connect { .. }
        | Act::Accept { .. }
        | Act::Send { .. }
        | Act::Post { .. }
        | Act::Receive { .. }
        | Act::Dial { .. } => sockets::attempt(task),
        Act::Memfd { .. }
        | Act::Map { .. }
        | Act::MapFresh { .. }
        | Act::Unmap { .. }
        | Act::Segment { .. }
        | Act::Attach { .. }
        | Act::Drop { .. }
        | Act::Queue { .. }
        | Act::Enqueue { .. }
        | Act::Dequeue { .. }
        | Act::Load { .. }
        | Act::Store { .. } => memory::attempt(task),
        Act::Take { slot, to, .. } => {
            let from = pidfd_open(pid(number)?, PidfdFlags::empty())?;
            let fd = pidfd_getfd(from, SLOTS + RawFd::from(*slot), PidfdGetfdFlags::empty())?;
            keep(fd, *to)
        }
        Act::Exec { program } => exec(*program, op.who),
        Act::Signal { .. } => kill(number, Signal::URG),
        Act::Kill { .. } => kill(number, Signal::KILL),
        Act::Renice { .. } => done(rustix::process::setpriority_process(Some(pid(number)?), 0)),
        Act::Peek { .. } => memory::peek(number),
        Act::Poke { .. } => memory::poke(number, task.voice),
        _ => files::attempt(task),
    }
}

/// The error of the libc call just made.
pub fn last_error() -> Errno {
    io::Error::last_os_error()
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}

fn check(ret: i64) -> Result {
    if ret < 0 { Err(last_error()) } else { Ok(ret) }
}

fn done<T>(result: Result<T>) -> Result {
    result.map(|_| 0)
}

fn pid(number: i64) -> Result<Pid> {
    i32::try_from(number)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)
}

fn kill(number: i64, signal: Signal) -> Result {
    done(rustix::process::kill_process(pid(number)?, signal))
}

/// A descriptor of the sequence.
fn slot(slot: Slot) -> BorrowedFd<'static> {
    // SAFETY: not -1. Where nothing is open there, the call that gets it fails.
    unsafe { BorrowedFd::borrow_raw(SLOTS + RawFd::from(slot)) }
}

/// Puts a new descriptor in its place.
fn keep(fd: OwnedFd, to: Slot) -> Result {
    // SAFETY: descriptors of the sequence have no owner in this process.
    check(unsafe { libc::dup2(fd.as_raw_fd(), SLOTS + RawFd::from(to)) }.into()).map(|_| 0)
}

/// Comes back only if it failed.
fn exec(program: Program, me: tidegate_model::Pid) -> Result {
    let path = std::ffi::CString::new(program.path()).map_err(|_| Errno::INVAL)?;
    let me = std::ffi::CString::new(format!("{me}:{}", bytes::seen())).map_err(|_| Errno::INVAL)?;
    let argv = [path.as_ptr(), me.as_ptr(), std::ptr::null()];
    // SAFETY: NUL-terminated strings in a NULL-terminated array, and no environment.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), argv[2..].as_ptr()) };
    Err(last_error())
}
