//! What was asked of capability files, in their words.

use std::sync::Arc;

use tidegate_bundle::caps::{Class, ServiceNames};
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
        let subject = subject.and_then(|(placed, at)| placed.names.subject(*at));
        let service = match self.class {
            Some(Class::Service(number)) => self.service(number),
            _ => None,
        };
        let operation = |service: &ServiceNames| {
            let number = self.asked.operation;
            let known = service.operation(number);
            known.map_or_else(|| number.to_string(), str::to_owned)
        };
        let (subject, file) = match subject {
            Some((name, source)) => (Some(name.to_owned()), Some(source.to_string())),
            None => (None, None),
        };
        CapsRecord {
            session: self.asked.session,
            subject,
            file,
            why: self.asked.why.map_or("unknown", CapsWhy::word).to_owned(),
            service: service.map(|service| service.name.clone()),
            // of a connection there is none yet
            operation: service
                .filter(|_| self.asked.why != Some(CapsWhy::SocketType))
                .map(operation),
            object: self.object(event),
        }
    }

    fn service(&self, number: u16) -> Option<&ServiceNames> {
        let (placed, _) = self.subject.as_ref()?;
        placed.names.services().get(usize::from(number))
    }
}
