//! The first pass over a map's statements: its levels, its mode, the order of
//! its parts.

use std::ops::Range;

use tidegate_bundle::Mode;
use tidegate_bundle::limits::{MAX_LEVELS, MIN_LEVELS};
use tidegate_bundle::names::is_level_name;

use super::Note;
use super::Problem;
use super::read::{Unit, Units};
use super::rules::{self, Rules};
use super::syntax::{self, Statement};
use crate::finding::Place;
use crate::words::Spanned;

/// Gathers the rules of `units`. Without levels or a rule for the root there are
/// none; a note says why.
pub(super) fn gather(units: &Units, notes: &mut Vec<Note>) -> Option<Rules> {
    let mut gather = Gather {
        notes,
        levels: None,
        mode: None,
        statements: Vec::new(),
    };
    for &unit in &units.order {
        gather.unit(unit, &units.units[unit]);
    }
    let Gather {
        levels,
        mode,
        statements,
        ..
    } = gather;
    let Some((levels, place)) = levels else {
        // With an error before, an absence may be its consequence.
        if let (Some(&last), false) = (units.order.last(), notes.iter().any(Note::is_error)) {
            notes.push(Note::at(Problem::NoLevels, last, 0..0));
        }
        return None;
    };
    let mode = mode.map_or(Mode::Enforcing, |(mode, _)| mode);
    rules::resolve(
        units,
        statements,
        Levels {
            names: &levels,
            place: &place,
        },
        mode,
        notes,
    )
}

/// The map's levels, and where they are named.
#[derive(Clone, Copy)]
pub(super) struct Levels<'l> {
    /// Lowest first.
    pub names: &'l [String],
    pub place: &'l Place,
}

/// The first pass: what concerns the whole map.
struct Gather<'n, 's> {
    notes: &'n mut Vec<Note>,
    levels: Option<(Vec<String>, Place)>,
    mode: Option<(Mode, Place)>,
    statements: Vec<(usize, syntax::Line<'s>)>,
}

impl<'s> Gather<'_, 's> {
    fn unit(&mut self, index: usize, unit: &'s Unit) {
        let (lines, faults) = syntax::parse(&unit.text);
        for Spanned { value, span } in faults {
            self.notes.push(Note::at(value, index, span));
        }
        let mut rules = false;
        for line in lines {
            let place = Place {
                unit: index,
                span: line.span.clone(),
            };
            match &line.statement {
                Statement::Levels(names) => self.levels(names, place),
                Statement::Mode(mode) => match &self.mode {
                    Some((_, earlier)) if earlier.unit == index => {
                        let note = Note::at(Problem::ModeTwice, index, place.span);
                        self.notes.push(note.earlier(earlier.clone(), "first here"));
                    }
                    _ => self.mode = Some((*mode, place)),
                },
                Statement::Include(what) if rules => {
                    self.notes
                        .push(Note::at(Problem::IncludeLate, index, what.span.clone()));
                }
                Statement::Include(_) => {}
                Statement::Path(_) | Statement::Network { .. } => {
                    rules = true;
                    self.statements.push((index, line));
                }
            }
        }
    }

    fn levels(&mut self, names: &[Spanned<&str>], place: Place) {
        if let Some((_, earlier)) = &self.levels {
            let note = Note::at(Problem::LevelsTwice, place.unit, place.span);
            self.notes.push(note.earlier(earlier.clone(), "first here"));
            return;
        }
        let mut note = |problem, span: &Range<usize>| {
            self.notes.push(Note::at(problem, place.unit, span.clone()));
        };
        if names.len() < MIN_LEVELS {
            note(Problem::LevelsFew, &place.span);
        }
        if names.len() > MAX_LEVELS {
            note(Problem::LevelsMany, &place.span);
        }
        for (index, name) in names.iter().enumerate() {
            if !is_level_name(name.value) {
                note(Problem::LevelName(name.value.to_owned()), &name.span);
            }
            if names[..index]
                .iter()
                .any(|earlier| earlier.value == name.value)
            {
                note(Problem::LevelTwice(name.value.to_owned()), &name.span);
            }
        }
        // Kept even when faulty, so that each rule does not fail for it too.
        let names = names
            .iter()
            .take(MAX_LEVELS)
            .rev()
            .map(|name| name.value.to_owned());
        self.levels = Some((names.collect(), place));
    }
}
