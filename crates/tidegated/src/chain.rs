//! Why something was refused, or a process stands where it stands.

use tidegate_audit::{Chain, Record, level_name};
use tidegate_monitor::{Event, Kind, Monitor};
use tidegate_protocol::{Code, WhyOf, You};

use crate::error::{DaemonError, Outcome};
use crate::policy_history::Policies;

/// The chain; with a user id, only of what that user's processes did.
pub fn explain(
    monitor: &Monitor,
    policies: &Policies,
    of: WhyOf,
    only: Option<u32>,
) -> Outcome<Chain> {
    let (process, newest) = match of {
        WhyOf::Last => (None, last_refusal(monitor, only)?),
        WhyOf::Record(id) => (None, id),
        WhyOf::Manager(_) => {
            let message = "records of object managers are the daemon's: `tidegate start` starts it";
            return Err(DaemonError::new(Code::NotRunning, message));
        }
        WhyOf::Process(pid) => {
            let (you, uid, cause) = process(monitor, policies, pid)?;
            allowed(only, uid)?;
            (Some(you), cause)
        }
    };
    let events = if newest == 0 {
        Vec::new()
    } else {
        monitor.chain(newest)?
    };
    match events.first() {
        Some(first) if process.is_none() => allowed(only, first.uid)?,
        None if process.is_none() => {
            return Err(DaemonError::new(
                Code::No,
                format!("there is no record @{newest}, or it is gone"),
            ));
        }
        _ => {}
    }
    let cut = match events.last() {
        Some(oldest) => oldest.prev.is_some(),
        None => newest != 0,
    };
    let chain: Vec<_> = events
        .iter()
        .map(|e| Record::with_program(e, monitor, policies))
        .collect();
    Ok(Chain {
        process,
        chain,
        cut,
    })
}

fn allowed(only: Option<u32>, uid: u32) -> Outcome {
    match only {
        Some(mine) if mine != uid => Err(DaemonError::new(
            Code::NotPermitted,
            "it is about another user's process",
        )),
        _ => Ok(()),
    }
}

/// The newest refusal's number.
fn last_refusal(monitor: &Monitor, only: Option<u32>) -> Outcome<u64> {
    let refused = |e: &Event| {
        matches!(e.kind, Kind::Denied | Kind::Would) && only.is_none_or(|mine| mine == e.uid)
    };
    let newest = monitor.newest();
    let oldest = newest.saturating_sub(tidegate_monitor::HISTORY);
    for id in (oldest + 1..=newest).rev() {
        if monitor.event(id)?.is_some_and(|e| refused(&e)) {
            return Ok(id);
        }
    }
    Err(DaemonError::new(Code::No, "nothing has been refused"))
}

/// A process, its user and the record that made it what it is.
fn process(monitor: &Monitor, policies: &Policies, pid: u32) -> Outcome<(You, u32, u64)> {
    let process = monitor.processes()?.into_iter().find(|p| p.pid == pid);
    let process =
        process.ok_or_else(|| DaemonError::new(Code::No, format!("there is no process {pid}")))?;
    let policy = policies.get(monitor.status()?.seqno);
    let number = process.subject.level;
    let level = level_name(policy.as_deref(), number);
    Ok((
        You { pid, number, level },
        process.uid,
        process.subject.cause,
    ))
}
