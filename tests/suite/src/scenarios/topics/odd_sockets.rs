//! Sockets of protocols that pass the hooks by which addresses are looked at: nobody below the top makes them. And those
//! of ciphers, which the kernel uses, too.

use std::os::fd::AsRawFd;
use std::process::Command;

use libc::{AF_INET, AF_INET6, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use nix::errno::Errno;

use crate::scenarios::check::{Outcome, allowed, ensure, refused};
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
    bypass(
        "cipher-replaced",
        "the kernel's own users of a cipher are given one that a lower process has had put together (AF_ALG)",
        replaced,
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

/// Has the kernel look for a cipher, or a hash, by a socket.
fn names(kind: &str, name: &str) -> Result<(), Errno> {
    let socket = sys::owned(syscall!(
        libc::SYS_socket,
        libc::AF_ALG,
        libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
        0
    )?)?;
    // struct sockaddr_alg: the family, the kind, two words of flags, the name, as long as it is
    let mut address = [0u8; 128];
    address[..2].copy_from_slice(&(libc::AF_ALG as u16).to_ne_bytes());
    address[2..2 + kind.len()].copy_from_slice(kind.as_bytes());
    address[24..24 + name.len()].copy_from_slice(name.as_bytes());
    let (fd, len) = (socket.as_raw_fd(), address.len());
    syscall!(libc::SYS_bind, fd, address.as_ptr(), len).map(drop)
}

fn replaced() -> Outcome {
    for module in ["algif_aead", "algif_hash"] {
        let _ = Command::new("modprobe").arg(module).status();
    }
    if names("hash", "sha256") == Err(Errno::EAFNOSUPPORT) {
        return Ok(());
    }
    let far = format!("{}pcrypt(gcm(aes", "seqiv(".repeat(12));
    for level in Level::LOWER {
        at(level, || {
            for name in [
                "pcrypt(gcm(aes))",
                "cryptd(gcm(aes))",
                "rfc4106(pcrypt(gcm(aes)))",
                "authenc(hmac(sha1),cryptd(cbc(aes)))",
                far.as_str(),
            ] {
                refused(Errno::EPERM, names("aead", name))?;
            }
            // whether this kernel has them does not matter
            for (kind, name) in [("hash", "sha256"), ("aead", "rfc4106(gcm(aes))")] {
                let named = names(kind, name);
                ensure(named != Err(Errno::EPERM), "an ordinary cipher is refused")?;
            }
            level::is(level)
        })?;
    }
    Ok(())
}
