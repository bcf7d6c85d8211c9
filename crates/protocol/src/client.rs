//! Asking the daemon.

use std::fmt;
use std::io::{self, BufRead, BufReader, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::de::DeserializeOwned;

use crate::{Answer, Ask, SOCKET};

/// Bytes an answer may have.
const MAX_ANSWER: u64 = 16 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// No daemon listens.
    NotRunning,
    /// There is a socket, but no connection to it.
    Connect(io::Error),
    /// The connection gave no answer that can be read.
    Talk(io::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NotRunning => {
                f.write_str("the daemon is not running: `tidegate start` starts it")
            }
            AskError::Connect(e) => write!(f, "cannot connect to the daemon: {e}"),
            AskError::Talk(e) => write!(f, "cannot talk to the daemon: {e}"),
        }
    }
}

impl std::error::Error for AskError {}

/// Asks the daemon; a descriptor may go with the question. `patience` is how long each
/// part of the answer may take.
///
/// # Errors
/// See [`AskError`]. What the daemon itself refuses is [`Answer::Error`].
pub fn ask<W: DeserializeOwned>(
    question: &Ask,
    with: Option<BorrowedFd<'_>>,
    patience: Duration,
) -> Result<Answer<W>, AskError> {
    let stream = UnixStream::connect(SOCKET).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NotRunning,
        _ => AskError::Connect(e),
    })?;
    exchange(stream, question, with, patience).map_err(AskError::Talk)
}

fn exchange<W: DeserializeOwned>(
    stream: UnixStream,
    question: &Ask,
    with: Option<BorrowedFd<'_>>,
    patience: Duration,
) -> io::Result<Answer<W>> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = with.into_iter().collect();
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    // a line this short is sent whole or not at all
    sendmsg(
        stream.as_fd(),
        &[IoSlice::new(&line)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no answer"));
    }
    Ok(serde_json::from_str(&answer)?)
}
