//! Warnings: rules that are allowed and cannot mean what they seem to.

use super::Problem;
use super::finding::Note;
use super::pattern::Component;
use super::syntax::PathStatement;
use crate::Attrs;

/// Debian's symbolic links into /usr and /run. A rule for a path through one
/// never matches, as objects are known by their canonical paths.
const ALIASES: [(&[&str], &str, &str); 7] = [
    (&["bin"], "/bin", "/usr/bin"),
    (&["sbin"], "/sbin", "/usr/sbin"),
    (&["lib"], "/lib", "/usr/lib"),
    (&["lib64"], "/lib64", "/usr/lib64"),
    (&["var", "run"], "/var/run", "/run"),
    (&["var", "lock"], "/var/lock", "/run/lock"),
    (&["dev", "log"], "/dev/log", "/run/systemd/journal/dev-log"),
];

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
        && let Some((alias, canonical)) = alias(&statement.path.value.components)
    {
        let problem = Problem::Alias { alias, canonical };
        notes.push(Note::at(problem, unit, statement.path.span.clone()));
    }
}

/// The alias that a path goes through, and what it resolves to.
fn alias(components: &[Component]) -> Option<(&'static str, &'static str)> {
    let named = |component: &Component, name: &&str| matches!(component, Component::Name(bytes) if bytes == name.as_bytes());
    let through = |names: &[&str]| {
        names.len() <= components.len()
            && components
                .iter()
                .zip(names)
                .all(|(component, name)| named(component, name))
    };
    ALIASES
        .into_iter()
        .find(|(names, ..)| through(names))
        .map(|(_, alias, canonical)| (alias, canonical))
}
