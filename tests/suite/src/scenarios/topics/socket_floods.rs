//! Sockets and secret memory that fill the table of channels' levels.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket, socketpair};

use crate::scenarios::check::{Outcome, allowed, same};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, spawn, step};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "sockets-flood",
        "more sockets made below the top than their levels can be kept of",
        flood,
    ),
    bypass(
        "sockets-flood-network",
        "pairs of network sockets, which fail, fill the table of channels' levels",
        flood_network,
    ),
    bypass(
        "memory-flood-secret",
        "secret memory made and closed fills it, and its addresses are others' next",
        flood_secret,
    ),
];

fn flood() -> Outcome {
    let flooder = spawn(Untrusted, || {
        many_descriptors()?;
        let mut pairs = Vec::new();
        let failed = loop {
            match socketpair(
                AddressFamily::Unix,
                SockType::Stream,
                None,
                SockFlag::empty(),
            ) {
                Ok(pair) => pairs.push(pair),
                Err(e) => break e,
            }
        };
        same("what stops it", failed, Errno::EAGAIN)?;
        step()
    })?;
    flooder.stands()?;
    // nobody else has been lowered, and nobody else is stopped
    at(System, || {
        let (one, two) = nix::unistd::pipe()?;
        sys::put(&two)?;
        sys::get(&one)?;
        let (one, two) = allowed(socketpair(
            AddressFamily::Unix,
            SockType::Stream,
            None,
            SockFlag::empty(),
        ))?;
        sys::put(&two)?;
        sys::get(&one)?;
        level::is(System)
    })?;
    at(User, || level::is(User))?;
    flooder.kill()
}

/// As many descriptors as there are places in the table of channels' levels, and more.
fn many_descriptors() -> Outcome {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let most = getrlimit(Resource::RLIMIT_NOFILE)?.1.max(200_000);
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}

/// Half of that table: what the lowest level may fill.
const HALF: usize = 1 << 15;

/// A pair of the network's sockets is made and never given out: nothing of it may stay.
fn flood_network() -> Outcome {
    at(Untrusted, || {
        many_descriptors()?;
        let plain = || {
            socket(
                AddressFamily::Inet,
                SockType::Stream,
                SockFlag::empty(),
                None,
            )
        };
        let mut held = Vec::new();
        for _ in 0..HALF / 2 + 1000 {
            let pair = socketpair(
                AddressFamily::Inet,
                SockType::Stream,
                None,
                SockFlag::empty(),
            );
            same("what a pair gives", pair.err(), Some(Errno::EOPNOTSUPP))?;
            // the addresses that it had
            held.push((plain()?, plain()?));
        }
        allowed(socketpair(
            AddressFamily::Unix,
            SockType::Stream,
            None,
            SockFlag::empty(),
        ))
        .map(drop)
    })
}

/// Secret memory that is gone leaves nothing at its inode's address.
fn flood_secret() -> Outcome {
    at(Untrusted, || {
        many_descriptors()?;
        let mut held = Vec::new();
        for _ in 0..HALF + 1000 {
            drop(sys::owned(crate::sys::syscall!(
                libc::SYS_memfd_secret,
                0
            )?)?);
            // the address that its inode had
            held.push(nix::unistd::pipe()?);
        }
        allowed(socketpair(
            AddressFamily::Unix,
            SockType::Stream,
            None,
            SockFlag::empty(),
        ))
        .map(drop)
    })
}
