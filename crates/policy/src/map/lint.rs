//! Warnings: rules that are allowed and cannot mean what they seem to.

use tidegate_bundle::Attrs;

use super::Note;
use super::Problem;
use super::pattern::Component;
use super::syntax::PathStatement;
use crate::alias::alias;

/// Warns about a path statement of a resolved level.
pub(super) fn path(
    unit: usize,
    statement: &PathStatement<'_>,
    level: u8,
    levels: usize,
    notes: &mut Vec<Note>,
) {
    let top = usize::from(level) + 1 == levels;
    let nodemote = statement
        .attrs
        .iter()
        .any(|attr| attr.value.1 == Attrs::NODEMOTE);
    for attr in &statement.attrs {
        let (word, flag) = attr.value;
        let (why, help) = if Attrs::TRUSTED.contains(flag) && !top {
            (
                "only a program of the top level is trusted",
                "give the program's file the top level, or drop the attribute",
            )
        } else if flag == Attrs::PERMISSIVE && !top {
            (
                "it counts only for a program whose file has the top level",
                "give the program's file the top level, or drop the attribute",
            )
        } else if flag == Attrs::NONETDEMOTE && nodemote {
            (
                "a `nodemote` program is not demoted by the network either",
                "drop it",
            )
        } else if level == 0 && (Attrs::CREATOR | Attrs::LOWWRITE | Attrs::LOWNOOPEN).contains(flag)
        {
            ("nothing is lower than the lowest level", "drop it")
        } else {
            continue;
        };
        let problem = Problem::Ineffective {
            attribute: word,
            why,
            help,
        };
        notes.push(Note::at(problem, unit, attr.span.clone()));
    }
    if !statement.path.value.home
        && let Some((alias, canonical)) = alias(&written_out(&statement.path.value.components))
    {
        let problem = Problem::Alias { alias, canonical };
        notes.push(Note::at(problem, unit, statement.path.span.clone()));
    }
}

/// A pattern as text, as far as it is written out.
fn written_out(components: &[Component]) -> Vec<u8> {
    let mut path = Vec::new();
    for component in components {
        let Component::Name(name) = component else {
            break;
        };
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}
