//! From nothing, or from what a dead daemon left, to enforcement.

use tidegate_monitor::{Monitor, Options};
use tidegate_policy::Policy;

use super::instance::level_files;
use super::{Policies, Report, Shared};
use crate::cli;
use crate::exit::{Code, Failure, Outcome};

/// Brings the monitor up, or takes over the one that is there.
pub fn boot(policy: Option<Policy>, how: &cli::Daemon) -> Outcome<(Shared, Report)> {
    if Monitor::is_loaded()? {
        take_over(policy, how)
    } else {
        let policy = policy.ok_or_else(|| {
            Failure::new(Code::NotRunning, "nothing is enforced here that could be taken over")
        })?;
        fresh(policy, how)
    }
}

fn fresh(policy: Policy, how: &cli::Daemon) -> Outcome<(Shared, Report)> {
    let monitor = Monitor::load(Options { given_entries: how.given_entries })?;
    match enforce(&monitor, &policy, how) {
        Ok((policies, report)) => Ok((Shared { monitor, policies }, report)),
        Err(failure) => {
            // everything or nothing
            let _ = monitor.remove();
            Err(failure)
        }
    }
}

/// Attaches under a policy that refuses nothing, so that a kernel without one of
/// the hooks has not been half enforced upon, then turns it on by one store.
fn enforce(monitor: &Monitor, policy: &Policy, how: &cli::Daemon) -> Outcome<(Policies, Report)> {
    monitor.trust_myself(policy.top())?;
    monitor.put_policy(policy, true)?;
    monitor.attach()?;
    let policies = Policies::new();
    let permissive = how.permissive || policy.mode == tidegate_policy::Mode::Permissive;
    monitor.set_permissive(permissive);
    let seqno = monitor.status()?.seqno;
    policies.keep(seqno, policy.clone())?;
    level_files(&policy.levels)?;
    let mode = if permissive { "permissive" } else { "enforcing" };
    let message = format!("{mode} {}", policy.name);
    Ok((policies, Report { code: None, message, warnings: Vec::new() }))
}

fn take_over(policy: Option<Policy>, how: &cli::Daemon) -> Outcome<(Shared, Report)> {
    let monitor = Monitor::open()?;
    let status = monitor.status()?;
    let policies = Policies::new();
    monitor.trust_myself(status.top)?;
    monitor.attach()?;
    let shared = Shared { monitor, policies };
    let mut message = "took over from a daemon that had ended".to_string();
    if let Some(policy) = policy {
        super::answer::reload(&shared, policy, how.permissive)?;
        message += "; the policy named is in force";
    }
    Ok((shared, Report { code: None, message, warnings: Vec::new() }))
}
