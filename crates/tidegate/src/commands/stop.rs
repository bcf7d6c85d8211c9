//! `stop`: takes the monitor out of the kernel.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use tidegate_monitor::Monitor;
use tidegated::{Disks, Instance, Policies, paths};

use super::answered;
use crate::client;
use crate::exit::{Code, Outcome};
use crate::output::waiting;
use crate::protocol::{Answer, Ask};

pub fn run(json: bool) -> Outcome {
    let answer = waiting("the kernel lets go of its hooks", stop);
    answered(answer?, json)
}

/// How long the daemon's end is waited for, once it has answered; in seconds.
const ENDS: i64 = 30;

fn stop() -> Outcome<Answer> {
    let daemon = daemon();
    match client::ask(&Ask::Stop, None) {
        Err(failure) if failure.code == Code::NotRunning && geteuid().is_root() => {
            // the daemon died, the monitor did not; or it is just starting
            let _instance = Instance::claim()?;
            if Monitor::remove_unfinished()? {
                return Ok(ended());
            }
            let (monitor, policies) = (Monitor::open()?, Policies::new());
            let disks = Disks::read(&monitor, &policies)?;
            tidegated::take_down(&monitor, &policies, &disks)?;
            Ok(ended())
        }
        Ok(answer) => {
            // a `start` or `stop` that comes next is not to meet it
            if let Some(daemon) = daemon {
                let patience = Timespec {
                    tv_sec: ENDS,
                    tv_nsec: 0,
                };
                let _ = poll(&mut [PollFd::new(&daemon, PollFlags::IN)], Some(&patience));
            }
            Ok(answer)
        }
        refused => refused,
    }
}

/// The daemon's process, by the number that it has left; `None`: there is none.
fn daemon() -> Option<OwnedFd> {
    let number = fs::read_to_string(paths::PID).ok()?;
    let pid = Pid::from_raw(number.trim().parse().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn ended() -> Answer {
    Answer::Done {
        message: "nothing is enforced any more".into(),
        warnings: Vec::new(),
    }
}
