//! Asking the daemon, as commands do.

use std::os::fd::BorrowedFd;

use tidegate_protocol::AskError;

use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

/// Asks the daemon; its errors are ours.
///
/// # Errors
/// With [`Code::NotRunning`] if no daemon listens.
pub fn ask(question: &Ask, with: Option<BorrowedFd<'_>>) -> Outcome<Answer> {
    match tidegate_protocol::ask(question, with, question.patience()) {
        Ok(Answer::Error { code, message }) => Err(Failure::new(Code::from_number(code), message)),
        Ok(answer) => Ok(answer),
        Err(e @ AskError::NotRunning) => Err(Failure::new(Code::NotRunning, e)),
        Err(AskError::Connect(e)) => Err(Failure::io("connect to the daemon", e)),
        Err(e @ AskError::Late(_)) => Err(Failure::new(
            Code::Internal,
            format_args!("{e}; what was asked may still come to pass: ask `tidegate status`"),
        )),
        Err(AskError::Talk(e)) => Err(Failure::io("talk to the daemon", e)),
    }
}
