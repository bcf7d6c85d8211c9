//! Profiles that no compiler makes, in bundles sealed with a right checksum.

use super::profile::{all_fit, write};
use super::section::{write_all, write_lomac};
use super::*;
use crate::limits::{MAX_AUTOMATA_BYTES, MAX_LINE, MAX_PROFILE_NAME};
use crate::profile::{Exec, LeftOut, Linked, PathFlags, ProfileSet, Rlimit, Table, Target, Walk};

/// Three profiles, the second of which is a child of the first. The first automaton is that of
/// their attachments, the second that of their rules on files, which leads to one target.
fn set() -> ProfileSet {
    made::policy_with_profiles(&["a", "a//b", "c"]).profiles
}

fn policy(profiles: ProfileSet) -> Policy {
    Policy {
        profiles,
        ..made::policy("levels top > low\ntop /\n")
    }
}

/// What the loader says of profiles changed by `change`.
fn changed(change: impl FnOnce(&mut ProfileSet)) -> BundleError {
    let mut set = set();
    change(&mut set);
    Policy::from_bundle(&policy(set).to_bundle()).expect_err("it is not a policy")
}

/// What it says is wrong with the last profile.
fn profile(change: impl FnOnce(&mut Linked)) -> &'static str {
    match changed(|set| change(&mut set.profiles[2])) {
        BundleError::Profile { profile: 2, what } => what,
        other => panic!("{other:?}"),
    }
}

/// What it says is wrong with the automaton of the rules on files.
fn automaton(change: impl FnOnce(&mut Table)) -> &'static str {
    match changed(|set| change(&mut set.automata[1])) {
        BundleError::Automaton { automaton: 1, what } => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn profiles_are_kept() {
    let policy = policy(set());
    assert_eq!(policy.profiles.profiles[1].parent, Some(0));
    assert_eq!(policy.profiles.automata.len(), 3);
    assert!(!policy.profiles.unmediated.is_empty());
    assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy));
}

#[test]
fn what_was_left_out_is_kept() {
    let mut policy = policy(set());
    policy.profiles.left_out = vec![LeftOut {
        profiles: vec!["d".into(), "d//e".into()],
        file: "g".into(),
        line: 7,
        why: "no such flag".into(),
        disabled: false,
    }];
    let told = policy.profiles.left_out[0].to_string();
    assert_eq!(told, "g:7: left out `d`, `d//e`: no such flag");
    assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy.clone()));
    policy.profiles.left_out.push(LeftOut {
        disabled: true,
        why: "there is a link".into(),
        ..policy.profiles.left_out[0].clone()
    });
    let told = policy.profiles.left_out[1].to_string();
    assert_eq!(told, "g:7: disabled `d`, `d//e`: there is a link");
    assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy.clone()));
    policy.profiles.left_out[0].why = "x".repeat(MAX_LINE + 1);
    assert_eq!(
        Policy::from_bundle(&policy.to_bundle()),
        Err(BundleError::LeftOut(0))
    );
}

#[test]
fn a_section_of_no_profiles_is_refused() {
    let lomac = write_lomac(&policy(set()));
    let of = |profiles| {
        let sections = [("lomac", lomac.clone()), ("profile", profiles)];
        Policy::from_bundle(&seal(&write_all(&sections))).expect_err("it is not a bundle")
    };
    assert_eq!(of(write(&ProfileSet::default())), BundleError::NoProfiles);
    let malformed = |what| BundleError::Malformed {
        section: "profile",
        what,
    };
    let whole = write(&set());
    assert_eq!(of(Vec::new()), malformed("profiles"));
    for end in (0..whole.len()).step_by(97) {
        of(whole[..end].to_vec());
    }
    let mut long = whole;
    long.push(0);
    assert_eq!(
        of(long),
        BundleError::SectionTrailing {
            section: "profile",
            bytes: 1
        }
    );
}

#[test]
fn counts_beyond_the_limits_are_refused_before_anything_is_read() {
    let lomac = write_lomac(&policy(set()));
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let classes = [&[0, 1][..], &[0; 256]].concat();
    let states = [&classes[..], &[1, 1], &[0; 4]].concat();
    for (before, what, max) in [
        (&[][..], "profiles", 16_384),
        (&[0], "automata", 65_536),
        (
            &[&classes[..], &[1]].concat(),
            "states of an automaton",
            65_536,
        ),
        (&states, "permissions of an automaton", 65_536),
        (&[0, 0], "rules that nothing mediates", 1 << 18),
    ] {
        let section = [before, &huge].concat();
        let body = write_all(&[("lomac", lomac.clone()), ("profile", section)]);
        let count = usize::MAX;
        assert_eq!(
            Policy::from_bundle(&seal(&body)),
            Err(BundleError::Limit { what, count, max })
        );
    }
    // within the limit, but not there: 65,535 classes of 65,536 states
    let section = [&classes[..], &[0xff, 0xff, 0x03, 0x80, 0x80, 0x04]].concat();
    let body = write_all(&[("lomac", lomac), ("profile", section)]);
    assert_eq!(
        Policy::from_bundle(&seal(&body)),
        Err(BundleError::Malformed {
            section: "profile",
            what: "states"
        })
    );
    assert_eq!(all_fit(MAX_AUTOMATA_BYTES), Ok(()));
    assert!(all_fit(MAX_AUTOMATA_BYTES + 1).is_err());
}

#[test]
fn automata() {
    for change in [
        |table: &mut Table| table.width = 0,
        |table: &mut Table| table.width = 257,
        |table: &mut Table| {
            table.next.clear();
            table.accepts.clear();
        },
    ] {
        let error = changed(|set| {
            let table = &mut set.automata[1];
            change(table);
            let entries = table.accepts.len() * usize::from(table.width);
            table.next.resize(entries, 0);
        });
        let what = "no states or no classes";
        assert_eq!(error, BundleError::Automaton { automaton: 1, what });
    }
    assert_eq!(
        automaton(|table| table.classes[7] = table.width as u8),
        "a class that is not there"
    );
    assert_eq!(
        automaton(|table| *table.next.last_mut().unwrap() = table.accepts.len() as u16),
        "a state that is not there"
    );
    assert_eq!(automaton(|table| table.next[1] = 1), "a way out of state 0");
    assert_eq!(
        automaton(|table| table.accepts[1] = table.perms.len() as u16),
        "permissions that are not there"
    );
    assert_eq!(
        automaton(|table| table.perms[1][0].deny = table.perms[1][0].allow),
        "a permission that is both allowed and denied"
    );
}

#[test]
fn names() {
    let long = "x".repeat(MAX_PROFILE_NAME + 1);
    for name in ["", "x\0y", &long] {
        assert_eq!(
            profile(|p| p.name = name.into()),
            "a name that no profile can have"
        );
        assert_eq!(
            profile(|p| p.disconnected = Some(name.into())),
            "a prefix of disconnected paths that no path can have"
        );
    }
    assert_eq!(profile(|p| p.name = "a".into()), "a name that another has");
    assert_eq!(
        profile(|p| p.name = "c//d".into()),
        "a parent that does not stand before it"
    );
    let untold = "a parent that its name does not tell of";
    assert_eq!(profile(|p| p.parent = Some(0)), untold);
    assert_eq!(profile(|p| p.name = "a//d".into()), untold);
    let swapped = changed(|set| set.profiles.swap(0, 1));
    let what = "a parent that does not stand before it";
    assert_eq!(swapped, BundleError::Profile { profile: 0, what });
    let rule = changed(|set| set.unmediated[0].file = "x".repeat(MAX_LINE + 1));
    assert_eq!(rule, BundleError::Unmediated(0));
}

#[test]
fn contents() {
    let walk = |automaton, start| Some(Walk { automaton, start });
    assert_eq!(
        profile(|p| p.path_flags = PathFlags::from_bits_retain(1)),
        "unknown flags"
    );
    for resource in [1, 16, 255] {
        assert_eq!(
            profile(|p| p.rlimits.push(Rlimit { resource, max: 0 })),
            "a limit of an unknown resource, or two of one"
        );
    }
    assert_eq!(
        profile(|p| p.targets.push(Target::Profile(3))),
        "a target that is not there"
    );
    let no_automaton = "an automaton that is not there";
    assert_eq!(profile(|p| p.file = walk(3, 1)), no_automaton);
    assert_eq!(profile(|p| p.policy = walk(u32::MAX, 1)), no_automaton);
    assert_eq!(
        profile(|p| p.attachment.as_mut().unwrap().walk.automaton = 3),
        no_automaton
    );
    assert_eq!(
        profile(|p| p.policy = walk(2, u16::MAX)),
        "a start outside of its automaton"
    );
    let leads = "an execution that leads to no target";
    assert_eq!(profile(|p| p.targets.clear()), leads);
    // one profile has the target, and another, which shares the automaton, has not
    let targets = |set: &mut ProfileSet| {
        let exec = Exec(Exec::TABLE | 1);
        let perms = set.automata[1].perms.iter_mut().flatten();
        perms.for_each(|perms| perms.exec = exec);
        set.profiles[0].targets = vec![Target::Missing; 2];
    };
    assert_eq!(
        changed(targets),
        BundleError::Profile {
            profile: 1,
            what: leads
        }
    );
}
