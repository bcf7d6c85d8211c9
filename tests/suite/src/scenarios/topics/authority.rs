//! Sockets that do what the kernel asks a capability for when they are made, or set up, and not again: kept over a fall.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use libc::{AF_BLUETOOTH, AF_INET, AF_KEY, AF_PACKET, MAP_SHARED, PROT_READ, PROT_WRITE, SOCK_RAW};
use nix::errno::Errno;

use crate::scenarios::check::{Outcome, allowed, refused, same};
use crate::scenarios::level;
use crate::scenarios::place::BIN;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, lower, start};
use crate::scenarios::sys::{self, Map};
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "ipsec-kept",
        "who had a socket for IPsec's keys and policies before the fall (AF_KEY) goes on setting them",
        ipsec,
    ),
    bypass(
        "raw-kept",
        "a trusted program's raw and packet sockets are kept over its fall: they speak from any address",
        || by_trusted("raw"),
    ),
    bypass(
        "rings-kept",
        "the rings of its packet and AF_XDP sockets are mapped after the fall",
        || by_trusted("rings"),
    ),
    bypass(
        "multicast-routes-kept",
        "its socket by which multicasts are passed on sets where to after the fall",
        || by_trusted("routes"),
    ),
    bypass(
        "bluetooth-kept",
        "its socket of a Bluetooth controller is used after the fall",
        || by_trusted("bluetooth"),
    ),
];

/// None: this kernel has no such sockets.
fn socket(family: i32, kind: i32, protocol: i32) -> Result<Option<OwnedFd>, Errno> {
    let kind = kind | libc::SOCK_CLOEXEC;
    match syscall!(libc::SYS_socket, family, kind, protocol) {
        Err(Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT | Errno::ESOCKTNOSUPPORT) => Ok(None),
        made => sys::owned(made?).map(Some),
    }
}

fn ipsec() -> Outcome {
    const PF_KEY_V2: i32 = 2;
    /// struct sadb_msg: that all policies are to be told (SADB_X_SPDDUMP); its length is in words of 64 bits.
    const TELL: [u8; 16] = [2, 18, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    start(|| {
        let Some(keys) = socket(AF_KEY, SOCK_RAW, PF_KEY_V2)? else {
            return Ok(());
        };
        level::is(System)?;
        // where there are no policies the kernel says so
        match sys::put_all(&keys, &TELL) {
            Err(Errno::ENOENT) => {}
            told => same("what was sent", told?, TELL.len())?,
        }
        lower(Untrusted)?;
        refused(Errno::EPERM, sys::put_all(&keys, &TELL))
    })?
    .join()
}

/// By a program that keeps its level where it hears the network, and falls by a file.
fn by_trusted(kind: &str) -> Outcome {
    let status = Command::new(format!("{BIN}/netd"))
        .args(["--helper", "keep-socket", kind])
        .status()?;
    same("what came of it", status.code(), Some(0))
}

/// What that program does.
pub fn keeps(kind: &str) -> Outcome {
    match kind {
        "raw" => raw(),
        "rings" => rings(),
        "routes" => routes(),
        _ => bluetooth(),
    }
}

/// To loopback: of IP a header with a protocol that nobody hears, and a frame of no protocol.
fn speaks(socket: &OwnedFd, family: i32) -> Result<(), Errno> {
    /// struct sockaddr_in: 127.0.0.1
    const TO_ADDRESS: [u8; 16] = [2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    /// struct sockaddr_ll, of the first device.
    const TO_DEVICE: [u8; 20] = [
        17, 0, 0x88, 0xb5, 1, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let to: &[u8] = if family == AF_INET {
        &TO_ADDRESS
    } else {
        &TO_DEVICE
    };
    let (bytes, fd) = ([0u8; 64], socket.as_raw_fd());
    syscall!(
        libc::SYS_sendto,
        fd,
        bytes.as_ptr(),
        bytes.len(),
        0,
        to.as_ptr(),
        to.len()
    )
    .map(drop)
}

fn raw() -> Outcome {
    let made = [
        (AF_INET, socket(AF_INET, SOCK_RAW, 253)?),
        (AF_PACKET, socket(AF_PACKET, SOCK_RAW, 0)?),
    ];
    let all = || {
        made.iter()
            .filter_map(|(family, s)| Some((*family, s.as_ref()?)))
    };
    for (family, socket) in all() {
        allowed(speaks(socket, family))?;
    }
    lower(Untrusted)?;
    for (family, socket) in all() {
        refused(Errno::EPERM, speaks(socket, family))?;
    }
    Ok(())
}

fn rings() -> Outcome {
    /// AF_XDP
    const XDP: i32 = 44;
    let made = [socket(AF_PACKET, SOCK_RAW, 0)?, socket(XDP, SOCK_RAW, 0)?];
    let maps = |socket| Map::of(socket, PROT_READ | PROT_WRITE, MAP_SHARED).map(drop);
    // it has none, which is said once it is asked for them
    for socket in made.iter().flatten() {
        refused(Errno::EINVAL, maps(socket))?;
    }
    lower(Untrusted)?;
    for socket in made.iter().flatten() {
        refused(Errno::EPERM, maps(socket))?;
    }
    Ok(())
}

fn routes() -> Outcome {
    const BEGIN: i32 = 200;
    const ASSERT: i32 = 207;
    let Some(socket) = socket(AF_INET, SOCK_RAW, libc::IPPROTO_IGMP)? else {
        return Ok(());
    };
    let sets = |option: i32| {
        let (on, fd) = (1i32, socket.as_raw_fd());
        let level = libc::IPPROTO_IP;
        syscall!(libc::SYS_setsockopt, fd, level, option, &raw const on, 4).map(drop)
    };
    match sets(BEGIN) {
        // a kernel that passes no multicasts on
        Err(Errno::ENOPROTOOPT) => return Ok(()),
        begun => allowed(begun)?,
    }
    allowed(sets(ASSERT))?;
    lower(Untrusted)?;
    refused(Errno::EPERM, sets(ASSERT))
}

fn bluetooth() -> Outcome {
    const HCI: i32 = 1;
    let Some(socket) = socket(AF_BLUETOOTH, SOCK_RAW, HCI)? else {
        return Ok(());
    };
    let before = sys::put_all(&socket, &[0; 4]);
    same("refused at the top", before == Err(Errno::EPERM), false)?;
    lower(Untrusted)?;
    refused(Errno::EPERM, sys::put_all(&socket, &[0; 4]))
}
