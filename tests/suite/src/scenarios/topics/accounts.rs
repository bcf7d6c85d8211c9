//! Accounts of what a table has room for, and of what is looked at: which others a user may have pay for what it does. Nobody
//! pays for others, and no lower user takes what a higher one is to have.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::SockType::Stream;
use nix::sys::socket::bind;
use nix::unistd::{pause, unlink};

use super::exec::run;
use super::floods::{FLOODER, HALF, TABLE, flooded, many_descriptors, until_refused};
use super::moved_ends::{SMALLER, fill_table, may_have, not_above};
use super::threads::clone_here;
use crate::scenarios::check::{Outcome, allowed, same};
use crate::scenarios::place::{self, SYSTEM, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{
    Level, asleep, at, become_user, falling, lower, spawn, start, step, tell, told,
};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, accepted, connected, fresh, named, pair};
use crate::sys::syscall;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "floors-flood-removed-above",
        "one user's higher process removes the files that its lower one has open, until that table is full for all",
        removed_above,
    )
    .slow(),
    bypass(
        "account-setuid",
        "a user who has used up its account goes on by a setuid program of a user of its own user namespace",
        setuid,
    )
    .slow(),
    bypass(
        "looks-used-up-below",
        "users at the lowest level have tables that never keep still, and others above them connect",
        looks_used_up,
    )
    .slow(),
    bypass(
        "unix-queue-long",
        "a server falls that has more connections waiting than are commonly let wait, and answers the last of them",
        long_queue,
    ),
];

/// The low process holds the files by O_PATH, as nothing counts that.
fn removed_above() -> Outcome {
    let dir = place::directory(TMPFS_LOW, "removed")?;
    let played = flooded(User, 1, |_| {
        let low = start(|| {
            lower(Untrusted)?;
            let mut held: Vec<OwnedFd> = Vec::new();
            until_refused(TABLE, |number| {
                let name = format!("{dir}/{number}");
                sys::open(&name, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL)?;
                held.push(sys::open(&name, OFlag::O_PATH)?);
                Ok(())
            })?;
            step()
        })?;
        low.stands()?;
        until_refused(TABLE, |number| unlink(format!("{dir}/{number}").as_str()))?;
        step()
    });
    fs::remove_dir_all(&dir)?;
    played
}

/// A number that is no user's, as a range of /etc/subuid has them.
const SUBORDINATE: u32 = 100_042;

fn setuid() -> Outcome {
    let program = path(SYSTEM, "setuid");
    fs::copy(std::env::current_exe()?, &program)?;
    chown(&program, Some(SUBORDINATE), None)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    at(Untrusted, || {
        many_descriptors()?;
        become_user(FLOODER)?;
        let mut held = Vec::new();
        until_refused(HALF / 2, |_| {
            held.push(pair(Stream)?);
            Ok(())
        })?;
        let code = run(&program, &["--helper", "pair-as-owner"])?;
        same("its errno", code, libc::EAGAIN)
    })
}

/// Where another process has a table, too, nobody says of it that it keeps still.
fn looks_used_up() -> Outcome {
    const USERS: u32 = 6;
    let busy = (0..USERS)
        .map(|number| {
            let child = spawn(Untrusted, || {
                may_have(SMALLER)?;
                become_user(FLOODER + number)?;
                let other = sys::reads("/dev/null")?;
                fill_table(&other, SMALLER)?;
                let with = clone_here(libc::CLONE_FILES, || {
                    pause();
                    Ok(())
                })?;
                step()?;
                kill(with, Signal::SIGKILL)?;
                Ok(())
            })?;
            child.stands()?;
            Ok(child)
        })
        .collect::<Outcome<Vec<_>>>()?;
    let name = abstract_name("server")?;
    let server = spawn(User, || {
        let listens = named(Stream, &name)?;
        let fd = listens.as_raw_fd();
        // each has a reference to the socket, as its call has while it does not stop
        for _ in 0..8 {
            asleep(&[libc::SYS_accept4], move || {
                syscall!(libc::SYS_accept4, fd, 0, 0, 0).map(drop)
            })?;
        }
        tell("listens")?;
        pause();
        Ok(())
    })?;
    told("listens")?;
    let played = at(User, || {
        for _ in 0..4 {
            let connects = || connected(Stream, &name);
            drop(allowed(falling(Errno::EAGAIN, connects))?);
        }
        Ok(())
    });
    server.kill()?;
    for child in busy {
        child.go()?;
        child.join()?;
    }
    played
}

/// So many as may wait is for root to say.
fn long_queue() -> Outcome {
    const MAY_WAIT: usize = 8192;
    const WAITING: usize = 4200;
    const SYSCTL: &str = "/proc/sys/net/core/somaxconn";
    let before = fs::read_to_string(SYSCTL)?;
    fs::write(SYSCTL, MAY_WAIT.to_string())?;
    let played = answers_the_last(MAY_WAIT, WAITING);
    fs::write(SYSCTL, before)?;
    played
}

fn answers_the_last(may_wait: usize, waiting: usize) -> Outcome {
    let name = abstract_name("server")?;
    let server = spawn(User, || {
        let listens = fresh(Stream)?;
        bind(listens.as_raw_fd(), &name)?;
        syscall!(libc::SYS_listen, listens.as_raw_fd(), may_wait)?;
        step()?;
        // it may be refused
        if lower(Untrusted).is_ok() {
            for _ in 0..=waiting {
                let _ = sys::put_all(&accepted(&listens)?, b"l");
            }
        }
        step()
    })?;
    server.stands()?;
    let others = spawn(User, || {
        many_descriptors()?;
        let mut held = Vec::new();
        for _ in 0..waiting {
            held.push(falling(Errno::EAGAIN, || connected(Stream, &name))?);
        }
        step()
    })?;
    others.stands()?;
    let client = spawn(User, || {
        let end = falling(Errno::EAGAIN, || connected(Stream, &name))?;
        sys::fcntl(&end, libc::F_SETFL, i64::from(libc::O_NONBLOCK))?;
        step()?;
        match sys::get(&end) {
            Ok(bytes) => not_above(&bytes),
            Err(Errno::EAGAIN) => Ok(()),
            Err(e) => Err(e.into()),
        }
    })?;
    client.stands()?;
    server.go()?;
    server.stands()?;
    client.go()?;
    let played = client.join();
    others.kill()?;
    server.kill()?;
    played
}
