//! The service's end.

use std::os::fd::OwnedFd;
use std::thread::sleep;

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::error::Error;
use crate::socket::{FIRST_WAIT, LAST_WAIT, Socket};
use crate::wire::{REQUEST_HEAD, Reply, Request, length};

/// Bytes of a message that are accepted, if nothing else is said.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;

/// A connection that was accepted.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    stream: Stream,
}

/// What came by a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    head: usize,
    /// Of messages that were not taken yet.
    bytes: Vec<u8>,
    /// The length of the last one: the next is likely as long, and then takes one call.
    last: usize,
    pub(crate) most: usize,
}

impl Stream {
    pub(crate) fn new(head: usize) -> Stream {
        Stream {
            head,
            bytes: Vec::new(),
            last: head,
            most: MAX_MESSAGE,
        }
    }

    /// The first message that is there as a whole, or how much of it is still to come, and how much of that must come at once.
    fn next(&mut self) -> Result<Result<Vec<u8>, (usize, usize)>, Error> {
        let have = self.bytes.len();
        let Some(length) = length(&self.bytes, self.head) else {
            return Ok(Err((self.last.max(self.head) - have, self.head - have)));
        };
        let length = length?;
        if length > self.most {
            return Err(Error::TooLong(length));
        }
        if have < length {
            return Ok(Err((length - have, 1)));
        }
        let behind = self.bytes.split_off(length);
        self.last = length;
        Ok(Ok(std::mem::replace(&mut self.bytes, behind)))
    }

    /// The next message; none: there are no more. No more is asked for than is known to be of it, or likely to: what the monitor has
    /// not authorised cannot be had, and what is asked for in excess of it not even in part.
    pub(crate) fn receive(&mut self, socket: &Socket) -> Result<Option<Vec<u8>>, Error> {
        let (mut wait, mut less, mut is_there) = (FIRST_WAIT, usize::MAX, false);
        loop {
            let (want, least) = match self.next()? {
                Ok(message) => return Ok(Some(message)),
                Err(want) => want,
            };
            let ask = want.min(less).max(least);
            match socket.receive(&mut self.bytes, ask) {
                Ok(0) if self.bytes.is_empty() => return Ok(None),
                Ok(0) => return Err(Error::Truncated),
                Ok(_) => (wait, less, is_there) = (FIRST_WAIT, usize::MAX, false),
                Err(Errno::AGAIN) if !is_there => {
                    socket.wait(PollFlags::IN)?;
                    is_there = true;
                }
                // something is there, but not so much; of a head it is all or nothing
                Err(Errno::AGAIN) if ask > least => less = if least > 1 { 0 } else { ask / 2 },
                Err(Errno::AGAIN) => {
                    // nothing waits for more than something
                    sleep(wait);
                    wait = (wait * 2).min(LAST_WAIT);
                    (less, is_there) = (usize::MAX, false);
                }
                Err(Errno::PROTO) => return Err(Error::Ended),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Connection {
    /// A connected socket, of packets or a stream.
    ///
    /// # Errors
    ///
    /// If it is of another type.
    pub fn of(socket: impl Into<OwnedFd>) -> Result<Connection, Error> {
        Ok(Connection {
            socket: Socket::of(socket.into())?,
            stream: Stream::new(REQUEST_HEAD),
        })
    }

    /// Accepts messages of so many bytes at most; else a mebibyte.
    pub fn accept_up_to(&mut self, bytes: usize) {
        self.stream.most = bytes.max(REQUEST_HEAD);
    }

    /// The next request, which is waited for; none: the client has closed the connection.
    ///
    /// # Errors
    ///
    /// If the connection is to be closed. Of packets it can go on, unless the error is of the system's.
    pub fn receive(&mut self) -> Result<Option<Request>, Error> {
        let message = match self.socket.is_stream {
            true => self.stream.receive(&self.socket)?,
            false => self.socket.packet(self.stream.most)?,
        };
        Ok(message.as_deref().map(Request::decode).transpose()?)
    }

    /// Sends a reply.
    ///
    /// # Errors
    ///
    /// If it could not be sent.
    pub fn reply(&mut self, reply: &Reply) -> Result<(), Error> {
        self.socket.send(&reply.encode()?)
    }
}
