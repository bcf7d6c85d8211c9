//! The end of enforcement, and what the daemon writes down at its own.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;
use tidegate_monitor::Monitor;

use crate::enforcement::Enforcement;
use crate::error::Outcome;
use crate::labels::store::{self, Disks};
use crate::policy_history::Policies;
use crate::{instance, status_page};

/// Ends enforcement: saves what is to outlive it, takes the monitor out.
pub fn take_down(monitor: &Monitor, policies: &Policies, disks: &Disks) -> Outcome {
    // a governed process is given no file from the last writing on, this one not even for that
    if monitor.governs_everyone()? {
        monitor.exempt_myself()?;
    }
    store::save_clean(monitor, policies, disks)?;
    let page = status_page::Page::open()?;
    if let Err(e) = monitor.remove() {
        store::reopen(monitor)?;
        return Err(e.into());
    }
    page.end();
    instance::clean_up();
    Ok(())
}

/// The service manager's client: by its path, and without variables, so that none of them chooses what answers.
const SYSTEMCTL: &str = "/usr/bin/systemctl";

/// How long it may take to answer.
const ANSWERS: Duration = Duration::from_secs(10);

/// Between two looks whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Whether the machine is going down. A service manager that does not answer says no.
fn goes_down() -> bool {
    let mut asks = Command::new(SYSTEMCTL);
    let state = said(asks.arg("is-system-running").env_clear(), ANSWERS);
    state.is_some_and(|state| state.trim_end() == "stopping")
}

/// What a command says that ends in time; `None`: it has not, and is killed, or cannot be started. It is to say less than a pipe
/// has room for.
fn said(command: &mut Command, patience: Duration) -> Option<String> {
    let until = Instant::now() + patience;
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().ok()?;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(LOOK_AGAIN);
    }
    // all that it wrote is there; another process that has the pipe is not waited for
    let (answer, mut text) = (child.stdout.as_ref()?, [0u8; 64]);
    ioctl_fionbio(answer, true).ok()?;
    let read = rustix::io::read(answer, &mut text).ok()?;
    String::from_utf8(text[..read].to_vec()).ok()
}

/// Writes the given levels down: for the last time if the machine is going down, when nothing
/// but the service manager is left (tidegate.service). Else levels go on being given.
pub fn keep_given(enforcement: &Enforcement) -> Outcome {
    if goes_down() {
        store::save_clean(
            &enforcement.monitor,
            &enforcement.policies,
            &enforcement.disks,
        )
    } else {
        store::save(
            &enforcement.monitor,
            &enforcement.policies,
            &enforcement.disks,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_not_waited_for() {
        let mut says = Command::new("/bin/sh");
        let said_at_once = said(says.args(["-c", "echo stopping"]), Duration::from_secs(60));
        assert_eq!(said_at_once.as_deref(), Some("stopping\n"));
        let begun = Instant::now();
        let mut hangs = Command::new("/bin/sh");
        assert_eq!(
            said(
                hangs.args(["-c", "echo stopping; exec sleep 1000"]),
                Duration::ZERO
            ),
            None
        );
        assert!(begun.elapsed() < Duration::from_secs(900));
        assert_eq!(said(&mut Command::new("/nowhere"), Duration::ZERO), None);
    }
}
