//! The processes that have one level with a subject that falls: those that it traces, those that
//! came to be traced meanwhile, those that have the same descriptor of the kernel's. And those that
//! are taken for a parent that waits in vfork.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::ptrace;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, pipe2};

use super::threads::clone_here;
use crate::scenarios::check::{Failed, Outcome, ensure, refused, same, soon};
use crate::scenarios::level;
use crate::scenarios::place::{self, BIN, SYSTEM, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower, start, tell};
use crate::scenarios::sys;
use crate::sys::syscall;
use crate::wait;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "ptrace-trusted-tracee",
        "who traces a trusted program falls, and goes on writing its memory",
        trusted_tracee,
    ),
    bypass(
        "traced-as-it-falls",
        "while a process falls that nobody traces or has a channel with, a child has itself be traced by it",
        traced_meanwhile,
    )
    .slow(),
    bypass(
        "vfork-other-parent",
        "a child by vfork that is its grandparent's by name falls while that one writes what it reads of it",
        other_parent,
    ),
    bypass(
        "descriptor-unknown",
        "a child that falls has a descriptor of its parent's, of a kind that no rule tells of",
        unknown,
    ),
];

/// Waits for the end of a tracee that it lets go on, whatever stops it.
pub(super) fn ends(tracee: Pid) -> Outcome<i32> {
    ptrace::cont(tracee, None)?;
    loop {
        match waitpid(tracee, None)? {
            WaitStatus::Exited(_, code) => return Ok(code),
            WaitStatus::Stopped(pid, _) => ptrace::cont(pid, None)?,
            other => return Err(Failed::because(format_args!("{other:?}"))),
        }
    }
}

/// At the top: below it a program that is traced is not trusted.
fn trusted_tracee() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    at(System, || {
        let tracee = start(|| {
            ptrace::traceme()?;
            let mut program = Command::new(format!("{BIN}/trusted"));
            Err(program.args(["--helper", "write", &high]).exec().into())
        })?;
        waitpid(tracee.pid, None)?;
        let fell = lower(Untrusted).is_ok();
        let code = ends(tracee.pid)?;
        let may_not = if fell { Errno::EPERM as i32 } else { 0 };
        same(
            "what its tracee got, which writes at the top",
            code,
            may_not,
        )
    })
}

/// Descriptors of one file, so that a look at the table takes its time.
const MANY: u64 = 1 << 18;

/// A process falls that has no channel, and its child asks to be traced by it so long after the fall has begun.
fn traced_after(after: Duration, fallen: &str) -> Outcome {
    let most = getrlimit(Resource::RLIMIT_NOFILE)?.1.max(MANY + 64);
    start(|| {
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        lower(User)?;
        // what it was started with may be a channel
        syscall!(libc::SYS_close_range, 0, u32::MAX, 0)?;
        let begins = sys::owned(syscall!(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC)?)?;
        let child = start(|| {
            sys::get(&begins)?;
            std::thread::sleep(after);
            match ptrace::traceme() {
                Err(e) => return refused(Errno::EPERM, Err::<(), _>(e)),
                Ok(()) => raise(Signal::SIGSTOP)?,
            }
            let is = level::by_writing()?;
            ensure(
                is == Untrusted || !fs::exists(path(TMPFS_LOW, fallen))?,
                "it is traced by a process that has fallen, and writes at `user`",
            )
        })?;
        let file = sys::reads(place::PROBES[1].1)?;
        for _ in 0..MANY {
            syscall!(libc::SYS_dup, file.as_raw_fd())?;
        }
        sys::put_all(&begins, &1u64.to_ne_bytes())?;
        if lower(Untrusted).is_ok() {
            tell(fallen)?;
        }
        match waitpid(child.pid, Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Exited(_, 0) => Ok(()),
            WaitStatus::Stopped(pid, _) if ends(pid)? == 0 => Ok(()),
            _ => Err(Failed::reported()),
        }
    })?
    .join()
}

fn traced_meanwhile() -> Outcome {
    // how long a look takes depends on the machine
    for n in 0..10 {
        traced_after(Duration::from_micros(250 << n), &format!("fallen-{n}"))?;
    }
    Ok(())
}

fn other_parent() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    start(|| {
        let file = sys::writes(&high)?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let grandparent = format!("/proc/{}", getpid());
        let parent = start(|| {
            // it reads nothing, and need not fall
            syscall!(libc::SYS_close, read.as_raw_fd())?;
            clone_here(libc::CLONE_VFORK | libc::CLONE_PARENT, || {
                let writes = soon(|| Ok(wait::call(&grandparent) == Some(libc::SYS_splice)))?;
                ensure(writes, "the grandparent does not wait in splice()")?;
                if lower(Untrusted).is_ok() {
                    sys::put_all(&write, b"l")?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
        drop(write);
        // it may have fallen before that, or its end of the pipe is closed with nothing in it
        let _ = sys::splice(&read, &file, sys::PAGE);
        parent.join()?;
        // the other is its own by name
        match waitpid(None::<Pid>, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            _ => Err(Failed::reported()),
        }
    })?
    .join()?;
    ensure(
        fs::read(&high)?.first() != Some(&b'l'),
        "low data is in a system file",
    )
}

/// BPF_PROG_LOAD of a filter that returns 0: a descriptor of the kernel's that nothing else is known of.
fn program() -> Result<OwnedFd, Errno> {
    const LOAD: i32 = 5;
    const SOCKET_FILTER: u64 = 1;
    // r0 = 0; exit
    let code = [0xb7u64, 0x95];
    let mut attributes = [0u64; 16];
    attributes[0] = (code.len() as u64) << 32 | SOCKET_FILTER;
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = c"GPL".as_ptr() as u64;
    let size = size_of_val(&attributes);
    sys::owned(syscall!(
        libc::SYS_bpf,
        LOAD,
        attributes.as_mut_ptr(),
        size
    )?)
}

fn unknown() -> Outcome {
    start(|| {
        let _shared = program()?;
        start(|| {
            if lower(Untrusted).is_ok() {
                tell("fallen")?;
            }
            Ok(())
        })?
        .join()?;
        let fell = fs::exists(path(TMPFS_LOW, "fallen"))?;
        ensure(
            !fell || level::by_writing()? == Untrusted,
            "its child has fallen, and it still writes at the top",
        )
    })?
    .join()
}
