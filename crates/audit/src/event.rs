//! What a kernel's event says, in the words of the policy that it was decided under.

use jiff::Timestamp;
use tidegate_bundle::Policy;
use tidegate_flask::Sid;
use tidegate_monitor::{Class, Event, Kind, Monitor, Op, Reason, boottime};

use crate::capability_names::OfCaps;
use crate::names::PolicyNames;
use crate::record::{ObjectRecord, Record, RuleRecord, SubjectRecord, UNCONFINED};
use crate::{executable, permission_names};

/// The name of a level.
pub fn level_name(policy: Option<&Policy>, level: u8) -> String {
    policy
        .and_then(|p| p.levels.get(usize::from(level)))
        .map_or_else(|| format!("level {level}"), Clone::clone)
}

/// The name of a profile.
fn profile_name(policy: Option<&Policy>, id: u64) -> String {
    let found = policy.and_then(|policy| {
        let mut profiles = policy.profiles.profiles.iter();
        profiles.find(|p| tidegate_monitor::profile_id(&p.name) == id)
    });
    found.map_or_else(|| format!("profile {id:016x}"), |p| p.name.clone())
}

/// The context behind a SID.
fn context_name(names: &impl PolicyNames, sid: Sid) -> String {
    match sid.0 {
        // what is not governed is what the policy has for the kernel
        0 => "kernel".into(),
        word => names
            .context(sid)
            .unwrap_or_else(|| format!("sid {word:016x}")),
    }
}

/// The time of an event, which the kernel counts from boot.
pub fn wall_clock(ns: u64) -> Timestamp {
    let ago = boottime().saturating_sub(ns);
    let ago = jiff::SignedDuration::from_nanos(ago.min(i64::MAX as u64) as i64);
    Timestamp::now()
        .checked_sub(ago)
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Record {
    /// What the kernel recorded, in the words of the policy it was decided under.
    pub fn of(event: &Event, names: &impl PolicyNames) -> Record {
        let policy = names.policy(event.seqno);
        let policy = policy.as_deref();
        let level = |n| level_name(policy, n);
        let rule = event.source.and_then(|s| policy?.rules.get(s as usize));
        // of what has neither name nor number there is a level at least
        let has_object = event.path.is_some()
            || event.address.is_some()
            || event.peer.is_some()
            || event.class == Some(Class::Ipc);
        let file = event.ino != 0;
        let number = event.request.and_then(|r| r.number);
        let detail = event.request.and_then(|r| r.detail);
        let is_capability = event.op == Some(Op::Capable);
        let asked = event
            .asked
            .map(|asked| permission_names::of_te(policy, &asked));
        let caps = event.caps.map(|asked| OfCaps::of(asked, names));
        let names_object = caps
            .as_ref()
            .is_some_and(|caps| caps.object(event).is_some());
        Record {
            id: event.id,
            time: format!("{:.6}", wall_clock(event.time)),
            kind: event.kind.word().into(),
            op: event.op.map(|o| o.word().into()),
            class: event.class.map(|c| c.word().into()),
            reason: (event.reason != Reason::Rule).then(|| event.reason.word().into()),
            subject: Some(SubjectRecord {
                pid: event.pid,
                tid: event.tid,
                uid: event.uid,
                comm: event.comm.clone(),
                exe: None,
                level: level(event.to),
                was: (event.from != event.to).then(|| level(event.from)),
                profile: event.request.map(|r| profile_name(policy, r.profile)),
            }),
            request: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.request.clone()),
                (None, Some(caps)) => caps.words(caps.asked.asked),
                (None, None) => event
                    .request
                    .map(|r| permission_names::permissions(event.op, r.asked)),
            },
            denied: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.denied.clone()),
                (None, Some(caps)) => caps.words(caps.asked.denied),
                (None, None) => event
                    .request
                    .map(|r| permission_names::permissions(event.op, r.denied)),
            },
            capability: event
                .capability
                .or(number.filter(|_| is_capability))
                .map(permission_names::capability),
            family: number
                .filter(|_| !is_capability)
                .map(permission_names::family),
            socket: detail
                .filter(|_| event.class == Some(Class::Socket))
                .and_then(permission_names::socket_type),
            signal: detail
                .filter(|_| event.op == Some(Op::Signal))
                .and_then(permission_names::signal),
            object: ((has_object && !names_object) || file).then(|| ObjectRecord {
                level: level(event.object),
                path: event.path.clone(),
                dev: file.then(|| format!("{}:{}", event.dev >> 20, event.dev & 0xf_ffff)),
                ino: file.then_some(event.ino),
                address: event.address.map(|(a, port)| match port {
                    0 => a.to_string(),
                    port => std::net::SocketAddr::new(a, port).to_string(),
                }),
                pid: event.peer,
                profile: None,
            }),
            scontext: event.asked.map(|a| context_name(names, a.source)),
            tcontext: event.asked.map(|a| context_name(names, a.target)),
            tclass: match (&asked, &caps) {
                (Some(asked), _) => Some(asked.class.clone()),
                (None, Some(caps)) if caps.asked.denied != 0 => caps.class_word(),
                _ => None,
            },
            caps: caps.as_ref().map(|caps| caps.record(event)),
            manager: None,
            rule: rule.map(|r| RuleRecord {
                place: r.to_string(),
                text: r.text.clone(),
            }),
            prev: event.prev,
            seqno: event.seqno,
            count: None,
        }
    }

    /// The same, with the subject's program, and the profile of another process that a profile was
    /// asked about, while these still run.
    pub fn with_program(event: &Event, monitor: &Monitor, names: &impl PolicyNames) -> Record {
        let mut record = Record::of(event, names);
        if let Some(subject) = &mut record.subject {
            subject.exe = executable::of(event, monitor);
        }
        if let (Reason::Profile, Some(peer), Some(object)) =
            (event.reason, event.peer, &mut record.object)
        {
            let policy = names.policy(event.seqno);
            object.profile = executable::profile_of(peer, monitor).map(|profile| match profile {
                Some(id) => profile_name(policy.as_deref(), id),
                None => UNCONFINED.into(),
            });
        }
        record
    }

    /// The same as it is written down: a refusal's with the program. To look for it takes the task's
    /// lock, right after a fall, when its next one may be one that cannot wait (docs/how-to/compatibility.md).
    pub fn written(event: &Event, monitor: &Monitor, names: &impl PolicyNames) -> Record {
        match event.kind {
            Kind::Denied | Kind::Would => Record::with_program(event, monitor, names),
            _ => Record::of(event, names),
        }
    }
}
