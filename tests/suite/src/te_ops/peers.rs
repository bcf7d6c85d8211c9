//! Peers at the other end of a socket: servers that give a byte, and a descriptor with it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::te_ops::capability;
use crate::te_ops::socket::{bind_un, socket};
use crate::te_ops::sys::{Helper, at, fd, serving, sys};

/// The port of a server, for which the policy has a type.
pub const SERVED: u16 = 4002;

pub fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let none = ptr::null_mut();
    sys!(libc::accept(socket.as_raw_fd(), none, ptr::null_mut())).map(fd)
}

/// A server that takes connections and gives each a byte.
pub fn server() -> io::Result<Helper> {
    let listener = fd(capability::bind(libc::AF_INET, libc::SOCK_STREAM, SERVED)?);
    sys!(libc::listen(listener.as_raw_fd(), 8))?;
    served_by(listener, None)
}

/// A process of its own, that serves; the socket is its and nobody else's.
fn served_by(listener: OwnedFd, gives: Option<OwnedFd>) -> io::Result<Helper> {
    serving(
        || Ok(()),
        move || {
            while let Ok(peer) = accept(&listener) {
                send_fd(&peer, gives.as_ref())?;
            }
            Ok(())
        },
    )
}

/// Sends a byte, and a descriptor with it.
pub fn send_fd(to: &OwnedFd, gives: Option<&OwnedFd>) -> io::Result<()> {
    let mut byte = b'c';
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 4];
    // SAFETY: zeroes are a message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if let Some(gives) = gives {
        control[0] = 20;
        control[1] = libc::SOL_SOCKET as u64 | (libc::SCM_RIGHTS as u64) << 32;
        control[2] = gives.as_raw_fd() as u64;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = 24;
    }
    sys!(libc::sendmsg(
        to.as_raw_fd(),
        &raw const message,
        libc::MSG_NOSIGNAL
    ))
    .map(drop)
}

/// Takes a byte; whether a descriptor came with it.
pub fn take_fd(from: &OwnedFd) -> io::Result<bool> {
    let mut byte = 0u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 4];
    // SAFETY: zeroes are a message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 32;
    sys!(libc::recvmsg(from.as_raw_fd(), &raw mut message, 0))?;
    Ok(message.msg_controllen >= 20 && message.msg_flags & libc::MSG_CTRUNC == 0)
}

pub fn unix_server(name: &'static str) -> impl Fn() -> io::Result<Helper> {
    move || giving(name, None)
}

pub fn giving(name: &str, gives: Option<OwnedFd>) -> io::Result<Helper> {
    let name = if name.starts_with('@') {
        name.to_owned()
    } else {
        at(name)
    };
    let listener = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    bind_un(&listener, &name)?;
    sys!(libc::listen(listener.as_raw_fd(), 8))?;
    served_by(listener, gives)
}
