use super::*;
use crate::te::example::example;

/// Contexts, and numbers of classes, by name; booleans as the example has them but for `strict`.
struct Asked<'p> {
    decider: Decider<'p>,
}

impl Asked<'_> {
    fn context(&self, text: &str) -> Context {
        self.decider.db().context(text).unwrap()
    }

    fn class(&self, name: &str) -> Number {
        self.decider.db().class(name).unwrap()
    }

    fn allowed(&self, source: &str, target: &str, class: &str) -> u32 {
        let (source, target) = (self.context(source), self.context(target));
        self.decider
            .access(&source, &target, self.class(class))
            .allowed
    }

    fn made(&self, source: &str, target: &str, class: &str, name: Option<&str>) -> String {
        let (source, target) = (self.context(source), self.context(target));
        let made = self
            .decider
            .transition(&source, &target, self.class(class), name);
        let text = |context| self.decider.db().context_text(&context);
        made.map_or_else(|not| format!("not {}", text(not)), text)
    }
}

fn with(strict: bool, ask: impl FnOnce(Asked<'_>)) {
    let db = example(34);
    let decider = Decider::new(&db, &[true, strict]);
    ask(Asked { decider });
}

const DOC: &str = "ann:object_r:file_t:s0";

#[test]
fn rules_of_types_attributes_and_booleans_add_up() {
    with(false, |it| {
        assert_eq!(it.allowed("ann:clerk:boss_t:s0", DOC, "file"), 0b111);
        // what is only its own the type above does not have: `ioctl`, by the boolean
        assert_eq!(it.allowed("ann:clerk:aide_t:s0", DOC, "file"), 0b111);
        let (aide, doc) = (it.context("ann:clerk:aide_t:s0"), it.context(DOC));
        let access = it.decider.access(&aide, &doc, it.class("file"));
        assert_eq!((access.auditallow, access.auditdeny), (0b1, !0b100));
        assert!(!access.permissive);
        let new = it.context("ann:auditor:new_t:s0");
        assert!(it.decider.access(&new, &doc, it.class("file")).permissive);
    });
}

#[test]
fn a_constraint_takes_what_it_is_not_true_for() {
    with(false, |it| {
        let high = "ann:object_r:file_t:s1";
        assert_eq!(it.allowed("ann:clerk:aide_t:s0", high, "file"), 0b101);
        assert_eq!(it.allowed("ann:clerk:aide_t:s0-s1", high, "file"), 0b111);
        assert_eq!(it.allowed("ann:clerk:boss_t:s0", high, "file"), 0b111);
    });
}

#[test]
fn roles_change_where_they_may() {
    with(false, |it| {
        let [clerk, auditor] = ["ann:clerk:boss_t:s0", "ann:auditor:boss_t:s0"];
        assert_eq!(it.allowed(clerk, auditor, "process"), 0b11);
        assert_eq!(it.allowed(auditor, clerk, "process"), 0b10);
        assert_eq!(it.allowed(auditor, auditor, "process"), 0b11);
    });
}

#[test]
fn what_is_made_has_its_context_from_rules_and_classes() {
    with(false, |it| {
        // the type, role and range have rules; the auditor may not be an aide
        let boss = "ann:clerk:boss_t:s0-s1:c0,c1";
        assert_eq!(
            it.made(boss, DOC, "process", None),
            "not ann:auditor:aide_t:s0-s1:c1"
        );
        assert_eq!(
            it.made("ann:auditor:boss_t:s0", DOC, "process", None),
            "not ann:auditor:aide_t:s0-s1:c1"
        );
        // by name, of a class whose ranges meet
        assert_eq!(
            it.made(boss, DOC, "file", Some("note")),
            "ann:object_r:new_t:s0"
        );
        assert_eq!(
            it.made(boss, DOC, "file", Some("other")),
            "ann:object_r:file_t:s0"
        );
        // those that do not meet make nothing
        assert_eq!(
            it.made("ann:clerk:boss_t:s1", DOC, "file", None),
            "not ann:object_r:file_t:s0"
        );
        // a socket is its maker's
        assert_eq!(it.made(boss, DOC, "tcp_socket", None), boss);
        assert_eq!(
            it.made("ann:clerk:aide_t:s0", DOC, "file", None),
            "ann:object_r:new_t:s0"
        );
    });
    with(true, |it| {
        assert_eq!(it.made("ann:clerk:aide_t:s0", DOC, "file", None), DOC);
    });
}

#[test]
fn members_and_changes_have_rules_of_their_own() {
    with(false, |it| {
        let (boss, doc) = (it.context("ann:clerk:boss_t:s0-s1"), it.context(DOC));
        let new = it.context("ann:object_r:new_t:s0");
        assert_eq!(
            it.decider.member(&boss, &doc, it.class("file")),
            Ok(new.clone())
        );
        assert_eq!(it.decider.change(&boss, &doc, it.class("file")), Ok(new));
        let socket = it.class("tcp_socket");
        assert_eq!(it.decider.change(&boss, &doc, socket), Ok(boss.clone()));
    });
}

#[test]
fn the_third_one_changes_contexts() {
    with(false, |it| {
        let (doc, boss) = (it.context(DOC), it.context("ann:clerk:boss_t:s0"));
        let (file, aide) = (it.class("file"), it.context("ann:clerk:aide_t:s0"));
        assert!(it.decider.may_change(&doc, &doc, &boss, file));
        assert!(!it.decider.may_change(&doc, &doc, &aide, file));
        assert!(
            it.decider
                .may_change(&doc, &doc, &aide, it.class("process"))
        );
        assert!(it.decider.is_bounded(&boss, &aide) && it.decider.is_bounded(&aide, &aide));
        assert!(!it.decider.is_bounded(&aide, &boss));
    });
}

#[test]
fn single_ioctls_are_told() {
    with(false, |it| {
        let (boss, doc) = (it.context("ann:clerk:boss_t:s0"), it.context(DOC));
        let file = it.class("file");
        let tty = it.decider.ioctls(&boss, &doc, file, 0x54);
        assert!(tty.speaks);
        assert_eq!(tty.allowed, [2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(tty.dontaudit, [0; 8]);
        // all of the driver 1
        assert_eq!(
            it.decider.ioctls(&boss, &doc, file, 1).dontaudit,
            [u32::MAX; 8]
        );
        assert!(!it.decider.messages(&boss, &doc, file, 0).speaks);
    });
}
