//! What the daemon answers.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tidegate_audit::level_name;
use tidegate_bundle::Policy;
use tidegate_bundle::te::UnknownBoolean;
use tidegate_flask::Sid;
use tidegate_monitor::{Killed, Why};
use tidegate_protocol::{Ask, Code, Lost, You};

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::labels::store::save;
use crate::object_managers::{audit, query};
use crate::peer::Peer;
use crate::shared::Shared;
use crate::status::status;
use crate::status_page::denies_unknown;
use crate::{bundles, end, sessions};

/// An answer, which has a chain of records for `why`.
pub type Answer = tidegate_protocol::Answer<tidegate_audit::Chain>;

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next question.
    GoOn,
    /// The daemon's end.
    End,
}

/// Answers a question.
pub fn answer(shared: &Arc<Shared>, peer: &Peer, ask: Ask, fd: Option<OwnedFd>) -> (Answer, Then) {
    match decide(shared, peer, ask, fd) {
        Ok(done) => done,
        Err(f) => (
            Answer::Error {
                code: f.code() as u8,
                message: f.to_string(),
            },
            Then::GoOn,
        ),
    }
}

fn decide(
    shared: &Arc<Shared>,
    peer: &Peer,
    ask: Ask,
    fd: Option<OwnedFd>,
) -> Outcome<(Answer, Then)> {
    let enforcement = &*shared.enforcement;
    // a client that capability files limit may narrow itself, and no more
    let narrows = matches!(
        ask,
        Ask::Whoami | Ask::Confine { .. } | Ask::Enter { .. } | Ask::Capabilities { .. }
    );
    if !narrows && peer.is_limited(&enforcement.monitor)? {
        let message = "this process is limited by a capability file: it may narrow itself, and ask for nothing else";
        return Err(DaemonError::new(Code::NotPermitted, message));
    }
    let answer = match ask {
        Ask::Whoami => Answer::You(whoami(enforcement, peer)?),
        Ask::Status => {
            let mut status = status(&enforcement.monitor, &enforcement.policies)?;
            // the kernel's, and what found no room here
            status.events_lost += shared.records.dropped();
            Answer::Status(status)
        }
        Ask::Metrics => Answer::Metrics(Box::new(shared.records.metrics(enforcement)?)),
        Ask::Confine { profile } => Answer::Confined {
            limits: confine(enforcement, peer, &profile)?,
        },
        Ask::Enter { context } => Answer::Done {
            message: enter(enforcement, peer, &context)?,
            warnings: Vec::new(),
        },
        Ask::Capabilities { subject, now } => Answer::Done {
            message: sessions::limit(
                &shared.sessions,
                enforcement,
                peer,
                fd,
                subject.as_deref(),
                now,
            )?,
            warnings: Vec::new(),
        },
        Ask::Sessions => {
            let only = (peer.uid != 0).then_some(peer.uid);
            Answer::Sessions(sessions::list(&shared.sessions, enforcement, only)?)
        }
        Ask::Withdraw { what } => {
            trusted(enforcement, peer, "load_policy")?;
            let withdrawn = sessions::withdraw(&shared.sessions, enforcement, &what)?;
            Answer::Withdrawn {
                sessions: withdrawn.sessions,
                whole: withdrawn.whole,
                killed: withdrawn
                    .killed
                    .into_iter()
                    .map(|it| lost(enforcement, it))
                    .collect(),
            }
        }
        Ask::Security { question } => Answer::Security(query::answer(
            &shared.object_managers,
            enforcement,
            peer,
            question,
            fd,
        )?),
        Ask::Stop => {
            trusted(enforcement, peer, "setenforce")?;
            end::take_down(
                &enforcement.monitor,
                &enforcement.policies,
                &enforcement.disks,
            )?;
            let message = "nothing is enforced any more".into();
            return Ok((
                Answer::Done {
                    message,
                    warnings: Vec::new(),
                },
                Then::End,
            ));
        }
        Ask::Reload { permissive } => {
            trusted(enforcement, peer, "load_policy")?;
            let bytes = bundles::policy(fd)?;
            let policy =
                Policy::from_bundle(&bytes).map_err(|e| DaemonError::new(Code::Policy, e))?;
            let before = enforcement.policies.in_force(&enforcement.monitor).ok();
            let mut warnings = before.map_or_else(Vec::new, |before| dropped(&before, &policy));
            let (message, more) = enforcement.reload(policy, permissive)?;
            warnings.extend(more);
            warnings.extend(revoke(enforcement).map_err(|e| half_done(&message, &e))?);
            let kept = enforcement.monitor.kept_mappings();
            warnings.extend(kept.map_err(|e| half_done(&message, &e.into()))?);
            Answer::Done { message, warnings }
        }
        Ask::Booleans => Answer::Booleans(booleans(enforcement)?),
        Ask::SetBooleans { values } => {
            trusted(enforcement, peer, "setbool")?;
            let (message, mut warnings) = set_booleans(enforcement, &values)?;
            warnings.extend(revoke(enforcement).map_err(|e| half_done(&message, &e))?);
            Answer::Done { message, warnings }
        }
        Ask::Why { of } => {
            let only = (peer.uid != 0).then_some(peer.uid);
            Answer::Why(audit::explain(
                &shared.object_managers.records,
                enforcement,
                of,
                only,
            )?)
        }
        Ask::Promote { level, path } => {
            trusted(enforcement, peer, "load_policy")?;
            let fd = fd.ok_or_else(|| DaemonError::new(Code::Usage, "no object came along"))?;
            let message = promote(shared, peer, fd, level.as_deref(), &path)?;
            Answer::Done {
                message,
                warnings: Vec::new(),
            }
        }
    };
    Ok((answer, Then::GoOn))
}

fn whoami(enforcement: &Enforcement, peer: &Peer) -> Outcome<You> {
    let level = peer.level(&enforcement.monitor)?;
    let policy = enforcement
        .policies
        .get(enforcement.monitor.status()?.seqno);
    Ok(You {
        pid: peer.pid,
        number: level,
        level: level_name(policy.as_deref(), level),
    })
}

/// The booleans of the policy in force.
fn booleans(enforcement: &Enforcement) -> Outcome<Vec<(String, bool)>> {
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    let te = policy.te.as_ref().ok_or_else(no_te)?;
    let names = te.db.booleans.iter().map(|boolean| boolean.name.clone());
    Ok(names.zip(te.values()).collect())
}

/// Sets them, in one step; what to tell of it, and warnings.
fn set_booleans(
    enforcement: &Enforcement,
    values: &[(String, bool)],
) -> Outcome<(String, Vec<String>)> {
    let Enforcement {
        monitor,
        policies,
        guard,
        ..
    } = enforcement;
    let amended = policies.amend(monitor, guard, |policy| {
        let te = policy.te.as_mut().ok_or_else(no_te)?;
        for (name, value) in values {
            let unknown = |e: UnknownBoolean| DaemonError::new(Code::Usage, e.to_string());
            te.set(name, *value).map_err(unknown)?;
        }
        Ok(())
    })?;
    let message = format!("in force, number {}", amended.seqno);
    Ok((message, amended.warnings))
}

/// An error of what follows once a policy is in force.
fn half_done(done: &str, error: &DaemonError) -> DaemonError {
    let message = format!("{done}, but what it takes back was not all looked for: {error}");
    DaemonError::new(error.code(), message)
}

fn no_te() -> DaemonError {
    DaemonError::new(Code::Usage, "the policy in force has no SELinux policy")
}

/// Revokes what the SELinux policy in force does not allow any more; what the administrator should know of it.
fn revoke(enforcement: &Enforcement) -> Outcome<Vec<String>> {
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    if policy.te.is_none() || enforcement.monitor.status()?.permissive {
        return Ok(Vec::new());
    }
    let revoked = enforcement.monitor.revoke(&enforcement.guard)?;
    let mut said = Vec::new();
    if revoked.descriptors > 0 {
        let count = revoked.descriptors;
        said.push(format!(
            "{count} open descriptors are revoked: reads and writes through them are refused"
        ));
    }
    said.extend(revoked.killed.into_iter().map(|killed| {
        let Lost { pid, comm, why } = lost(enforcement, killed);
        format!("{comm}({pid}) was killed: {why}")
    }));
    Ok(said)
}

/// The process that was killed, in words.
fn lost(enforcement: &Enforcement, killed: Killed) -> Lost {
    let name = |sid: Sid| {
        enforcement
            .policies
            .context(sid)
            .unwrap_or_else(|| "?".into())
    };
    let why = match killed.why {
        Why::Mapping { ino: 0, .. } => "it may have no memory that is executable".into(),
        Why::Mapping { target, ino } => format!(
            "it had inode {ino} mapped ({}), which it may not use so",
            name(target)
        ),
        Why::Withdrawn { ino } => {
            format!("it had inode {ino} mapped, which it may not use so any more")
        }
        Why::Ring { target } => format!(
            "its io_uring has a descriptor that is revoked ({})",
            name(target)
        ),
        Why::Busy => {
            "what it began earlier could not be interrupted, or its memory is locked".into()
        }
    };
    Lost {
        pid: killed.pid,
        comm: killed.comm,
        why,
    }
}

/// Has the caller be confined by a profile.
fn confine(enforcement: &Enforcement, peer: &Peer, profile: &str) -> Outcome<Vec<(u8, u64)>> {
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    let Some(found) = policy.profiles.find(profile) else {
        return Err(DaemonError::new(
            Code::Usage,
            format!("the policy in force has no profile `{profile}`"),
        ));
    };
    if !peer.confine(&enforcement.monitor, profile)? {
        return Err(DaemonError::new(
            Code::NotPermitted,
            "this process is confined by a profile already",
        ));
    }
    let limits = policy.profiles.profiles[found].rlimits.iter();
    Ok(limits.map(|limit| (limit.resource, limit.max)).collect())
}

/// Brings the caller under the SELinux policy: by a context that this has, and that may be an
/// entry. The caller is not governed yet, so no rule is asked; from then on rules are.
fn enter(enforcement: &Enforcement, peer: &Peer, context: &str) -> Outcome<String> {
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    let Some(te) = &policy.te else {
        let message = "the policy in force has no SELinux policy: start or reload with --te";
        return Err(DaemonError::new(Code::Usage, message));
    };
    if peer.is_governed(&enforcement.monitor)? {
        return Err(already());
    }
    let known = te.db.context(context);
    let known = known.map_err(|e| DaemonError::new(Code::Usage, e.to_string()))?;
    // as it is written by the kernel: a range has one text
    let context = &te.db.context_text(&known);
    let by_root = peer.uid == 0;
    let sid =
        enforcement
            .policies
            .sid_of(&enforcement.monitor, &enforcement.guard, context, by_root)?;
    let sid =
        sid.ok_or_else(|| DaemonError::new(Code::Internal, format!("`{context}` has no number")))?;
    if !peer.enter(&enforcement.monitor, sid)? {
        return Err(already());
    }
    Ok(context.to_owned())
}

fn already() -> DaemonError {
    DaemonError::new(
        Code::NotPermitted,
        "this process has a context already: it changes by the policy's transitions alone",
    )
}

/// Gives an object a level.
fn promote(
    shared: &Shared,
    peer: &Peer,
    fd: OwnedFd,
    level: Option<&str>,
    path: &str,
) -> Outcome<String> {
    let enforcement = &*shared.enforcement;
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    let number = match level {
        None => policy.top(),
        Some(name) => policy
            .level(name)
            .ok_or_else(|| DaemonError::no_level(name, &policy.levels))?,
    };
    let by = peer.found(&enforcement.monitor)?;
    // a process that has it open for writing from below is revoked
    let raising = enforcement.guard.raise(&enforcement.monitor)?;
    let record = enforcement.monitor.give(fd.as_fd(), number, &by, path)?;
    drop(raising);
    shared.records.note(&enforcement.monitor, record);
    // a level that was asked for is not to be lost with the machine's power
    save(
        &enforcement.monitor,
        &enforcement.policies,
        &enforcement.disks,
    )?;
    Ok(format!(
        "{path} is at {}",
        policy.levels[usize::from(number)]
    ))
}

/// Root at the top level, confined by nothing, or nobody. `permission`: the one that SELinux has for the like.
fn trusted(enforcement: &Enforcement, peer: &Peer, permission: &str) -> Outcome {
    let top = enforcement.monitor.status()?.top;
    if peer.uid != 0 || peer.level(&enforcement.monitor)? < top {
        return Err(DaemonError::new(
            Code::NotPermitted,
            "this takes root at the top level, as a root login or run0 has it: \
             sudo keeps the level of the shell that calls it",
        ));
    }
    if peer.is_confined(&enforcement.monitor)? {
        return Err(DaemonError::new(
            Code::NotPermitted,
            "this takes a process that no profile confines",
        ));
    }
    match enforcement.monitor.governs_everyone()? {
        true => permitted(enforcement, peer, permission),
        // a client that is governed is no administrator, where others are
        false if peer.is_governed(&enforcement.monitor)? => Err(DaemonError::new(
            Code::NotPermitted,
            "this takes a process that the SELinux policy does not govern",
        )),
        false => Ok(()),
    }
}

/// Where every process is governed, the client has to have this permission of the class `security`
/// under the policy in force; so has the process that connected.
fn permitted(enforcement: &Enforcement, peer: &Peer, permission: &str) -> Outcome {
    let policy = enforcement.policies.in_force(&enforcement.monitor)?;
    let Some(te) = &policy.te else {
        return Ok(());
    };
    if enforcement.monitor.status()?.permissive {
        return Ok(());
    }
    let db = &te.db;
    let class = db.class("security");
    let bit = class.and_then(|class| Some((class, db.permission(class, permission)?)));
    let target = db.initial_sid("security");
    let decider = te.decider();
    for sid in peer.sids(&enforcement.monitor)? {
        let text = enforcement.policies.context(sid).unwrap_or_default();
        let unlabeled = || db.initial_sid("unlabeled").cloned();
        let source = db.context(&text).ok().or_else(unlabeled);
        let allowed = match (bit, source.zip(target)) {
            (Some((class, bit)), Some((source, target))) => {
                let access = decider.access(&source, target, class);
                access.permissive || access.allowed & bit != 0
            }
            _ => !denies_unknown(&policy),
        };
        if !allowed {
            let message = format!("{text} may not {{ {permission} }} security, which this takes");
            return Err(DaemonError::new(Code::NotPermitted, message));
        }
    }
    Ok(())
}

/// The models that a policy has and its successor does not, in words.
fn dropped(before: &Policy, after: &Policy) -> Vec<String> {
    let mut said = Vec::new();
    if !before.profiles.profiles.is_empty() && after.profiles.profiles.is_empty() {
        said.push("no profile is in force any more: the reload named no --profile".into());
    }
    if before.te.is_some() && after.te.is_none() {
        said.push("no SELinux policy is in force any more: the reload named no --te".into());
    }
    said
}
