//! An independent reading of a map: no trie, nothing shared with the compiler.

use proptest::prelude::*;
use tidegate_bundle::Attrs;

use crate::common::{ATTRS, LEVELS, NAMES, Said};

/// Paths that have a chance to meet the rules.
pub fn paths() -> impl Strategy<Value = Vec<&'static str>> {
    let name =
        prop_oneof![8 => prop::sample::select(&NAMES[..]), 1 => Just("other"), 1 => Just("*")];
    prop_oneof![
        4 => prop::collection::vec(name.clone(), 0..7),
        1 => prop::collection::vec(name, 0..3)
            .prop_map(|rest| [&["run", "tidegate"], rest.as_slice()].concat()),
    ]
}

/// What a path's rule says, by trying every rule: longest match first, then the
/// pattern that is written out further, then `child-of`, then the home that is
/// written out.
pub fn naive(rules: &[Said], path: &[&str]) -> (u8, Attrs) {
    let mut candidates: Vec<(usize, Vec<bool>, bool, bool, u8, Attrs)> = Vec::new();
    let reserved =
        path.starts_with(&["run", "tidegate"]) || path.starts_with(&["sys", "fs", "bpf"]);
    let mut consider = |pattern: &[&str], child_of, written, level, mut attrs: Attrs| {
        let meets = pattern.len() <= path.len()
            && pattern
                .iter()
                .zip(path)
                .all(|(pattern, name)| *pattern == "*" || pattern == name);
        let here = pattern.len() == path.len();
        if !meets || (child_of && here) {
            return;
        }
        if here && pattern.last() != Some(&"*") {
            attrs |= Attrs::EXPLICIT;
        }
        if !here && !child_of {
            attrs &= Attrs::CREATOR | Attrs::LOWNOOPEN | Attrs::NEUTRAL;
        }
        let exact = pattern.iter().map(|name| *name != "*").collect();
        candidates.push((pattern.len(), exact, child_of, written, level, attrs));
    };
    if reserved {
        consider(&["run", "tidegate"], false, true, 2, Attrs::empty());
        consider(&["sys", "fs", "bpf"], false, true, 2, Attrs::empty());
        consider(
            &["run", "tidegate", "tidegate.sock"],
            false,
            true,
            2,
            Attrs::LOWWRITE,
        );
        for lock in ["lock", "locks"] {
            let path = ["run", "tidegate", lock];
            consider(&path, false, true, 2, Attrs::LOWNOOPEN);
        }
        for (level, name) in (0..).zip(LEVELS) {
            consider(
                &["run", "tidegate", "level", name],
                false,
                true,
                level,
                Attrs::empty(),
            );
        }
    } else {
        for rule in rules {
            let level = rule.level.min(2) as u8;
            for pattern in rule.patterns() {
                consider(&pattern, rule.child_of, !rule.home, level, attrs(rule));
            }
        }
    }
    let best = candidates
        .into_iter()
        .max_by(|a, b| (a.0, &a.1, a.2, a.3).cmp(&(b.0, &b.1, b.2, b.3)));
    let (.., level, attrs) = best.expect("the root's rule meets every path");
    (level, attrs)
}

fn attrs(rule: &Said) -> Attrs {
    let attrs: Attrs = rule.attrs.iter().map(|attr| ATTRS[*attr].1).collect();
    if rule.level == 3 {
        attrs | Attrs::NEUTRAL
    } else {
        attrs
    }
}
