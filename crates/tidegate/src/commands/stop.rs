//! `stop`: takes the monitor out of the kernel.

use rustix::process::geteuid;
use tidegate_monitor::Monitor;
use tidegated::{Disks, Instance, Policies};

use super::answered;
use crate::client;
use crate::exit::{Code, Outcome};
use crate::output::waiting;
use crate::protocol::{Answer, Ask};

pub fn run(json: bool) -> Outcome {
    let answer = waiting("the kernel lets go of its hooks", stop);
    answered(answer?, json)
}

fn stop() -> Outcome<Answer> {
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
        answer => answer,
    }
}

fn ended() -> Answer {
    Answer::Done {
        message: "nothing is enforced any more".into(),
        warnings: Vec::new(),
    }
}
