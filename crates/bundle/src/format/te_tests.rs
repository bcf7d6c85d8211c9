//! SELinux policies in bundles.

use super::section::{write_all, write_lomac};
use super::*;
use crate::te::Te;
use crate::te::example::example;
use crate::te::policydb::pack::pack;
use crate::te::policydb::{PolicyDbError, read};

fn policy() -> Policy {
    let mut te = Te::read(pack(&example(34))).unwrap();
    te.set("strict", true).unwrap();
    Policy {
        te: Some(te),
        ..made::policy("levels top > low\ntop /\n")
    }
}

/// What the loader says of a section of these bytes.
fn of(content: Vec<u8>) -> BundleError {
    let sections = [(LOMAC, write_lomac(&policy())), (TE, content)];
    Policy::from_bundle(&seal(&write_all(&sections))).expect_err("it is not a bundle")
}

#[test]
fn a_policy_and_its_booleans_are_kept() {
    let policy = policy();
    let read = Policy::from_bundle(&policy.to_bundle());
    assert_eq!(read.as_ref(), Ok(&policy));
    assert_eq!(read.unwrap().te.unwrap().values(), [true, true]);
}

#[test]
fn what_no_compiler_writes_is_refused() {
    let te = policy().te.unwrap();
    let whole = te::write(&te);
    for end in (0..whole.len()).step_by(97) {
        of(whole[..end].to_vec());
    }
    let long = [&whole[..], &[0]].concat();
    let trailing = BundleError::SectionTrailing {
        section: TE,
        bytes: 1,
    };
    assert_eq!(of(long), trailing);
    let with = |change: fn(&mut Te)| {
        let mut te = te.clone();
        change(&mut te);
        of(te::write(&te))
    };
    let truncated = read(&te.policy[..te.policy.len() - 1]).unwrap_err();
    assert_eq!(
        with(|te| te.policy.truncate(te.policy.len() - 1)),
        BundleError::Te(truncated)
    );
    assert_eq!(
        with(|te| te.policy.push(0)),
        BundleError::Te(PolicyDbError::Trailing(1))
    );
    let boolean = |name: &str| BundleError::TeBoolean(name.into());
    assert_eq!(
        with(|te| te.booleans.push(("x".into(), true))),
        boolean("x")
    );
    assert_eq!(
        with(|te| te.booleans.push(("strict".into(), true))),
        boolean("strict")
    );
}
