//! What is in force, in one answer.

use tidegate_monitor::Monitor;
use tidegate_protocol::{Room, Status};

use crate::error::Outcome;
use crate::policy_history::Policies;

/// What is in force.
pub fn status(monitor: &Monitor, policies: &Policies) -> Outcome<Status> {
    let s = monitor.status()?;
    let policy = policies.get(s.seqno);
    Ok(Status {
        policy: policy
            .as_ref()
            .map_or_else(|| "unknown".into(), |p| p.name.clone()),
        levels: policy.as_ref().map_or_else(Vec::new, |p| p.levels.clone()),
        left_out: policy.as_ref().map_or_else(Vec::new, |p| {
            let each = p.profiles.left_out.iter();
            each.map(ToString::to_string).collect()
        }),
        options: policy.map_or_else(Vec::new, |p| p.options.clone()),
        seqno: s.seqno,
        permissive: s.permissive,
        daemon: (s.daemon != 0).then_some(s.daemon),
        attached: s.attached,
        guard_armed: s.guard_armed,
        given: Room {
            used: monitor.given_used()?,
            max: s.given_max.into(),
        },
        labels: Room {
            used: s.labels_used,
            max: s.given_max.into(),
        },
        records: s.records,
        events_lost: s.events_lost,
        labels_failed: s.labels_failed,
    })
}
