//! From nothing, or from what a dead daemon left, to enforcement.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidegate_bundle::Policy;
use tidegate_monitor::{Guard, Monitor, Options, Refusals, lock_memory};
use tidegate_protocol::Code;

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::instance::level_files;
use crate::labels::store::{self, Disks};
use crate::left_programs::leave_programs;
use crate::object_managers::ObjectManagers;
use crate::options;
use crate::policy_history::{Policies, refusals};
use crate::queue::Queue;
use crate::records::{Left, Records};
use crate::report::Report;
use crate::sessions::Sessions;
use crate::shared::Shared;
use crate::status_page::Page;
use crate::te_system_start::{self, Governed};
use crate::threads::Threads;

/// Brings the monitor up, or takes over the one that is there; a part of one is none.
pub fn boot(
    policy: Option<Policy>,
    how: &options::Options,
    queue: Queue,
) -> Outcome<(Shared, Report)> {
    Monitor::remove_unfinished()?;
    if Monitor::is_loaded()? {
        take_over(policy, how, queue)
    } else {
        let policy = policy.ok_or_else(|| {
            DaemonError::new(
                Code::NotRunning,
                "nothing is enforced here that could be taken over",
            )
        })?;
        fresh(policy, how, queue)
    }
}

fn fresh(policy: Policy, how: &options::Options, queue: Queue) -> Outcome<(Shared, Report)> {
    let loaded = store::load(&policy)?;
    let monitor = Monitor::load(Options {
        given_entries: room(how.given_entries, loaded.count()),
    })?;
    let shared = share(monitor, queue, Policies::new(), loaded.disks, how)?;
    let monitor = &shared.enforcement.monitor;
    let report = monitor
        .restore_given(&loaded.given)
        .and_then(|()| monitor.name_contexts(loaded.contexts.iter().map(String::as_str)))
        .and_then(|()| monitor.restore_labelled(&loaded.labelled))
        .map_err(DaemonError::from)
        .and_then(|()| enforce(&shared, policy, how));
    match report {
        Ok(mut report) => {
            report.warnings.splice(0..0, loaded.warnings);
            Ok((shared, report))
        }
        Err(failure) => {
            // everything or nothing
            let _ = shared.enforcement.monitor.remove();
            Err(failure)
        }
    }
}

/// Room in the table of given levels, and in that of labels: what was asked for, and where a crash has left much, what
/// is there, with the eighth that is kept back, and half of what was asked for besides.
fn room(asked: u32, given: usize) -> u32 {
    let needed = given.saturating_add(given / 4) + asked as usize / 2;
    u32::try_from(needed).map_or(u32::MAX, |needed| needed.max(asked))
}

fn share(
    monitor: Monitor,
    queue: Queue,
    policies: Policies,
    disks: Disks,
    how: &options::Options,
) -> Outcome<Shared> {
    // a demotion waits for the daemon
    lock_memory();
    let guard = Guard::of(&monitor, Duration::from_millis(how.guard_quiet.into()))?;
    Ok(Shared {
        records: Records::new(queue, Left::of(&monitor)?),
        enforcement: Arc::new(Enforcement {
            monitor,
            policies,
            disks,
            guard,
        }),
        sessions: Sessions::default(),
        object_managers: ObjectManagers::new(),
        threads: Arc::new(Threads::new()),
    })
}

/// Attaches under a policy that refuses nothing, so that a kernel without one of
/// the hooks has not been half enforced upon; labels what runs; then turns
/// refusing on by one store.
fn enforce(shared: &Shared, policy: Policy, how: &options::Options) -> Outcome<Report> {
    let Enforcement {
        monitor,
        policies,
        disks,
        guard,
    } = &*shared.enforcement;
    monitor.trust_myself(policy.top())?;
    let mut warnings = policies
        .put_first(monitor, &policy, Refusals::LetThrough)?
        .warnings;
    // before anything is given: by this file's time, of this boot's clock, a crash's suspects are told
    let saved = store::save(monitor, policies, disks).err();
    warnings
        .extend(saved.map(|f| format!("after a crash, what low subjects made could rise: {f}")));
    monitor.attach()?;
    level_files(&policy.levels)?;
    // what runs may have files open that it may not write any more, and until the end of this function gets more
    let _raising = guard.raise(monitor)?;
    let adopted = monitor.adopt()?;
    for record in &adopted.records {
        shared.records.note(monitor, *record);
    }
    warnings.extend(adopted.warnings);
    // an upgrade may come while the disk is full as well
    warnings.extend(leave_programs().err().map(|e| e.to_string()));
    if adopted.lowered > 0 {
        warnings.extend(settle(&policy.levels[0]));
    }
    let mut governed = None;
    if how.te_system {
        let put = |policy: &Policy| -> Outcome {
            let put = policies.put(monitor, guard, policy, Refusals::LetThrough)?;
            warnings.extend(put.warnings);
            Ok(())
        };
        governed = Some(te_system_start::govern(monitor, policies, &policy, put)?);
    }
    monitor.set_refusals(&policy, refusals(how.permissive));
    Page::open()?.agree(monitor, Some(&policy))?;
    let mode = if monitor.status()?.permissive {
        "permissive"
    } else {
        "enforcing"
    };
    let mut message = format!(
        "{mode}: {}; {} processes that were running are below {}",
        policy.name,
        adopted.lowered,
        policy.levels.last().map_or("the top level", String::as_str),
    );
    if let Some(governed) = governed {
        warnings.extend(told(governed, mode == "enforcing", &mut message));
    }
    Ok(Report {
        code: None,
        message,
        warnings,
    })
}

/// Adds to the message what a system-wide start has brought under the policy; its warnings.
fn told(governed: Governed, enforcing: bool, message: &mut String) -> Vec<String> {
    let Governed {
        processes, domains, ..
    } = governed;
    *message +=
        &format!("; all {processes} processes are under the SELinux policy, in {domains} domains");
    let mut warnings = governed.warnings;
    warnings.extend(governed.first_lacks.filter(|_| enforcing));
    warnings
}

/// Has whoever shares a channel with a lower process fall with it: a process of
/// our own falls, which makes the kernel look at every channel there is.
fn settle(lowest: &str) -> Option<String> {
    let fell = std::env::current_exe().and_then(|me| {
        Command::new(me)
            .arg(format!("--settle={lowest}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    match fell {
        Ok(status) if status.success() => None,
        _ => Some(
            "processes that share pipes or sockets with lower ones keep their level for now: \
             they were too busy to be lowered"
                .into(),
        ),
    }
}

fn take_over(
    policy: Option<Policy>,
    how: &options::Options,
    queue: Queue,
) -> Outcome<(Shared, Report)> {
    let monitor = Monitor::open()?;
    monitor.forget_turn();
    let policies = Policies::of(&monitor)?;
    let disks = Disks::read(&monitor, &policies)?;
    let shared = share(monitor, queue, policies, disks, how)?;
    let enforcement = &*shared.enforcement;
    let Enforcement {
        monitor, policies, ..
    } = enforcement;
    monitor.trust_myself(monitor.status()?.top)?;
    if monitor.governs_everyone()? {
        monitor.exempt_myself()?;
    }
    // another end than this one was prepared for
    store::reopen(monitor)?;
    monitor.attach()?;
    // the daemon before may have died between putting a policy in force and telling of it
    let in_force = policies.in_force(monitor).ok();
    Page::open()?.agree(monitor, in_force.as_deref())?;
    let mut message = "took over from a daemon that had ended".to_string();
    let mut warnings = Vec::new();
    if let Some(policy) = policy {
        let (_, more) = enforcement.reload(policy, how.permissive)?;
        warnings.extend(more);
        message += "; the policy named is in force";
    }
    if how.te_system {
        let policy = policies.in_force(monitor)?;
        let put = |more: &Policy| -> Outcome {
            let (_, more) = enforcement.reload(more.clone(), how.permissive)?;
            warnings.extend(more);
            Ok(())
        };
        let governed = te_system_start::govern(monitor, policies, &policy, put)?;
        let enforcing = !monitor.status()?.permissive;
        warnings.extend(told(governed, enforcing, &mut message));
    }
    Ok((
        shared,
        Report {
            code: None,
            message,
            warnings,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_crash_left_finds_room() {
        assert_eq!(room(1 << 18, 7), 1 << 18);
        for given in [1 << 18, 300_000, 5_000_000] {
            // an eighth is kept back for creations under way
            let room = room(1 << 18, given) as usize;
            assert!(given + room / 8 < room, "{given} in {room}");
        }
        assert_eq!(room(1 << 18, usize::MAX / 2), u32::MAX);
    }
}
