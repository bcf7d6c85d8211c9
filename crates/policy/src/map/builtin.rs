//! The built-in rules as rules of a map, which no rule of the map's own may
//! name or go below.

use tidegate_bundle::builtin::{Builtin, RESERVED, rules};
use tidegate_bundle::{Attrs, RuleSource};

use super::pattern::{Component, Pattern};
use super::rules::{Kind, PathRule};

/// What a built-in rule's [`RuleSource`] names as its file.
const FILE: &str = "built-in";

/// Adds the built-in rules.
pub(super) fn add(levels: &[String], paths: &mut Vec<PathRule>, sources: &mut Vec<RuleSource>) {
    for Builtin { path, level, attrs } in rules(levels) {
        let words = Attrs::WORDS
            .iter()
            .filter(|(_, attr)| attrs.contains(*attr));
        let words: String = words.map(|(word, _)| format!(" {word}")).collect();
        paths.push(PathRule {
            pattern: pattern(&path),
            kind: Kind::Here,
            level,
            attrs,
            source: sources.len() as u32, // at most MAX_RULES and these few
        });
        sources.push(RuleSource {
            file: FILE.to_owned(),
            line: 0,
            text: format!("{} {path}{words}", levels[usize::from(level)]),
        });
    }
}

/// The reserved path that `pattern` names or goes below, if it does. A pattern
/// that only reaches there through a `*` is allowed: it stops at the border.
pub(super) fn reserving(pattern: &[Component]) -> Option<&'static str> {
    RESERVED
        .into_iter()
        .find(|reserved| pattern.starts_with(&self::pattern(reserved)))
}

/// A path without `*` as a pattern.
pub(super) fn pattern(path: &str) -> Pattern {
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(|name| Component::Name(name.into()))
        .collect()
}
