//! Accounts of what a table has room for, and of what is looked at: whom a user may have pay for what it does. Nobody pays for
//! others, and no lower user takes what a higher one is to have.

use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::SockType::Stream;
use nix::unistd::pause;

use super::floods::FLOODER;
use super::moved_ends::{SMALLER, fill_table, may_have};
use super::threads::clone_here;
use crate::scenarios::check::{Outcome, allowed};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, asleep, at, become_user, falling, spawn, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{abstract_name, connected, named};
use crate::sys::syscall;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[bypass(
    "looks-used-up-below",
    "users at the lowest level have tables that never keep still, and others above them connect",
    looks_used_up,
)
.slow()];

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
        // each has a reference to the socket, as its call has
        for _ in 0..8 {
            asleep(&[libc::SYS_accept4], move || {
                syscall!(libc::SYS_accept4, fd, 0, 0, 0).map(drop)
            })?;
        }
        step()
    })?;
    server.stands()?;
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
