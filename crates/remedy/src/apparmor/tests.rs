//! From lines of a log to rules, with `apparmor_parser`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_audit::Record;
use tidegate_bundle::profile::Access;
use tidegate_policy::profile::{FEATURES, Parser};

use super::{Bench, Gathered, Proposal, explain, explain_by, plan};

const PREAMBLE: &str = "@{SECRETS}=/nowhere/secret /nowhere/key\n";
const TOOL: &str = "profile tool /nowhere/tool {
  include if exists <local/tool>
  /nowhere/known r,
  audit deny @{SECRETS} rwx,
  audit deny capability sys_admin,
  /nowhere/bin/taken px,

  ^hat { }
}
";
const OTHER: &str = "profile other /nowhere/bin/{other,another} {\n}\n";

/// Profiles in a directory of their own.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("local")).unwrap();
        fs::write(dir.path().join("tool"), format!("{PREAMBLE}{TOOL}")).unwrap();
        fs::write(dir.path().join("other"), OTHER).unwrap();
        Place { dir }
    }

    fn bench(&self) -> Bench {
        let parser = Parser {
            program: "apparmor_parser".into(),
            base: self.dir.path().to_owned(),
            features: FEATURES.to_owned(),
        };
        let parsed = parser.parse(self.dir.path()).unwrap();
        Bench::new(parser, parsed).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn learn(&self, records: &[Value]) -> Proposal {
        let bench = self.bench();
        let mut gathered = Gathered::default();
        for value in records {
            gathered.take(&record(value), 1);
        }
        let plan = plan(&gathered, &bench, |_| {});
        Proposal::new(plan, &gathered, &bench).unwrap()
    }
}

fn record(value: &Value) -> Record {
    serde_json::from_value(value.clone()).unwrap()
}

/// A refusal of the profile `tool`.
fn refusal(op: &str, denied: &str, object: Value) -> Value {
    json!({
        "id": 7, "time": "2026-11-22T07:00:00.000001Z", "kind": "would", "op": op, "class": "file",
        "reason": "profile", "denied": denied, "request": denied, "object": object, "seqno": 1,
        "subject": {"pid": 4, "tid": 4, "uid": 1000, "comm": "tool", "level": "user",
                    "profile": "tool", "exe": "/nowhere/tool"},
    })
}

fn file(op: &str, denied: &str, path: &str) -> Value {
    refusal(
        op,
        denied,
        json!({"level": "user", "path": path, "ino": 9, "dev": "0:0"}),
    )
}

fn with(mut value: Value, key: &str, what: Value) -> Value {
    value[key] = what;
    value
}

fn rules(proposal: &Proposal) -> Vec<&str> {
    let each = proposal.proposed.iter();
    each.filter_map(|told| told.rule.as_deref()).collect()
}

#[test]
fn what_was_asked_of_a_path_is_one_rule() {
    let place = Place::new();
    let made = refusal(
        "create",
        "c",
        json!({"level": "user", "path": "/nowhere/new"}),
    );
    let proposal = place.learn(&[
        file("open-read", "r", "/nowhere/a"),
        file("open-write", "w", "/nowhere/a"),
        file("lock", "k", "/nowhere/a"),
        file("open-read", "r", "/nowhere/with space*"),
        file("open-write", "w", "/proc/12/attr"),
        file("open-write", "w", "/proc/1345/attr"),
        file("mmap", "r", "/nowhere/known"),
        made,
    ]);
    assert_eq!(
        rules(&proposal),
        [
            "/nowhere/a rwk,",
            "owner /nowhere/new{,/} w,",
            r#""/nowhere/with space\*{,/}" r,"#,
            "/proc/[0-9]*/attr w,",
        ]
    );
    assert_eq!(proposal.proposed[0].of.count, 3);
    assert_eq!((proposal.settled, proposal.refusals), (1, 8));
}

#[test]
fn a_program_keeps_to_its_profile_where_it_has_one() {
    let place = Place::new();
    let mut of_other = file("open-read", "r", "/nowhere/others");
    of_other["subject"]["exe"] = json!("/nowhere/bin/other");
    let mut of_script = file("open-read", "r", "/nowhere/bin/other");
    of_script["subject"]["exe"] = json!("/nowhere/bin/sh");
    of_script["subject"]["comm"] = json!("other");
    let proposal = place.learn(&[
        file("exec", "x", "/nowhere/bin/sh"),
        file("mmap", "m", "/nowhere/bin/sh"),
        file("exec", "x", "/nowhere/bin/other"),
        of_other,
        of_script,
    ]);
    let expected = ["/nowhere/bin/other Px,", "/nowhere/bin/sh mix,"];
    assert_eq!(rules(&proposal), expected);
    assert_eq!(proposal.elsewhere, 2);
}

#[test]
fn what_is_no_file_has_a_rule_as_narrow_as_its_record() {
    let place = Place::new();
    let peer = |profile: &str| json!({"level": "user", "pid": 9, "profile": profile});
    let bare = json!({"level": "user"});
    let mount = |denied| {
        refusal(
            "mount",
            denied,
            json!({"level": "user", "path": "/nowhere/m"}),
        )
    };
    let proposal = place.learn(&[
        with(
            refusal("capable", "x", bare.clone()),
            "capability",
            json!("net_admin"),
        ),
        with(
            refusal("socket", "c", bare.clone()),
            "family",
            json!("inet"),
        ),
        with(
            with(
                refusal("socket", "c", bare.clone()),
                "family",
                json!("inet6"),
            ),
            "socket",
            json!("dgram"),
        ),
        with(
            with(
                refusal("connect", "wr", bare.clone()),
                "family",
                json!("unix"),
            ),
            "socket",
            json!("stream"),
        ),
        with(
            refusal("signal", "w", peer("third")),
            "signal",
            json!("term"),
        ),
        refusal("signal", "w", peer("other")),
        refusal("signal", "r", peer("other")),
        refusal("ptrace", "w", peer("tool")),
        refusal("ptrace", "c", peer("tool")),
        refusal("signal", "w", bare),
        mount("mount"),
        mount("umount"),
    ]);
    let of_other: Vec<_> = proposal
        .proposed
        .iter()
        .filter(|t| t.profile == "other")
        .collect();
    assert_eq!(
        of_other[0].rule.as_deref(),
        Some("signal (receive) peer=tool,")
    );
    assert_eq!(
        rules(&proposal)[1..],
        [
            "capability net_admin,",
            "network inet,",
            "network inet6 dgram,",
            "network unix stream,",
            "signal (send),",
            "signal (send) peer=other,",
            "signal (send) set=(term) peer=third,",
            "ptrace (trace, readby) peer=tool,",
            "mount -> /nowhere/m{,/},",
            "umount /nowhere/m{,/},",
        ],
        "{}",
        proposal.patch
    );
    assert!(proposal.unfixed.is_empty(), "{}", proposal.patch);
}

#[test]
fn other_records_tell_what_one_does_not() {
    let place = Place::new();
    let mut told = refusal("signal", "r", json!({"level": "user", "pid": 5}));
    let proposal = place.learn(std::slice::from_ref(&told));
    assert_eq!(rules(&proposal), [""; 0]);
    let mut of_other = file("open-write", "w", "/nowhere/x");
    of_other["subject"]["pid"] = json!(5);
    of_other["subject"]["profile"] = json!("other");
    told["subject"]["uid"] = json!(0);
    let linked = |denied| file("link", denied, "/nowhere/y");
    let proposal = place.learn(&[of_other, told, linked("l")]);
    let expected = [
        "/nowhere/x w,",
        "signal (receive) peer=tool,",
        "link /nowhere/y -> /nowhere/x,",
    ];
    assert_eq!(rules(&proposal), expected);
    assert_eq!(rules(&place.learn(&[linked("l")])), ["/nowhere/y l,"]);
    let both = ["w", "r"].map(|letter| {
        let other = json!({"level": "user", "pid": 5, "profile": "tool"});
        refusal("signal", letter, other)
    });
    let expected = ["signal (send, receive) peer=tool,"];
    assert_eq!(rules(&place.learn(&both)), expected);
    // the name may be linked, but leads to more
    let proposal = place.learn(&[linked("rw")]);
    let reason = proposal.unfixed[0].reason.as_deref().unwrap();
    assert!(reason.contains("link NAME -> TARGET"), "{reason}");
}

#[test]
fn a_deny_is_named_and_left_alone() {
    let place = Place::new();
    let proposal = place.learn(&[
        file("open-write", "rw", "/nowhere/secret"),
        file("exec", "x", "/nowhere/key"),
        with(
            refusal("capable", "x", json!({"level": "user"})),
            "capability",
            json!("sys_admin"),
        ),
    ]);
    assert_eq!(rules(&proposal), [""; 0]);
    let reasons: Vec<_> = proposal
        .denied
        .iter()
        .filter_map(|t| t.reason.clone())
        .collect();
    let file = place.path("tool");
    assert_eq!(reasons.len(), 3, "{}", proposal.patch);
    let paths = format!("{file}:5: `audit deny @{{SECRETS}} rwx,` refuses it");
    let capability = format!("{file}:6: `audit deny capability sys_admin,` refuses it");
    assert!(
        reasons.contains(&paths) && reasons.contains(&capability),
        "{reasons:?}"
    );
}

#[test]
fn a_rule_goes_where_the_machines_own_belong() {
    let place = Place::new();
    let mut of_hat = file("open-read", "r", "/nowhere/h");
    of_hat["subject"]["profile"] = json!("tool//hat");
    let proposal = place.learn(&[file("open-write", "w", "/nowhere/a"), of_hat]);
    let (tool, local) = (place.path("tool"), place.path("local/tool"));
    let new = format!("--- /dev/null\n+++ b{local}\n@@ -0,0 +1,1 @@\n+/nowhere/a w,\n");
    assert!(proposal.patch.contains(&new), "{}", proposal.patch);
    assert!(
        proposal.patch.contains(&format!("--- a{tool}\n")),
        "{}",
        proposal.patch
    );
    let hat = "-  ^hat { }\n+  ^hat {\n+    /nowhere/h{,/} r,\n+  }\n }\n";
    assert!(proposal.patch.contains(hat), "{}", proposal.patch);
}

#[test]
fn a_rule_that_does_not_compile_keeps_no_other_from_it() {
    let place = Place::new();
    // it contradicts the rule that is there
    let proposal = place.learn(&[
        file("exec", "x", "/nowhere/bin/taken"),
        file("open-write", "w", "/nowhere/a"),
    ]);
    assert_eq!(rules(&proposal), ["/nowhere/a w,"]);
    let reason = proposal.unfixed[0].reason.as_deref().unwrap();
    assert!(reason.contains("conflicting x modifiers"), "{reason}");
    assert!(Path::new(&place.path("tool")).exists());
}

#[test]
fn names_in_a_record_forge_no_rule() {
    let place = Place::new();
    let names = [
        "/nowhere/a\nfile,",
        "/nowhere/a\" rw, file, \"",
        "/nowhere/a\\",
        "/nowhere/{a,b}",
        "/nowhere/** rw, file, #",
        "/nowhere/@{SECRETS}",
    ];
    let proposal = place.learn(&names.map(|name| file("open-write", "w", name)));
    assert_eq!(
        rules(&proposal),
        [
            "\"/nowhere/\\*\\* rw, file, #\" w,",
            "/nowhere/@\\{SECRETS\\} w,",
            "/nowhere/\\{a,b\\} w,",
        ]
    );
    let bench = place.bench();
    let rules = proposal
        .proposed
        .iter()
        .filter_map(|told| told.rule.clone());
    let added = [("tool".to_owned(), rules.collect())].into();
    let set = bench.with(&added).unwrap();
    let tool = &set.profiles[set.find("tool").unwrap()];
    for other in [
        "/etc/shadow",
        "/nowhere/a",
        "/nowhere/secret",
        "/nowhere/x y",
    ] {
        let allow = set.file(tool, other.as_bytes(), true).allow;
        assert!(!allow.contains(Access::WRITE), "{other}");
    }
}

#[test]
fn what_rules_do_not_decide_is_told_with_what_does() {
    let place = Place::new();
    let mut disconnected = file("open-read", "r", "/nowhere/a");
    disconnected["reason"] = json!("disconnected");
    let mut gone = file("open-read", "r", "/nowhere/a");
    gone["subject"]["profile"] = json!("gone");
    let proposal = place.learn(&[disconnected, gone, file("open-read", "r", "…/long")]);
    let reasons: Vec<_> = proposal
        .unfixed
        .iter()
        .filter_map(|t| t.reason.as_deref())
        .collect();
    assert_eq!(reasons.len(), 3);
    assert!(reasons[0].contains("attach_disconnected"));
    assert!(reasons[1].contains("does not have its path whole"));
    assert!(reasons[2].contains("no such profile"));
}

#[test]
fn a_refusal_is_explained_by_the_policy_and_by_the_files() {
    let place = Place::new();
    let bench = place.bench();
    let read = record(&file("open-write", "w", "/nowhere/a"));
    let told = explain(&read, &bench.set).unwrap().refused().unwrap();
    assert_eq!(
        (told.class.as_str(), told.rule.as_deref()),
        ("file", Some("/nowhere/a w,"))
    );
    assert_eq!(told.how, "the profile is for its program, /nowhere/tool");
    let told = explain_by(&read, &bench).unwrap().refused().unwrap();
    assert_eq!(told.because, "no rule allows it");
    assert_eq!(told.file, Some(place.path("local/tool")));
    let secret = record(&file("open-write", "w", "/nowhere/secret"));
    let told = explain_by(&secret, &bench).unwrap().refused().unwrap();
    assert!(
        told.because
            .contains("tool:5: `audit deny @{SECRETS} rwx,`")
    );
    assert_eq!(told.rule, None);
    let known = record(&file("mmap", "r", "/nowhere/known"));
    let advice = explain(&known, &bench.set).unwrap().advice().unwrap();
    assert!(advice.contains("would not be refused now"));
    assert_eq!(explain(&Record::own("lost", 1), &bench.set), None);
}
