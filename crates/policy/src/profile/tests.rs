use tidegate_bundle::profile::{Access, Exec, Mode, PathFlags, Perms, Rlimit};

use super::pack::{Pack, Tables, example};
use super::{Automaton, Profile, TooLarge, UnpackError, unpack};

fn one(pack: &Pack) -> Profile {
    let mut profiles = unpack(&pack.0).unwrap();
    assert_eq!(profiles.len(), 1);
    profiles.remove(0)
}

#[test]
fn a_profile_with_everything() {
    let profile = one(&example());
    assert_eq!(profile.name, "example");
    assert_eq!(profile.attachment.text.as_deref(), Some("/bin/e"));
    assert_eq!(profile.attachment.length, 6);
    assert_eq!(profile.attachment.xattrs, ["user.example"]);
    assert_eq!(profile.disconnected.as_deref(), Some("/gone"));
    assert_eq!(profile.mode, Mode::Enforce);
    assert!(!profile.is_hat && !profile.audit);
    assert_eq!(profile.path_flags, PathFlags::empty());
    assert_eq!(profile.capabilities.allow, 1 << 32 | 0b11);
    assert_eq!(profile.capabilities.audit, 0b01);
    assert_eq!(profile.capabilities.quiet, 0b100);
    let limit = Rlimit {
        resource: 1,
        max: 4096,
    };
    assert_eq!(profile.rlimits, [limit]);

    let policy = profile.policy.unwrap();
    let signal = policy.dfa.walk(policy.start, b"\x0ax");
    let perms = policy.accepts[signal as usize][0];
    assert_eq!((perms.allow, perms.deny), (Access::WRITE, Access::READ));

    let file = profile.file.unwrap();
    let [owner, other] = file.accepts[file.dfa.walk(file.file_start, b"/etc/a") as usize];
    let both = Access::EXEC | Access::WRITE | Access::READ;
    assert_eq!(owner.allow, both | Access::OPEN);
    assert_eq!(owner.deny, Access::APPEND);
    assert_eq!(owner.exec.index(), Some(1));
    assert_eq!(file.names[1], "other");
    assert_eq!(other.allow, Access::READ);
    assert_eq!(file.dfa.walk(file.file_start, b"/etc/b"), 0);
}

#[test]
fn several_profiles_stand_behind_each_other() {
    let mut stream = example().0;
    stream.extend(example().0);
    assert_eq!(unpack(&stream).unwrap().len(), 2);
    assert_eq!(unpack(b"").unwrap(), []);
}

#[test]
fn a_stream_cut_off_anywhere_is_refused() {
    let whole = example().0;
    for end in (1..whole.len()).step_by(61) {
        unpack(&whole[..end]).expect_err("it is not whole");
    }
}

#[test]
fn an_older_parser_puts_permissions_into_the_states() {
    // owner: r, px with a scrubbed environment, audit w, quiet x; others: w, ux -> unsafe
    let owner = 0b100 | 2 << 10;
    let others = 0b10 | 0x80 | 0x100 | 1 << 10;
    let mut automaton = Tables::of(&[("/a", owner | others << 14)]);
    automaton.accept2 = Some(vec![0, 0, 0, 0b10 | 1 << 7]);
    let mut pack = Pack::default();
    pack.u32("version", 7).open("profile").string("", "old");
    pack.middle(1).blob("aadfa", &automaton.bytes()).close();

    let profile = one(&pack);
    assert_eq!(profile.mode, Mode::Complain);
    let file = profile.file.unwrap();
    let [owner, other] = file.accepts[file.dfa.walk(1, b"/a") as usize];
    let read = Access::READ | Access::GETATTR | Access::OPEN;
    assert_eq!(owner.allow, read);
    assert_eq!(owner.exec, Exec(Exec::NAME));
    assert!(owner.audit.contains(Access::WRITE | Access::CREATE));
    assert_eq!(owner.quiet, Access::EXEC);
    assert!(other.allow.contains(Access::WRITE | Access::DELETE));
    assert!(!other.allow.contains(Access::READ));
    assert_eq!(other.exec, Exec(Exec::UNCONFINED | Exec::UNSAFE));
    assert_eq!(
        file.accepts[0][0],
        Perms {
            allow: Access::GETATTR,
            ..Perms::default()
        }
    );
}

#[test]
fn a_state_says_whether_others_have_permissions_of_their_own() {
    let with = |accept2| {
        let mut automaton = Tables::of(&[("/a", 1)]);
        automaton.accept2 = accept2;
        let mut pack = Pack::default();
        pack.u32("version", 9).open("profile").string("", "x");
        pack.middle(0).perms(&[(0, 0, 0), (4, 0, 0), (2, 0, 0)]);
        pack.blob("aadfa", &automaton.bytes()).close();
        let file = one(&pack).file.unwrap();
        file.accepts[file.dfa.walk(1, b"/a") as usize].map(|perms| perms.allow)
    };
    assert_eq!(with(None), [Access::READ, Access::WRITE]);
    assert_eq!(with(Some(vec![0; 4])), [Access::READ; 2]);
    assert_eq!(with(Some(vec![0, 0, 0, 1])), [Access::READ, Access::WRITE]);
}

#[test]
fn a_profile_that_refuses_nothing_keeps_its_capabilities() {
    let mut pack = Pack::default();
    pack.u32("version", 9).open("profile").string("", "x");
    pack.middle(3).close();
    let profile = one(&pack);
    assert_eq!(profile.mode, Mode::Unconfined);
    assert_eq!(profile.capabilities.allow, 1 << 32 | 0b11);
}

#[test]
fn what_cannot_be_is_refused() {
    let with = |make: &dyn Fn(&mut Pack)| {
        let mut pack = Pack::default();
        pack.u32("version", 9).open("profile").string("", "x");
        pack.middle(0);
        make(&mut pack);
        pack.close();
        unpack(&pack.0).unwrap_err()
    };
    let permissions = |error| matches!(error, UnpackError::Permissions { .. });
    // allowed and denied
    assert!(permissions(with(&|pack| {
        pack.perms(&[(0, 0, 0), (1, 1, 0)]).dfa(&[("/a", 0)]);
    })));
    // a state's permissions beyond the table: others' are the last
    assert!(permissions(with(&|pack| {
        pack.perms(&[(0, 0, 0), (1, 0, 0)]).dfa(&[("/a", 1)]);
    })));
    // a name beyond the table
    assert!(permissions(with(&|pack| {
        let leads = (1, 0, Exec::TABLE | 1);
        pack.perms(&[(0, 0, 0), leads]).dfa(&[("/a", 0)]);
        pack.open("xtable")
            .array(1)
            .string("", "other")
            .close_array();
    })));
    // a start beyond the automaton
    assert!(permissions(with(&|pack| {
        pack.perms(&[(0, 0, 0); 2]).dfa(&[("/a", 0)]);
        pack.u32("dfa_start", 4);
    })));
    // states without permissions
    assert!(permissions(with(&|pack| {
        pack.dfa(&[("/a", 0)]);
    })));
}

#[test]
fn an_automaton_that_leaves_its_tables_is_refused() {
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut tables = Tables::of(&[("/a", 0)]).bytes();
        change(&mut tables);
        super::Dfa::unpack(&tables).unwrap_err()
    };
    let good = Tables::of(&[("/a", 0)]).bytes();
    assert!(super::Dfa::unpack(&good).is_ok());
    // header 16, accept table 12 + 16, padded: the base table's entries begin at 60
    let base = 16 + 32 + 12;
    assert_eq!(good[base + 6..base + 8], [1, 0]);
    assert_eq!(
        refused(&|tables| tables[base + 5] = 1),
        UnpackError::Dfa("a state's transitions")
    );
    assert_eq!(
        refused(&|tables| tables[base] = 0x10),
        UnpackError::Dfa("a state's flags")
    );
    // a state that nothing matches, and that something leads out of: the entry of its byte 7 in
    // the second table after this one
    let next = base + 2 * 32 + 4 * 7;
    assert_eq!(
        refused(&|tables| tables[next + 3] = 1),
        UnpackError::Dfa("the state of what does not match")
    );
    // states that take each other's transitions for ever
    assert_eq!(
        refused(&|tables| {
            tables[13] = 1;
            tables[base] = 0x80;
        }),
        UnpackError::Dfa("states that end nowhere")
    );
}

#[test]
fn another_version_and_a_namespace_are_named() {
    let mut pack = example();
    pack.0[12] = 10;
    assert_eq!(
        unpack(&pack.0).unwrap_err(),
        UnpackError::Version {
            found: 10,
            known: 9
        }
    );
    let mut pack = Pack::default();
    pack.u32("version", 9).open("profile");
    pack.string("", ":inner:x");
    assert!(matches!(
        unpack(&pack.0).unwrap_err(),
        UnpackError::Namespace { .. }
    ));
}

#[test]
fn rows_lead_where_the_tables_do() {
    for profile in unpack(&example().0).unwrap() {
        for rules in [profile.attachment.pattern, profile.policy, profile.file] {
            let dfa = rules.unwrap().dfa;
            let rows = Automaton::new(&dfa).unwrap();
            assert!(usize::from(rows.width) < 16, "{} classes", rows.width);
            for state in 0..dfa.states() as u16 {
                for byte in 0..=u8::MAX {
                    let next = dfa.step(state.into(), byte);
                    assert_eq!(u32::from(rows.step(state, byte)), next);
                }
            }
        }
    }
}

#[test]
fn more_states_than_a_step_can_name_are_refused() {
    let of = |states| super::Dfa {
        accept: vec![0; states],
        accept2: Vec::new(),
        base: vec![0; states],
        default: vec![0; states],
        next: vec![0; 256],
        check: vec![0; 256],
        classes: None,
    };
    assert_eq!(Automaton::new(&of(1 << 16)).unwrap().width, 1);
    let larger = (1 << 16) + 1;
    assert_eq!(Automaton::new(&of(larger)).unwrap_err(), TooLarge(larger));
}
