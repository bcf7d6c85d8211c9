//! `status`: what is in force.

use rustix::process::geteuid;
use tidegate_audit::printable;
use tidegate_monitor::Monitor;
use tidegated::Policies;

use super::print_json;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::protocol::{Answer, Ask, Status};

pub fn run(json: bool) -> Outcome {
    let status = in_force()?;
    if json {
        return print_json(&status);
    }
    let mode = if status.permissive {
        "permissive"
    } else {
        "enforcing"
    };
    say!(
        "policy:   {} ({mode}), number {}",
        status.policy,
        status.seqno
    );
    if !status.options.is_empty() {
        say!("options:  {}", printable(&status.options.join(" ")));
    }
    let levels: Vec<_> = status.levels.iter().rev().map(String::as_str).collect();
    say!("levels:   {}", levels.join(" > "));
    match status.daemon {
        Some(pid) => say!("daemon:   running, pid {pid}"),
        None => say!("daemon:   not running (`tidegate start` takes over)"),
    }
    for place in &status.left_out {
        say!("profiles: {}", printable(place));
    }
    say!("hooks:    {} programs attached", status.attached);
    let guard = if status.guard_armed { "armed" } else { "idle" };
    say!("guard:    {guard}");
    say!(
        "given:    {} of {} levels, {} of {} labels",
        status.given.used,
        status.given.max,
        status.labels.used,
        status.labels.max
    );
    say!("records:  {}, {} lost", status.records, status.events_lost);
    if status.labels_failed > 0 {
        say!("unlabelled: {} objects found no room", status.labels_failed);
    }
    Ok(())
}

/// What the daemon says, or for root, where there is none, the kernel.
pub fn in_force() -> Outcome<Status> {
    match client::ask(&Ask::Status, None) {
        Ok(Answer::Status(status)) => Ok(status),
        Ok(_) => Err(Failure::new(
            Code::Internal,
            "the daemon gave another answer",
        )),
        Err(failure) if failure.code == Code::NotRunning && geteuid().is_root() => without_daemon(),
        Err(failure) => Err(failure),
    }
}

/// What the kernel itself says, for root alone.
fn without_daemon() -> Outcome<Status> {
    let monitor = Monitor::open()?;
    let policies = Policies::new();
    let mut status = tidegated::status(&monitor, &policies)?;
    status.daemon = None;
    Ok(status)
}
