//! Pipes, Unix sockets, connections to networks.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::net::{accept_with, bind, connect, listen, recvmsg, sendmsg, sendmsg_addr};
use rustix::net::{socket_with, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use tidegate_model::{Act, Address, Level};

use super::{Result, bytes, done, keep, slot};
use crate::replay::worker::Task;

/// Where the controller listens on every network.
pub const PORT: u16 = 7;

/// An address of the network of a level.
pub fn network(level: Level) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(127, 0, level, 1), PORT)
}

fn unix(address: &Address, root: &str) -> Result<SocketAddrUnix> {
    match address {
        Address::Path(path) => SocketAddrUnix::new(format!("{root}/{path}")),
        Address::Abstract(name) => {
            SocketAddrUnix::new_abstract_name(format!("{root}#{name}").as_bytes())
        }
    }
}

fn socket(kind: SocketType) -> Result<rustix::fd::OwnedFd> {
    socket_with(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK, None)
}

pub fn attempt(task: &Task) -> Result {
    let root = &task.root;
    let byte = bytes::byte(task.voice);
    match &task.op.act {
        Act::Pipe { read, write } => {
            let (reader, writer) = pipe_with(PipeFlags::NONBLOCK)?;
            keep(reader, *read)?;
            keep(writer, *write)
        }
        Act::Pair { one, other } => {
            let flags = SocketFlags::NONBLOCK;
            let ends = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            keep(ends.0, *one)?;
            keep(ends.1, *other)
        }
        Act::Listen { address, to } => {
            let socket = socket(SocketType::STREAM)?;
            bind(&socket, &unix(address, root)?)?;
            listen(&socket, 64)?;
            keep(socket, *to)
        }
        Act::Mailbox { address, to } => {
            let socket = socket(SocketType::DGRAM)?;
            bind(&socket, &unix(address, root)?)?;
            keep(socket, *to)
        }
        Act::Connect { address, to } => {
            let socket = socket(SocketType::STREAM)?;
            connect(&socket, &unix(address, root)?)?;
            keep(socket, *to)
        }
        Act::Accept { slot: from, to } => {
            keep(accept_with(slot(*from), SocketFlags::NONBLOCK)?, *to)
        }
        Act::Send { slot: to, carry } => send(*carry, byte, |message, carried| {
            sendmsg(slot(*to), message, carried, SendFlags::NOSIGNAL)
        }),
        Act::Post { address, carry } => {
            let socket = socket(SocketType::DGRAM)?;
            let to = unix(address, root)?;
            send(*carry, byte, |message, carried| {
                sendmsg_addr(&socket, &to, message, carried, SendFlags::NOSIGNAL)
            })
        }
        Act::Receive { slot: from, to } => receive(*from, *to),
        Act::Dial { network: level, to } => {
            let flags = SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
            match connect(&socket, &network(*level)) {
                Ok(()) | Err(Errno::INPROGRESS) => keep(socket, *to),
                Err(e) => Err(e),
            }
        }
        _ => Err(Errno::NOSYS),
    }
}

fn send(
    carry: Option<u8>,
    byte: u8,
    how: impl Fn(&[IoSlice<'_>], &mut SendAncillaryBuffer<'_, '_, '_>) -> Result<usize>,
) -> Result {
    let fds: Vec<_> = carry.into_iter().map(slot).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut carried = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        carried.push(SendAncillaryMessage::ScmRights(&fds));
    }
    done(how(&[IoSlice::new(&[byte])], &mut carried))
}

/// A descriptor that was kept back shows as a message cut short.
fn receive(from: u8, to: u8) -> Result {
    let mut byte = [0u8; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut carried = RecvAncillaryBuffer::new(&mut space);
    let room = &mut [IoSliceMut::new(&mut byte)];
    let message = recvmsg(slot(from), room, &mut carried, RecvFlags::DONTWAIT)?;
    if message.bytes == 0 {
        return Err(Errno::NODATA);
    }
    let flags = message.flags;
    bytes::see(&byte);
    if flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::PERM);
    }
    for rights in carried.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = rights {
            for fd in fds {
                keep(fd, to)?;
            }
        }
    }
    Ok(0)
}
