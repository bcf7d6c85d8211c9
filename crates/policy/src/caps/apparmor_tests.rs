//! Patterns stand for what AppArmor's own parser takes them for.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tidegate_bundle::caps::{Names, Pattern};
use tidegate_bundle::profile::Access;

use crate::profile::{FEATURES, Parser, link};

/// Without what is known to differ: slashes at the end, and negated classes, which are slashes, too, for AppArmor.
fn pattern() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "/",
        "/",
        "a",
        "b",
        "*",
        "**",
        "?",
        "[ab]",
        "[a-c]",
        "{a,b/c}",
        "{,a}",
        "{a,{b,*}}",
        "/*",
        "/**",
        "\\*",
    ]);
    let pieces = prop::collection::vec(piece, 1..7);
    let text = pieces.prop_map(|pieces| format!("/{}", pieces.concat()));
    text.prop_filter("it is one", |text| {
        Pattern::parse(text, Names::Paths).is_ok()
    })
}

#[test]
fn patterns_stand_for_what_apparmor_takes_them_for() {
    let mut random = TestRunner::deterministic();
    let mut draw = || pattern().new_tree(&mut random).unwrap().current();
    let mut patterns: Vec<String> = (0..300).map(|_| draw()).collect();
    patterns.extend(
        [
            "/tmp/*", "/tmp/**", "/tmp**", "/a*/b", "/a/**/b", "/**", "/*", "/",
        ]
        .map(String::from),
    );
    let rules = patterns.iter().enumerate();
    let profiles = rules.map(|(at, pattern)| format!("profile p{at} {{ \"{pattern}\" r, }}\n"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles");
    std::fs::write(&file, profiles.collect::<String>()).unwrap();
    let parser = Parser {
        program: "apparmor_parser".into(),
        base: dir.path().into(),
        features: FEATURES.into(),
    };
    let set = link(&parser.parse(&file).unwrap(), &[]).unwrap();

    let names = prop::collection::vec("(/[abc*]{1,2}){1,4}", 400);
    let mut names = names
        .new_tree(&mut TestRunner::deterministic())
        .unwrap()
        .current();
    names.extend(
        [
            "/", "/tmp", "/tmp/a", "/tmp/a/b", "/tmpx/a", "/a/b", "/ax/b", "/a/x/b",
        ]
        .map(String::from),
    );
    let mut matched = 0;
    for (at, pattern) in patterns.iter().enumerate() {
        let ours = Pattern::parse(pattern, Names::Paths).unwrap();
        let profile = &set.profiles[set.find(&format!("p{at}")).unwrap()];
        for name in &names {
            let theirs = set
                .file(profile, name.as_bytes(), false)
                .allow
                .contains(Access::READ);
            assert_eq!(ours.matches(name.as_bytes()), theirs, "{pattern} {name}");
            matched += usize::from(theirs);
        }
    }
    // they are not all about nothing
    assert!(matched > names.len(), "{matched}");
}
