//! Statements to subjects, services and capabilities: names resolved, clashes told.

use std::collections::HashMap;
use std::ops::Range;

use tidegate_bundle::RuleSource;
use tidegate_bundle::caps::{
    Capability, Class, Need, Needs, Operation, Pattern, Rights, Service, SocketType, Subject,
};
use tidegate_bundle::limits::{
    MAX_CAPABILITIES, MAX_OPERATIONS, MAX_SERVICE_PERMISSIONS, MAX_SERVICES, MAX_SUBJECTS,
};

use super::lint;
use super::operation::{KindStatement, NeedStatement, OperationStatement, RightsStatement};
use super::read::Units;
use super::syntax::{self, CapabilityStatement, ClassOf, Fault, Line, Statement, twice, unknown};
use super::{CapsProblem as Problem, Note};
use crate::finding::Place;
use crate::similar::did_you_mean;
use crate::words::Spanned;

/// What all files say, before it becomes automata.
#[derive(Default)]
pub(super) struct Gathered {
    pub subjects: Vec<Subject>,
    pub services: Vec<Service>,
    pub capabilities: Vec<Capability>,
    /// Where each capability's objects are written.
    pub places: Vec<Place>,
    /// Where each service is named.
    pub service_places: Vec<Place>,
}

/// Gathers what the files say.
pub(super) fn gather(units: &Units, notes: &mut Vec<Note>) -> Gathered {
    let mut gather = Gather {
        notes,
        all: Gathered::default(),
        unit: 0,
        expires: Vec::new(),
        subjects: HashMap::new(),
        services: HashMap::new(),
    };
    let mut capabilities = Vec::new();
    for (index, unit) in units.units.iter().enumerate() {
        gather.unit = index;
        let (lines, faults) = syntax::parse(&unit.text);
        for Spanned { value, span } in faults {
            gather.note(value, span);
        }
        gather.definitions(&unit.name, lines, &mut capabilities);
    }
    // names may be used before they are defined
    for held in capabilities {
        gather.unit = held.place.unit;
        if gather.all.capabilities.len() == MAX_CAPABILITIES {
            gather.note(Problem::CAPABILITIES, held.place.span);
            break;
        }
        if let Err(Spanned { value, span }) = gather.capability(held) {
            gather.note(value, span);
        }
    }
    // as it stands by subject, and a subject's as they are written
    let Gather { mut all, notes, .. } = gather;
    if all.subjects.is_empty() && !units.units.is_empty() && !notes.iter().any(Note::is_error) {
        notes.push(Note::at(Problem::NoSubject, 0, 0..0));
    }
    lint::lint(&all, notes);
    all.subjects
        .iter_mut()
        .for_each(|subject| subject.control.sort_unstable());
    all
}

/// A capability whose names are still to be resolved.
struct Held<'s> {
    subject: u32,
    source: RuleSource,
    place: Place,
    statement: CapabilityStatement<'s>,
}

/// What a block defines.
#[derive(Clone, Copy)]
enum Block {
    None,
    Subject(u32),
    Service(u16),
    /// What was not taken: its statements are passed over.
    Faulty,
}

struct Gather<'n> {
    notes: &'n mut Vec<Note>,
    all: Gathered,
    /// The unit that is being read.
    unit: usize,
    /// By subject, the seconds after which what it binds ends.
    expires: Vec<Option<u32>>,
    subjects: HashMap<String, u32>,
    services: HashMap<String, u16>,
}

impl Gather<'_> {
    fn note(&mut self, problem: Problem, span: Range<usize>) {
        self.notes.push(Note::at(problem, self.unit, span));
    }

    /// All but capabilities, which are held.
    fn definitions<'s>(&mut self, file: &str, lines: Vec<Line<'s>>, held: &mut Vec<Held<'s>>) {
        let mut block = Block::None;
        for line in lines {
            let place = Place {
                unit: self.unit,
                span: line.span.clone(),
            };
            let source = RuleSource {
                file: file.to_owned(),
                line: line.number,
                text: line.text.to_owned(),
            };
            let result = match (line.statement, block) {
                (Statement::Include(_), _) => Ok(()),
                (Statement::Close, _) => {
                    block = Block::None;
                    Ok(())
                }
                (Statement::Subject(name), _) => {
                    let subject = self.subject(&name, source);
                    block = subject
                        .as_ref()
                        .map_or(Block::Faulty, |&at| Block::Subject(at));
                    subject.map(drop)
                }
                (
                    Statement::Service {
                        name,
                        socket,
                        socket_type,
                    },
                    _,
                ) => {
                    let service = self.service(&name, (socket, socket_type), source);
                    block = service
                        .as_ref()
                        .map_or(Block::Faulty, |&at| Block::Service(at));
                    service.map(drop)
                }
                (Statement::Capability(statement), Block::Subject(subject)) => {
                    let place = Place {
                        span: statement.objects.span.clone(),
                        ..place
                    };
                    held.push(Held {
                        subject,
                        source,
                        place,
                        statement,
                    });
                    Ok(())
                }
                (Statement::Control { class, permissions }, Block::Subject(at)) => {
                    let control = &mut self.all.subjects[at as usize].control;
                    match control.iter_mut().find(|(known, _)| *known == class) {
                        Some((_, known)) => *known |= permissions,
                        None => control.push((class, permissions)),
                    }
                    Ok(())
                }
                (Statement::Expires(seconds), Block::Subject(at)) => {
                    match self.expires[at as usize].replace(seconds) {
                        None => Ok(()),
                        Some(_) => Err(Spanned {
                            value: Problem::Twice {
                                what: "the statement",
                                word: "expires".to_owned(),
                            },
                            span: line.span,
                        }),
                    }
                }
                (Statement::Permissions(words), Block::Service(at)) => self.permissions(at, words),
                (Statement::Operation(statement), Block::Service(at)) => {
                    self.operation(at, statement)
                }
                // in a block that was not taken, which is told of
                _ => Ok(()),
            };
            if let Err(Spanned { value, span }) = result {
                self.note(value, span);
            }
        }
    }

    fn subject(&mut self, name: &Spanned<&str>, source: RuleSource) -> Result<u32, Fault> {
        let number = self.all.subjects.len() as u32;
        if number as usize == MAX_SUBJECTS {
            return Err(name.with(Problem::SUBJECTS));
        }
        if self.subjects.contains_key(name.value) {
            return Err(twice(name, "the subject"));
        }
        self.subjects.insert(name.value.to_owned(), number);
        self.expires.push(None);
        self.all.subjects.push(Subject {
            name: name.value.to_owned(),
            control: Vec::new(),
            automata: Vec::new(),
            source,
        });
        Ok(number)
    }

    fn service(
        &mut self,
        name: &Spanned<&str>,
        (socket, socket_type): (Spanned<Pattern>, Option<SocketType>),
        source: RuleSource,
    ) -> Result<u16, Fault> {
        let number = self.all.services.len() as u16;
        if usize::from(number) == MAX_SERVICES {
            return Err(name.with(Problem::SERVICES));
        }
        if self.services.contains_key(name.value) {
            return Err(twice(name, "the service"));
        }
        self.services.insert(name.value.to_owned(), number);
        self.all.service_places.push(Place {
            unit: self.unit,
            span: socket.span,
        });
        self.all.services.push(Service {
            name: name.value.to_owned(),
            socket: socket.value,
            socket_type,
            permissions: Vec::new(),
            operations: Vec::new(),
            source,
        });
        Ok(number)
    }

    fn permissions(&mut self, service: u16, words: Vec<Spanned<&str>>) -> Result<(), Fault> {
        let known = &mut self.all.services[usize::from(service)].permissions;
        for word in words {
            if known.iter().any(|known| known == word.value) {
                return Err(twice(&word, "the permission"));
            }
            if known.len() == MAX_SERVICE_PERMISSIONS {
                return Err(word.with(Problem::PERMISSIONS));
            }
            known.push(word.value.to_owned());
        }
        Ok(())
    }

    fn operation(&mut self, service: u16, statement: OperationStatement<'_>) -> Result<(), Fault> {
        let service = &mut self.all.services[usize::from(service)];
        let OperationStatement { number, name, kind } = statement;
        if service
            .operations
            .iter()
            .any(|known| known.name == name.value)
        {
            return Err(twice(&name, "the operation"));
        }
        let at = service
            .operations
            .binary_search_by_key(&number.value, |known| known.number);
        let Err(at) = at else {
            let word = number.value.to_string();
            let what = "the operation's number";
            return Err(number.with(Problem::Twice { what, word }));
        };
        if service.operations.len() == MAX_OPERATIONS {
            return Err(number.with(Problem::OPERATIONS));
        }
        let needs = |list: Vec<NeedStatement<'_>>| {
            let needs = list.into_iter().map(|need| self::need(service, need));
            needs.collect::<Result<Vec<_>, _>>()
        };
        let needs = match kind {
            KindStatement::Free => Needs::Free,
            KindStatement::Bind(list) => Needs::Bind(needs(list)?),
            KindStatement::Active(list) => Needs::Active(needs(list)?),
        };
        let operation = Operation {
            number: number.value,
            name: name.value.to_owned(),
            needs,
        };
        service.operations.insert(at, operation);
        Ok(())
    }

    fn capability(&mut self, held: Held<'_>) -> Result<(), Fault> {
        let Held {
            subject,
            source,
            place,
            statement,
        } = held;
        let (class, rights) = match statement.class {
            ClassOf::Known(class, rights) => (class, rights),
            ClassOf::Service(name, words) => {
                let Some(&at) = self.services.get(name.value) else {
                    let known = self.all.services.iter().map(|known| known.name.as_str());
                    return Err(unknown_name(&name, "service", known.collect()));
                };
                let service = &self.all.services[usize::from(at)];
                (Class::Service(at), bits(service, &words)?)
            }
        };
        let becomes = match statement.becomes {
            None => None,
            Some(name) => Some(*self.subjects.get(name.value).ok_or_else(|| {
                let known = self.all.subjects.iter().map(|known| known.name.as_str());
                unknown_name(&name, "subject", known.collect())
            })?),
        };
        let is_bound = matches!(class, Class::Service(_)) || rights & class.controllable() != 0;
        for (word, limit) in [("expires", &statement.expires), ("uses", &statement.uses)] {
            if let (Some(limit), false) = (limit, is_bound) {
                return Err(limit.with(Problem::Unbound(word)));
            }
        }
        let holder = &self.all.subjects[subject as usize];
        if let Some(uses) = &statement.uses {
            let uncounted = rights & class.controllable() & !holder.controlled(class);
            if uncounted != 0 {
                let words = class.permissions().iter();
                let words: Vec<_> = words
                    .filter(|(_, bit)| uncounted & bit != 0)
                    .map(|(word, _)| *word)
                    .collect();
                let class = class.word().unwrap_or_default();
                let help = format!(
                    "what is not controlled is checked when it is bound alone: add `control {class} {}`",
                    words.join(" ")
                );
                return Err(uses.with(Problem::Uncounted(help)));
            }
        }
        let expires = statement.expires.map(|expires| expires.value);
        let of_subject = self.expires[subject as usize].filter(|_| is_bound);
        self.all.capabilities.push(Capability {
            subject,
            class,
            objects: statement.objects.value,
            rights,
            becomes,
            expires: expires.or(of_subject),
            uses: statement.uses.map(|uses| uses.value),
            source,
        });
        self.all.places.push(place);
        Ok(())
    }
}

fn need(service: &Service, need: NeedStatement<'_>) -> Result<Need, Fault> {
    let rights = match need.rights {
        RightsStatement::Fixed(words) => Rights::Fixed(bits(service, &words)?),
        RightsStatement::By { operand, vector } => {
            let vector = vector.into_iter();
            let values = vector.map(|(value, words)| Ok((value, bits(service, &words)?)));
            let mut vector = values.collect::<Result<Vec<_>, Fault>>()?;
            vector.sort_unstable();
            Rights::By { operand, vector }
        }
    };
    Ok(Need {
        operand: need.operand,
        rights,
    })
}

/// A service's permissions by their words.
fn bits(service: &Service, words: &[Spanned<&str>]) -> Result<u32, Fault> {
    let mut bits = 0;
    for word in words {
        if service.permissions.is_empty() {
            return Err(word.with(Problem::NoPermissions));
        }
        let at = service
            .permissions
            .iter()
            .position(|known| known == word.value);
        let Some(at) = at else {
            let known: Vec<_> = service.permissions.iter().map(String::as_str).collect();
            return Err(unknown(word, "permission", "the service has", known));
        };
        if bits & 1 << at != 0 {
            return Err(twice(word, "the permission"));
        }
        bits |= 1 << at;
    }
    Ok(bits)
}

fn unknown_name(name: &Spanned<&str>, what: &'static str, known: Vec<&str>) -> Fault {
    name.with(Problem::Unknown {
        what,
        word: name.value.to_owned(),
        help: match known.is_empty() {
            true => format!("these files have no {what}"),
            false => did_you_mean(name.value, "there are", known),
        },
    })
}
