//! What `apparmor_parser` writes, and what it does not.

use tidegate_bundle::Policy;
use tidegate_bundle::profile::{ProfileSet, Target};
use tidegate_policy::map;
use tidegate_policy::profile::pack::example;
use tidegate_policy::profile::{self, LinkError, Parsed, Profile, Rules, unpack};

/// Reads any bytes as compiled profiles, and links them.
///
/// # Panics
///
/// If what was accepted cannot be walked, or does not come back from a bundle.
pub fn profiles(bytes: &[u8]) {
    let profiles = unpack(bytes).unwrap_or_default();
    if let Ok(set) = link(profiles.clone()) {
        walk_all(&set, bytes);
        comes_back(set);
    }
    for profile in profiles {
        let Profile {
            attachment,
            policy,
            file,
            ..
        } = profile;
        for rules in [attachment.pattern, policy, file].iter().flatten() {
            walk(rules, bytes);
        }
    }
}

/// Walks an automaton by bytes, and asks what each state allows and where it leads.
fn walk(rules: &Rules, bytes: &[u8]) {
    for mut state in [rules.start, rules.file_start] {
        for &byte in b"/etc/a\0\x02".iter().chain(bytes) {
            state = rules.dfa.step(state, byte);
            for perms in rules.accepts[state as usize] {
                assert!(!perms.allow.intersects(perms.deny));
                assert!(perms.exec.index().is_none_or(|at| at < rules.names.len()));
            }
            let beyond = rules.dfa.step_out_of_band(state);
            assert!((beyond as usize) < rules.dfa.states());
        }
    }
}

/// Compiled profiles with changes laid over them: each three bytes of input are a way to go on
/// from the last change, two bytes long, and the byte to put there.
pub fn changed_profiles(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut changed = good.to_vec();
    let mut at = 0;
    for change in changes.chunks_exact(3) {
        at += usize::from(u16::from_le_bytes([change[0], change[1] % 8]));
        match changed.get_mut(at) {
            Some(byte) => *byte = change[2],
            None => break,
        }
    }
    changed
}

fn link(profiles: Vec<Profile>) -> Result<ProfileSet, LinkError> {
    let parsed = Parsed {
        file: "fuzz".into(),
        profiles,
        warnings: Vec::new(),
    };
    profile::link(&[parsed], &[])
}

fn comes_back(profiles: ProfileSet) {
    let map = "levels top > low\ntop /\n";
    let mut policy = map::compile_str("fuzz", map).expect("it compiles").policy;
    policy.profiles = profiles;
    assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy));
}

/// Some profiles, one of which is another's child.
///
/// # Panics
///
/// If they do not go together.
pub fn good_set() -> ProfileSet {
    let profiles = ["a", "a//b", "other"].map(|name| {
        let mut profile = unpack(&example().0).expect("it is one").remove(0);
        profile.name = name.into();
        profile
    });
    link(profiles.into()).expect("they go together")
}

/// Walks all automata of profiles by bytes, as the monitor would.
///
/// # Panics
///
/// If a walk leaves its automaton, or leads to a profile that is not there.
pub fn walk_all(set: &ProfileSet, bytes: &[u8]) {
    for profile in &set.profiles {
        let attachment = profile.attachment.map(|attach| attach.walk);
        for walk in [attachment, profile.file, profile.policy].iter().flatten() {
            let table = &set.automata[walk.automaton as usize];
            let mut state = usize::from(walk.start);
            for &byte in b"/etc/a\0\x02".iter().chain(bytes) {
                let class = usize::from(table.classes[usize::from(byte)]);
                let next = usize::from(table.next[state * usize::from(table.width) + class]);
                assert!(state != 0 || next == 0);
                state = next;
                for perms in table.perms[usize::from(table.accepts[state])] {
                    let target = perms.exec.index().map(|at| profile.targets[at]);
                    if let Some(Target::Profile(at)) = target {
                        assert!((at as usize) < set.profiles.len());
                    }
                }
            }
        }
        if let Some(parent) = profile.parent {
            let parent = &set.profiles[parent as usize].name;
            assert!(profile.name.starts_with(parent.as_str()));
        }
    }
}
