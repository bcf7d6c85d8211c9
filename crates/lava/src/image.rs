//! Capability files laid out as the kernel reads them (kernel/abi/caps_image.h).

use std::collections::HashMap;

use tidegate_bundle::automaton::Automaton;
use tidegate_bundle::caps::{
    Allowed, Capabilities, Capability, Class, NameTable, Needs, Operation, Rights, Service,
    SocketType, Subject,
};
use tidegate_bundle::layout::Layout;

use crate::object::class_number;

/// Classes that a subject has room for: `CAPS_CLASSES`.
const CLASSES: usize = 8;

/// Words of `struct caps_image`, `struct caps_subject` and `struct caps_capability`.
const HEAD: usize = 8;
pub(crate) const SUBJECT: usize = 6 + 2 * CLASSES;
pub(crate) const CAPABILITY: usize = 4;

/// Of `enum sock_type`.
const SOCK_STREAM: u32 = 1;
const SOCK_SEQPACKET: u32 = 5;

/// Capability files' image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its bytes, from the place that it was laid out for.
    pub bytes: Vec<u8>,
    /// Where its subjects and capabilities are.
    pub places: Places,
}

/// Where subjects and capabilities are in the arena: their offsets name them in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Where the image begins.
    pub base: u32,
    subjects: u32,
    capabilities: u32,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A subject, by its number.
    Subject(u32),
    /// A capability, by its number.
    Capability(u32),
}

impl Places {
    /// Of these, where the image begins at `base`.
    pub fn of(caps: &Capabilities, base: u32) -> Places {
        Places {
            base,
            subjects: caps.subjects.len() as u32,
            capabilities: caps.capabilities.len() as u32,
        }
    }

    /// Of the files that have these names.
    pub fn named(names: &NameTable, base: u32) -> Places {
        Places {
            base,
            subjects: names.subjects().len() as u32,
            capabilities: names.capabilities().len() as u32,
        }
    }

    /// The place of a subject, by its number.
    pub fn subject(&self, number: u32) -> u32 {
        self.base + (4 * (HEAD + SUBJECT * number as usize)) as u32
    }

    /// The place of a capability, by its number.
    pub fn capability(&self, number: u32) -> u32 {
        self.subject(self.subjects) + (4 * CAPABILITY) as u32 * number
    }

    /// What is at a place.
    pub fn at(&self, place: u32) -> Option<Place> {
        let number = |first: u32, words: usize, count: u32| {
            let behind = place.checked_sub(first)?;
            let size = (4 * words) as u32;
            (behind % size == 0 && behind / size < count).then_some(behind / size)
        };
        let subject = number(self.subject(0), SUBJECT, self.subjects).map(Place::Subject);
        subject.or_else(|| {
            let first = self.capability(0);
            number(first, CAPABILITY, self.capabilities).map(Place::Capability)
        })
    }
}

impl Image {
    /// Lays capability files out for a place.
    pub fn of(caps: &Capabilities, base: u32) -> Image {
        let mut writer = Writer {
            out: Layout::new(base, HEAD),
            places: Places::of(caps, base),
        };
        writer.write(caps);
        Image {
            bytes: writer.out.into_bytes(),
            places: writer.places,
        }
    }

    /// How many bytes the image of capability files has at any place, which takes no room for them.
    pub fn length(caps: &Capabilities) -> usize {
        let mut writer = Writer {
            out: Layout::measured(0, HEAD),
            places: Places::of(caps, 0),
        };
        writer.write(caps);
        writer.out.len()
    }
}

impl Places {
    /// `struct caps_capability`.
    fn words(&self, it: &Capability) -> [u32; CAPABILITY] {
        [
            it.rights,
            it.becomes.map_or(0, |subject| self.subject(subject)),
            it.expires.unwrap_or(0),
            it.uses.unwrap_or(0),
        ]
    }
}

/// An image being written.
struct Writer {
    out: Layout,
    places: Places,
}

impl Writer {
    /// Writes all of it, behind the room for its head.
    fn write(&mut self, caps: &Capabilities) {
        let places = self.places;
        // these are where `Places` has them: nothing comes before
        let subjects = self.out.room::<[u32; SUBJECT]>(places.subjects as usize);
        let capabilities = caps.capabilities.iter();
        let capabilities = self.out.list(capabilities.map(|it| places.words(it)));
        debug_assert_eq!(subjects, places.subject(0));
        debug_assert_eq!(capabilities, places.capability(0));
        for (number, subject) in (0..).zip(&caps.subjects) {
            let words = self.subject(subject, caps);
            self.out.put(places.subject(number), words);
        }
        let services: Vec<_> = caps.services.iter().map(|it| self.service(it)).collect();
        let count = services.len() as u32;
        let services = self.out.list(services);
        let sockets = match count {
            0 => 0,
            _ => self.sockets(&caps.sockets),
        };
        let head: [u32; HEAD] = [
            self.out.len() as u32,
            subjects,
            places.subjects,
            capabilities,
            places.capabilities,
            services,
            count,
            sockets,
        ];
        self.out.put(places.base, head);
    }

    /// Writes a text; its place and its length.
    fn text(&mut self, text: &str) -> [u32; 2] {
        [self.out.list(text.bytes()), text.len() as u32]
    }

    /// `struct caps_subject`.
    fn subject(&mut self, subject: &Subject, caps: &Capabilities) -> [u32; SUBJECT] {
        let [name, name_len] = self.text(&subject.name);
        let (mut control, mut automata) = ([0; CLASSES], [0; CLASSES]);
        for (_, class) in Class::WORDS {
            if let Some(number) = class_number(class) {
                control[number as usize] = subject.controlled(class);
            }
        }
        let mut services = Vec::new();
        for (class, automaton) in &subject.automata {
            let place = self.allowed(automaton, caps);
            match (class_number(*class), class) {
                (Some(number), _) => automata[number as usize] = place,
                // by rising number, as the subject has them
                (None, &Class::Service(number)) => services.push([u32::from(number), place]),
                (None, _) => {}
            }
        }
        let count = services.len() as u32;
        let services = self.out.list(services);
        let mut words = [0; SUBJECT];
        words[..5].copy_from_slice(&[self.places.base, name, name_len, services, count]);
        words[5..5 + CLASSES].copy_from_slice(&control);
        words[5 + CLASSES..5 + 2 * CLASSES].copy_from_slice(&automata);
        words
    }

    /// An automaton whose answers are places of `struct caps_answer`; 0: it says nothing.
    fn allowed(&mut self, automaton: &Automaton<Allowed>, caps: &Capabilities) -> u32 {
        let mut known: HashMap<&[u32], u32> = HashMap::from([(&[][..], 0)]);
        let mut answers = Vec::with_capacity(automaton.answers.len());
        for said in &automaton.answers {
            answers.push(match known.get(&said.by[..]) {
                Some(&place) => place,
                None => {
                    let places = self.places;
                    let by = said.by.iter().map(|&at| places.capability(at));
                    let by = self.out.list(by);
                    let becomes = |&at: &u32| caps.capabilities[at as usize].becomes.is_some();
                    let brings = said.by.iter().any(becomes);
                    let count = said.by.len() as u32;
                    let place = self.out.list([said.rights, count, by, brings.into()]);
                    known.insert(&said.by, place);
                    place
                }
            });
        }
        let answers = self.out.list(answers);
        self.out.automaton(automaton, answers)
    }

    fn sockets(&mut self, automaton: &Automaton<u16>) -> u32 {
        let answers = automaton.answers.iter().map(|&service| u32::from(service));
        let answers = self.out.list(answers);
        self.out.automaton(automaton, answers)
    }

    /// `struct caps_service`.
    fn service(&mut self, service: &Service) -> [u32; 6] {
        let operations = service.operations.iter();
        let operations: Vec<_> = operations.map(|it| self.operation(it)).collect();
        let count = operations.len() as u32;
        let operations = self.out.list(operations);
        let [name, name_len] = self.text(&service.name);
        let socket_type = match service.socket_type {
            None => 0,
            Some(SocketType::Stream) => SOCK_STREAM,
            Some(SocketType::Seqpacket) => SOCK_SEQPACKET,
        };
        [operations, count, name, name_len, socket_type, 0]
    }

    /// `struct caps_operation`, with a number of `enum caps_kind`.
    fn operation(&mut self, operation: &Operation) -> [u32; 6] {
        let (kind, needs) = match &operation.needs {
            Needs::Free => (1, &[][..]),
            Needs::Bind(needs) => (2, &needs[..]),
            Needs::Active(needs) => (3, &needs[..]),
        };
        let mut words: Vec<[u32; 6]> = Vec::new();
        for need in needs {
            let operand = u32::from(need.operand);
            words.push(match &need.rights {
                Rights::Fixed(rights) => [operand, *rights, 0, 0, 0, 0],
                Rights::By {
                    operand: by,
                    vector,
                } => {
                    let values = vector
                        .iter()
                        .map(|&(value, rights)| [value, u64::from(rights)]);
                    let count = vector.len() as u32;
                    [operand, 0, (*by).into(), self.out.list(values), count, 0]
                }
            });
        }
        let count = words.len() as u32;
        let needs = self.out.list(words);
        let [name, name_len] = self.text(&operation.name);
        [operation.number, kind, needs, count, name, name_len]
    }
}
