//! `stop`: takes the monitor out of the kernel.

use rustix::process::geteuid;
use tidegate_monitor::Monitor;

use super::done;
use crate::client;
use crate::daemon::{self, Policies};
use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

pub fn run(json: bool) -> Outcome {
    match client::ask(&Ask::Stop, None) {
        Ok(Answer::Done { message }) => done(&message, json),
        Ok(_) => Err(Failure::new(
            Code::Internal,
            "the daemon gave another answer",
        )),
        Err(failure) if failure.code == Code::NotRunning && geteuid().is_root() => {
            // the daemon died, the monitor did not
            daemon::take_down(&Monitor::open()?, &Policies::new())?;
            done("nothing is enforced any more", json)
        }
        Err(failure) => Err(failure),
    }
}
