//! What the controller and its workers say to each other.
//!
//! A worker reads requests from a pipe that only the controller writes; the
//! controller, at the top level and `nodemote`, reads the answers of all from
//! one pipe. So neither pipe moves a level: the first one's writer is at the
//! top, the second one's only reader does not fall.

use std::io::{self, Read, Write};
use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};
use tidegate_model::{Level, Op, Pid};

/// Where each worker has the writing end of the answers' pipe.
pub const ANSWERS: RawFd = 200;
/// Where it has the reading ends of the requests' pipes: this and up, one for
/// each process of a sequence, and one for the nursery.
pub const REQUESTS: RawFd = 201;
/// Pipes for requests.
pub const LINES: Pid = 9;
/// The nursery's.
pub const NURSERY: Pid = LINES - 1;
/// Where the descriptors begin that a sequence is about.
pub const SLOTS: RawFd = 100;

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// To the nursery: fork, and be this process.
    Spawn(Pid),
    /// To a worker: try this.
    Try {
        /// What.
        op: Op,
        /// The sandbox.
        root: String,
        /// The kernel's number of what the operation names: a process, a
        /// segment, a queue.
        number: i64,
        /// The level of the process.
        level: Level,
        /// The level that the policy vouches for in what is written.
        floor: Level,
    },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// 0, or why not.
    pub errno: i32,
    /// The kernel's number of what was made.
    pub value: i64,
    /// The levels that the process has read bytes of, a bit for each.
    pub seen: u16,
}

impl Request {
    /// Sends it, whole: it is shorter than a pipe takes at once.
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let body = postcard::to_allocvec(self).map_err(io::Error::other)?;
        let mut message = (body.len() as u16).to_le_bytes().to_vec();
        message.extend(body);
        to.write_all(&message)
    }

    /// Waits for one.
    pub fn receive(from: &mut impl Read) -> io::Result<Request> {
        let mut len = [0; 2];
        from.read_exact(&mut len)?;
        let mut body = vec![0; u16::from_le_bytes(len).into()];
        from.read_exact(&mut body)?;
        postcard::from_bytes(&body).map_err(io::Error::other)
    }
}

impl Answer {
    /// Sends it, whole.
    pub fn send(self, to: &mut impl Write) -> io::Result<()> {
        let mut message = [0; 24];
        message[..8].copy_from_slice(&i64::from(self.errno).to_le_bytes());
        message[8..16].copy_from_slice(&self.value.to_le_bytes());
        message[16..].copy_from_slice(&i64::from(self.seen).to_le_bytes());
        to.write_all(&message)
    }

    /// Waits for one.
    pub fn receive(from: &mut impl Read) -> io::Result<Answer> {
        let mut words = [[0; 8]; 3];
        for word in &mut words {
            from.read_exact(word)?;
        }
        let [errno, value, seen] = words.map(i64::from_le_bytes);
        Ok(Answer {
            errno: errno as i32,
            value,
            seen: seen as u16,
        })
    }
}
