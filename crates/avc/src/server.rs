//! The server that answers what the cache does not know.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use serde::de::IgnoredAny;
use tidegate_protocol::{Answer, Ask, AskError, Question, Reply, ask};

use crate::error::AvcError;

/// How long each part of an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Times to ask again where the daemon turns us away, as it has too many clients at once.
const TRIES: u32 = 6;

/// The one that decides.
pub trait SecurityServer: fmt::Debug + Send + Sync {
    /// Answers a question; a descriptor may come with it.
    ///
    /// # Errors
    /// If there is no answer.
    fn ask(&self, question: Question, with: Option<BorrowedFd<'_>>) -> Result<Reply, AvcError>;
}

/// Tidegate's daemon, a connection a question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Daemon;

impl SecurityServer for Daemon {
    fn ask(&self, question: Question, with: Option<BorrowedFd<'_>>) -> Result<Reply, AvcError> {
        let question = Ask::Security { question };
        let mut pause = Duration::from_millis(1);
        for _ in 1..TRIES {
            match ask::<IgnoredAny>(&question, with, PATIENCE) {
                Err(AskError::Talk(e)) if is_turned_away(&e) => thread::sleep(pause),
                answer => return reply(answer),
            }
            pause *= 2;
        }
        reply(ask::<IgnoredAny>(&question, with, PATIENCE))
    }
}

/// The daemon closes the connections of those whom it has no room for.
fn is_turned_away(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&e.kind())
}

fn reply(answer: Result<Answer<IgnoredAny>, AskError>) -> Result<Reply, AvcError> {
    // docs/reference/exit-codes.md
    match answer {
        Ok(Answer::Security(reply)) => Ok(reply),
        Ok(Answer::Error { code: 2, message }) => Err(AvcError::Invalid(message)),
        Ok(Answer::Error { code: 7, message }) => Err(AvcError::NotPermitted(message)),
        Ok(Answer::Error { message, .. }) => Err(AvcError::Failed(message)),
        Ok(_) => Err(AvcError::Failed("it gave another answer".into())),
        Err(AskError::NotRunning) => Err(AvcError::NotRunning),
        Err(e) => Err(AvcError::Failed(e.to_string())),
    }
}

/// The context of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The context.
    pub context: String,
    /// Whether the policy governs it. One that it does not has the context of the initial SID `kernel`.
    pub governed: bool,
}
