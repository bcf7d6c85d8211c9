//! `lookup` agrees with an independent longest match over the rules.

mod common;
mod naive;

use common::{maps, text};
use naive::{naive, paths};
use proptest::prelude::*;
use tidegate_bundle::{Attrs, Policy};
use tidegate_policy::map;

fn compile(map: &str) -> Policy {
    map::compile_str("test", map)
        .unwrap_or_else(|errors| panic!("{map}\n{:?}", miette::Report::new(errors)))
        .policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn lookup_is_longest_match(rules in maps(14), paths in prop::collection::vec(paths(), 40)) {
        let map = text(&rules);
        let policy = compile(&map);
        for path in paths {
            let slashed = format!("/{}", path.join("/"));
            let found = policy.lookup(slashed.as_bytes());
            prop_assert_eq!((found.level, found.attrs), naive(&rules, &path), "{}\n{}", slashed, map);
        }
    }

    #[test]
    fn a_source_is_the_statement_that_decided(rules in maps(8), path in paths()) {
        let policy = compile(&text(&rules));
        let slashed = format!("/{}", path.join("/"));
        let found = policy.lookup(slashed.as_bytes());
        let source = &policy.rules[found.source as usize];
        if source.line == 0 {
            prop_assert_eq!(&source.file, "built-in");
        } else {
            // The map's first line names the levels.
            prop_assert_eq!(&source.text, &rules[source.line as usize - 2].line());
        }
    }
}

#[test]
fn longest_match_then_what_is_written_out() {
    let policy = compile(
        "levels top > low\n\
         top /\n\
         low /a/*/c\n\
         top /a/b\n\
         low /*/b/d\n\
         top /a/*/d lowwrite\n",
    );
    assert_eq!(policy.lookup(b"/a/b").level, 1);
    // Longer wins over written out …
    assert_eq!(policy.lookup(b"/a/b/c").level, 0);
    assert_eq!(policy.lookup(b"/a/b/c/x").level, 0);
    // … and among equals, what is written out earlier in the path.
    assert_eq!(policy.lookup(b"/a/b/d").level, 1);
    assert_eq!(policy.lookup(b"/x/b/d").level, 0);
}

#[test]
fn what_each_attribute_covers() {
    let policy = compile(
        "levels top > low\ntop /\n\
         top /d creator lowwrite lownoopen nodemote permissive\n\
         top /e child-of creator lowwrite lownoopen nodemote permissive\n\
         neutral /n\n",
    );
    let attrs = |path: &str| policy.lookup(path.as_bytes()).attrs;
    let all =
        Attrs::CREATOR | Attrs::LOWWRITE | Attrs::LOWNOOPEN | Attrs::NODEMOTE | Attrs::PERMISSIVE;
    assert_eq!(attrs("/d"), all | Attrs::EXPLICIT);
    assert_eq!(attrs("/d/x"), Attrs::CREATOR | Attrs::LOWNOOPEN);
    assert_eq!(attrs("/e"), Attrs::empty());
    assert_eq!(attrs("/e/x"), all);
    assert_eq!(attrs("/e/x/y"), all);
    assert_eq!(attrs("/n"), Attrs::NEUTRAL | Attrs::EXPLICIT);
    assert_eq!(attrs("/n/x"), Attrs::NEUTRAL);
    // Should it be asked for all the same, a neutral path's level is the top.
    assert_eq!(policy.lookup(b"/n").level, 1);
}

#[test]
fn a_star_names_nothing() {
    let policy = compile("levels top > low\ntop /\nlow /mnt/*\nlow /srv/*/data\n");
    assert!(!policy.lookup(b"/mnt/usb").attrs.contains(Attrs::EXPLICIT));
    assert!(
        policy
            .lookup(b"/srv/x/data")
            .attrs
            .contains(Attrs::EXPLICIT)
    );
}

#[test]
fn no_star_reaches_what_is_reserved() {
    let policy =
        compile("levels top > low\ntop /\nlow /run/*\nlow /*/*/level child-of\nlow /*/*/*/*\n");
    assert_eq!(policy.lookup(b"/run/x").level, 0);
    assert_eq!(policy.lookup(b"/run/tidegate").level, 1);
    assert_eq!(policy.lookup(b"/run/tidegate/admin.sock").level, 1);
    assert_eq!(policy.lookup(b"/run/tidegate/level/x").level, 1);
    assert_eq!(policy.lookup(b"/run/tidegate/level/low").level, 0);
    assert_eq!(policy.lookup(b"/run/tidegate/level/top").level, 1);
    assert_eq!(policy.lookup(b"/sys/fs/bpf/x/y").level, 1);
    assert_eq!(policy.lookup(b"/run/x/level/y").level, 0);
}

#[test]
fn a_home_written_out_overrides_the_tilde() {
    for map in [
        "levels top > low\ntop /\nlow ~/x\ntop /root/x\n",
        "levels top > low\ntop /\ntop /root/x\nlow ~/x\n",
    ] {
        let policy = compile(map);
        assert_eq!(policy.lookup(b"/root/x").level, 1);
        assert_eq!(policy.lookup(b"/home/ann/x").level, 0);
    }
}

#[test]
fn slashes_and_bytes() {
    let policy = compile("levels top > low\ntop /\nlow \"/a b/\\xff\"\n");
    assert_eq!(policy.lookup(b"//a b///\xff").level, 0);
    assert_eq!(policy.lookup(b"/a b").level, 1);
    assert_eq!(policy.lookup(b"").level, 1);
    assert_eq!(policy.lookup(&[b'x'; 10_000]).level, 1);
}

#[test]
fn the_longest_network_wins() {
    let policy = compile(
        "levels top > mid > low\ntop /\n\
         mid network 10.0.0.0/8\ntop network 10.1.2.3\nlow network 10.1.0.0/16\n\
         mid network loopback\nmid network ::/0\n",
    );
    let level = |addr: &str| {
        policy
            .network(addr.parse().unwrap())
            .map(|network| network.level)
    };
    assert_eq!(level("10.2.0.1"), Some(1));
    assert_eq!(level("10.1.0.1"), Some(0));
    assert_eq!(level("10.1.2.3"), Some(2));
    assert_eq!(level("::ffff:10.1.2.3"), Some(2));
    assert_eq!(level("192.0.2.1"), None);
    assert_eq!(level("127.1.2.3"), Some(1));
    assert_eq!(level("::1"), Some(1));
    assert_eq!(level("2001:db8::1"), Some(1));
}

#[test]
fn what_lies_below_is_found_at_any_depth() {
    let policy = compile("levels top > low\ntop /\ntop /a/*/c creator\ntop /d child-of creator\n");
    let any = |path: &str| policy.place(path.as_bytes()).any_below(Attrs::CREATOR);
    for path in ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/x", "/d", "/d/x/y"] {
        assert!(any(path), "{path}");
    }
    for path in ["/b", "/a/b/x", "/e/a/b/c"] {
        assert!(!any(path), "{path}");
    }
}
