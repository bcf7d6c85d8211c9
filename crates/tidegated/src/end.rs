//! The end of enforcement, and what the daemon writes down at its own.

use std::process::Command;

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

/// Writes the given levels down: for the last time if the machine is going down, when nothing
/// but the service manager is left (tidegate.service). Else levels go on being given.
pub fn keep_given(enforcement: &Enforcement) -> Outcome {
    let state = Command::new("systemctl").arg("is-system-running").output();
    if state.is_ok_and(|s| s.stdout.trim_ascii() == b"stopping") {
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
