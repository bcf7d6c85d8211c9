//! What root may do, by capabilities, below the top level.

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::chown;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::chroot;

use crate::scenarios::check::{Failed, Outcome, allowed, refused, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, become_alice, own_namespaces, start, step};
use crate::scenarios::sys;
use crate::scenarios::uring::Ring;
use crate::sys::syscall;

use Level::System;

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "privilege-of-services",
        "root at every level does what services need root for",
        services,
    ),
    allow(
        "privilege-in-own-namespace",
        "in a user namespace of its own a subject has all capabilities",
        own_namespace,
    ),
    deny(
        "privilege-of-root",
        "root below the top has no other privilege",
        others,
    ),
    bypass(
        "ring-by-others-credentials",
        "a ring's request by credentials that were registered with it",
        by_credentials,
    ),
];

fn services() -> Outcome {
    for (level, port) in Level::ALL.into_iter().zip(900u16..) {
        let file = path(home(level), &format!("of-{}", level.name()));
        at(level, || {
            fs::write(&file, "x")?;
            allowed(chown(&file, Some(1000), Some(1000)))?;
            allowed(level::touch(&file))?;
            allowed(fs::write(&file, "root's"))?;
            drop(allowed(TcpListener::bind(("127.0.0.1", port)))?);
            allowed(limit(libc::RLIMIT_MSGQUEUE, 1 << 40))?;
            let worker = start(|| {
                allowed(chroot(place::ROOT))?;
                become_alice()?;
                step()
            })?;
            worker.stands()?;
            allowed(kill(worker.pid, Signal::SIGKILL))?;
            worker.status()?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn own_namespace() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWUTS)?;
            allowed(syscall!(libc::SYS_sethostname, c"low".as_ptr(), 3))?;
            allowed(unshare(CloneFlags::CLONE_NEWNET))?;
            level::is(level)
        })?;
    }
    Ok(())
}

/// Sets a limit of this process, the hard one too.
fn limit(resource: u32, to: u64) -> Result<(), Errno> {
    let limit = [to, to];
    syscall!(libc::SYS_prlimit64, 0, resource, limit.as_ptr(), 0).map(drop)
}

/// What the kernel's routing answers to a request for a new link.
fn link_made() -> Outcome<i32> {
    let socket = sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_NETLINK,
        libc::SOCK_RAW,
        libc::NETLINK_ROUTE
    )?)?;
    // struct nlmsghdr: its length, RTM_NEWLINK, that an answer is wanted; a struct ifinfomsg of zeros
    let mut message = [0u8; 32];
    message[..4].copy_from_slice(&32u32.to_ne_bytes());
    message[4..6].copy_from_slice(&16u16.to_ne_bytes());
    message[6..8].copy_from_slice(&5u16.to_ne_bytes());
    sys::put_all(&socket, &message)?;
    let answer = sys::get(&socket)?;
    // struct nlmsgerr is behind the header
    let error: [u8; 4] = answer
        .get(16..20)
        .and_then(|error| error.try_into().ok())
        .ok_or_else(|| Failed::because("no answer"))?;
    Ok(i32::from_ne_bytes(error))
}

fn others() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, unshare(CloneFlags::CLONE_NEWNS))?;
            refused(Errno::EPERM, unshare(CloneFlags::CLONE_NEWNET))?;
            let names = sys::reads("/proc/self/ns/uts")?;
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_setns, names.as_raw_fd(), libc::CLONE_NEWUTS),
            )?;
            same("the answer", link_made()?, -libc::EPERM)?;
            let own = path(home(level), level.name());
            fs::write(&own, "x")?;
            refused(Errno::EPERM, sys::setxattr(&own, "trusted.own", b"x"))?;
            refused(Errno::EPERM, sys::setxattr(&own, "security.own", b"x"))?;
            for resource in [libc::RLIMIT_NICE, libc::RLIMIT_RTPRIO] {
                refused(Errno::EPERM, limit(resource, 30))?;
            }
            refused(
                Errno::EACCES,
                syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, -5),
            )?;
            let priority = 1i32;
            refused(
                Errno::EPERM,
                syscall!(
                    libc::SYS_sched_setscheduler,
                    0,
                    libc::SCHED_FIFO,
                    &raw const priority
                ),
            )?;
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_userfaultfd, libc::O_CLOEXEC),
            )?;
            // FAN_CLASS_CONTENT
            refused(Errno::EPERM, syscall!(libc::SYS_fanotify_init, 4, 0))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn by_credentials() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, "x")?;
            let ring = Ring::new(0)?;
            let opened = ring.open_as(&file, ring.credentials()?);
            if level == System {
                drop(sys::owned(allowed(opened)?)?);
                Ok(())
            } else {
                refused(Errno::EPERM, opened)
            }
        })?;
    }
    Ok(())
}
