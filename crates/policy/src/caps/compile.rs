//! What files say to automata.

use std::sync::Arc;

use miette::NamedSource;
use tidegate_bundle::automaton::Automaton;
use tidegate_bundle::caps::{Allowed, Capabilities, Capability, Class, Service};
use tidegate_bundle::limits::{MAX_CAPS_BYTES, MAX_STATES};

use super::expression::{of_objects, of_pattern};
use super::gather::{Gathered, gather};
use super::read::Units;
use super::{CapsErrors, CapsProblem as Problem, CompiledCaps, Note};
use crate::automaton::nfa::Patterns;
use crate::automaton::subset::determinise;
use crate::finding;

/// States before equal ones are merged, at most, for each that may be left: it is not known before how many are equal.
const EQUAL: usize = 2;

/// Compiles what was read.
pub(super) fn compile(mut units: Units) -> Result<CompiledCaps, CapsErrors> {
    let mut notes = std::mem::take(&mut units.notes);
    let gathered = gather(&units, &mut notes);
    let capabilities = match notes.iter().any(Note::is_error) {
        true => None,
        false => automata(gathered, &mut notes),
    };
    let sources = units
        .units
        .iter()
        .map(|unit| NamedSource::new(&unit.name, Arc::clone(&unit.text)));
    let findings = finding::findings(notes, &sources.collect::<Vec<_>>());
    match capabilities {
        Some(capabilities) => Ok(CompiledCaps {
            capabilities,
            warnings: findings,
        }),
        None => Err(CapsErrors { findings }),
    }
}

/// Gives every subject its automata; without, a note says why.
fn automata(all: Gathered, notes: &mut Vec<Note>) -> Option<Capabilities> {
    let Gathered {
        mut subjects,
        services,
        capabilities,
        places,
        service_places,
    } = all;
    let before = notes.len();
    for (number, subject) in (0..).zip(&mut subjects) {
        for (class, own) in by_class(number, &capabilities) {
            match automaton(&own, &capabilities) {
                Ok(automaton) => subject.automata.push((class, automaton)),
                Err((problem, at)) => {
                    let place = &places[at];
                    notes.push(Note::at(problem, place.unit, place.span.clone()));
                }
            }
        }
    }
    let sockets = sockets(&services).map_err(|(problem, at)| {
        let place = &service_places[at];
        notes.push(Note::at(problem, place.unit, place.span.clone()));
    });
    if notes.len() > before {
        return None;
    }
    let all = Capabilities {
        subjects,
        services,
        capabilities,
        sockets: sockets.ok()?,
    };
    if all.bytes() > MAX_CAPS_BYTES {
        notes.push(Note::at(Problem::BYTES, 0, 0..0));
        return None;
    }
    Some(all)
}

/// A subject's capabilities of each class, as indices.
fn by_class(subject: u32, all: &[Capability]) -> std::collections::BTreeMap<Class, Vec<usize>> {
    let mut classes: std::collections::BTreeMap<_, Vec<_>> = Default::default();
    for (at, capability) in all.iter().enumerate() {
        if capability.subject == subject {
            classes.entry(capability.class).or_default().push(at);
        }
    }
    classes
}

/// What some capabilities of one class say together. The fault is that of the capability of the index given with it.
fn automaton(own: &[usize], all: &[Capability]) -> Result<Automaton<Allowed>, (Problem, usize)> {
    let mut patterns = Patterns::default();
    for &at in own {
        let added = patterns.add(at, &[], &of_objects(&all[at].objects));
        added.map_err(|large| (Problem::Large, large.line))?;
    }
    let states = || (Problem::States, own.last().copied().unwrap_or_default());
    let dfa = determinise(&patterns, MAX_STATES * EQUAL, |matching| {
        allowed(matching, all)
    });
    dfa.and_then(|dfa| dfa.finished()).ok_or_else(states)
}

/// The union of some capabilities.
pub(super) fn allowed(matching: &[usize], all: &[Capability]) -> Allowed {
    let mut by: Vec<u32> = matching.iter().map(|&at| at as u32).collect();
    by.sort_unstable_by_key(|&at| (!all[at as usize].lasts(), at));
    Allowed {
        rights: by
            .iter()
            .fold(0, |rights, &at| rights | all[at as usize].rights),
        by,
    }
}

/// Which service is at a socket. The fault is that of the service of the index given with it.
fn sockets(services: &[Service]) -> Result<Automaton<u16>, (Problem, usize)> {
    let mut patterns = Patterns::default();
    for (at, service) in services.iter().enumerate() {
        let added = patterns.add(at, &[], &of_pattern(&service.socket));
        added.map_err(|large| (Problem::Large, large.line))?;
    }
    let states = || (Problem::States, services.len().saturating_sub(1));
    let dfa = determinise(&patterns, MAX_STATES * EQUAL, <[usize]>::to_vec);
    let found = dfa.and_then(|dfa| dfa.finished()).ok_or_else(states)?;
    if let Some([first, second, ..]) = found
        .answers
        .iter()
        .find(|all| all.len() > 1)
        .map(|all| &all[..])
    {
        let name = |at: usize| services[at].name.clone();
        let problem = Problem::ServiceOverlap {
            first: name(*first),
            second: name(*second),
        };
        return Err((problem, *second));
    }
    let number = |all: &Vec<usize>| all.first().map_or(0, |&at| at as u16 + 1);
    Ok(Automaton {
        answers: found.answers.iter().map(number).collect(),
        classes: found.classes,
        width: found.width,
        next: found.next,
        accepts: found.accepts,
        start: found.start,
    })
}
