//! Asking the daemon, as commands do.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tidegate_protocol::AskError;

use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long one may take for which the kernel may have to load or end a model's programs, or a large policy's tables are built.
/// On a processor that is emulated, or has much else to do, that takes minutes; a daemon that dies meanwhile ends the wait.
const LOADS: Duration = Duration::from_secs(3600);

/// Asks the daemon; its errors are ours.
///
/// # Errors
/// With [`Code::NotRunning`] if no daemon listens.
pub fn ask(question: &Ask, with: Option<BorrowedFd<'_>>) -> Outcome<Answer> {
    let within = match question {
        Ask::Reload { .. }
        | Ask::SetBooleans { .. }
        | Ask::Capabilities { .. }
        | Ask::Withdraw { .. }
        | Ask::Stop => LOADS,
        _ => PATIENCE,
    };
    match tidegate_protocol::ask(question, with, within) {
        Ok(Answer::Error { code, message }) => Err(Failure::new(Code::from_number(code), message)),
        Ok(answer) => Ok(answer),
        Err(e @ AskError::NotRunning) => Err(Failure::new(Code::NotRunning, e)),
        Err(AskError::Connect(e)) => Err(Failure::io("connect to the daemon", e)),
        Err(AskError::Talk(e)) if e.kind() == ErrorKind::WouldBlock => Err(Failure::new(
            Code::Internal,
            format_args!(
                "the daemon has not answered within {} s; what was asked may still come to pass: ask `tidegate status`",
                within.as_secs()
            ),
        )),
        Err(AskError::Talk(e)) => Err(Failure::io("talk to the daemon", e)),
    }
}
