//! Two policies' views of one recording, held against each other.

use std::collections::HashMap;

use tidegate_bundle::Policy;

use crate::domain::{Domains, TeRefusal};
use crate::event::{Event, Reason, Refusal};
use crate::line::{Act, Flags, Line};
use crate::report::{Denied, Fall, Group, Link, Report};
use crate::side::Side;

/// Kinds of refusals, and of falls, that are kept apart; the rest is counted.
const KINDS: usize = 20_000;

/// What makes two refusals one kind.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    program: String,
    act: Act,
    object: String,
    reason: Option<Reason>,
    profile: Option<u32>,
    te: Option<TeRefusal>,
}

/// Kinds and how often each came; what finds no room is only counted.
struct Kinds<T> {
    found: HashMap<Kind, T>,
    beyond: u64,
}

impl<T> Default for Kinds<T> {
    fn default() -> Self {
        Kinds {
            found: HashMap::new(),
            beyond: 0,
        }
    }
}

impl<T> Kinds<T> {
    /// The entry of a kind, made if there is room.
    fn get(&mut self, kind: Kind, make: impl FnOnce(&Kind) -> T) -> Option<&mut T> {
        if self.found.len() >= KINDS && !self.found.contains_key(&kind) {
            self.beyond += 1;
            return None;
        }
        if !self.found.contains_key(&kind) {
            let new = make(&kind);
            return Some(self.found.entry(kind).or_insert(new));
        }
        self.found.get_mut(&kind)
    }
}

/// A proposed policy's view of a recording, against a base's.
pub struct Comparison<'p> {
    proposed: Side<'p>,
    base: Option<Side<'p>>,
    refused: Kinds<Group>,
    allowed: Kinds<Group>,
    falls: Kinds<Fall>,
    lines: u64,
    accesses: u64,
    report: Report,
}

impl<'p> Comparison<'p> {
    /// `base`: what the proposed policy is held against; `None`: everything is allowed and
    /// nobody falls. `own`: whether the recording was made under the one, and the other.
    pub fn new(proposed: (&'p Policy, bool), base: Option<(&'p Policy, bool)>) -> Comparison<'p> {
        Comparison {
            proposed: Side::new(proposed.0, proposed.1),
            base: base.map(|(policy, own)| Side::new(policy, own)),
            refused: Kinds::default(),
            allowed: Kinds::default(),
            falls: Kinds::default(),
            lines: 0,
            accesses: 0,
            report: Report::default(),
        }
    }

    /// With what the SELinux policies say that the proposed policy and the base have.
    pub fn with_domains(
        mut self,
        proposed: Option<Domains<'p>>,
        base: Option<Domains<'p>>,
    ) -> Comparison<'p> {
        self.proposed = self.proposed.with_domains(proposed);
        self.base = self.base.map(|side| side.with_domains(base));
        self
    }

    /// Takes a line in.
    pub fn feed(&mut self, line: &Line<'_>) {
        self.lines += 1;
        self.accesses += u64::from(!line.class.is_empty() && line.act != Act::Held);
        if line.act == Act::End {
            self.report.lost = line.lost;
            self.report.ended = true;
        }
        self.report.unnamed |= line.flags.contains(Flags::UNNAMED);
        let base: Vec<Event> = match &mut self.base {
            Some(base) => base.feed(line).to_vec(),
            None => Vec::new(),
        };
        let policy = self.proposed.policy();
        let proposed = self.proposed.feed(line);
        let was_refused = base.iter().any(is_refusal);
        for event in proposed {
            match event {
                Event::Refused(refusal) if !was_refused => {
                    count(&mut self.refused, line, refusal, policy);
                    self.report.mappings |= refusal.reason == Reason::Mapping;
                }
                Event::Refused(_) => {}
                Event::Fell { pid, from, cause } => {
                    self.report.channels |= cause.act == Act::Pipe;
                    let name = &policy.levels[usize::from(cause.level)];
                    let there = self.base.as_ref().is_some_and(|base| {
                        base.policy().levels.get(usize::from(base.level_of(*pid))) == Some(name)
                    });
                    if there {
                        continue;
                    }
                    let kind = Kind {
                        program: cause.comm.to_string(),
                        act: cause.act,
                        object: cause.object.to_string(),
                        reason: None,
                        profile: None,
                        te: None,
                    };
                    let fall = self.falls.get(kind, |kind| Fall {
                        program: kind.program.clone(),
                        pid: *pid,
                        from: policy.levels[usize::from(*from)].clone(),
                        level: name.clone(),
                        op: word_of(kind.act).into(),
                        object: kind.object.clone(),
                        count: 0,
                        time: line.time,
                        beginning: !self.report.begun,
                    });
                    if let Some(fall) = fall {
                        fall.count += 1;
                    }
                }
            }
        }
        if was_refused
            && !proposed.iter().any(is_refusal)
            && let Some(side) = &self.base
        {
            for event in &base {
                if let Event::Refused(refusal) = event {
                    count(&mut self.allowed, line, refusal, side.policy());
                }
            }
        }
        self.report.begun |= line.act == Act::Begun;
    }

    /// What came of it, the most frequent first.
    pub fn finish(self) -> Report {
        let mut report = Report {
            lines: self.lines,
            accesses: self.accesses,
            unsure: self.proposed.unsure(),
            unlabelled: self.proposed.domains().map_or(0, |of| of.unsure),
            domains: self.proposed.domains().is_some_and(|of| of.any),
            beyond: self.refused.beyond + self.allowed.beyond + self.falls.beyond,
            refused: self.refused.found.into_values().collect(),
            allowed: self.allowed.found.into_values().collect(),
            falls: self.falls.found.into_values().collect(),
            ..self.report
        };
        for groups in [&mut report.refused, &mut report.allowed] {
            groups.sort_by(|a, b| {
                (b.count, &a.program, &a.op, &a.object, a.time)
                    .cmp(&(a.count, &b.program, &b.op, &b.object, b.time))
            });
        }
        report.falls.sort_by(|a, b| {
            (b.count, &a.program, &a.object, a.time).cmp(&(a.count, &b.program, &b.object, b.time))
        });
        report
    }
}

fn is_refusal(event: &Event) -> bool {
    matches!(event, Event::Refused(_))
}

/// The word that audit records have for a cause.
fn word_of(act: Act) -> &'static str {
    match act {
        Act::Held => "start",
        other => other.word(),
    }
}

/// Adds a refusal to its kind.
fn count(kinds: &mut Kinds<Group>, line: &Line<'_>, refusal: &Refusal, policy: &Policy) {
    let level = |n: u8| {
        let name = policy.levels.get(usize::from(n));
        name.map_or_else(|| format!("level {n}"), Clone::clone)
    };
    let profile = refusal
        .profile
        .map(|at| &policy.profiles.profiles[at as usize]);
    let by_level = |n| {
        if profile.is_some() || refusal.te.is_some() {
            String::new()
        } else {
            level(n)
        }
    };
    let kind = Kind {
        program: line.comm.to_string(),
        act: refusal.act,
        object: refusal.object.clone(),
        reason: Some(refusal.reason),
        profile: refusal.profile,
        te: refusal.te.clone(),
    };
    let group = kinds.get(kind, |kind| {
        let rule = refusal.source.and_then(|s| policy.rules.get(s as usize));
        let mut why = Vec::new();
        let mut next = refusal.cause.as_deref();
        while let Some(cause) = next {
            why.push(Link {
                level: level(cause.level),
                op: word_of(cause.act).into(),
                object: cause.object.to_string(),
                program: cause.comm.to_string(),
                pid: cause.pid,
                time: cause.time,
            });
            next = cause.prev.as_deref();
        }
        Group {
            program: kind.program.clone(),
            pid: line.pid,
            op: kind.act.word().into(),
            class: line.class.to_string(),
            object: kind.object.clone(),
            level: by_level(refusal.subject),
            object_level: by_level(refusal.level),
            profile: profile.map(|p| p.name.clone()).unwrap_or_default(),
            reason: refusal.reason.word().unwrap_or_default().into(),
            te: kind.te.as_ref().map(Denied::from),
            place: rule.map(ToString::to_string).unwrap_or_default(),
            rule: rule.map(|r| r.text.clone()).unwrap_or_default(),
            count: 0,
            time: line.time,
            why,
        }
    });
    if let Some(group) = group {
        group.count += 1;
    }
}
