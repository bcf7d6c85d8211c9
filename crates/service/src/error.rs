//! What goes wrong.

use std::io;

/// Why bytes are no message. See `docs/reference/service-monitor.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Its length is another than its head says, or less than a head.
    #[error("its length does not fit")]
    Length,
    /// Its operands do not fit in the bytes that they are said to have, or there are more than 8.
    #[error("its operands do not fit")]
    Operands,
    /// An operand's kind is none.
    #[error("an operand is of no known kind")]
    Kind,
    /// A name is empty, longer than 255 bytes, or has a byte 0.
    #[error("a name is empty, too long, or has a byte 0")]
    Name,
    /// What has no meaning is not 0.
    #[error("what has no meaning is not zero")]
    Zero,
}

/// Why a request or a reply could not be sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer of the capability files that limit this process does not allow the request. `tidegate why` tells which.
    #[error("the request is not authorised: `tidegate why` has its record")]
    Refused,
    /// The service monitor does not go on: a message was none, or a request behind another one was not authorised. The connection
    /// is to be closed.
    #[error("the service monitor has ended the connection; close it")]
    Ended,
    /// What came, or was to be sent, is no message. What follows on a stream has no meaning: the connection is to be closed.
    #[error("a message that is none: {0}")]
    Malformed(#[from] Malformed),
    /// A message is longer than is accepted, in bytes. On a stream the connection is to be closed.
    #[error("a message of {0} bytes, which is more than is accepted")]
    TooLong(usize),
    /// The other end has closed the connection within a message.
    #[error("the connection was closed within a message")]
    Truncated,
    /// Another reply than the one that was waited for.
    #[error("a reply to request {got} where one to {expected} was due")]
    OtherReply {
        /// The request's id.
        expected: u32,
        /// The reply's.
        got: u32,
    },
    /// Others were sending by the same stream all the time.
    #[error("the stream is in use by others")]
    Busy,
    /// The socket is neither a stream nor one of packets.
    #[error("neither a stream nor a socket of packets")]
    Socket,
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Self {
        Error::Io(errno.into())
    }
}
