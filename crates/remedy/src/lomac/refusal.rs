//! A refusal, as the record of it and the chain before it tell, and the case that it
//! is for the reference model.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tidegate_audit::Record;
use tidegate_bundle::{Attrs, Policy};
use tidegate_model::{Access, Asked, Case, Deed, Ruling, Thing};
use tidegate_monitor::{Op, Reason};

use super::name::split;

/// What a record's object is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// Its level, if the record tells it.
    pub level: Option<u8>,
    /// Its canonical path, if it is known whole.
    pub path: Option<String>,
    /// Its level is its own, and not that of a rule.
    pub given: bool,
    /// A network's address.
    pub address: Option<IpAddr>,
}

/// A fall on the way to the refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fall {
    /// The operation.
    pub op: Op,
    /// The level before.
    pub from: u8,
    /// And after.
    pub to: u8,
    /// What was observed.
    pub object: Object,
    /// The program's name.
    pub comm: String,
    /// Its file.
    pub exe: Option<String>,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The operation.
    pub op: Op,
    /// Why a rule alone did not decide.
    pub reason: Reason,
    /// The object manager.
    pub class: String,
    /// The subject's level.
    pub level: u8,
    /// Its process.
    pub pid: u32,
    /// Its program's name.
    pub comm: String,
    /// Its program's file.
    pub exe: Option<String>,
    /// What it was refused.
    pub object: Object,
    /// What brought it down, newest first.
    pub falls: Vec<Fall>,
    /// The object is its own: making it was let through, though it would be refused.
    pub made: bool,
}

/// Operations that are refused only because they would make the subject fall, and that
/// cannot be.
const OBSERVING: [Op; 8] = [
    Op::OpenRead,
    Op::Exec,
    Op::Mmap,
    Op::Connect,
    Op::Accept,
    Op::Receive,
    Op::Readlink,
    Op::ReceiveFd,
];

impl Refusal {
    /// From a chain, newest first. `None`: it does not begin with a refusal, or not with
    /// one of this policy's levels that this build knows.
    pub fn of(chain: &[Record], policy: &Policy) -> Option<Refusal> {
        let record = chain.first().filter(|r| r.is_denial())?;
        let subject = record.subject.as_ref()?;
        let falls = chain[1..].iter().filter_map(|r| Fall::of(r, policy));
        Some(Refusal {
            op: record.op()?,
            reason: match &record.reason {
                Some(_) => record.reason()?,
                None => Reason::Rule,
            },
            class: record.class.clone().unwrap_or_default(),
            level: policy.level(&subject.level)?,
            pid: subject.pid,
            comm: subject.comm.clone(),
            exe: subject.exe.clone(),
            object: Object::of(record, policy),
            falls: falls.collect(),
            made: false,
        })
    }

    /// The path that it is about.
    pub fn path(&self) -> Option<&str> {
        self.object.path.as_deref()
    }

    /// Whether it was a fall that could not be, as something stood in its way.
    pub fn is_hindered_fall(&self) -> bool {
        matches!(self.reason, Reason::Mapping | Reason::Busy | Reason::Async)
            && OBSERVING.contains(&self.op)
    }

    /// Whether levels and rules alone refused it.
    fn is_by_levels(&self) -> bool {
        matches!(
            self.reason,
            Reason::Rule | Reason::Noopen | Reason::Launder | Reason::NoCreator | Reason::TopOnly
        )
    }

    /// The case: what lowered the subject, and what it was refused then.
    pub fn case(&self, policy: &Policy) -> Option<Case> {
        let mut deeds: Vec<Deed> = self.falls.iter().rev().map(Fall::deed).collect();
        let level = self.falls.last().map_or(self.level, |fall| fall.from);
        deeds.extend(self.last(policy)?);
        Some(Case { level, deeds })
    }

    /// The lowest level, above the subject's, at which it would be allowed.
    pub fn needs(&self, policy: &Arc<Policy>) -> Option<u8> {
        if self.is_hindered_fall() {
            return Some(self.level);
        }
        let deeds = self.last(policy)?;
        (self.level + 1..=policy.top()).find(|&level| {
            let deeds = deeds.clone();
            Case { level, deeds }.decide(policy) == Ruling::Allowed
        })
    }

    /// What was refused, and what the subject had made before.
    fn last(&self, policy: &Policy) -> Option<Vec<Deed>> {
        let deed = |asked| Deed {
            program: self.exe.clone(),
            asked,
        };
        if self.is_hindered_fall() {
            let fall = self.attempted();
            return Some(vec![fall.deed(), deed(Asked::Act(self.level))]);
        }
        if !self.is_by_levels() {
            return None;
        }
        let asked = self.asked(policy)?;
        let made = self.path().filter(|_| self.made).map(str::to_owned);
        Some(
            made.map(Asked::Create)
                .into_iter()
                .chain([asked])
                .map(deed)
                .collect(),
        )
    }

    /// The fall that could not be.
    pub fn attempted(&self) -> Fall {
        Fall {
            op: self.op,
            from: self.level,
            to: self.object.level.unwrap_or(0),
            object: self.object.clone(),
            comm: self.comm.clone(),
            exe: self.exe.clone(),
        }
    }

    fn asked(&self, policy: &Policy) -> Option<Asked> {
        if self.reason == Reason::TopOnly || self.class == "system" {
            return Some(Asked::Top);
        }
        // what was lost by the fall was had before it
        let before = self.falls.first().filter(|_| self.op == Op::Send);
        let before = before.map_or(policy.top(), |fall| fall.from);
        let level = || self.object.level.unwrap_or(before);
        if let (Op::Send, Some(address)) = (self.op, self.object.address) {
            return Some(Asked::Send(address));
        }
        let Some(thing) = self.object.thing() else {
            let nameless = matches!(
                self.op,
                Op::Send | Op::Signal | Op::Ptrace | Op::Sched | Op::Ipc | Op::Key | Op::Pipe
            );
            return nameless.then(|| Asked::Act(level()));
        };
        let path = thing.path.clone();
        Some(match (self.op, self.reason) {
            (Op::Rename | Op::Link, Reason::Launder) => Asked::Take(level(), path),
            // a file without a name yet is made in the directory that the record names
            (Op::Create, Reason::Rule) if self.class == "file" => {
                Asked::Create(format!("{}/#", path.trim_end_matches('/')))
            }
            (Op::Create, _) => Asked::Create(path),
            (Op::Rename, Reason::Rule) if self.is_about_names(policy) => Asked::Name(path),
            (Op::Unlink, _) if self.is_about_names(policy) => Asked::Remove(Thing {
                given: None, // the record has the directory's level
                ..thing
            }),
            (Op::Unlink, _) => Asked::Remove(thing),
            (Op::Connect | Op::Send, _) => Asked::Reach(thing),
            (Op::OpenRead | Op::Exec | Op::Mmap | Op::ReceiveFd, Reason::Noopen) => {
                Asked::Open(thing, Access::Read)
            }
            (Op::OpenWrite | Op::WriteRevoked | Op::Mmap | Op::ReceiveFd, _) => {
                Asked::Open(thing, Access::Write)
            }
            (Op::Rename | Op::Link | Op::Setattr | Op::Xattr, _) => Asked::Change(thing),
            _ => return None,
        })
    }

    /// Whether the directory's names were refused, which are asked for before what they
    /// stand for.
    pub fn is_about_names(&self, policy: &Policy) -> bool {
        let dir = self.path().and_then(split);
        dir.is_some_and(|(dir, _)| self.is_shut_out(policy, dir))
    }

    /// Whether the subject may not change the names in a directory.
    pub fn is_shut_out(&self, policy: &Policy, dir: &str) -> bool {
        let rule = policy.lookup(dir.as_bytes());
        let open = Attrs::CREATOR | Attrs::LOWWRITE;
        !rule.attrs.intersects(open) && rule.level > self.level
    }
}

impl Object {
    fn of(record: &Record, policy: &Policy) -> Object {
        let Some(o) = &record.object else {
            return Object::default();
        };
        let rule = record.rule.as_ref().map(|r| r.text.as_str());
        let said = rule.and_then(|text| text.split_ascii_whitespace().next());
        Object {
            level: policy.level(&o.level),
            path: o.path.clone().filter(|path| is_whole(path)),
            given: said.is_some_and(|said| said != o.level && said != "neutral"),
            address: o.address.as_deref().and_then(address),
        }
    }

    /// What has a path.
    pub fn thing(&self) -> Option<Thing> {
        Some(Thing {
            path: self.path.clone()?,
            given: self.level.filter(|_| self.given),
        })
    }
}

impl Fall {
    fn of(record: &Record, policy: &Policy) -> Option<Fall> {
        let subject = record
            .subject
            .as_ref()
            .filter(|_| record.kind == "demoted")?;
        Some(Fall {
            op: record.op()?,
            from: policy.level(subject.was.as_ref().unwrap_or(&subject.level))?,
            to: policy.level(&subject.level)?,
            object: Object::of(record, policy),
            comm: subject.comm.clone(),
            exe: subject.exe.clone(),
        })
    }

    /// Whether a network was heard.
    pub fn is_by_network(&self) -> bool {
        self.object.address.is_some()
            || matches!(self.op, Op::Connect | Op::Accept | Op::Receive | Op::Socket)
                && self.object.path.is_none()
    }

    /// The address that was heard, if the record knows it.
    pub fn address(&self) -> Option<IpAddr> {
        self.object.address.filter(|a| !a.is_unspecified())
    }

    fn deed(&self) -> Deed {
        let asked = match self.object.thing() {
            _ if self.is_by_network() => Asked::Hear(self.address()),
            Some(thing) if self.op == Op::Exec => Asked::Exec(thing),
            Some(thing) => Asked::Look(thing),
            None => Asked::Observe(self.to),
        };
        Deed {
            program: self.exe.clone(),
            asked,
        }
    }
}

/// Whether the record has the path whole, and in characters that a map can write.
fn is_whole(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
}

/// An address, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let with_port = text.parse::<SocketAddr>().map(|a| a.ip());
    with_port.or_else(|_| text.parse()).ok()
}
