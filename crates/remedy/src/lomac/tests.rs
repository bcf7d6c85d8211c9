//! Each operation and each reason: what is proposed, and that it fixes.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_audit::{ObjectRecord, Record, RuleRecord, SubjectRecord};
use tidegate_bundle::{Attrs, Policy};
use tidegate_monitor::{Op, Reason};
use tidegate_policy::map;

use super::*;
use crate::{Remedy, propose};

fn workstation() -> Arc<Policy> {
    Arc::new(map::compile_preset("workstation").unwrap().policy)
}

fn server() -> Arc<Policy> {
    Arc::new(map::compile_preset("server").unwrap().policy)
}

/// A refusal of `tool` at a level, as the kernel records it.
fn refused(policy: &Policy, op: Op, reason: Reason, level: &str, path: &str) -> Record {
    // a directory that is shut is asked before what the name stands for
    let (dir, _) = split(path).unwrap();
    let rule = policy.lookup(path.as_bytes());
    let above = policy.lookup(dir.as_bytes());
    let names = matches!(op, Op::Create | Op::Unlink | Op::Rename) && reason == Reason::Rule;
    let rule = if names && !above.attrs.contains(Attrs::CREATOR) {
        above
    } else {
        rule
    };
    let source = &policy.rules[rule.source as usize];
    Record {
        id: 9,
        kind: "denied".into(),
        op: Some(op.word().into()),
        class: Some("file".into())
            .filter(|_| op != Op::Create)
            .or(Some("dir".into())),
        reason: (reason != Reason::Rule).then(|| reason.word().into()),
        subject: Some(SubjectRecord {
            pid: 412,
            comm: "tool".into(),
            level: level.into(),
            ..Default::default()
        }),
        object: Some(ObjectRecord {
            level: policy.levels[usize::from(rule.level)].clone(),
            path: Some(path.into()),
            ..Default::default()
        }),
        rule: Some(RuleRecord {
            place: source.to_string(),
            text: source.text.clone(),
        }),
        prev: Some(3),
        ..Record::default()
    }
}

/// A refusal that is about no file.
fn refused_act(op: Op, reason: Reason, class: &str, object: Option<ObjectRecord>) -> Record {
    Record {
        class: Some(class.into()),
        object,
        rule: None,
        ..refused(&workstation(), op, reason, "untrusted", "/x")
    }
}

/// A fall to `untrusted`: from `user`, by connecting.
fn fell(address: &str) -> Record {
    Record {
        id: 3,
        kind: "demoted".into(),
        op: Some("connect".into()),
        class: Some("socket".into()),
        subject: Some(SubjectRecord {
            pid: 412,
            comm: "tool".into(),
            exe: Some("/usr/bin/tool".into()),
            level: "untrusted".into(),
            was: Some("user".into()),
            ..Default::default()
        }),
        object: Some(ObjectRecord {
            level: "untrusted".into(),
            address: Some(address.into()),
            ..Default::default()
        }),
        ..Record::default()
    }
}

/// A fall by reading a file.
fn fell_by(path: &str, given: bool) -> Record {
    let text = if given {
        "user /home child-of"
    } else {
        "untrusted /home/*/Downloads"
    };
    Record {
        op: Some("open-read".into()),
        class: Some("file".into()),
        object: Some(ObjectRecord {
            level: "untrusted".into(),
            path: Some(path.into()),
            ..Default::default()
        }),
        rule: Some(RuleRecord {
            place: "x:1".into(),
            text: text.into(),
        }),
        ..fell("203.0.113.7:80")
    }
}

fn of(chain: &[Record], policy: &Arc<Policy>) -> Remedy {
    propose(chain, policy).expect("it is a refusal")
}

fn first(chain: &[Record]) -> String {
    let remedy = of(chain, &workstation());
    let fix = remedy.fixes.first().unwrap_or_else(|| panic!("{remedy:?}"));
    let mut all = fix.statements.clone();
    all.extend(fix.command.clone());
    all.join("; ")
}

fn file(op: Op, reason: Reason, path: &str) -> String {
    first(&[refused(&workstation(), op, reason, "untrusted", path)])
}

#[test]
fn creation_asks_for_a_creator_area() {
    let create = |path| file(Op::Create, Reason::Rule, path);
    assert_eq!(create("/home/ann/work/x"), "user /home/ann/work creator");
    assert_eq!(create("/srv/up/x"), "system /srv/up creator");
    // a home's names are not opened for the sake of one
    assert_eq!(
        create("/home/ann/new"),
        "user /home/ann creator; user /home/ann child-of; user /home/ann/new creator"
    );
    // the directory is open, and the name has a rule of its own
    let own = file(Op::Create, Reason::NoCreator, "/home/ann/.cache/fontconfig");
    assert_eq!(own, "user /home/ann/.cache/fontconfig creator");
    let unnamed = Record {
        class: Some("file".into()),
        ..refused(
            &workstation(),
            Op::Create,
            Reason::Rule,
            "untrusted",
            "/srv/up",
        )
    };
    assert_eq!(first(&[unnamed]), "system /srv/up creator");
}

#[test]
fn what_is_changed_is_lowered() {
    for op in [
        Op::OpenWrite,
        Op::WriteRevoked,
        Op::Setattr,
        Op::Xattr,
        Op::Mmap,
        Op::ReceiveFd,
    ] {
        let fix = file(op, Reason::Rule, "/home/ann/work/x");
        assert_eq!(fix, "untrusted /home/ann/work/x", "{op:?}");
    }
    let link = file(Op::Link, Reason::Rule, "/home/ann/work/x");
    assert_eq!(link, "untrusted /home/ann/work/x");
    // a name that is another one each time stands for its directory
    let random = file(Op::OpenWrite, Reason::Rule, "/srv/spool/job.Xa93k");
    assert_eq!(random, "untrusted /srv/spool child-of");
    // what was given a level has it whatever the map says
    let mut given = refused(
        &workstation(),
        Op::OpenWrite,
        Reason::Rule,
        "untrusted",
        "/tmp/x",
    );
    given.object.as_mut().unwrap().level = "user".into();
    assert_eq!(first(&[given]), "tidegate promote /tmp/x --level untrusted");
}

#[test]
fn names_that_go_and_come() {
    let remove = file(Op::Unlink, Reason::Rule, "/home/ann/work/x");
    assert_eq!(
        remove,
        "user /home/ann/work creator; untrusted /home/ann/work/x"
    );
    let remove = file(Op::Unlink, Reason::Rule, "/home/ann/src/x");
    assert_eq!(remove, "untrusted /home/ann/src/x");
    let rename = file(Op::Rename, Reason::Rule, "/home/ann/work/x");
    assert_eq!(rename, "user /home/ann/work creator");
    let rename = file(Op::Rename, Reason::Rule, "/home/ann/src/x");
    assert_eq!(rename, "untrusted /home/ann/src/x");
    let policy = workstation();
    for op in [Op::Rename, Op::Link] {
        let mut launder = refused(&policy, op, Reason::Launder, "user", "/home/ann/work/x");
        launder.object.as_mut().unwrap().level = "untrusted".into();
        assert_eq!(first(&[launder]), "user /home/ann/work/x creator");
    }
}

#[test]
fn secrets_and_devices_are_opened_last_and_it_is_told() {
    let policy = workstation();
    let key = refused(
        &policy,
        Op::OpenRead,
        Reason::Noopen,
        "untrusted",
        "/home/ann/.ssh/id",
    );
    let remedy = of(&[key, fell("203.0.113.7:443")], &policy);
    assert_eq!(remedy.suspicion.as_deref(), Some("it is a secret"));
    let fixes = &remedy.fixes;
    assert_eq!(fixes[0].statements, ["user network 203.0.113.7"]);
    let open = fixes.iter().find(|m| m.trust == Trust::Secret).unwrap();
    assert_eq!(open.statements, ["user /home/ann/.ssh/id"]);
    assert!(
        open.opens[0].ends_with("user /home/*/.ssh lownoopen"),
        "{open:?}"
    );
    let device = refused(
        &policy,
        Op::OpenWrite,
        Reason::Noopen,
        "user",
        "/dev/video9",
    );
    let fixes = of(&[device], &policy).fixes;
    assert!(
        fixes
            .iter()
            .any(|m| m.statements == ["neutral /dev/video9"]),
        "{fixes:?}"
    );
    // to read is not to write: what would still be refused is not shown
    assert!(!fixes.iter().any(|m| m.statements == ["system /dev/video9"]));
}

#[test]
fn sockets_and_networks() {
    let socket = file(Op::Connect, Reason::Rule, "/run/user/1000/bus");
    assert_eq!(socket, "user /run/user/*/bus creator lowwrite");
    let docker = refused(
        &workstation(),
        Op::Connect,
        Reason::Rule,
        "user",
        "/run/docker.sock",
    );
    assert_eq!(first(&[docker]), "user /run/docker.sock");
    let map = "levels system > user > untrusted\nsystem /\nuser network 192.0.2.0/24\n";
    let policy = Arc::new(map::compile_str("net", map).unwrap().policy);
    let peer = ObjectRecord {
        level: "user".into(),
        address: Some("192.0.2.7:25".into()),
        ..Default::default()
    };
    let send = refused_act(Op::Send, Reason::Rule, "socket", Some(peer));
    let fixes = of(&[send], &policy).fixes;
    assert_eq!(fixes[0].statements, ["untrusted network 192.0.2.7"]);
    // to a socket that was reached before the fall: only the fall can be fixed
    let revoked = refused_act(Op::Send, Reason::Rule, "unix", None);
    assert!(of(std::slice::from_ref(&revoked), &policy).fixes.is_empty());
    let fixes = of(
        &[revoked, fell_by("/home/ann/Downloads/x", false)],
        &workstation(),
    )
    .fixes;
    assert!(!fixes.is_empty() && fixes.iter().all(|m| m.trust > Trust::Nothing));
}

#[test]
fn the_fall_is_fixed_where_it_was() {
    let policy = workstation();
    let write = || {
        refused(
            &policy,
            Op::OpenWrite,
            Reason::Rule,
            "untrusted",
            "/home/ann/notes",
        )
    };
    let texts = |chain: &[Record]| -> Vec<String> {
        let fixes = of(chain, &policy).fixes;
        let text = |m: Fix| m.statements.join("; ") + &m.command.unwrap_or_default();
        fixes.into_iter().map(text).collect()
    };
    let all = texts(&[write(), fell("[2001:db8::7]:443")]);
    assert_eq!(
        all,
        [
            "untrusted /home/ann/notes",
            "user /home/ann/notes lowwrite",
            "user network 2001:db8::7",
            "system /usr/bin/tool nonetdemote",
            "system /usr/bin/tool nodemote",
        ]
    );
    let all = texts(&[write(), fell_by("/home/ann/Downloads/x", false)]);
    assert!(
        all.contains(&"user /home/ann/Downloads/x".to_owned()),
        "{all:?}"
    );
    assert!(all.contains(&"tidegate promote /home/ann/Downloads/x --level user".to_owned()));
    let all = texts(&[write(), fell_by("/tmp/x", true)]);
    assert!(!all.contains(&"user /tmp/x".to_owned()), "{all:?}");
    assert!(all.contains(&"tidegate promote /tmp/x --level user".to_owned()));
    // the peer is not known before it is accepted: no address can be named
    let any = Record {
        op: Some("accept".into()),
        ..fell("0.0.0.0")
    };
    assert!(!texts(&[write(), any]).iter().any(|t| t.contains("network")));
}

#[test]
fn an_interpreter_is_never_trusted() {
    let policy = workstation();
    let write = refused(
        &policy,
        Op::OpenWrite,
        Reason::Rule,
        "untrusted",
        "/home/ann/notes",
    );
    for exe in ["/usr/bin/python3.13", "/usr/bin/bash", "/home/ann/bin/tool"] {
        let mut chain = [write.clone(), fell("203.0.113.7:443")];
        for record in &mut chain {
            record.subject.as_mut().unwrap().exe = Some(exe.into());
        }
        let fixes = of(&chain, &policy).fixes;
        assert!(
            fixes
                .iter()
                .all(|m| !m.statements.iter().any(|s| s.contains(exe))),
            "{fixes:?}"
        );
    }
    let mut chain = [write, fell("203.0.113.7:443")];
    chain[0].subject.as_mut().unwrap().exe = Some("/usr/bin/tool".into());
    let fixes = of(&chain, &policy).fixes;
    assert_eq!(
        fixes.last().unwrap().statements,
        ["system /usr/bin/tool permissive"]
    );
    assert_eq!(fixes.last().unwrap().trust, Trust::Anything);
}

#[test]
fn two_falls_take_two_fixes() {
    let policy = workstation();
    let top = Record {
        op: Some("open-read".into()),
        object: Some(ObjectRecord {
            level: "user".into(),
            path: Some("/home/ann/.profile".into()),
            ..Default::default()
        }),
        id: 2,
        ..fell("203.0.113.7:80")
    };
    let mut top = top;
    let subject = top.subject.as_mut().unwrap();
    (subject.level, subject.was, subject.exe) = ("user".into(), Some("system".into()), None);
    let write = refused(
        &policy,
        Op::OpenWrite,
        Reason::Rule,
        "untrusted",
        "/etc/motd",
    );
    let fixes = of(&[write, fell("203.0.113.7:80"), top], &policy).fixes;
    let both = ["system network 203.0.113.7", "system /home/ann/.profile"];
    assert!(fixes.iter().any(|m| m.statements == both), "{fixes:?}");
}

#[test]
fn what_no_map_fixes_says_what_does() {
    let policy = workstation();
    let advice = |record: Record| {
        let remedy = of(&[record], &policy);
        assert!(remedy.fixes.is_empty(), "{remedy:?}");
        remedy.advice.unwrap()
    };
    let top = [
        Op::Mount,
        Op::Module,
        Op::Bpf,
        Op::System,
        Op::Socket,
        Op::Tty,
    ];
    for op in top {
        let words = advice(refused_act(op, Reason::TopOnly, "system", None));
        assert!(words.contains("run0"), "{op:?}: {words}");
    }
    let peer = || {
        Some(ObjectRecord {
            level: "system".into(),
            pid: Some(1),
            ..Default::default()
        })
    };
    for op in [Op::Signal, Op::Ptrace, Op::Sched] {
        let words = advice(refused_act(op, Reason::Rule, "task", peer()));
        assert!(
            words.contains("does not speak of processes"),
            "{op:?}: {words}"
        );
    }
    for op in [Op::Ipc, Op::Key, Op::Pipe] {
        advice(refused_act(op, Reason::Rule, "ipc", None));
    }
    let about = |op, reason| refused(&policy, op, reason, "user", "/home/ann/Downloads/x");
    for (op, reason, word) in [
        (Op::Create, Reason::TableFull, "--given-entries"),
        (Op::Rename, Reason::Tree, "copy"),
        (Op::Link, Reason::Names, "copy"),
        (Op::Rename, Reason::Busy, "close it"),
        (Op::OpenWrite, Reason::NoLabel, "no label"),
        (Op::OpenRead, Reason::Channel, "lower process writes"),
    ] {
        let words = advice(about(op, reason));
        assert!(words.contains(word), "{op:?} {reason:?}: {words}");
    }
    for path in ["/proc/sys/kernel/x", "/sys/x", "/etc/tidegate/policy.plm"] {
        advice(refused(
            &policy,
            Op::OpenWrite,
            Reason::Rule,
            "untrusted",
            path,
        ));
    }
    let mut cut = about(Op::OpenWrite, Reason::Rule);
    cut.object.as_mut().unwrap().path = Some("…/x".into());
    assert!(advice(cut).contains("does not tell"));
}

#[test]
fn a_fall_that_could_not_be_is_fixed_by_not_falling() {
    let policy = workstation();
    for (reason, word) in [
        (Reason::Mapping, "shared and writable"),
        (Reason::Async, "io_uring"),
        (Reason::Busy, "try again"),
    ] {
        let read = refused(
            &policy,
            Op::OpenRead,
            reason,
            "user",
            "/home/ann/Downloads/x",
        );
        let fixes = of(std::slice::from_ref(&read), &policy).fixes;
        // the file as it is now, before whatever will have its name
        let promote = "tidegate promote /home/ann/Downloads/x --level user";
        assert_eq!(fixes[0].command.as_deref(), Some(promote));
        assert_eq!(fixes[1].statements, ["user /home/ann/Downloads/x"]);
        let refusal = Refusal::of(&[read], &policy).unwrap();
        assert!(advice(&refusal, &policy).contains(word));
    }
}

#[test]
fn who_was_put_lower_on_purpose_is_told_so() {
    let policy = workstation();
    let mut run = fell_by("/run/tidegate/level/untrusted", false);
    run.rule.as_mut().unwrap().text = "untrusted /run/tidegate/level/untrusted".into();
    let write = refused(
        &policy,
        Op::OpenWrite,
        Reason::Rule,
        "untrusted",
        "/home/ann/x",
    );
    let fixes = of(&[write, run.clone()], &policy).fixes;
    assert!(fixes.iter().all(|m| m.command.is_none()), "{fixes:?}");
    let mount = refused_act(Op::Mount, Reason::TopOnly, "system", None);
    let remedy = of(&[mount, run], &policy);
    assert!(
        remedy.advice.as_ref().unwrap().contains("tidegate run"),
        "{remedy:?}"
    );
}

#[test]
fn what_looks_like_an_attack_is_said_to() {
    let policy = workstation();
    let why = |op, reason, path| {
        let record = refused(&policy, op, reason, "untrusted", path);
        of(&[record, fell("203.0.113.7:80")], &policy).suspicion
    };
    let bashrc = why(Op::OpenWrite, Reason::Rule, "/home/ann/.bashrc");
    assert_eq!(bashrc.as_deref(), Some("it is a dotfile"));
    assert!(why(Op::Create, Reason::Rule, "/home/ann/bin/ls").is_some());
    assert!(why(Op::Connect, Reason::Rule, "/run/user/1000/bus").is_some());
    assert!(why(Op::OpenWrite, Reason::Rule, "/etc/passwd").is_some());
    assert_eq!(why(Op::Create, Reason::Rule, "/home/ann/work/x"), None);
    // not by a process that never heard the network
    let user = refused(&policy, Op::OpenWrite, Reason::Rule, "user", "/etc/passwd");
    assert_eq!(of(&[user], &policy).suspicion, None);
}

#[test]
fn what_the_policy_lets_through_by_now_needs_no_fix() {
    let policy = workstation();
    let old = refused(
        &server(),
        Op::Create,
        Reason::Rule,
        "untrusted",
        "/home/ann/src/x",
    );
    let remedy = of(&[old], &policy);
    assert!(remedy.fixes.is_empty());
    assert!(remedy.advice.unwrap().contains("would not be refused now"));
}

#[test]
fn a_record_of_other_levels_is_none_of_ours() {
    let policy = workstation();
    let other = refused(&policy, Op::OpenWrite, Reason::Rule, "low", "/x");
    assert_eq!(propose(&[other], &policy), None);
    assert_eq!(propose(&[fell("203.0.113.7:80")], &policy), None);
    assert_eq!(propose(&[], &policy), None);
}

fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => prop::sample::select(vec![
            "home", "ann", "src", "work", ".ssh", ".cache", "run", "user", "1000", "dev", "tmp",
            "etc", "usr", "bin", "Downloads", "fontconfig", "tidegate", "proc", "root", "x",
        ]).prop_map(str::to_owned),
        1 => "[ -~é]{1,6}".prop_filter("a name", |n| !n.contains('/') && n != "." && n != ".."),
        1 => "[a-z]{1,3}\\.[A-Za-z0-9]{6}",
    ];
    prop::collection::vec(name, 1..5).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is proposed: added to the policy as an including file's statements, it is a
    /// map without a warning, and what was refused is allowed.
    #[test]
    fn every_fix_fixes(
        op in prop::sample::select(Op::ALL.to_vec()),
        reason in prop::sample::select(Reason::ALL.to_vec()),
        preset in prop::sample::select(vec!["workstation", "server", "classic"]),
        level in 0..3usize,
        path in path(),
        read in path(),
        given in any::<bool>(),
        by_network in any::<bool>(),
        siblings in any::<bool>(),
        homes in any::<bool>(),
    ) {
        let policy = Arc::new(map::compile_preset(preset).unwrap().policy);
        let level = level.min(policy.levels.len() - 2);
        let name = policy.levels[level].clone();
        let mut record = refused(&policy, op, reason, &name, &path);
        if given {
            record.object.as_mut().unwrap().level = policy.levels[level + 1].clone();
        }
        let mut fall = if by_network { fell("203.0.113.7:80") } else { fell_by(&read, given) };
        let subject = fall.subject.as_mut().unwrap();
        (subject.level, subject.was) = (name.clone(), policy.levels.last().cloned());
        fall.object.as_mut().unwrap().level = name;
        let Some(refusal) = Refusal::of(&[record, fall], &policy) else { return Ok(()) };
        let Some(case) = refusal.case(&policy) else { return Ok(()) };
        if allows(&case, &policy) {
            return Ok(());
        }
        let mut bench = Bench::new(Arc::clone(&policy));
        let drafts = drafts(&refusal, &policy, Evidence { siblings, homes });
        for (draft, _) in checked(&refusal, drafts, &mut bench) {
            if draft.promote.is_some() {
                continue;
            }
            let map = format!("include {preset}\n{}", lines(&draft.statements));
            let compiled = map::compile_str("fixed", &map).expect("it compiles");
            prop_assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
            prop_assert!(allows(&case, &Arc::new(compiled.policy)), "{draft:?}");
        }
    }
}
