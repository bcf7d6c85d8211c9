//! Sockets of both types.

use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, recv, send, sockopt};

use crate::error::Error;

/// The first wait for what is not to be had yet, though something is there; each is twice as long, up to the last.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(1);
pub(crate) const LAST_WAIT: Duration = Duration::from_millis(10);
/// Waits for others to stop sending by the same stream.
const BUSY: u32 = 100;

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    pub(crate) is_stream: bool,
}

impl Socket {
    pub(crate) fn of(fd: OwnedFd) -> Result<Socket, Error> {
        let is_stream = match sockopt::socket_type(&fd)? {
            SocketType::STREAM => true,
            SocketType::SEQPACKET => false,
            _ => return Err(Error::Socket),
        };
        Ok(Socket { fd, is_stream })
    }

    /// Waits until something can be done.
    pub(crate) fn wait(&self, what: PollFlags) -> Result<(), Error> {
        loop {
            match poll(&mut [PollFd::new(&self.fd, what)], None) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Sends a whole message.
    pub(crate) fn send(&self, message: &[u8]) -> Result<(), Error> {
        let (mut rest, mut waits, mut wait) = (message, 0, FIRST_WAIT);
        loop {
            match send(&self.fd, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) if sent >= rest.len() => return Ok(()),
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::OUT)?;
                    // there is room, and still it is not our turn; or the room was not enough for a packet
                    if waits == BUSY {
                        return Err(Error::Busy);
                    }
                    waits += 1;
                    sleep(wait);
                    wait = (wait * 2).min(LAST_WAIT);
                    continue;
                }
                Err(Errno::ACCESS) => return Err(Error::Refused),
                Err(Errno::PROTO) => return Err(Error::Ended),
                Err(errno) => return Err(errno.into()),
            }
            (waits, wait) = (0, FIRST_WAIT);
        }
    }

    /// Receives up to `most` bytes behind what `into` has, as far as they are there: how many there were of a packet.
    pub(crate) fn receive(&self, into: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
        let from = into.len();
        into.resize(from + most, 0);
        let flags = match self.is_stream {
            true => RecvFlags::DONTWAIT,
            false => RecvFlags::DONTWAIT | RecvFlags::TRUNC,
        };
        let got = loop {
            match recv(self.fd.as_fd(), &mut into[from..], flags) {
                Err(Errno::INTR) => {}
                got => break got.map(|(_, whole)| whole),
            }
        };
        into.truncate(from + got.unwrap_or(0).min(most));
        got
    }

    /// Receives a packet; none: there are no more.
    pub(crate) fn packet(&self, most: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut message = Vec::new();
        loop {
            match self.receive(&mut message, most) {
                // an empty packet is no message, and cannot be told from the end
                Ok(0) => return Ok(None),
                Ok(whole) if whole > most => return Err(Error::TooLong(whole)),
                Ok(_) => return Ok(Some(message)),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
