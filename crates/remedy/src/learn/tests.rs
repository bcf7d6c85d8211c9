//! From lines of a log to a map.

use std::sync::Arc;

use serde_json::json;
use tidegate_bundle::Policy;
use tidegate_policy::map;

use super::{Counts, Gathered, Proposal, plan};

fn workstation() -> Arc<Policy> {
    Arc::new(map::compile_preset("workstation").unwrap().policy)
}

/// A line of the log: a refusal of `comm` at `untrusted`.
fn refusal(id: u64, kind: &str, op: &str, comm: &str, path: &str, rule: &str) -> String {
    json!({
        "id": id, "time": format!("2026-11-22T07:00:{:02}.000001Z", id % 60), "kind": kind,
        "op": op, "class": if op == "create" { "dir" } else { "file" },
        "subject": {"pid": 412, "tid": 412, "uid": 1000, "comm": comm, "level": "untrusted"},
        "object": {"level": rule.split(' ').next().unwrap(), "path": path},
        "rule": {"place": "workstation.plm:1", "text": rule}, "prev": 1, "seqno": 1,
    })
    .to_string()
}

fn fell() -> String {
    json!({
        "id": 1, "time": "2026-11-22T06:59:00.000001Z", "kind": "demoted", "op": "connect",
        "class": "socket", "object": {"level": "untrusted", "address": "192.0.2.7:443"},
        "subject": {"pid": 412, "tid": 412, "uid": 1000, "comm": "tool", "level": "untrusted",
                    "was": "user", "exe": "/usr/bin/tool"}, "seqno": 1,
    })
    .to_string()
}

const HOME: &str = "user /home child-of";

fn learn(lines: &[String], include_untrusted: bool) -> Proposal {
    let policy = workstation();
    let mut gathered = Gathered::default();
    for line in lines {
        gathered.line(line, &policy, |_| true);
    }
    let counts = Counts::from(&gathered);
    let kinds = gathered.kinds();
    let plan = plan(&kinds, &policy, include_untrusted, |_, _| {});
    Proposal::new(&plan, &kinds, &counts, "include workstation")
}

/// The statements of a map, without its comments.
fn statements(proposal: &Proposal) -> Vec<&str> {
    let lines = proposal.map.lines();
    lines
        .filter(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("include"))
        .collect()
}

#[test]
fn a_days_work_takes_one_statement() {
    let path = |n| format!("/home/ann/work/out/f{n}");
    let mut lines = vec![fell()];
    for n in 0..20 {
        lines.push(refusal(2 * n + 2, "would", "create", "cc1", &path(n), HOME));
        lines.push(refusal(
            2 * n + 3,
            "would",
            "open-write",
            "ld",
            &path(n),
            HOME,
        ));
    }
    let proposal = learn(&lines, false);
    assert_eq!(statements(&proposal), ["user /home/ann/work/out creator"]);
    let of = &proposal.proposed[0].of;
    assert_eq!((of.count, of.programs.len()), (40, 2));
    assert_eq!(of.first, "2026-11-22T07:00:02.000001Z");
    map::compile_str("learned", &proposal.map).unwrap();
}

#[test]
fn several_users_are_any_user() {
    let lines = [
        fell(),
        refusal(2, "denied", "create", "tool", "/home/ann/work/x", HOME),
        refusal(3, "denied", "create", "tool", "/home/bob/work/x", HOME),
        refusal(4, "denied", "create", "tool", "/home/bob/play/x", HOME),
    ];
    let proposal = learn(&lines, false);
    let any = ["user /home/*/work creator", "user /home/bob/play creator"];
    assert_eq!(statements(&proposal), any);
}

#[test]
fn a_file_that_was_made_is_known_by_its_new_name() {
    let (new, old) = ("/home/ann/work/x", "/home/ann/work/x.tmp");
    let lines = [
        fell(),
        refusal(2, "would", "create", "tool", old, HOME),
        refusal(3, "would", "rename", "tool", old, HOME),
        refusal(4, "would", "rename", "tool", new, HOME),
        refusal(5, "would", "unlink", "tool", new, HOME),
    ];
    let proposal = learn(&lines, false);
    assert_eq!(statements(&proposal), ["user /home/ann/work creator"]);
}

#[test]
fn the_order_of_the_log_does_not_matter() {
    let mut lines: Vec<String> = (0..9)
        .map(|n| {
            let path = format!("/srv/d{}/x", n % 4);
            refusal(n + 2, "denied", "open-write", "tool", &path, "system /")
        })
        .collect();
    lines.insert(0, fell());
    let there = learn(&lines, true).map;
    lines[1..].reverse();
    let back = learn(&lines, true);
    let mut forth: Vec<&str> = there.lines().filter(|l| !l.starts_with('#')).collect();
    let mut again: Vec<&str> = back.map.lines().filter(|l| !l.starts_with('#')).collect();
    forth.sort_unstable();
    again.sort_unstable();
    assert_eq!(forth, again);
}

#[test]
fn an_attack_is_put_aside_and_nothing_lets_it_through_by_the_way() {
    let lines = [
        fell(),
        refusal(2, "denied", "open-write", "pkg", "/home/ann/.bashrc", HOME),
        refusal(3, "denied", "open-write", "tool", "/home/ann/work/x", HOME),
    ];
    let proposal = learn(&lines, false);
    // whose fall is fixed has its attack fixed, too
    assert_eq!(statements(&proposal), ["untrusted /home/ann/work/x"]);
    assert!(
        proposal
            .map
            .contains("\n# REFUSED: untrusted /home/ann/.bashrc\n")
    );
    let all = learn(&lines, true);
    assert_eq!(statements(&all).len(), 2, "{}", all.map);
    assert!(all.refused.is_empty());
}

#[test]
fn names_in_a_record_forge_no_statement() {
    let lines = [
        fell(),
        refusal(
            2,
            "denied",
            "open-write",
            "a\nsystem /x lowwrite",
            "/home/ann/work/x",
            HOME,
        ),
        refusal(
            3,
            "denied",
            "open-write",
            "b",
            "/home/ann/work/y\nsystem /y lowwrite",
            HOME,
        ),
        refusal(
            4,
            "denied",
            "open-write",
            "b",
            "/home/ann/work/z # \"\\x",
            HOME,
        ),
    ];
    let proposal = learn(&lines, false);
    for statement in statements(&proposal) {
        assert!(statement.starts_with("untrusted "), "{}", proposal.map);
    }
    map::compile_str("learned", &proposal.map).unwrap();
}

#[test]
fn what_is_left_out_is_counted() {
    let mut lines: Vec<String> = (0..600)
        .map(|n| {
            let path = format!("/srv/d{n}/x");
            refusal(n + 2, "denied", "open-write", "tool", &path, "system /")
        })
        .collect();
    lines.push("no record".into());
    lines.push(json!({"id": 0, "kind": "lost", "count": 7}).to_string());
    let dropped = refusal(0, "dropped", "open-write", "tool", "/srv/d0/x", "system /");
    lines.push(dropped.replacen('{', "{\"count\":5,", 1));
    let policy = workstation();
    let mut gathered = Gathered::default();
    for line in &lines {
        gathered.line(line, &policy, |_| true);
    }
    assert_eq!((gathered.refusals, gathered.left_out), (605, 100));
    assert_eq!((gathered.lost, gathered.broken), (7, 1));
}
