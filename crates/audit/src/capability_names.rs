//! What was asked of capability files, in their words.

use std::sync::Arc;

use tidegate_bundle::caps::{Class, Service};
use tidegate_lava::Place;
use tidegate_monitor::{CapsAsked, CapsWhy, Event};

use crate::capability::CapsRecord;
use crate::names::{Placed, PolicyNames};

/// What was asked of capability files, in their words, as far as these are known.
pub struct OfCaps {
    /// The request in numbers, as the kernel recorded it.
    pub asked: CapsAsked,
    class: Option<Class>,
    /// The subject that did not give it: its file, and its number there.
    subject: Option<(Arc<Placed>, u32)>,
}

impl OfCaps {
    /// By the files that there are.
    pub fn of(asked: CapsAsked, names: &impl PolicyNames) -> OfCaps {
        let layer = asked.layer.and_then(|place| names.capability(place));
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
