//! `stop`: takes the monitor out of the kernel.

use tidegate_monitor::Monitor;

use crate::client;
use crate::daemon;
use crate::exit::{Code, Outcome};
use crate::protocol::{Answer, Ask};

pub fn run(json: bool) -> Outcome {
    match client::ask(&Ask::Stop, None) {
        Err(failure) if failure.code == Code::NotRunning => {
            // the daemon died, the monitor did not
            Monitor::open()?.remove()?;
            daemon::clean_up();
        }
        answer => {
            if let Answer::Done { message } = answer?
                && !json
            {
                anstream::println!("{message}");
                return Ok(());
            }
        }
    }
    if json {
        anstream::println!("{{\"running\":false}}");
    } else {
        anstream::println!("nothing is enforced any more");
    }
    Ok(())
}
