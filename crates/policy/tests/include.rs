//! Maps in several files.

use std::fs;
use std::path::Path;

use miette::Diagnostic;
use tempfile::TempDir;
use tidegate_bundle::{Mode, Policy};
use tidegate_policy::map::{self, Compiled, Finding, MapErrors};

/// A directory with these files; the first is compiled.
fn compile(files: &[(&str, &str)]) -> (Result<Compiled, MapErrors>, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    (map::compile_file(&dir.path().join(files[0].0)), dir)
}

fn policy(files: &[(&str, &str)]) -> Policy {
    let (compiled, _dir) = compile(files);
    let compiled = compiled.unwrap_or_else(|errors| panic!("{:?}", miette::Report::new(errors)));
    assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
    compiled.policy
}

fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
    compile(files).0.expect_err("it has errors").findings
}

fn codes(files: &[(&str, &str)]) -> Vec<String> {
    let code = |finding: &Finding| finding.code().expect("a code").to_string();
    findings(files).iter().map(code).collect()
}

const PART: &str = "levels a > b\na /\nb /x\nb /y child-of\nb network ::/0\nmode permissive\n";

#[test]
fn the_including_file_overrides() {
    let files = [
        ("main.plm", "include ./part.plm\na /x\n"),
        ("part.plm", PART),
    ];
    let policy = policy(&files);
    assert_eq!(policy.name, "main");
    assert_eq!(policy.mode, Mode::Permissive);
    let rule = policy.lookup(b"/x");
    assert_eq!(rule.level, 1);
    let source = &policy.rules[rule.source as usize];
    assert!(source.file.ends_with("main.plm"));
    assert_eq!((source.line, source.text.as_str()), (2, "a /x"));
    assert!(
        !policy.rules.iter().any(|rule| rule.text == "b /x"),
        "the overridden rule is gone"
    );
    assert!(
        policy
            .rules
            .iter()
            .any(|rule| rule.file.ends_with("part.plm") && rule.line == 4)
    );
}

#[test]
fn kinds_modes_and_networks_override_apart() {
    let main = "include part.plm\na /y child-of\nb /y\nmode enforcing\na network ::/0\n";
    let policy = policy(&[("main.plm", main), ("part.plm", PART)]);
    assert_eq!(policy.mode, Mode::Enforcing);
    assert_eq!(policy.lookup(b"/y").level, 0);
    assert_eq!(policy.lookup(b"/y/z").level, 1);
    assert_eq!(policy.networks.len(), 1);
    assert_eq!(policy.networks[0].level, 1);
}

#[test]
fn of_two_includes_the_later_overrides() {
    let files = [
        (
            "main.plm",
            "levels a > b\ninclude one.plm\ninclude two.plm\na /\n",
        ),
        ("one.plm", "a /x\n"),
        ("two.plm", "b /x\n"),
    ];
    assert_eq!(policy(&files).lookup(b"/x").level, 0);
}

#[test]
fn a_tilde_of_the_including_file_overrides_a_home_written_out() {
    let files = [
        ("main.plm", "include one.plm\na ~/x\n"),
        ("one.plm", "levels a > b\na /\nb /root/x\nb /home/*/x\n"),
    ];
    let policy = policy(&files);
    assert_eq!(policy.lookup(b"/root/x").level, 1);
    assert_eq!(policy.lookup(b"/home/ann/x").level, 1);
}

#[test]
fn paths_are_relative_to_the_including_file() {
    let files = [
        ("main.plm", "levels a > b\ninclude sub/one.plm\na /\n"),
        (
            "sub/one.plm",
            "include \"t w o.plm\"\ninclude ../three.plm\n",
        ),
        ("sub/t w o.plm", "b /two\n"),
        ("three.plm", "b /three\n"),
    ];
    let policy = policy(&files);
    assert_eq!(policy.lookup(b"/two").level, 0);
    assert_eq!(policy.lookup(b"/three").level, 0);
}

#[test]
fn a_file_included_twice_counts_once() {
    let files = [
        (
            "main.plm",
            "levels a > b\ninclude one.plm\ninclude two.plm\na /\n",
        ),
        ("one.plm", "include part.plm\na /x\n"),
        ("two.plm", "include sub/../part.plm\n"),
        ("part.plm", "b /x\n"),
        ("sub/nothing.plm", ""),
    ];
    assert_eq!(policy(&files).lookup(b"/x").level, 1);
}

#[test]
fn presets_are_added_to() {
    let main = "include server\nservice network 192.0.2.0/24\nservice /opt/app creator\n";
    let policy = policy(&[("main.plm", main)]);
    let service = policy.level("service").expect("a level");
    assert_eq!(policy.lookup(b"/opt/app/x").level, service);
    assert_eq!(
        policy
            .network("192.0.2.1".parse().expect("an address"))
            .map(|net| net.level),
        Some(service)
    );
}

#[test]
fn a_clash_of_two_files_shows_both() {
    let files = [
        ("main.plm", "levels a > b\ninclude one.plm\na /\n"),
        ("one.plm", "levels c > d\nc /x\n"),
    ];
    let findings = findings(&files);
    let clash = &findings[0];
    assert_eq!(
        clash.code().expect("a code").to_string(),
        "plm::levels_twice"
    );
    let related: Vec<_> = clash
        .related()
        .expect("the other place")
        .map(ToString::to_string)
        .collect();
    assert_eq!(related, ["first here"]);
    let shown = format!("{:?}", miette::Report::new(compile(&files).0.unwrap_err()));
    assert!(
        shown.contains("main.plm:1:1") && shown.contains("one.plm:1:1"),
        "{shown}"
    );
}

#[test]
fn an_error_in_an_included_file_is_told_there() {
    let files = [
        ("main.plm", "levels a > b\ninclude one.plm\na /\n"),
        ("one.plm", "\n c /x\n"),
    ];
    let findings = findings(&files);
    assert!(findings[0].file().expect("a file").ends_with("one.plm"));
    assert_eq!(findings[0].position(), Some((2, 2)));
}

#[test]
fn what_cannot_be_included() {
    assert_eq!(
        codes(&[("main.plm", "include gone.plm\n")]),
        ["plm::unreadable"]
    );
    assert_eq!(
        codes(&[("main.plm", "include /dev/null\n")]),
        ["plm::unreadable"]
    );
    assert_eq!(codes(&[("main.plm", "include ./\n")]), ["plm::unreadable"]);
    assert_eq!(
        codes(&[("main.plm", "include main.plm\n")]),
        ["plm::include_cycle"]
    );
    let cycle = [("a.plm", "include b.plm\n"), ("b.plm", "include a.plm\n")];
    let found = findings(&cycle);
    assert_eq!(codes(&cycle), ["plm::include_cycle"]);
    assert!(found[0].file().expect("a file").ends_with("b.plm"));
    let names: Vec<_> = (0..=17)
        .map(|n| (format!("f{n}.plm"), format!("include f{}.plm\n", n + 1)))
        .collect();
    let deep: Vec<_> = names
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(codes(&deep), ["plm::include_depth"]);
}

#[test]
fn what_cannot_be_read() {
    let missing = map::compile_file(Path::new("/nonexistent/x.plm")).unwrap_err();
    assert!(
        missing.findings[0]
            .to_string()
            .starts_with("cannot read /nonexistent/x.plm: ")
    );
    assert_eq!(missing.findings[0].position(), None);

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x.plm");
    fs::write(&path, b"levels a > b\n\xff").expect("a file");
    let found = map::compile_file(&path).unwrap_err().findings[0].to_string();
    assert!(found.contains("not UTF-8 from byte 13"), "{found}");

    fs::write(&path, vec![b'\n'; (16 << 20) + 1]).expect("a file");
    let found = map::compile_file(&path).unwrap_err();
    assert!(
        found.findings[0].to_string().contains("over 16 MiB"),
        "{found:?}"
    );
    fs::write(dir.path().join("main.plm"), "include x.plm\n").expect("a file");
    let found = map::compile_file(&dir.path().join("main.plm")).unwrap_err();
    assert_eq!(found.findings[0].position(), Some((1, 9)));
}
