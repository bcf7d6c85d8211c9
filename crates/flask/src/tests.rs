//! The tables of a small policy, asked by the kernel's code.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use tidegate_bundle::te::db::{Context, PolicyDb, Rule, Says as Rules};
use tidegate_bundle::te::decide::{Decider, ExtendedAccess};
use tidegate_bundle::te::example::example;
use tidegate_policy::te::contexts::{self, Text, Texts};

use crate::genfs::genfs;
use crate::{
    ANY_CLASS, CLASSES, Class, Classes, Image, Labelling, Numbering, Says, Server, Sid, Single,
    UNMEDIATED,
};

const BASE: u32 = 4096;

fn image(db: &PolicyDb, values: &[bool], numbering: Numbering) -> Image {
    Image::of(db, values, None, numbering, BASE).unwrap()
}

/// Every context of the policy's own ranges that may be.
fn contexts(db: &PolicyDb) -> Vec<Context> {
    let ranges: Vec<_> = db.users.iter().map(|user| user.range.clone()).collect();
    let mut all = Vec::new();
    for user in 1..=db.users.len() as u32 {
        for role in 1..=db.roles.len() as u32 {
            for kind in 1..=db.types.len() as u32 {
                all.extend(ranges.iter().map(|range| Context {
                    user,
                    role,
                    kind,
                    range: range.clone(),
                }));
            }
        }
    }
    all.retain(|context| db.is_valid(context));
    all
}

#[test]
fn every_decision_is_the_references() {
    let db = example(34);
    let mut asked = 0;
    for bits in 0..1u32 << db.booleans.len() {
        let values: Vec<bool> = (0..db.booleans.len())
            .map(|at| bits >> at & 1 == 1)
            .collect();
        let image = image(&db, &values, Numbering::default());
        let (server, decider) = (Server::of(&image), Decider::new(&db, &values));
        let all = contexts(&db);
        assert!(all.len() > 3);
        for source in &all {
            for target in &all {
                for number in 1..=db.classes.len() as u32 {
                    let (one, other) = (image.sid(source).unwrap(), image.sid(target).unwrap());
                    let ours = image.classes.number(number);
                    let class = image.classes.get(ours);
                    let got = server.access(one, other, ours);
                    let want = decider.access(source, target, number);
                    assert_eq!(class.in_policy(got.allow), want.allowed);
                    assert_eq!(got.allow & class.unknown, class.unknown);
                    assert_eq!(class.in_policy(got.auditallow), want.auditallow);
                    let made = server.label(Labelling::Transition, one, other, ours, None);
                    let expected = decider.transition(source, target, number, None);
                    let text = expected.ok().map(|context| db.context_text(&context));
                    let is_valid = server.is_valid(made);
                    let found = is_valid.then(|| image.numbering.context(made)).flatten();
                    assert_eq!(found, text, "{source:?} {target:?} {}", class.name);
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 100);
}

/// What the reference says of one of 256.
fn says(access: &ExtendedAccess, lower: u8) -> Says {
    let bit = |set: &[u32; 8]| set[usize::from(lower / 32)] >> (lower % 32) & 1 == 1;
    Says {
        speaks: access.speaks,
        allows: bit(&access.allowed),
        audits: bit(&access.auditallow),
        keeps_silent: bit(&access.dontaudit),
    }
}

#[test]
fn of_single_ioctls_and_messages_the_same_is_said_as_by_the_reference() {
    let mut db = example(34);
    // a rule on messages beside those on ioctls, of the same types
    let of_ioctls = |rule: &&Rule| matches!(rule.says, Rules::Extended(_));
    let mut message = db.rules.iter().find(of_ioctls).expect("one").clone();
    if let Rules::Extended(extended) = &mut message.says {
        (extended.specified, extended.driver) = (3, 0);
    }
    db.rules.push(message);
    let (mut spoken, mut allowed) = (0, 0);
    for values in [[false, false], [true, true]] {
        let image = image(&db, &values, Numbering::default());
        let (server, decider) = (Server::of(&image), Decider::new(&db, &values));
        let all = contexts(&db);
        for (source, target) in all.iter().flat_map(|s| all.iter().map(move |t| (s, t))) {
            for number in 1..=db.classes.len() as u32 {
                let (one, other) = (image.sid(source).unwrap(), image.sid(target).unwrap());
                let ours = image.classes.number(number);
                for driver in [0, 0x54, 0xff] {
                    let ioctls = decider.ioctls(source, target, number, driver);
                    let messages = decider.messages(source, target, number, driver);
                    for lower in 0..=255 {
                        let word = u16::from_be_bytes([driver, lower]);
                        let got = server.single(one, other, ours, Single::Ioctl(word));
                        assert_eq!(got, says(&ioctls, lower), "{word:x}");
                        spoken += u32::from(got.speaks);
                        allowed += u32::from(got.allows);
                        let got = server.single(one, other, ours, Single::Message(word));
                        assert_eq!(got, says(&messages, lower), "{word:x}");
                        allowed += u32::from(got.allows);
                    }
                }
            }
        }
    }
    assert!(spoken > 100 && allowed > 10, "{spoken} {allowed}");
}

#[test]
fn a_name_keeps_its_number_and_one_that_went_is_of_nothing() {
    let db = example(34);
    let values: Vec<bool> = db.booleans.iter().map(|boolean| boolean.value).collect();
    let before = image(&db, &values, Numbering::default());
    let context = contexts(&db).remove(0);
    let sid = before.sid(&context).unwrap();

    let mut later = db.clone();
    let kind = context.kind as usize - 1;
    let name = std::mem::replace(&mut later.types[kind].name, "another_t".into());
    let after = image(&later, &values, before.numbering.clone());
    assert_eq!(after.numbering.types.number(&name), Some(sid.kind()));
    assert!(Server::of(&before).is_valid(sid));
    assert!(!Server::of(&after).is_valid(sid));
    let renamed = after.sid(&context).unwrap();
    assert_ne!(renamed.kind(), sid.kind());
    assert_eq!((renamed.user(), renamed.role()), (sid.user(), sid.role()));
}

#[test]
fn a_context_comes_back_from_its_sid() {
    let db = example(34);
    let image = image(&db, &[true, false], Numbering::default());
    for context in contexts(&db) {
        let (sid, text) = (image.sid(&context).unwrap(), db.context_text(&context));
        assert_eq!(image.numbering.context(sid).as_deref(), Some(text.as_str()));
        assert_eq!(image.numbering.sid(&text), Some(sid));
    }
    let read = Numbering::read(&image.numbering.to_bytes());
    assert_eq!(read.as_ref(), Some(&image.numbering));
    assert_eq!(Numbering::read(b"\xff"), None);
    assert_eq!(image.numbering.context(Sid(u64::MAX)), None);
}

#[test]
fn files_are_labelled_by_their_paths_and_kinds() {
    let db = example(34);
    let context = db.context_text(&contexts(&db)[0]);
    let policy = Text {
        name: "file_contexts".into(),
        text: format!(
            "/srv(/.*)? -- {context}\n/srv/none -- <<none>>\n/other -- no:such:context:s0\n"
        ),
    };
    let texts = Texts {
        policy,
        ..Texts::default()
    };
    let files = contexts::compile(&texts).unwrap();
    let image = Image::of(
        &db,
        &[true, false],
        Some(&files),
        Numbering::default(),
        BASE,
    )
    .unwrap();
    let of = |path: &str, kind| Server::of(&image).file(path.as_bytes(), kind);
    assert_eq!(of("/srv/x", 0), image.numbering.sid(&context));
    assert_eq!(of("/srv/x", 1), None);
    assert_eq!(of("/srv/none", 0), None);
    // what the policy does not know labels nothing
    assert_eq!(of("/other", 0), None);
    assert_eq!(of("/else", 0), None);
}

#[test]
fn of_a_filesystems_paths_the_first_in_order_counts_that_another_begins_with() {
    let db = example(34);
    let classes = Classes::of(&db).unwrap();
    let file = classes.by_name("file");
    let paths = [("/sys/kernel", None, 1), ("/sys", file, 2), ("/", None, 3)];
    let automaton = genfs(&paths, &classes);
    let of = |path: &str, kind: usize| automaton.walk(path.as_bytes())[kind].line;
    assert_eq!(of("/sys/kernel/x", 0), 1);
    assert_eq!(of("/sys/kernelx", 1), 1);
    assert_eq!(of("/sys/kern", 0), 2);
    assert_eq!(of("/sys/kern", 1), 3);
    assert_eq!(of("/", 1), 3);
    assert_eq!(of("", 1), 0);
}

#[test]
fn a_policy_that_rejects_what_it_does_not_know_is_refused() {
    let mut db = example(34);
    db.unknown = tidegate_bundle::te::db::Unknown::Reject;
    let values = [true, false];
    let refused = Image::of(&db, &values, None, Numbering::default(), BASE);
    assert!(refused.unwrap_err().to_string().contains("says to reject"));
}

#[test]
fn a_context_is_known_by_its_text() {
    let db = example(34);
    let values: Vec<bool> = db.booleans.iter().map(|b| b.value).collect();
    let image = image(&db, &values, Numbering::default());
    let server = Server::of(&image);
    let all = contexts(&db);
    assert!(!all.is_empty());
    for context in &all {
        let sid = image.sid(context).unwrap();
        let text = image.numbering.context(sid).unwrap();
        assert_eq!(server.context(&text), Some(sid), "{text}");
        for spoilt in [
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}:"),
            &format!("x{text}"),
        ] {
            assert_eq!(server.context(spoilt), None, "{spoilt}");
        }
    }
    for none in ["", ":", "::", ":::", "a:b:c", "a:b:c:d"] {
        assert_eq!(server.context(none), None, "{none}");
    }
}

#[test]
fn a_class_alone_is_what_the_list_has_under_its_number() {
    let db = example(34);
    let all = Classes::of(&db).unwrap();
    for (number, class) in (1..).zip(&all.list) {
        let alone = Class::numbered(&db, number).unwrap();
        assert_eq!(format!("{alone:?}"), format!("{class:?}"));
    }
    assert!(Class::numbered(&db, 0).is_none());
    assert!(Class::numbered(&db, all.list.len() as u32 + 1).is_none());
}

/// Classes that are asked about by the permissions' names in another class, whose bits they share.
fn sharing(class: &str) -> Vec<&str> {
    const FILES: [&str; 7] = [
        "dir",
        "lnk_file",
        "chr_file",
        "blk_file",
        "sock_file",
        "fifo_file",
        "anon_inode",
    ];
    let mut all = vec![class];
    if FILES.contains(&class) {
        all.push("file");
    }
    if class.ends_with("socket") {
        all.extend(["socket", "file", "tcp_socket"]);
    }
    if class.starts_with("netlink_") {
        all.push("netlink_route_socket");
    }
    if ["sem", "msgq", "shm"].contains(&class) {
        all.push("ipc");
    }
    all
}

#[test]
fn each_permission_of_linux_is_asked_about_or_told() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = String::new();
    for entry in fs::read_dir(crates.join("../kernel/te")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "h") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    let server = fs::read_to_string(crates.join("tidegated/src/object_managers/query.rs")).unwrap();
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let words: HashSet<&str> = text.split(is_between).collect();
    for (class, permissions) in CLASSES {
        let is_class = words.contains(format!("SECCLASS_{}", class.to_uppercase()).as_str());
        // the kernel's own numbers are their bits
        let is_numbered = class.starts_with("cap") || *class == "key";
        for permission in *permissions {
            let is_named = sharing(class).into_iter().any(|class| {
                let name = format!("{class}__{permission}").to_uppercase();
                words.contains(name.as_str())
            });
            let is_asked = is_class && (is_numbered || is_named)
                // a server of objects of its own asks the daemon
                || *class == "security" && server.contains(&format!("\"{permission}\""));
            let is_told = UNMEDIATED.iter().any(|(told, which)| {
                (told == class && which.is_empty())
                    || ([*class, ANY_CLASS].contains(told) && which.contains(permission))
            });
            assert!(is_asked || is_told, "{class} {permission}");
        }
    }
}

#[test]
fn what_is_told_is_there() {
    for (class, told) in UNMEDIATED {
        let all = || {
            let of = CLASSES
                .iter()
                .filter(|(name, _)| [*name, ANY_CLASS].contains(class));
            of.flat_map(|(_, permissions)| *permissions)
        };
        assert!(all().count() > 0, "{class}");
        for permission in *told {
            assert!(
                all().any(|known| known == permission),
                "{class} {permission}"
            );
        }
    }
}
