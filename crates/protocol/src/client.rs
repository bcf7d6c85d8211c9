//! Asking the daemon.

use std::fmt;
use std::io::{self, BufRead, BufReader, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sendmsg, socket_with,
};
use rustix::process::geteuid;
use serde::de::DeserializeOwned;

use crate::{ADMIN, Answer, Ask, SOCKET};

/// Bytes an answer may have.
const MAX_ANSWER: u64 = 16 << 20;

/// How long a connection may take at most.
const CONNECT: Duration = Duration::from_secs(120);

/// How long root waits for a place in everybody's queue before it takes the socket of those who administer.
const MOMENT: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// No daemon listens.
    NotRunning,
    /// There is a socket, but no connection to it.
    Connect(io::Error),
    /// No answer came within that time; what was asked may still come to pass.
    Late(Duration),
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
            AskError::Late(within) => write!(
                f,
                "the daemon has not answered within {} s",
                within.as_secs()
            ),
            AskError::Talk(e) => write!(f, "cannot talk to the daemon: {e}"),
        }
    }
}

impl std::error::Error for AskError {}

/// Asks the daemon; a descriptor may go with the question. `patience` is how long the connection, and then each part of the answer,
/// may take ([`Ask::patience`]); the connection two minutes at most.
///
/// # Errors
/// See [`AskError`]. What the daemon itself refuses is [`Answer::Error`].
pub fn ask<W: DeserializeOwned>(
    question: &Ask,
    with: Option<BorrowedFd<'_>>,
    patience: Duration,
) -> Result<Answer<W>, AskError> {
    let sockets = Sockets {
        everybodys: SOCKET,
        administrators: geteuid().is_root().then_some(ADMIN),
    };
    let until = Instant::now() + patience.min(CONNECT);
    let stream = sockets
        .connect(question, until)
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NotRunning,
            _ => AskError::Connect(e),
        })?;
    exchange(stream, question, with, patience).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => AskError::Late(patience),
        _ => AskError::Talk(e),
    })
}

/// Where the daemon listens.
#[derive(Debug, Clone, Copy)]
struct Sockets<'p> {
    everybodys: &'p str,
    /// For processes that may connect to it.
    administrators: Option<&'p str>,
}

impl Sockets<'_> {
    /// Connects by then, whoever keeps everybody's socket busy.
    ///
    /// Root that is below the top is refused the other one, and each refusal is recorded. So what everybody may ask is asked by
    /// everybody's, unless there is no room.
    fn connect(self, question: &Ask, until: Instant) -> io::Result<UnixStream> {
        let Some(administrators) = self.administrators else {
            return connect(self.everybodys, until);
        };
        if !question.administers() {
            match connect(self.everybodys, until.min(Instant::now() + MOMENT)) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
        // the daemon of another version may not have it
        connect(administrators, until).or_else(|_| connect(self.everybodys, until))
    }
}

/// Connects by then; [`io::ErrorKind::WouldBlock`]: there was no room.
fn connect(path: &str, until: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        // connect(2) of a Unix socket waits so long, too; without end where a profile does not let this be set
        let _ = set_socket_timeout(&socket, Timeout::Send, Some(left));
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    use crate::WhyOf;

    const STATUS: Ask = Ask::Status;
    const STOP: Ask = Ask::Stop;
    const SHORT: Duration = Duration::from_millis(400);

    #[test]
    fn who_administers_does_not_wait_behind_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (everybodys, administrators) = (at("everybodys"), at("administrators"));
        let user = Sockets {
            everybodys: &everybodys,
            administrators: None,
        };
        let root = Sockets {
            administrators: Some(&administrators),
            ..user
        };
        let soon = || Instant::now() + SHORT;
        for sockets in [user, root] {
            let failed = sockets.connect(&STATUS, soon()).unwrap_err();
            assert_eq!(failed.kind(), io::ErrorKind::NotFound);
        }
        let busy = UnixListener::bind(&everybodys).unwrap();
        // there is room for one more than this
        rustix::net::listen(&busy, 0).unwrap();
        let _waits = user.connect(&STATUS, soon()).unwrap();
        for (sockets, question) in [
            (user, &STATUS),
            (user, &STOP),
            (root, &STATUS),
            (root, &STOP),
        ] {
            let begun = Instant::now();
            let failed = sockets.connect(question, soon()).unwrap_err();
            assert_eq!(failed.kind(), io::ErrorKind::WouldBlock);
            // a tick of the clock may have begun before
            assert!(begun.elapsed() >= SHORT / 2);
        }
        let free = UnixListener::bind(&administrators).unwrap();
        free.set_nonblocking(true).unwrap();
        for question in [&STATUS, &STOP] {
            root.connect(question, soon()).unwrap();
            free.accept().unwrap();
        }
        assert!(user.connect(&STATUS, soon()).is_err());
        assert!(free.accept().is_err());
    }

    #[test]
    fn what_everybody_may_ask_is_asked_by_everybodys_socket() {
        let why = Ask::Why { of: WhyOf::Last };
        for question in [Ask::Whoami, STATUS, Ask::Metrics, Ask::Sessions, why] {
            assert!(!question.administers(), "{question:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (everybodys, administrators) = (at("everybodys"), at("administrators"));
        let listeners = [&everybodys, &administrators].map(|path| {
            let listener = UnixListener::bind(path).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        });
        let root = Sockets {
            everybodys: &everybodys,
            administrators: Some(&administrators),
        };
        for (question, goes_to) in [(STATUS, 0), (STOP, 1)] {
            root.connect(&question, Instant::now() + SHORT).unwrap();
            listeners[goes_to].accept().unwrap();
            assert!(listeners[1 - goes_to].accept().is_err());
        }
    }
}
