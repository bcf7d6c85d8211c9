//! What each model says of a refusal: where a remedy has it, and what `why` prints.

use std::sync::Arc;

use tidegate_audit::{CapsRecord, ObjectRecord, Record, SubjectRecord};
use tidegate_bundle::Policy;
use tidegate_policy::map;

use super::*;
use crate::lomac::Trust;

const SHOWN: Shown<'_> = Shown {
    all: false,
    map: "in a map",
};
const ALL: Shown<'_> = Shown {
    all: true,
    map: "in a map",
};

fn fix(text: &str) -> Fix {
    Fix {
        statements: vec![text.into()],
        command: None,
        trust: Trust::Nothing,
        lets: "that".into(),
        gives: "this".into(),
        silences: Vec::new(),
        opens: vec!["x.plm:1: user /x lownoopen".into()],
    }
}

#[test]
fn one_fix_is_shown_unless_it_looks_like_an_attack() {
    let mut of = Remedy {
        fixes: vec![fix("user /a creator"), fix("user /b creator")],
        ..Remedy::default()
    };
    assert_eq!(of.lines(&SHOWN), ["fix: user /a creator   (in a map)"]);
    of.suspicion = Some("it is a secret".into());
    assert!(of.lines(&SHOWN)[0].contains("attack (it is a secret)"));
    let all = of.lines(&ALL);
    assert_eq!(all.len(), 8);
    assert_eq!(all[0], "fix: user /a creator   (in a map)");
    assert_eq!(all[7], "    opens:        x.plm:1: user /x lownoopen");
}

#[test]
fn a_fix_may_be_a_command_or_have_one_besides() {
    let mut fix = fix("user /a creator");
    fix.command = Some("tidegate promote /a --level user".into());
    let of = |fix: &Fix| {
        let fixes = vec![fix.clone()];
        let remedy = Remedy {
            fixes,
            ..Remedy::default()
        };
        remedy.lines(&SHOWN).join("\n")
    };
    assert_eq!(
        of(&fix),
        "fix: user /a creator   (in a map); and tidegate promote /a --level user"
    );
    fix.statements.clear();
    assert_eq!(of(&fix), "fix: tidegate promote /a --level user");
}

#[test]
fn advice_is_shown_alike_for_all_models() {
    let advice = |remedy: Remedy| {
        assert_eq!(remedy.lines(&SHOWN), remedy.lines(&ALL));
        remedy.lines(&SHOWN)
    };
    let line = ["fix: no statement: run it at the top"];
    let text = || "run it at the top".to_owned();
    assert_eq!(advice(Explanation::<CapsLine>::Advice(text()).into()), line);
    assert_eq!(
        advice(Explanation::<OnlyAdvice>::Advice(text()).into()),
        line
    );
    let fixes = Fixes {
        suspicion: Some("it is a secret".into()),
        advice: Some(text()),
        ..Fixes::default()
    };
    let remedy = Remedy::from(fixes);
    assert_eq!(remedy.suspicion.as_deref(), Some("it is a secret"));
    assert_eq!(advice(remedy), line);
    assert!(Remedy::default().lines(&ALL).is_empty());
}

#[test]
fn a_profiles_refusal_names_the_rule_and_its_place() {
    let mut amendment = Amendment {
        profile: "tool".into(),
        class: "file".into(),
        how: "the profile is for its program, /bin/tool".into(),
        because: "no rule allows it".into(),
        rule: Some("/a w,".into()),
        file: None,
        notes: vec!["not its type".into()],
    };
    let of =
        |amendment: &Amendment| Remedy::from(Explanation::Refused(amendment.clone())).lines(&SHOWN);
    assert_eq!(
        of(&amendment),
        [
            "profile: tool (file): no rule allows it",
            "    how: the profile is for its program, /bin/tool",
            "fix: /a w,   (in profile tool; `tidegate learn --profile` puts it there)",
            "    note: not its type",
        ]
    );
    amendment.file = Some("/etc/apparmor.d/tool".into());
    assert_eq!(
        of(&amendment)[2],
        "fix: /a w,   (in /etc/apparmor.d/tool, tried)"
    );
    amendment.rule = None;
    assert_eq!(
        of(&amendment)[2..],
        ["fix: no rule: what a `deny` refuses, no other rule allows"]
    );
}

fn policy() -> Arc<Policy> {
    let map = "levels system > user\nsystem /\nuser /home/*\n";
    Arc::new(map::compile_str("t.plm", map).unwrap().policy)
}

fn refused(level: &str) -> Record {
    Record {
        kind: "denied".into(),
        op: Some("open-write".into()),
        class: Some("file".into()),
        subject: Some(SubjectRecord {
            level: level.into(),
            ..SubjectRecord::default()
        }),
        object: Some(ObjectRecord {
            level: "system".into(),
            path: Some("/a".into()),
            ..ObjectRecord::default()
        }),
        ..Record::default()
    }
}

#[test]
fn a_capability_file_is_asked_before_maps() {
    let mut record = Record {
        tclass: Some("file".into()),
        denied: Some("write".into()),
        caps: Some(CapsRecord {
            subject: Some("tool".into()),
            file: Some("t.caps:1".into()),
            why: "missing".into(),
            ..CapsRecord::default()
        }),
        ..refused("another's")
    };
    record.object.as_mut().unwrap().path = Some("/a\nb".into());
    let remedy = propose(&[record], &policy()).unwrap();
    let caps = remedy.caps.as_ref().unwrap();
    assert_eq!(caps.subject, "tool");
    let lines = remedy.lines(&SHOWN);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("fix: file "), "{lines:?}");
    assert!(!lines[0].contains('\n'));
    assert!(lines[0].ends_with("   (in subject tool, t.caps:1; for sessions that begin then)"));
}

#[test]
fn profiles_are_asked_before_maps_and_neither_at_another_policys_levels() {
    let of = |level: &str, profile: Option<&str>| {
        let mut record = refused(level);
        record.subject.as_mut().unwrap().profile = profile.map(str::to_owned);
        propose(&[record], &policy())
    };
    let told = of("user", Some("tool")).unwrap();
    let text = "the record does not tell what it was about";
    assert_eq!(told.advice.as_deref(), Some(text));
    let by_map = of("user", None).unwrap();
    assert_ne!(by_map.advice.as_deref(), Some(text));
    assert_eq!(of("another's", Some("tool")), None);
    assert_eq!(of("another's", None), None);
    assert_eq!(propose(&[], &policy()), None);
}
