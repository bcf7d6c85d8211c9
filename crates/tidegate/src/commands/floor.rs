//! `floor`: the mechanism without a policy, for the lab.

use rustix::event::pause;
use tidegate_monitor::Floor;

use crate::exit::Outcome;
use crate::output::say;

/// Attaches, says so, and waits to be killed.
pub fn run() -> Outcome {
    let floor = Floor::attach()?;
    say!("empty programs on {} hooks", floor.hooks());
    loop {
        pause();
    }
}
