//! Domains in a recording, by the example policy: `boss_t` leads to `aide_t` by executing `file_t`.

use tidegate_bundle::te::Te;
use tidegate_bundle::te::example::example;

use crate::domain::{Domains, TeRefusal};
use crate::head::Filesystem;
use crate::line::{Act, Flags, Inode, Line};

const BOSS: &str = "ann:clerk:boss_t:s0";
const FILE: &str = "ann:object_r:file_t:s0";

fn te() -> Te {
    Te {
        policy: Vec::new(),
        db: example(34),
        booleans: Vec::new(),
        files: None,
        ranges: Vec::new(),
        sight: false,
    }
}

fn line(act: Act, pid: u32) -> Line<'static> {
    Line {
        pid,
        class: "file".into(),
        path: "/x".into(),
        inode: Inode(7, 1, 1),
        kind: 0o100_000,
        ..Line::new(act)
    }
}

fn given(context: &'static str) -> Line<'static> {
    Line {
        inode: Inode(7, 1, 1),
        context: context.into(),
        ..Line::new(Act::Given)
    }
}

fn refused(domains: &mut Domains<'_>, line: &Line<'_>) -> Vec<(String, Vec<String>)> {
    let of = |it: &TeRefusal| (it.class.clone(), it.permissions.clone());
    domains.feed(line).iter().map(of).collect()
}

#[test]
fn who_is_in_no_domain_is_asked_nothing() {
    let te = te();
    let mut domains = Domains::new(&te, &[], false, None);
    domains.feed(&given(FILE));
    domains.feed(&line(Act::Process, 5));
    let write = Line {
        flags: Flags::WRITES,
        ..line(Act::OpenWrite, 5)
    };
    assert_eq!(refused(&mut domains, &write), []);
    assert!(!domains.any);
}

#[test]
fn a_recorded_context_and_one_that_is_named_are_asked_by() {
    let te = te();
    let boss = te.db.context(BOSS).unwrap();
    let unlink = line(Act::Unlink, 5);
    for (named, recorded) in [(Some(boss), ""), (None, BOSS)] {
        let mut domains = Domains::new(&te, &[], false, named);
        domains.feed(&given(FILE));
        domains.feed(&Line {
            context: recorded.into(),
            ..line(Act::Process, 5)
        });
        // the example's files know of read, write and one more: what they do not know is not asked about
        let known = &te.db.classes[1].permissions;
        let expected = known.iter().any(|name| name == "unlink");
        assert_eq!(!refused(&mut domains, &unlink).is_empty(), expected);
        assert!(domains.any);
    }
}

#[test]
fn an_execution_leads_where_the_rules_say_and_a_child_is_what_its_parent_is() {
    let te = te();
    let mut domains = Domains::new(&te, &[], false, te.db.context(BOSS).ok());
    domains.feed(&given(FILE));
    domains.feed(&line(Act::Process, 5));
    domains.feed(&Line {
        peer: 6,
        ..line(Act::Fork, 5)
    });
    domains.feed(&Line {
        flags: Flags::FIRST | Flags::READS,
        ..line(Act::Exec, 6)
    });
    domains.feed(&line(Act::Started, 6));
    let context = |domains: &Domains<'_>, pid| domains.text_of(pid);
    assert_eq!(context(&domains, 5).as_deref(), Some(BOSS));
    assert!(context(&domains, 6).is_some_and(|text| text.contains(":aide_t:") || text == BOSS));
    domains.feed(&line(Act::Exit, 6));
    assert_eq!(context(&domains, 6), None);
}

#[test]
fn a_command_enters_its_context_at_its_first_execution() {
    let te = te();
    let filesystems = [Filesystem {
        dev: 7,
        kind: "ext4".into(),
        at: "/".into(),
    }];
    let mut domains = Domains::new(&te, &filesystems, true, te.db.context(BOSS).ok());
    domains.feed(&Line::new(Act::Begun));
    domains.feed(&line(Act::Fork, 5));
    let exec = Line {
        flags: Flags::FIRST | Flags::READS,
        ..line(Act::Exec, 5)
    };
    assert_eq!(refused(&mut domains, &exec), []);
    assert_eq!(domains.text_of(5), None);
    domains.feed(&line(Act::Started, 5));
    assert_eq!(domains.text_of(5).as_deref(), Some(BOSS));
}
