//! Unix sockets, and descriptors sent through them.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixAddr, accept4, bind, connect, listen, recvmsg, sendmsg, socket, socketpair,
};

use crate::scenarios::place;
use crate::scenarios::sys;

/// A name without a file, of this scenario's own.
pub fn abstract_name(what: &str) -> Result<UnixAddr, Errno> {
    UnixAddr::new_abstract(format!("{}-{what}", place::scenario()).as_bytes())
}

/// A name with a file.
pub fn file_name(path: &str) -> Result<UnixAddr, Errno> {
    UnixAddr::new(path)
}

/// A socket without a name.
pub fn fresh(kind: SockType) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None)
}

/// A socket with a name; one for connections listens.
pub fn named(kind: SockType, name: &UnixAddr) -> Result<OwnedFd, Errno> {
    let fd = fresh(kind)?;
    bind(fd.as_raw_fd(), name)?;
    if kind != SockType::Datagram {
        listen(&fd, Backlog::new(8)?)?;
    }
    Ok(fd)
}

/// A socket connected to a name.
pub fn connected(kind: SockType, name: &UnixAddr) -> Result<OwnedFd, Errno> {
    let fd = fresh(kind)?;
    connect(fd.as_raw_fd(), name)?;
    Ok(fd)
}

/// Takes a connection that waits.
pub fn accepted(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    sys::owned(accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?)
}

/// Two sockets connected to each other.
pub fn pair(kind: SockType) -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)
}

/// Sends a byte and descriptors, to a name or to the peer that is connected.
pub fn send(from: &OwnedFd, to: Option<&UnixAddr>, fds: &[RawFd]) -> Result<(), Errno> {
    let rights = [ControlMessage::ScmRights(fds)];
    let control: &[ControlMessage<'_>] = if fds.is_empty() { &[] } else { &rights };
    let data = [IoSlice::new(b"m")];
    sendmsg(from.as_raw_fd(), &data, control, MsgFlags::MSG_NOSIGNAL, to).map(drop)
}

/// What a message brought.
#[derive(Debug, Default)]
pub struct Received {
    /// Bytes of it.
    pub data: Vec<u8>,
    /// Descriptors that arrived.
    pub fds: Vec<OwnedFd>,
    /// Whether others were left out.
    pub cut: bool,
}

/// Receives a message.
pub fn receive(on: &OwnedFd) -> Result<Received, Errno> {
    let mut bytes = [0u8; 64];
    let mut space = cmsg_space!([RawFd; 8]);
    let mut data = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let got = recvmsg::<UnixAddr>(on.as_raw_fd(), &mut data, Some(&mut space), flags)?;
    let mut received = Received {
        cut: got.flags.contains(MsgFlags::MSG_CTRUNC),
        ..Received::default()
    };
    if let Ok(messages) = got.cmsgs() {
        for message in messages {
            if let ControlMessageOwned::ScmRights(fds) = message {
                for fd in fds {
                    received.fds.push(sys::owned(fd)?);
                }
            }
        }
    }
    let n = got.bytes;
    received.data = bytes[..n].to_vec();
    Ok(received)
}
