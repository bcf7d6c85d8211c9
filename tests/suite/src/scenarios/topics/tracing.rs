//! Tracing, and looking into another's memory.

use std::fs;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::tasks::{ROW, WORD, idle, read_memory, vectors};
use crate::scenarios::check::{Outcome, allowed, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW};
use crate::scenarios::scenario::{Scenario, bypass, deny};
use crate::scenarios::subject::{Level, at, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    deny(
        "task-ptrace-up",
        "nor ptrace, its memory, or its descriptors",
        ptrace_up,
    )
    .of(ROW),
    deny(
        "task-ptrace-down",
        "who traces or reads a lower subject falls",
        ptrace_down,
    )
    .of(ROW),
    bypass(
        "ptrace-traceme",
        "a higher child lets itself be traced by its lower parent",
        traceme,
    ),
    bypass(
        "ptrace-then-fall",
        "a tracer falls while it traces an equal",
        then_fall,
    ),
    bypass(
        "proc-mem-before-fall",
        "a descriptor of another's memory opened before the fall",
        mem_before,
    ),
    bypass(
        "proc-mem-kept",
        "another's memory, opened while it was high, read when it has fallen",
        mem_read_after,
    ),
    bypass(
        "ptrace-exec",
        "a tracer's child executes something higher",
        traced_exec,
    ),
    bypass(
        "pagemap-scan",
        "the marks of which pages a higher process has written are cleared by a descriptor for reading",
        pagemap_scan,
    ),
];

/// A process that this one may neither trace nor take anything from, nor write its memory.
pub(super) fn is_closed(target: Pid) -> Outcome {
    let none = ptrace::Options::empty();
    refused(Errno::EPERM, ptrace::attach(target))?;
    refused(Errno::EPERM, ptrace::seize(target, none))?;
    let word = [7u64];
    let here = libc::iovec {
        iov_base: word.as_ptr().cast_mut().cast(),
        iov_len: 8,
    };
    let (_, there) = vectors();
    let wrote = syscall!(
        libc::SYS_process_vm_writev,
        target.as_raw(),
        &raw const here,
        1,
        &raw const there,
        1,
        0,
    );
    refused(Errno::EPERM, wrote)?;
    let memory = format!("/proc/{target}/mem");
    refused_any(&[Errno::EPERM, Errno::EACCES], sys::both(&memory))?;
    refused_any(&[Errno::EPERM, Errno::EACCES], sys::writes(&memory))?;
    let pidfd = sys::pidfd_open(target.as_raw())?;
    refused(Errno::EPERM, sys::pidfd_getfd(&pidfd, 0))
}

fn ptrace_up() -> Outcome {
    for (low, high) in [(Untrusted, System), (Untrusted, User), (User, System)] {
        let target = idle(high)?;
        at(low, || {
            is_closed(target.pid)?;
            level::is(low)
        })?;
        target.kill()?;
    }
    Ok(())
}

fn ptrace_down() -> Outcome {
    let low = idle(Untrusted)?;
    let pid = low.pid;
    at(User, || {
        same("its memory", read_memory(pid)?, WORD)?;
        level::is(Untrusted)
    })?;
    at(User, || {
        allowed(sys::reads(format!("/proc/{pid}/mem")))?;
        level::is(Untrusted)
    })?;
    at(User, || {
        ptrace::seize(pid, ptrace::Options::empty())?;
        level::is(Untrusted)
    })?;
    at(User, || {
        allowed(fs::read(format!("/proc/{pid}/environ")))?;
        level::is(User)
    })?;
    low.kill()
}

fn traceme() -> Outcome {
    let told = place::path(place::TMPFS_SYSTEM, "told");
    let parent = start(|| {
        let child = start(|| {
            while !fs::exists(place::path(place::TMPFS_LOW, "fallen"))? {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            refused(Errno::EPERM, ptrace::traceme())?;
            Ok(fs::write(&told, "refused")?)
        })?;
        lower(Untrusted)?;
        fs::write(place::path(place::TMPFS_LOW, "fallen"), "")?;
        child.join()
    })?;
    parent.join()?;
    same(
        "what the child said",
        fs::read_to_string(&told)?.as_str(),
        "refused",
    )
}

fn then_fall() -> Outcome {
    let low = place::file(LOW, "low")?;
    let tracee = spawn(User, || {
        step()?;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(5));
            if level::by_writing()? == Untrusted {
                return Ok(());
            }
        }
    })?;
    tracee.stands()?;
    let tracer = spawn(User, || {
        ptrace::seize(tracee.pid, ptrace::Options::empty())?;
        kill(tracee.pid, Signal::SIGCONT)?;
        if fs::read(&low).is_err() {
            // refused: then both are what they were
            return level::is(User);
        }
        level::is(Untrusted)
    })?;
    let fell = tracer.join();
    kill(tracee.pid, Signal::SIGCONT)?;
    fell?;
    tracee.join()
}

fn mem_before() -> Outcome {
    let victim = idle(System)?;
    let attacker = start(|| {
        let memory = sys::both(format!("/proc/{}/mem", victim.pid))?;
        if lower(Untrusted).is_err() {
            return level::is(System);
        }
        let address = &raw const WORD as i64;
        let wrote = syscall!(
            libc::SYS_pwrite64,
            memory.as_raw_fd(),
            [9u64].as_ptr(),
            8,
            address
        );
        refused_any(&[Errno::EIO, Errno::EPERM], wrote)
    })?;
    attacker.join()?;
    same("its memory", read_memory(victim.pid)?, WORD)?;
    victim.kill()
}

fn mem_read_after() -> Outcome {
    let low = place::file(LOW, "low")?;
    let watched = spawn(User, || {
        step()?;
        fs::read(&low)?;
        level::is(Untrusted)?;
        step()
    })?;
    watched.stands()?;
    let watcher = spawn(User, || {
        let memory = sys::both(format!("/proc/{}/mem", watched.pid))?;
        step()?;
        // the other fell: so has a process that can still read it
        let fell = level::by_writing()?;
        drop(memory);
        same("its level", fell, Untrusted)
    })?;
    watcher.stands()?;
    watched.go()?;
    watched.stands()?;
    watcher.join_after_step()?;
    watched.join_after_step()
}

fn traced_exec() -> Outcome {
    // the tracee is what its tracer is; executing a higher program changes nothing
    at(Untrusted, || {
        let child = start(|| {
            ptrace::traceme()?;
            let shell = c("/usr/bin/dash");
            nix::unistd::execv(&shell, &[&shell, &c("-c"), &c(super::exec::TELL)])?;
            Ok(())
        })?;
        waitpid(child.pid, None)?;
        ptrace::cont(child.pid, None)?;
        loop {
            match waitpid(child.pid, None)? {
                nix::sys::wait::WaitStatus::Exited(_, code) => {
                    return same(
                        "its level",
                        crate::scenarios::helper::level_of_status(code),
                        Some(Untrusted),
                    );
                }
                nix::sys::wait::WaitStatus::Stopped(pid, _) => ptrace::cont(pid, None)?,
                _ => {}
            }
        }
    })
}

/// Asks which pages of an area are present, as a request that also clears their marks would be asked.
fn scans(process: &str, area: &sys::Map) -> Result<(), Errno> {
    const SCAN: u64 = 0xc060_6610; // PAGEMAP_SCAN
    const IS_PRESENT: u64 = 1 << 3;
    const PAGE: u64 = 4096;
    let mut found = [0u64; 3]; // struct page_region
    let start = area.address() as u64;
    // struct pm_scan_arg: its size, flags, from, to, where it ended, where to and how many, most pages, four masks
    let mut asked = [0u64; 12];
    (asked[0], asked[2], asked[3]) = (96, start, start + PAGE);
    (asked[5], asked[6], asked[11]) = (found.as_mut_ptr() as u64, 1, IS_PRESENT);
    let pages = sys::reads(format!("/proc/{process}/pagemap"))?;
    sys::ioctl(&pages, SCAN, asked.as_ptr() as usize).map(drop)
}

fn pagemap_scan() -> Outcome {
    let area = sys::Map::anonymous(libc::MAP_PRIVATE)?;
    let high = std::process::id().to_string();
    for level in Level::LOWER {
        at(level, || {
            refused_any(&[Errno::EPERM, Errno::EACCES], scans(&high, &area))?;
            allowed(scans("self", &area))
        })?;
    }
    allowed(scans("self", &area))
}
