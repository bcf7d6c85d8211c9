//! A compiled policy with more statements is what a map would be that includes it.

mod common;

use proptest::prelude::*;
use tidegate_bundle::Policy;
use tidegate_policy::{Effects, PRESETS, map};

const MORE: &str =
    "user /home/*/work creator\nsystem /srv/keys lownoopen\nuser network 192.0.2.7\n";

fn same(preset: &str, statements: &str) {
    let text = format!("include {preset}\n{statements}");
    let whole = map::compile_str("x", &text).expect("compiles").policy;
    let base = map::compile_preset(preset).expect("compiles").policy;
    let base = Policy::from_bundle(&base.to_bundle()).expect("loads");
    let mut extended = map::extend(&base, "x", statements)
        .expect("compiles")
        .policy;
    // the statements stand a line further down in the including map
    for rule in extended.rules.iter_mut().filter(|rule| rule.file == "x") {
        rule.line += 1;
    }
    assert_eq!(extended, whole);
}

#[test]
fn it_is_what_an_including_map_would_be() {
    same("workstation", MORE);
    same(
        "server",
        "service /srv/up creator\nservice network loopback\n",
    );
    for preset in PRESETS {
        same(preset.name, "");
    }
}

#[test]
fn errors_are_the_statements_own() {
    let base = map::compile_preset("workstation").unwrap().policy;
    let errors = map::extend(&base, "more.plm", "user /x\nbogus /y\n").unwrap_err();
    let places: Vec<_> = errors.findings.iter().filter(|f| f.is_error()).collect();
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].file(), Some("more.plm"));
    assert_eq!(places[0].position(), Some((2, 1)));
}

#[test]
fn effects_tell_what_no_longer_counts_and_what_is_open() {
    let base = map::compile_preset("workstation").unwrap().policy;
    let of = |more: &str| {
        let effects = Effects::of(&base, &map::extend(&base, "x", more).unwrap().policy);
        let words = |sources: Vec<tidegate_bundle::RuleSource>| {
            sources.into_iter().map(|s| s.text).collect::<Vec<_>>()
        };
        (words(effects.silenced), words(effects.opened))
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(
        of("user /home/*/work creator\n"),
        (none.clone(), none.clone())
    );
    assert_eq!(
        of("user /home/*/.ssh\n"),
        (
            vec!["user /home/*/.ssh lownoopen".to_owned()],
            vec!["user /home/*/.ssh lownoopen".to_owned()]
        )
    );
    assert_eq!(
        of("user /home/ann/.ssh/config\n"),
        (none.clone(), vec!["user /home/*/.ssh lownoopen".to_owned()])
    );
    assert_eq!(
        of("user /home/ann/.ssh/x lownoopen\n"),
        (none.clone(), none)
    );
}

proptest! {
    /// For any map and any statements: in two steps what they are in one.
    #[test]
    fn two_steps_are_one(first in common::maps(12), more in common::maps(6)) {
        let base = map::compile_str("first", &common::text(&first)).unwrap().policy;
        prop_assert_eq!(&map::extend(&base, "first", "").unwrap().policy, &base);

        let lines: String = more.iter().map(|said| said.line() + "\n").collect();
        let once = map::extend(&base, "x", &lines).unwrap().policy;
        // what a path's last statement says is what counts for it
        for said in more.iter().filter(|said| !said.child_of && !said.path.contains(&"*")) {
            for path in said.patterns() {
                if path.contains(&"*") || more.iter().any(|m| m.home != said.home) {
                    continue;
                }
                let rule = once.lookup(path.join("/").as_bytes());
                prop_assert_eq!(&once.rules[rule.source as usize].text, &said.line());
            }
        }
        let again = Policy::from_bundle(&once.to_bundle()).unwrap();
        prop_assert_eq!(&map::extend(&again, "x", "").unwrap().policy.nodes, &once.nodes);
    }
}
