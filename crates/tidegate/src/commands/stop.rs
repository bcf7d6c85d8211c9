//! `stop`: takes the monitor out of the kernel.

use rustix::process::geteuid;
use tidegate_monitor::Monitor;

use super::{done, have_done};
use crate::daemon::{self, Policies};
use crate::exit::{Code, Outcome};
use crate::protocol::Ask;

pub fn run(json: bool) -> Outcome {
    match have_done(&Ask::Stop, None, json) {
        Err(failure) if failure.code == Code::NotRunning && geteuid().is_root() => {
            // the daemon died, the monitor did not
            daemon::take_down(&Monitor::open()?, &Policies::new())?;
            done("nothing is enforced any more", json)
        }
        done => done,
    }
}
