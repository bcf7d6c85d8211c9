//! Each diagnostic: its code, its place, its fix.

use miette::Diagnostic;
use tidegate_policy::map::{self, Finding};

/// Compiles a map and tells each finding as `line:column "marked" code: help`.
fn findings(map: &str) -> Vec<String> {
    let findings = match map::compile_str("test", map) {
        Ok(compiled) => compiled.warnings,
        Err(errors) => errors.findings,
    };
    findings.iter().map(|finding| tell(finding, map)).collect()
}

fn tell(finding: &Finding, map: &str) -> String {
    let (line, column) = finding.position().expect("a place");
    let marked = &map[finding.span().expect("a span")];
    let code = finding.code().expect("a code");
    let help = finding
        .help()
        .map_or_else(String::new, |help| format!(": {help}"));
    let kind = if finding.is_error() { "" } else { "warning " };
    format!("{line}:{column} `{marked}` {kind}{code}{help}")
}

/// A statement on line 3 of an otherwise good map.
fn one(statement: &str) -> String {
    let found = findings(&format!("levels top > mid > low\ntop /\n{statement}\n"));
    assert_eq!(found.len(), 1, "{statement}: {found:#?}");
    found[0].strip_prefix("3:").expect("line 3").to_owned()
}

fn starts(statement: &str, expected: &str) {
    let found = one(statement);
    assert!(found.starts_with(expected), "{statement}: {found}");
}

#[test]
fn words() {
    starts(
        "top \u{a0}/x",
        "5 `\u{a0}` plm::character: words are parted by",
    );
    starts("top \"/a b", "5 `\"/a b` plm::unclosed: close it with `\"`");
    starts(
        &format!("top /{} lowwrite", "/a".repeat(2100)),
        "1 `top` plm::line_size",
    );
    assert_eq!(
        one("\"x\" /y"),
        "1 `\"x\"` plm::expected: a line begins with a word"
    );
}

#[test]
fn statements() {
    assert_eq!(
        one("inlcude server"),
        "1 `inlcude` plm::statement: did you mean `include`?"
    );
    assert_eq!(
        one("Mode enforcing"),
        "1 `Mode` plm::statement: did you mean `mode`?"
    );
    starts("top", "4 `` plm::expected: a rule is `LEVEL PATH");
    starts("top > /x", "5 `>` plm::expected: a rule is `LEVEL PATH");
    starts("top etc/passwd", "5 `etc/passwd` plm::path_relative");
    assert_eq!(
        one("low netwrok 10.0.0.0/8"),
        "5 `netwrok` plm::expected: did you mean `network`?"
    );
    starts(
        "mode enforcing now",
        "16 `now` plm::trailing: one statement a line",
    );
    starts("low network loopback creator", "22 `creator` plm::trailing");
    starts(
        "low interface eth0",
        "5 `interface` plm::interface: write `low network`",
    );
    starts(
        "low network",
        "12 `` plm::expected: write `loopback`, an address",
    );
    starts("include", "8 `` plm::expected: write a preset's name");
}

#[test]
fn levels() {
    let of = |map: &str| findings(map).join("\n");
    assert!(of("").starts_with("1:1 `` plm::no_levels: add `levels system > user`"));
    assert!(of("# only this\n").starts_with("1:1 `` plm::no_levels"));
    assert!(of("levels top\ntop /").starts_with("1:1 `levels top` plm::levels_few"));
    assert!(
        of("levels a b\na /").starts_with("1:10 `b` plm::expected: write `levels system > user")
    );
    assert!(of("levels a >\na /").starts_with("1:11 `` plm::expected"));
    assert!(of("levels A > b\nb /").starts_with("1:8 `A` plm::level_name"));
    for reserved in [
        "network", "neutral", "include", "child-of", "creator", "loopback", "../x",
    ] {
        let found = of(&format!("levels {reserved} > b\nb /"));
        assert!(
            found.starts_with(&format!("1:8 `{reserved}` plm::level_name")),
            "{found}"
        );
    }
    let long = "a".repeat(32);
    assert!(of(&format!("levels {long} > b\nb /")).contains("plm::level_name"));
    assert!(of("levels a > b > a\na /").starts_with("1:16 `a` plm::level_twice"));
    let many = |count| {
        let names: Vec<_> = (0..count).map(|n| format!("l{n}")).collect();
        findings(&format!("levels {}\nl0 /\n", names.join(" > ")))
    };
    assert_eq!(many(16), Vec::<String>::new());
    assert!(many(17)[0].contains("plm::levels_many"));
    assert!(many(300)[0].contains("plm::levels_many"));
    starts(
        "levels x > y",
        "1 `levels x > y` plm::levels_twice: one `levels` statement",
    );
    assert_eq!(one("lwo /x"), "1 `lwo` plm::level: did you mean `low`?");
    assert_eq!(
        one("natural /x"),
        "1 `natural` plm::level: did you mean `neutral`?"
    );
    assert_eq!(
        one("secret /x"),
        "1 `secret` plm::level: the levels are: `top`, `mid`, `low`, `neutral`"
    );
    assert_eq!(
        one("secret network ::1"),
        "1 `secret` plm::level: the levels are: `top`, `mid`, `low`"
    );
}

#[test]
fn mode_and_include() {
    starts(
        "mode lax",
        "6 `lax` plm::mode: the modes are `enforcing` and `permissive`",
    );
    let twice = findings("levels a > b\na /\nmode enforcing\nmode enforcing\n");
    assert_eq!(
        twice,
        ["4:1 `mode enforcing` plm::mode_twice: keep one of them"]
    );
    let found = findings("levels a > b\ninclude sever\na /\n");
    assert_eq!(found, ["2:9 `sever` plm::preset: did you mean `server`?"]);
    let found = findings("include banana\n");
    assert!(
        found[0].ends_with("`classic`, `server`, `workstation`, `base`"),
        "{found:?}"
    );
    let found = findings("include other.plm\nlevels a > b\na /\n");
    assert_eq!(found, ["1:9 `other.plm` plm::include_file"]);
    let found = findings("levels system > low\nlow /x\ninclude base\n");
    assert!(
        found[0].starts_with("3:9 `base` plm::include_late: move it above"),
        "{found:?}"
    );
}

#[test]
fn paths() {
    starts(
        "low /a//b",
        "5 `/a//b` plm::path_empty: write single slashes",
    );
    starts("low /a/", "5 `/a/` plm::path_empty");
    starts("low /a/../b", "5 `/a/../b` plm::path_dot");
    starts("low /a/*.log", "5 `/a/*.log` plm::path_star");
    starts("low /a/**", "5 `/a/**` plm::path_star");
    starts("low /a/{b,c}", "5 `/a/{b,c}` plm::path_glob");
    starts("low @{HOMES}/x", "5 `@{HOMES}/x` plm::path_variable");
    starts(
        "low ~ann/x",
        "5 `~ann/x` plm::path_home: write one user's home out, as /home/ann",
    );
    starts(r#"low "/a\q""#, r#"5 `"/a\q"` plm::path_escape"#);
    starts(r#"low "/a\x00""#, r#"5 `"/a\x00"` plm::path_byte"#);
    starts(&format!("low /{}", "n".repeat(256)), "5 `/nnn");
    assert!(one(&format!("low /{}", "n".repeat(256))).contains("plm::path_name"));
    assert!(one(&format!("low {}", "/n".repeat(65))).contains("plm::path_depth"));
}

#[test]
fn attributes() {
    assert_eq!(
        one("top /x lowrite"),
        "8 `lowrite` plm::attribute: did you mean `lowwrite`?"
    );
    assert_eq!(
        one("top /x childof"),
        "8 `childof` plm::attribute: did you mean `child-of`?"
    );
    assert_eq!(
        one("top /x creator, lowwrite"),
        "8 `creator,` plm::attribute: did you mean `creator`?"
    );
    starts(
        "top /x readonly",
        "8 `readonly` plm::attribute: the attributes are: `creator`,",
    );
    starts(
        "top /x creator creator",
        "16 `creator` plm::attribute_twice",
    );
    starts(
        "top /x creator child-of",
        "16 `child-of` plm::child_of: write it right after the path",
    );
    starts("top /x child-of child-of", "17 `child-of` plm::child_of");
    starts(
        "neutral /x lowwrite",
        "12 `lowwrite` plm::neutral_attribute",
    );
    starts(
        "neutral network 10.0.0.0/8",
        "1 `neutral` plm::neutral_network",
    );
}

#[test]
fn networks() {
    starts(
        "low network eth0",
        "13 `eth0` plm::network: write `loopback`",
    );
    starts(
        "low network 10.0.0.0/40",
        "13 `10.0.0.0/40` plm::network_prefix",
    );
    assert_eq!(
        one("low network 10.1.2.3/8"),
        "13 `10.1.2.3/8` plm::network_host_bits: \
         for the network write 10.0.0.0/8, for the one host 10.1.2.3"
    );
    assert_eq!(
        one("low network ::ffff:10.0.0.0/104"),
        "13 `::ffff:10.0.0.0/104` plm::network_mapped: \
         IPv4 peers are always seen as IPv4: write 10.0.0.0/8"
    );
    let twice = findings("levels a > b\na /\nb network ::1\na network loopback\n");
    assert_eq!(
        twice,
        ["4:1 `a network loopback` plm::network_twice: keep one of them"]
    );
}

#[test]
fn clashes_show_both_places() {
    let map = "levels a > b\na /\nb /x\na /y\n  a /x lowwrite # again\n";
    let errors = map::compile_str("test", map).unwrap_err();
    assert_eq!(errors.findings.len(), 1);
    let labels: Vec<_> = errors.findings[0]
        .labels()
        .expect("labels")
        .map(|label| {
            let text = &map[label.offset()..label.offset() + label.len()];
            (
                text.to_owned(),
                label.label().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        labels,
        [pair("/x", "again here"), pair("b /x", "first here")]
    );

    let twice = findings("levels a > b\na /\nb ~/x\nb @{HOME}/x\n");
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(
        twice[0].starts_with("4:3 `@{HOME}/x` plm::rule_twice"),
        "{twice:?}"
    );
    assert!(findings("levels a > b\na /\nb /x\nb /x child-of\n").is_empty());

    let twice = findings("levels a > b\na /\nb network 10.0.0.0/8\na network 10.0.0.0/8\n");
    assert_eq!(
        twice,
        ["4:1 `a network 10.0.0.0/8` plm::network_twice: keep one of them"]
    );
}

#[test]
fn what_is_reserved() {
    for path in [
        "/run/tidegate",
        "/run/tidegate/level/low",
        "/run/tidegate/*",
        "/sys/fs/bpf/x",
    ] {
        starts(&format!("low {path}"), &format!("5 `{path}` plm::reserved"));
    }
    starts("low /sys/fs/bpf child-of", "5 `/sys/fs/bpf` plm::reserved");
    assert!(findings("levels a > b\na /\nb /run/*\nb /run/tidegate2\n").is_empty());
}

#[test]
fn a_root_is_needed() {
    for map in [
        "levels a > b\n",
        "levels a > b\na / child-of\n",
        "levels a > b\na /*\n",
    ] {
        let found = findings(map);
        assert_eq!(
            found,
            ["1:1 `levels a > b` plm::no_root: add `a /`, so that every path has a level"]
        );
    }
}

#[test]
fn warnings() {
    starts(
        "mid /x nodemote",
        "8 `nodemote` warning plm::ineffective: give the program's file the top",
    );
    starts(
        "low /x nonetdemote",
        "8 `nonetdemote` warning plm::ineffective",
    );
    starts(
        "mid /x permissive",
        "8 `permissive` warning plm::ineffective: give the program's file the top",
    );
    starts(
        "top /x nodemote nonetdemote",
        "17 `nonetdemote` warning plm::ineffective: drop it",
    );
    starts("low /x creator", "8 `creator` warning plm::ineffective");
    starts("low /x lowwrite", "8 `lowwrite` warning plm::ineffective");
    starts("low /x lownoopen", "8 `lownoopen` warning plm::ineffective");
    assert_eq!(
        one("top /sbin/dhclient nonetdemote"),
        "5 `/sbin/dhclient` warning plm::alias: rules match canonical paths: write /usr/sbin"
    );
    starts("mid /var/run/x", "5 `/var/run/x` warning plm::alias");
    let shadowed = findings("levels a > b\na /\nb ~/x\na /root/x\na /home/*/x\n");
    assert_eq!(shadowed.len(), 1);
    assert!(
        shadowed[0].starts_with("3:1 `b ~/x` warning plm::shadowed"),
        "{shadowed:?}"
    );
    for fine in [
        "top /x permissive",
        "top /x nodemote",
        "mid /x creator lowwrite lownoopen",
    ] {
        assert!(
            findings(&format!("levels top > mid > low\ntop /\n{fine}\n")).is_empty(),
            "{fine}"
        );
    }
}

#[test]
fn all_errors_are_told_at_once_and_in_order() {
    let found = findings("levels a > b\na /\nb /x lowrite\nc /y\nb /z/\nb /sbin\nb /w\nb /w\n");
    let codes: Vec<_> = found
        .iter()
        .map(|found| found.split(": ").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        codes,
        [
            "3:6 `lowrite` plm::attribute",
            "4:1 `c` plm::level",
            "5:3 `/z/` plm::path_empty",
            "6:3 `/sbin` warning plm::alias",
            "8:3 `/w` plm::rule_twice",
        ]
    );
}

#[test]
fn policies_names() {
    for name in ["", "a\nb", &"n".repeat(256)] {
        let errors = map::compile_str(name, "levels a > b\na /\n").unwrap_err();
        assert!(
            errors.findings[0]
                .to_string()
                .contains("a policy's name has")
        );
    }
}

#[test]
fn a_policy_too_large_for_the_kernel_is_refused() {
    // Each rule doubles the nodes: both ways on at each component.
    let mut map = "levels a > b\na /\n".to_owned();
    for depth in 1..=40 {
        map += &format!("b {}/x\n", "/*".repeat(depth));
    }
    let errors = map::compile_str("test", &map).unwrap_err();
    assert!(errors.findings[0].to_string().contains("trie nodes"));
}

#[test]
fn it_reads_well() {
    let errors = map::compile_str("test.plm", "levels a > b\na /\nb /x lowrite\n").unwrap_err();
    let shown = format!("{:?}", miette::Report::new(errors));
    for part in [
        "test.plm:3:6",
        "unknown attribute `lowrite`",
        "did you mean `lowwrite`?",
    ] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
}
