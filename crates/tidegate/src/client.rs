//! Asking the daemon, as commands do.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use tidegate_protocol::AskError;

use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

/// How long an answer may take: a reload of a large policy builds its tables.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks the daemon; its errors are ours.
///
/// # Errors
/// With [`Code::NotRunning`] if no daemon listens.
pub fn ask(question: &Ask, with: Option<BorrowedFd<'_>>) -> Outcome<Answer> {
    match tidegate_protocol::ask(question, with, PATIENCE) {
        Ok(Answer::Error { code, message }) => Err(Failure::new(Code::from_number(code), message)),
        Ok(answer) => Ok(answer),
        Err(e @ AskError::NotRunning) => Err(Failure::new(Code::NotRunning, e)),
        Err(AskError::Connect(e)) => Err(Failure::io("connect to the daemon", e)),
        Err(AskError::Talk(e)) => Err(Failure::io("talk to the daemon", e)),
    }
}
