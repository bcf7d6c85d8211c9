use tidegate_audit::{Record, SubjectRecord};
use tidegate_bundle::te::Te;
use tidegate_bundle::te::example::example;
use tidegate_bundle::te::policydb::pack::pack;

use super::gather::Gathered;
use super::plan::plan;
use super::write::{Proposal, Syntax};

const DOC: &str = "ann:object_r:file_t:s0";

fn record(id: u64, source: &str, target: &str, class: &str, denied: &str) -> Record {
    Record {
        id,
        kind: "denied".into(),
        time: "2026-01-31T12:00:00.000000Z".into(),
        op: Some("open-read".into()),
        subject: Some(SubjectRecord {
            comm: "cat".into(),
            ..SubjectRecord::default()
        }),
        scontext: Some(source.into()),
        tcontext: Some(target.into()),
        tclass: Some(class.into()),
        denied: Some(denied.into()),
        ..Record::default()
    }
}

fn learned(te: &Te, records: &[Record], syntax: Syntax) -> Proposal {
    let mut gathered = Gathered::default();
    for record in records {
        let suspicion = (record.id == 99).then_some("it is a secret");
        gathered.take(record, 1, &te.db, suspicion);
    }
    let plan = plan(&gathered, te, false, |_| Ok(()));
    Proposal::new(plan, &gathered, &te.db, syntax)
}

fn te() -> Te {
    let mut db = example(34);
    db.types[1].bounds = None;
    let mut te = Te::read(pack(&db)).unwrap();
    te.set("strict", true).unwrap();
    te
}

#[test]
fn rules_are_merged_by_source_target_and_class() {
    let te = te();
    let new = "ann:auditor:new_t:s0";
    let records = [
        record(1, new, DOC, "file", "read"),
        record(2, "ann:auditor:new_t:s0-s1", DOC, "file", "open"),
        record(3, new, new, "process", "signal"),
        record(4, "ann:clerk:boss_t:s0", DOC, "file", "read"),
    ];
    let proposal = learned(&te, &records, Syntax::Cil);
    let rules: Vec<_> = proposal.proposed.iter().map(|it| it.cil.as_str()).collect();
    assert_eq!(
        rules,
        [
            "(allow new_t file_t (file (open read)))",
            "(allow new_t self (process (signal)))"
        ]
    );
    assert_eq!(proposal.settled, 1);
    assert!(proposal.text.contains("; 2 refusals of cat"));
    let module = learned(&te, &records, Syntax::Te).text;
    for line in [
        "module learned 1.0;",
        "\tclass file { open read };",
        "\ttype new_t;",
        "allow new_t file_t:file { open read };",
        "allow new_t self:process signal;",
    ] {
        assert!(module.lines().any(|it| it == line), "{line} in\n{module}");
    }
}

#[test]
fn what_no_rule_should_fix_is_a_comment() {
    let te = te();
    let records = [
        record(1, "ann:clerk:aide_t:s0", DOC, "file", "ioctl"),
        record(
            2,
            "ann:clerk:aide_t:s0",
            "ann:object_r:file_t:s1",
            "file",
            "write",
        ),
        record(99, "ann:auditor:new_t:s0", DOC, "file", "write"),
        record(3, "ann:auditor:gone_t:s0", DOC, "file", "write"),
    ];
    let proposal = learned(&te, &records, Syntax::Cil);
    assert!(proposal.proposed.is_empty());
    assert_eq!(proposal.booleans[0].reason, "--te-boolean strict=off");
    assert!(proposal.booleans[0].rules[0].contains("[ ! strict && open ]:True"));
    assert_eq!(
        proposal.suspicious[0].rules,
        ["allow new_t file_t:file write;"]
    );
    assert_eq!(proposal.unfixed.len(), 2);
    assert!(proposal.unfixed[1].rules[0].starts_with("mlsconstrain file write"));
    let text = &proposal.text;
    assert!(
        text.lines().all(|it| it.is_empty() || it.starts_with(';')),
        "{text}"
    );
}

#[test]
fn what_does_not_compile_is_not_proposed() {
    let te = te();
    let new = "ann:auditor:new_t:s0";
    let mut gathered = Gathered::default();
    for record in [
        record(1, new, DOC, "file", "read write"),
        record(2, new, new, "process", "signal"),
    ] {
        gathered.take(&record, 1, &te.db, None);
    }
    let neverallow = |rules: &super::plan::Rules| {
        let has = super::cil(rules, &te.db).contains("write");
        if has {
            Err("neverallow".into())
        } else {
            Ok(())
        }
    };
    let plan = plan(&gathered, &te, false, neverallow);
    assert_eq!(plan.proposed.len(), 2);
    assert_eq!(plan.proposed[0].permissions, 0b1);
    assert_eq!(plan.unfixed[0].rules, ["allow new_t file_t:file write;"]);
    assert!(plan.unfixed[0].reason.ends_with("neverallow"));
}
