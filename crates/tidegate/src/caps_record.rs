//! Of an audit record, what is about capability files.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_lava::Place;
use tidegate_monitor::{CapsAsked, CapsWhy, Event};
use tidegate_policy::caps::{Class, Service};

use crate::daemon::{Placed, Policies};
use crate::output::printable;
use crate::record::Record;

/// What the record of a refusal by capability files has besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapsRecord {
    /// The session's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The subject that did not give it, if it is a single one's matter;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// its place in a capability file,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// and why: `enum caps_why`.
    pub why: String,
    /// Of a request to a service: which, as the subject's file has it;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// its operation, or the number of one that it has not;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// and the object, if one is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// What was asked of capability files, in their words, as far as these are known.
pub struct OfCaps {
    /// The same in numbers.
    pub asked: CapsAsked,
    class: Option<Class>,
    /// The subject that did not give it: its file, and its number there.
    subject: Option<(Arc<Placed>, u32)>,
}

impl OfCaps {
    /// By the files that there are.
    pub fn of(asked: CapsAsked, policies: &Policies) -> OfCaps {
        let layer = asked.layer.and_then(|place| policies.caps.at(place));
        OfCaps {
            asked,
            class: tidegate_lava::class_of(asked.class),
            subject: layer.and_then(|(placed, place)| match place {
                Place::Subject(number) => Some((placed, number)),
                Place::Capability(_) => None,
            }),
        }
    }

    /// The words of permissions; none: it was about none.
    pub fn words(&self, permissions: u32) -> Option<String> {
        let words = match self.class? {
            Class::Service(number) => {
                let names = &self.service(number)?.permissions;
                let has = |bit: usize| permissions.checked_shr(bit as u32).unwrap_or(0) & 1 != 0;
                let words = names.iter().enumerate().filter(|(bit, _)| has(*bit));
                words.map(|(_, word)| word.as_str()).collect::<Vec<_>>()
            }
            class => {
                let words = class.permissions().iter();
                let words = words.filter(|(_, bit)| permissions & bit != 0);
                words.map(|(word, _)| *word).collect()
            }
        };
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// The word for the class, with which a line for it begins.
    pub fn class_word(&self) -> Option<String> {
        let word = match self.class? {
            Class::Service(_) => "service",
            class => class.word()?,
        };
        Some(word.to_owned())
    }

    /// The service's object that is not given: the kernel tells its name instead of the path of the socket.
    pub fn object(&self, event: &Event) -> Option<String> {
        let is_of_service = matches!(self.class, Some(Class::Service(_)));
        event
            .path
            .clone()
            .filter(|_| is_of_service && event.ino == 0)
    }

    /// What the record has of it.
    pub fn record(&self, event: &Event) -> CapsRecord {
        let subject = self.subject.as_ref();
        let subject = subject.and_then(|(placed, at)| placed.caps.subjects.get(*at as usize));
        let service = match self.class {
            Some(Class::Service(number)) => self.service(number),
            _ => None,
        };
        let operation = |service: &Service| {
            let number = self.asked.operation;
            let known = service.operations.iter().find(|it| it.number == number);
            known.map_or_else(|| number.to_string(), |it| it.name.clone())
        };
        CapsRecord {
            session: self.asked.session,
            subject: subject.map(|subject| subject.name.clone()),
            file: subject.map(|subject| subject.source.to_string()),
            why: self.asked.why.map_or("unknown", CapsWhy::word).to_owned(),
            service: service.map(|service| service.name.clone()),
            // of a connection there is none yet
            operation: service
                .filter(|_| self.asked.why != Some(CapsWhy::SocketType))
                .map(operation),
            object: self.object(event),
        }
    }

    fn service(&self, number: u16) -> Option<&Service> {
        let (placed, _) = self.subject.as_ref()?;
        placed.caps.services.get(usize::from(number))
    }
}

/// What capability files refuse: `denied: sh(412) as tool may not { write } /etc/passwd (file): no line gives that`.
pub fn told(
    record: &Record,
    f: &mut fmt::Formatter<'_>,
    who: &str,
    verb: &str,
    what: &str,
) -> fmt::Result {
    let start = match record.kind.as_str() {
        "denied" => "denied",
        _ => "would be denied",
    };
    let Some(caps) = &record.caps else {
        return Ok(());
    };
    write!(f, "{start}: {who}")?;
    if let Some(subject) = &caps.subject {
        write!(f, " as {}", printable(subject))?;
    }
    let object = caps.object.iter();
    let object: String = object.map(|name| format!(" {}", printable(name))).collect();
    match (&record.denied, &record.tclass, &caps.service) {
        (Some(denied), _, Some(service)) => {
            write!(f, " may not {{ {denied} }}{object} ({service})")?;
        }
        (None, _, Some(service)) => write!(f, " may not use{object} ({service})")?,
        (Some(denied), Some(class), None) => write!(f, " may not {{ {denied} }}{what} ({class})")?,
        _ => write!(f, " may not {verb}{what}{object}")?,
    }
    if let Some(operation) = &caps.operation {
        write!(f, " by operation {operation}")?;
    }
    if let Some(session) = caps.session {
        write!(f, " in session {session}")?;
    }
    write!(f, ": {}", because(&caps.why))
}

/// Why capability files did not give something.
pub fn because(why: &str) -> &'static str {
    match CapsWhy::ALL.into_iter().find(|known| known.word() == why) {
        Some(CapsWhy::Missing) => "no line gives that",
        Some(CapsWhy::NotBound) => "it was not opened for that",
        Some(CapsWhy::Revoked) => "it was taken back",
        Some(CapsWhy::Expired) => "its time is over",
        Some(CapsWhy::UsedUp) => "its uses are used up",
        Some(CapsWhy::TooMany) => "there would be too many layers or domains",
        Some(CapsWhy::NoName) => "it has no name that a line could be for",
        Some(CapsWhy::Nobodys) => "no capability file can give that",
        Some(CapsWhy::Others) => "the other process may do more, or is of another session",
        Some(CapsWhy::Request) => "the service has no such request",
        Some(CapsWhy::SocketType) => "the service's socket is of another type",
        None => "for a reason that this version does not know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SubjectRecord;

    #[test]
    fn what_a_service_refuses_is_told() {
        let mut record = Record {
            kind: "denied".into(),
            op: Some("send".into()),
            subject: Some(SubjectRecord {
                pid: 7,
                comm: "sh".into(),
                ..SubjectRecord::default()
            }),
            tclass: Some("service".into()),
            denied: Some("write".into()),
            caps: Some(CapsRecord {
                session: Some(3),
                subject: Some("tool".into()),
                why: "missing".into(),
                service: Some("notes".into()),
                operation: Some("open".into()),
                object: Some("pub:\x1ba".into()),
                ..CapsRecord::default()
            }),
            ..Record::default()
        };
        assert_eq!(
            record.to_string(),
            r"denied: sh(7) as tool may not { write } pub:\u001ba (notes) by operation open in session 3: no line gives that"
        );
        record.denied = None;
        let caps = record.caps.as_mut().unwrap();
        (caps.object, caps.operation, caps.why) = (None, Some("9".into()), "request".into());
        assert!(
            record.to_string().contains(
                "may not use (notes) by operation 9 in session 3: the service has no such"
            )
        );
    }
}
