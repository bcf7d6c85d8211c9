//! The rules that every policy has, and no map may change: Tidegate's own
//! safety rests on them.

use super::pattern::{Component, Pattern};
use super::rules::{Kind, PathRule};
use crate::attrs::Attrs;
use crate::policy::RuleSource;

/// Paths that belong to Tidegate with all below them.
pub(crate) const RESERVED: [&str; 5] = [
    "/run/tidegate",
    "/sys/fs/bpf",
    "/etc/tidegate",
    "/var/lib/tidegate",
    "/var/log/tidegate",
];

/// What a built-in rule's [`RuleSource`] names as its file.
const FILE: &str = "built-in";

/// A built-in rule.
struct Builtin {
    path: String,
    level: u8,
    attrs: Attrs,
}

/// The built-in rules for `levels`, lowest first.
fn rules(levels: &[String]) -> Vec<Builtin> {
    let top = levels.len().saturating_sub(1) as u8;
    let rule = |path: &str, level, attrs| Builtin {
        path: path.to_owned(),
        level,
        attrs,
    };
    let mut rules: Vec<_> = RESERVED
        .iter()
        .map(|path| rule(path, top, Attrs::empty()))
        .collect();
    // Any subject may ask; the daemon sees the caller's level and judges.
    rules.push(rule("/run/tidegate/tidegate.sock", top, Attrs::LOWWRITE));
    // A subject that may open a file may lock it, or have a lease of it: the daemon would wait.
    for lock in ["/run/tidegate/lock", "/run/tidegate/locks"] {
        rules.push(rule(lock, top, Attrs::LOWNOOPEN));
    }
    // To read one of these is to fall to its level: `tidegate run --level`.
    rules.extend((0u8..).zip(levels).map(|(level, name)| {
        rule(
            &format!("/run/tidegate/level/{name}"),
            level,
            Attrs::empty(),
        )
    }));
    rules
}

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
