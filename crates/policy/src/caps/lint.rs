//! Warnings of what cannot mean what it seems to.

use std::collections::HashSet;

use tidegate_bundle::caps::{Capability, Class, Objects, Pattern, permission};

use super::expression::of_pattern;
use super::gather::Gathered;
use super::{CapsProblem as Problem, Note};
use crate::automaton::nfa::Patterns;
use crate::automaton::subset::determinise;

/// States of an automaton that is built only to warn, at most.
const MAX_STATES: usize = 4096;

/// Warns of services that a subject with lines for them cannot connect to, and of paths that no object has.
pub(super) fn lint(all: &Gathered, notes: &mut Vec<Note>) {
    let mut told = HashSet::new();
    for (capability, place) in all.capabilities.iter().zip(&all.places) {
        let Objects::Named(pattern) = &capability.objects else {
            continue;
        };
        if let Class::Service(at) = capability.class {
            let service = &all.services[usize::from(at)];
            let is_new = told.insert((capability.subject, at));
            if is_new && !may_connect(all, capability.subject, &service.socket) {
                let problem = Problem::Unconnected {
                    subject: all.subjects[capability.subject as usize].name.clone(),
                    service: service.name.clone(),
                    socket: service.socket.text().to_owned(),
                };
                notes.push(Note::at(problem, place.unit, place.span.clone()));
            }
            continue;
        }
        let mut path = pattern.literal();
        if pattern.single().is_none() {
            // the last component may go on
            path.truncate(path.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
        }
        if let Some((alias, canonical)) = crate::alias::alias(&path) {
            let problem = Problem::Alias { alias, canonical };
            notes.push(Note::at(problem, place.unit, place.span.clone()));
        }
    }
}

/// Whether a subject may connect to a socket that this is for, to one of them at least; or it takes too long to say.
fn may_connect(all: &Gathered, subject: u32, socket: &Pattern) -> bool {
    let connects = |other: &&Capability| {
        other.subject == subject
            && other.class == Class::Unix
            && other.rights & permission::CONNECT != 0
    };
    let named = |other| match other {
        &Capability {
            objects: Objects::Named(ref pattern),
            ..
        } => Some(pattern),
        _ => None,
    };
    let mut own = all.capabilities.iter().filter(connects).filter_map(named);
    match socket.single() {
        Some(name) => own.any(|pattern| pattern.matches(&name)),
        None => meets(socket, own),
    }
}

/// Whether a name is one of a pattern's and of others', too; or it takes too long to say.
fn meets<'p>(pattern: &'p Pattern, others: impl Iterator<Item = &'p Pattern>) -> bool {
    let mut patterns = Patterns::default();
    let all = std::iter::once(pattern).chain(others);
    for (line, pattern) in all.enumerate() {
        if patterns.add(line, &[], &of_pattern(pattern)).is_err() {
            return true;
        }
    }
    // the lines that match, rising
    let both = |lines: &[usize]| matches!(lines, [0, _, ..]);
    determinise(&patterns, MAX_STATES, both).is_none_or(|dfa| dfa.answers.contains(&true))
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::caps::Names;

    use super::*;
    use crate::caps::compile_str;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text, Names::Sockets).unwrap()
    }

    #[test]
    fn patterns_meet_where_one_name_is_of_both() {
        for (socket, own, expected) in [
            ("/run/{a,b}/s", "/run/*/s", true),
            ("/run/{a,b}/s", "/run/**", true),
            ("/run/{a,b}/s", "/run/b/?", true),
            ("/run/{a,b}/s", "/run/c/s", false),
            ("/run/{a,b}/s", "/run/*", false),
            ("/run/[a-m]*", "/run/m", true),
            ("/run/[a-m]*", "/run/n*", false),
            ("@s{1,2}", "@s*", true),
            ("@s{1,2}", "/s*", false),
        ] {
            let (socket, own) = (pattern(socket), pattern(own));
            assert_eq!(meets(&socket, [&own].into_iter()), expected, "{socket:?}");
            assert_eq!(meets(&own, [&socket].into_iter()), expected, "{socket:?}");
        }
        assert!(!meets(&pattern("/run/*"), std::iter::empty()));
    }

    #[test]
    fn what_takes_too_long_to_say_is_not_warned_of() {
        let many = pattern("/**a??????????????");
        assert!(meets(&many, [&pattern("/**b?????????????c")].into_iter()));
    }

    #[test]
    fn who_may_connect_by_a_wider_pattern_is_not_warned_of() {
        let warns = |socket: &str, connect: &str| {
            let text = format!(
                "subject a {{\nservice s x p\n{connect}\n}}\nservice s on {socket} {{\npermission p\n}}\n"
            );
            let compiled = compile_str("test.caps", &text).unwrap();
            !compiled.warnings.is_empty()
        };
        assert!(!warns("/run/{a,b}/s", "connect unix /run/*/s"));
        assert!(!warns("/run/{a,b}/s", "connect unix /run/{b,c}/s"));
        assert!(!warns("/run/s*", "connect unix /run/s*"));
        assert!(warns("/run/{a,b}/s", "connect unix /run/{c,d}/s"));
        assert!(warns("/run/{a,b}/s", "bind unix /run/*/s"));
        assert!(warns("/run/{a,b}/s", ""));
    }
}
