//! What the compilers make, for tests of the reader. They are built with this crate as others see it, whose types are not the
//! tests' own; so what they make comes as a bundle.

use tidegate_policy::profile::pack::example;
use tidegate_policy::profile::{Parsed, link, unpack};
use tidegate_policy::te::contexts::{self, Text, Texts};
use tidegate_policy::{caps, map};

use crate::caps::Capabilities;
use crate::policy::Policy;
use crate::te::contexts::FileContexts;

/// Returns the policy that a map makes.
pub(super) fn policy(map: &str) -> Policy {
    let compiled = map::compile_str("test", map).expect("it compiles");
    Policy::from_bundle(&compiled.policy.to_bundle()).expect("it is a bundle")
}

/// Returns what a capability file makes.
pub(super) fn capabilities(text: &str) -> Capabilities {
    let compiled = caps::compile_str("a.caps", text).expect("it compiles");
    Capabilities::from_bundle(&compiled.capabilities.to_bundle()).expect("it is a bundle")
}

/// Returns what a file of file contexts makes.
pub(super) fn file_contexts(text: &str) -> FileContexts {
    let policy = Text {
        name: "file_contexts".into(),
        text: text.into(),
    };
    let texts = Texts {
        policy,
        ..Texts::default()
    };
    let compiled = contexts::compile(&texts).expect("it compiles");
    FileContexts::from_bytes(&compiled.to_bytes()).expect("it is read")
}

/// Returns a policy of two levels with profiles of these names, each of which says what the example does.
pub(super) fn policy_with_profiles(names: &[&str]) -> Policy {
    let profiles = names.iter().map(|&name| {
        let mut profile = unpack(&example().0).expect("it is read").remove(0);
        profile.name = name.into();
        profile
    });
    let parsed = Parsed {
        file: "f".into(),
        profiles: profiles.collect(),
        warnings: Vec::new(),
    };
    let mut compiled = map::compile_str("test", "levels top > low\ntop /\n").expect("it compiles");
    compiled.policy.profiles = link(&[parsed], &[]).expect("they fit together");
    Policy::from_bundle(&compiled.policy.to_bundle()).expect("it is a bundle")
}
