//! Asking the daemon.

use std::io::{self, BufRead, BufReader, IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::exit::{Code, Failure, Outcome};
use crate::places;
use crate::protocol::{Answer, Ask};

/// How long an answer may take: a reload of a large policy builds its tables.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes an answer may have.
const MAX_ANSWER: u64 = 16 << 20;

/// Asks the daemon; its errors are ours.
///
/// # Errors
/// With [`Code::NotRunning`] if no daemon listens.
pub fn ask(question: &Ask, with: Option<BorrowedFd<'_>>) -> Outcome<Answer> {
    let stream = match UnixStream::connect(places::SOCKET) {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Err(Failure::new(
                Code::NotRunning,
                "the daemon is not running: `tidegate start` starts it",
            ));
        }
        stream => stream.map_err(|e| Failure::io("connect to the daemon", e))?,
    };
    exchange(stream, question, with)
        .map_err(|e| Failure::io("talk to the daemon", e))
        .and_then(|answer| match answer {
            Answer::Error { code, message } => Err(Failure::new(Code::from_number(code), message)),
            answer => Ok(answer),
        })
}

fn exchange(
    stream: UnixStream,
    question: &Ask,
    with: Option<BorrowedFd<'_>>,
) -> io::Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
