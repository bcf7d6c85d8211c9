//! Sockets of protocols that pass the hooks by which addresses are looked at: nobody below the top makes them.

use libc::{AF_INET, AF_INET6, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use nix::errno::Errno;

use crate::scenarios::check::{Outcome, allowed, refused};
use crate::scenarios::level;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::User;

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "socket-known",
        "sockets of TCP, UDP and MPTCP are made, named and not, and nobody falls by it",
        known,
    ),
    bypass(
        "socket-sctp-by-type",
        "a socket of SCTP, which connects and sends without a hook, is made by its type, with no protocol named",
        || odd(SOCK_SEQPACKET, 0),
    ),
    bypass(
        "socket-l2tp",
        "a socket for datagrams is of L2TP over IP",
        || odd(SOCK_DGRAM, 115),
    ),
    bypass(
        "socket-smc-over-tcp",
        "a stream is of SMC, whose connection is another socket's",
        || odd(SOCK_STREAM, 256),
    ),
];

fn make(family: i32, kind: i32, protocol: i32) -> Result<(), Errno> {
    sys::owned(syscall!(libc::SYS_socket, family, kind, protocol)?).map(drop)
}

fn odd(kind: i32, protocol: i32) -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for family in [AF_INET, AF_INET6] {
                refused(Errno::EPERM, make(family, kind, protocol))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn known() -> Outcome {
    at(User, || {
        for family in [AF_INET, AF_INET6] {
            for (kind, protocol) in [
                (SOCK_STREAM, 0),
                (SOCK_STREAM, libc::IPPROTO_TCP),
                (SOCK_STREAM, libc::IPPROTO_MPTCP),
                (SOCK_DGRAM, 0),
                (SOCK_DGRAM, libc::IPPROTO_UDP),
            ] {
                allowed(make(family, kind, protocol))?;
            }
        }
        level::is(User)
    })
}
