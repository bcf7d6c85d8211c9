//! The lines' automata: lines are parted, made deterministic, and put together again as far as that pays.
//!
//! An automaton for all lines of Debian's policy has 350,000 states: below `/usr` it has to remember which of a dozen names
//! were passed that patterns as `/usr/(.*/)?bin(/.*)?` ask for, and that beside each of thousands of literal paths. A few
//! automata for neighbouring lines have a sixth of them together, so that is what is made.

use tidegate_bundle::limits::{MAX_FILE_AUTOMATA, MAX_STATES};
use tidegate_bundle::te::contexts::{Automaton, Kind, Said};

use super::alias::{self, Alias};
use super::product::product;
use super::said::{before_none, by};
use super::spec::{Spec, precedence};
use crate::automaton::dfa::Dfa;
use crate::automaton::minimise::minimise;
use crate::automaton::nfa::Patterns;
use crate::automaton::subset::determinise;

/// Why lines have no automata, and the line (an index) that it was noticed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A pattern is too large.
    Large(usize),
    /// Too many states are needed.
    States(usize),
}

/// Lines that are made deterministic at once.
const TOGETHER: usize = 8;
/// States that an automaton may have more than the two that it takes the place of, at first.
const SLACK: usize = 4_096;
/// States of a product, at most, for each that may be left of it: it is not known before how many are equal.
const EQUAL: usize = 6;

/// The automata of all lines, by rising precedence. Aliases of the second list are applied before those of the first.
pub(super) fn automata(specs: &[Spec], aliases: [&[Alias]; 2]) -> Result<Vec<Automaton>, Fault> {
    let last = Fault::States(specs.len().saturating_sub(1));
    let mut slack = SLACK;
    while slack <= MAX_STATES {
        let automata = automata_with(slack, specs, aliases)?.ok_or(last)?;
        if automata.len() <= MAX_FILE_AUTOMATA {
            return Ok(automata);
        }
        // fewer and larger ones
        slack *= 4;
    }
    Err(last)
}

/// The same, however many there are; none if 16 bits do not number the states of one of them.
pub(super) fn automata_with(
    slack: usize,
    specs: &[Spec],
    aliases: [&[Alias]; 2],
) -> Result<Option<Vec<Automaton>>, Fault> {
    let build = Build {
        specs,
        slack,
        states: MAX_STATES - states_of(aliases),
    };
    let parts = build.parts(&precedence(specs), 0)?.into_iter();
    Ok(parts.map(|part| finished(part.dfa, aliases)).collect())
}

/// States that aliases need, at most: one for each byte.
fn states_of(aliases: [&[Alias]; 2]) -> usize {
    let bytes = aliases
        .iter()
        .flat_map(|list| list.iter())
        .map(|alias| alias.from.len() + 1);
    bytes.sum::<usize>().min(MAX_STATES / 2)
}

/// An automaton of its last form.
fn finished(mut dfa: Dfa<[Said; 7]>, aliases: [&[Alias]; 2]) -> Option<Automaton> {
    for list in aliases {
        alias::apply(&mut dfa, list);
    }
    dfa.finished()
}

/// An automaton of some neighbouring lines.
struct Part {
    dfa: Dfa<[Said; 7]>,
    /// The highest rank of a `<<none>>` in any line before them.
    none: u8,
}

struct Build<'s> {
    specs: &'s [Spec],
    /// States that an automaton may have more than the two that it takes the place of.
    slack: usize,
    /// States that an automaton may have.
    states: usize,
}

impl Build<'_> {
    /// The parts of some lines, before which no `<<none>>` has a higher rank than `none`.
    fn parts(&self, numbers: &[usize], none: u8) -> Result<Vec<Part>, Fault> {
        if numbers.len() <= TOGETHER {
            return Ok(vec![self.few(numbers, none)?]);
        }
        let (before, behind) = numbers.split_at(numbers.len() / 2);
        let specs = before.iter().map(|&at| &self.specs[at]);
        let nones = specs
            .filter(|spec| spec.context.is_none())
            .map(|spec| spec.rank);
        let higher = nones.max().unwrap_or_default().max(none);
        let mut parts = self.parts(before, none)?;
        let mut rest = self.parts(behind, higher)?.into_iter();
        // the neighbours are tried; what did not go together before does not now
        if let (Some(under), Some(over)) = (parts.pop(), rest.next()) {
            match self.together(&under, &over) {
                Some(part) => parts.push(part),
                None => parts.extend([under, over]),
            }
        }
        parts.extend(rest);
        Ok(parts)
    }

    fn few(&self, numbers: &[usize], none: u8) -> Result<Part, Fault> {
        let mut patterns = Patterns::default();
        for &line in numbers {
            let Spec { prefix, hir, .. } = &self.specs[line];
            let added = patterns.add(line, prefix, hir);
            added.map_err(|large| Fault::Large(large.line))?;
        }
        let last = || Fault::States(numbers.last().copied().unwrap_or_default());
        let said = |lines: &[usize]| said(self.specs, lines, none);
        let dfa = determinise(&patterns, self.states * EQUAL, said).ok_or_else(last)?;
        let dfa = minimise(&dfa);
        match dfa.rows.len() <= self.states {
            true => Ok(Part { dfa, none }),
            false => Err(last()),
        }
    }

    /// Two neighbours as one, if it is not much larger.
    fn together(&self, under: &Part, over: &Part) -> Option<Part> {
        let sum = under.dfa.rows.len() + over.dfa.rows.len();
        let most = self.states.min(sum + self.slack);
        let none = under.none;
        let dfa = product(&under.dfa, &over.dfa, none, EQUAL * most)?;
        // where hardly anything meets, hardly anything is equal
        let dfa = if dfa.rows.len() > sum {
            minimise(&dfa)
        } else {
            dfa
        };
        (dfa.rows.len() <= most).then_some(Part { dfa, none })
    }
}

/// What lines say where their patterns match, which stand by precedence. No line before them has a `<<none>>` of a higher
/// rank than `none`.
fn said(specs: &[Spec], lines: &[usize], none: u8) -> [Said; 7] {
    Kind::ALL.map(|kind| {
        let covering = lines.iter().filter(|&&line| specs[line].covers(kind));
        let said = covering
            .map(|&line| by(line, &specs[line]))
            .fold(Said::default(), |before, own| own.over(before));
        before_none(said, none)
    })
}
