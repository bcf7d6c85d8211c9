use tidegate_bundle::profile::{Access, Exec, Mode, ProfileSet, Target, Unmediated, Walk};

use super::pack::{Pack, example};
use super::{LinkError, Parsed, Profile, Says, Statement, link, link_usable, unpack};

/// The example's profile by another name.
fn named(name: &str) -> Profile {
    let mut profile = unpack(&example().0).unwrap().remove(0);
    profile.name = name.into();
    profile.attachment.xattrs.clear();
    profile
}

/// One whose rules on files make too large an automaton.
fn too_large(name: &str) -> Profile {
    let mut profile = named(name);
    let file = profile.file.as_mut().unwrap();
    for table in [
        &mut file.dfa.accept,
        &mut file.dfa.base,
        &mut file.dfa.default,
    ] {
        table.resize((1 << 16) + 1, 0);
    }
    profile
}

/// One whose program the owner leaves for one profile, and others for another.
fn leading(name: &str, owner: (u32, &str), others: (u32, &str)) -> Profile {
    let mut profile = named(name);
    let file = profile.file.as_mut().unwrap();
    file.names = vec![owner.1.into(), others.1.into()];
    for pair in &mut file.accepts {
        if pair[0].allow.contains(Access::EXEC) {
            pair[0].exec = Exec(Exec::TABLE | owner.0);
            pair[1].exec = Exec(Exec::TABLE | others.0 | 1);
        }
    }
    profile
}

fn file(name: &str, profiles: Vec<Profile>) -> Parsed {
    Parsed {
        file: name.into(),
        profiles,
        warnings: Vec::new(),
    }
}

fn linked(profiles: Vec<Profile>) -> Result<ProfileSet, LinkError> {
    link(&[file("f", profiles)], &[])
}

fn statement(class: &str, line: u32, text: &str) -> Statement {
    Statement {
        profile: "a".into(),
        class: class.into(),
        file: "f".into(),
        line,
        text: text.into(),
        says: Says::Allowed,
        span: 0..0,
    }
}

fn rule(class: &str, line: u32) -> Unmediated {
    Unmediated {
        profile: "a".into(),
        class: class.into(),
        file: "f".into(),
        line,
    }
}

/// What the owner's and others' execution of the example's program is.
fn execs(set: &ProfileSet, profile: usize) -> [Exec; 2] {
    let Walk { automaton, start } = set.profiles[profile].file.unwrap();
    let table = &set.automata[automaton as usize];
    let mut state = start;
    for &byte in b"/etc/a" {
        let class = usize::from(table.classes[usize::from(byte)]);
        state = table.next[usize::from(state) * usize::from(table.width) + class];
    }
    let accept = table.accepts[usize::from(state)];
    table.perms[usize::from(accept)].map(|perms| perms.exec)
}

#[test]
fn parents_stand_before_their_children() {
    let names = ["a//b//c", "a///bin/b", "b", "a//b", "a"];
    let set = linked(names.map(named).to_vec()).unwrap();
    let found = set.profiles.iter().map(|p| (p.name.as_str(), p.parent));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("a", None),
            ("a///bin/b", Some(0)),
            ("a//b", Some(0)),
            ("a//b//c", Some(2)),
            ("b", None)
        ]
    );
    let orphan = linked(vec![named("a"), named("b//c//d")]).unwrap_err();
    assert_eq!(
        orphan,
        LinkError::Orphan {
            name: "b//c//d".into(),
            parent: "b//c".into(),
            file: "f".into(),
        }
    );
}

#[test]
fn two_profiles_of_one_name_are_refused() {
    let twice = [file("f", vec![named("a")]), file("g", vec![named("a")])];
    assert_eq!(
        link(&twice, &[]).unwrap_err().to_string(),
        "profile `a` is in f and in g"
    );
}

#[test]
fn a_text_that_cannot_be_kept_is_refused() {
    let mut profile = named("a");
    for text in ["x\0y".to_owned(), "x".repeat(4097)] {
        profile.disconnected = Some(text.clone());
        let error = linked(vec![profile.clone()]).unwrap_err();
        assert!(matches!(error, LinkError::Text { .. }));
        let error = linked(vec![named(&text)]).unwrap_err();
        assert!(matches!(error, LinkError::Text { what: "name", .. }));
    }
}

#[test]
fn a_name_is_a_child_or_a_profile_of_its_own() {
    let both = leading("a", (Exec::CHILD, "b"), (0, "b"));
    let set = linked(vec![both, named("a//b"), named("b")]).unwrap();
    assert_eq!(
        set.profiles[0].targets,
        [Target::Profile(1), Target::Profile(2)]
    );
    let found = [Exec::TABLE | Exec::CHILD, Exec::TABLE | 1].map(Exec);
    assert_eq!(execs(&set, 0), found);
    let gone = leading("a", (Exec::CHILD | Exec::INHERIT, "x"), (0, "a//x"));
    let set = linked(vec![gone]).unwrap();
    assert_eq!(set.profiles[0].targets, [Target::Missing; 2]);
    assert_eq!(execs(&set, 0)[0].0 & Exec::INHERIT, Exec::INHERIT);
}

/// One whose only rule but those on files is this one.
fn ruled(rule: &str, allow: u32) -> Profile {
    let mut pack = Pack::default();
    pack.u32("version", 9).open("profile").string("", "a");
    pack.middle(0)
        .open("policydb")
        .perms(&[(0, 0, 0), (allow, 0, 0)])
        .dfa(&[(rule, 1)])
        .u32("start", 1)
        .close()
        .close();
    unpack(&pack.0).unwrap().remove(0)
}

#[test]
fn what_lets_something_be_mounted_is_known() {
    const PIVOT_ROOT: u32 = 1;
    const MOUNT: u32 = 2;
    const SIGNAL: &str = "\u{a}\u{9}a";
    const PATHS: &str = "\u{7}/a\0/b\0\0\u{d}";
    let mounts = |rule, allow| linked(vec![ruled(rule, allow)]).unwrap().mounts();
    assert!(mounts(PATHS, MOUNT));
    assert!(!mounts(PATHS, PIVOT_ROOT));
    assert!(!mounts(SIGNAL, MOUNT));
    let unconfined = Profile {
        mode: Mode::Unconfined,
        ..ruled(PATHS, MOUNT)
    };
    assert!(!linked(vec![unconfined]).unwrap().mounts());
}

#[test]
fn what_tells_messages_from_sockets_is_known() {
    const SEND: u32 = 1 << 1;
    const RECEIVE: u32 = 1 << 2;
    const CREATE: u32 = 1 << 4;
    const CONNECT: u32 = 1 << 6;
    const TCP: &str = "\u{e}\0\u{2}\0\u{1}";
    const UNIX: &str = "\u{e}\0\u{1}\0\u{1}";
    let tells = |rule, allow| linked(vec![ruled(rule, allow)]).unwrap().tells_messages();
    assert!(tells(TCP, CREATE | CONNECT | SEND));
    assert!(tells(TCP, CREATE | SEND | RECEIVE));
    assert!(!tells(TCP, CREATE | CONNECT | SEND | RECEIVE));
    assert!(!tells(TCP, CONNECT));
    assert!(!tells(UNIX, CREATE));
    let audited = Profile {
        audit: true,
        ..ruled(TCP, CREATE | CONNECT | SEND | RECEIVE)
    };
    assert!(linked(vec![audited]).unwrap().tells_messages());
}

#[test]
fn unconfined_is_no_profile() {
    let leaves = || leading("a", (Exec::INHERIT | Exec::UNSAFE, "unconfined"), (0, "b"));
    let set = linked(vec![leaves(), named("b")]).unwrap();
    assert_eq!(set.profiles[0].targets, [Target::Profile(1)]);
    assert_eq!(
        execs(&set, 0),
        [Exec::UNCONFINED | Exec::UNSAFE, Exec::TABLE].map(Exec)
    );
    // but a profile may have that name
    let set = linked(vec![leaves(), named("unconfined")]).unwrap();
    assert_eq!(set.profiles[0].targets[0], Target::Profile(1));
}

#[test]
fn stacks_and_namespaces_are_told_of_and_missing() {
    let profile = leading("a", (0, "&b"), (0, ":ns:b"));
    let statements = [
        statement("file", 3, "/bin/x px -> b"),
        statement("file", 4, "/bin/y px -> &b"),
        statement("file", 9, "/bin/z px -> :ns:b"),
    ];
    let set = link(&[file("f", vec![profile, named("b")])], &statements).unwrap();
    assert_eq!(set.profiles[0].targets, [Target::Missing; 2]);
    assert_eq!(set.unmediated, [rule("namespace", 9), rule("stack", 4)]);
    let unknown = leading("a", (0, "b//&c"), (0, "b//&c"));
    assert_eq!(
        linked(vec![unknown]).unwrap().unmediated,
        [rule("stack", 0)]
    );
    // `ix -> &b` is not `ix`, nor `pux -> :ns:b` `ux`
    let less = leading("a", (Exec::INHERIT, "&b"), (Exec::UNCONFINED, ":ns:b"));
    let set = linked(vec![less, named("b")]).unwrap();
    assert_eq!(execs(&set, 0), [Exec::TABLE, Exec::TABLE | 1].map(Exec));
}

#[test]
fn equal_automata_are_one() {
    let set = linked(vec![named("a"), named("b")]).unwrap();
    assert_eq!(set.automata.len(), 3);
    assert_eq!(set.profiles[0].file, set.profiles[1].file);
    let walks = [set.profiles[0].file, set.profiles[0].policy];
    assert_eq!(walks.map(|walk| walk.unwrap().start), [1; 2]);
    assert_eq!(set.profiles[0].attachment.unwrap().length, 6);
    // another name is another target of the same number
    let leads = |name, to| leading(name, (0, to), (0, to));
    let set = linked(vec![leads("a", "b"), leads("b", "a")]).unwrap();
    assert_eq!(set.profiles[0].file, set.profiles[1].file);
    assert_eq!(set.profiles[0].targets[0], Target::Profile(1));
    assert_eq!(set.profiles[1].targets[0], Target::Profile(0));
}

#[test]
fn rules_on_files_may_be_among_the_others() {
    let mut pack = Pack::default();
    pack.u32("version", 9).open("profile").string("", "a");
    pack.middle(0).open("policydb");
    pack.perms(&[(0, 0, 0), (4, 0, 0)]).dfa(&[("\u{2}/x", 1)]);
    pack.u32("start", 1).close().close();
    let set = linked(unpack(&pack.0).unwrap()).unwrap();
    let [file, policy] = [set.profiles[0].file, set.profiles[0].policy].map(Option::unwrap);
    assert_eq!(file.automaton, policy.automaton);
    assert_eq!((policy.start, file.start), (1, 2));
    // nothing on files
    let mut profile = named("a");
    profile.file = None;
    let set = linked(vec![profile]).unwrap();
    assert_eq!(set.profiles[0].file, None);
}

#[test]
fn more_states_than_a_step_can_name_are_an_error_of_the_profile() {
    let error = linked(vec![too_large("a")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "f: profile `a`: its rules on files make an automaton of 65537 states, \
         where 65,536 are possible"
    );
}

#[test]
fn what_nothing_mediates_is_told_of() {
    let mut profile = named("a");
    profile.mode = Mode::Unconfined;
    profile.attachment.xattrs = vec!["user.x".into()];
    let mut parsed = file("f", vec![profile]);
    let warn = |what| format!("Warning from profile a (f): {what}");
    parsed.warnings = vec![
        warn("mqueue rules not enforced"),
        warn("io_uring rules not enforced"),
        warn("something else"),
    ];
    let statements = [
        statement("file", 2, "/x r"),
        statement("mqueue", 3, "mqueue r"),
        statement("dbus", 4, "dbus"),
        statement("change_profile", 5, "change_profile -> b"),
        statement("set", 6, "set rlimit cpu <= 3"),
    ];
    let set = link(&[parsed], &statements).unwrap();
    let found = [
        rule("dbus", 4),
        rule("io_uring", 0),
        rule("mqueue", 3),
        rule("set", 6),
        rule("xattrs", 0),
    ];
    assert_eq!(set.unmediated, found);
    assert_eq!(set.profiles[0].capabilities.allow, 1 << 32 | 0b11);
}

#[test]
fn what_does_not_fit_is_left_out_with_its_children_and_the_rest_is_as_without_it() {
    let bad = vec![too_large("b"), named("b//c"), named("d")];
    let parsed = vec![file("f", vec![named("a")]), file("g", bad)];
    let head = Statement {
        profile: "b".into(),
        file: "g".into(),
        ..statement("profile", 7, "profile b")
    };
    let set = link_usable(parsed, &[head], Vec::new()).unwrap();
    let without = linked(vec![named("a"), named("d")]).unwrap();
    assert_eq!(set.profiles, without.profiles);
    assert_eq!(set.automata, without.automata);
    let [left_out] = &set.left_out[..] else {
        panic!("{:?}", set.left_out);
    };
    assert_eq!(left_out.profiles, ["b", "b//c"]);
    assert_eq!((left_out.file.as_str(), left_out.line), ("g", 7));
    assert!(left_out.why.contains("65537 states"), "{}", left_out.why);
}

#[test]
fn a_child_without_its_parent_and_the_second_of_two_are_left_out() {
    let parsed = vec![
        file("f", vec![named("a"), named("x//y")]),
        file("g", vec![named("a"), named("a//z")]),
    ];
    let set = link_usable(parsed, &[], Vec::new()).unwrap();
    let names: Vec<_> = set.profiles.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    let mut told: Vec<_> = set
        .left_out
        .iter()
        .map(|it| (&*it.file, &*it.profiles))
        .collect();
    told.sort();
    let [orphan, twice] = [
        vec!["x//y".to_owned()],
        vec!["a".to_owned(), "a//z".to_owned()],
    ];
    assert_eq!(told, [("f", &orphan[..]), ("g", &twice[..])]);
}

#[test]
fn nothing_takes_the_place_of_a_profile_that_was_left_out() {
    let missing = leading("a", (Exec::INHERIT, "gone"), (Exec::UNCONFINED, "never"));
    let parsed = vec![file("f", vec![missing, too_large("gone")])];
    let set = link_usable(parsed, &[], Vec::new()).unwrap();
    assert_eq!(set.profiles[0].targets, [Target::Missing; 2]);
    // one that never was leaves the fallback
    let found = [Exec::TABLE, Exec::TABLE | Exec::UNCONFINED | 1].map(Exec);
    assert_eq!(execs(&set, 0), found);
}
