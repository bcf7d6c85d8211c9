//! Any policy comes back from its bundle, and nothing else does.

mod common;

use common::{maps, text};
use proptest::prelude::*;
use tidegate_bundle::{Policy, Rule};
use tidegate_policy::map;

fn policy(map: &str) -> Policy {
    let networks = "mode permissive\nmid network loopback\nlow network 2001:db8::/32\n";
    let compiled = map::compile_str("test", &format!("{map}{networks}"));
    compiled
        .unwrap_or_else(|errors| panic!("{map}\n{errors:?}"))
        .policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_policy_comes_back(rules in maps(20)) {
        let policy = policy(&text(&rules));
        prop_assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy));
    }

    #[test]
    fn no_changed_byte_is_accepted(
        rules in maps(6),
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
    ) {
        let mut bundle = policy(&text(&rules)).to_bundle();
        let at = at.index(bundle.len());
        bundle[at] ^= flip;
        prop_assert!(Policy::from_bundle(&bundle).is_err());
    }

    #[test]
    fn what_is_accepted_can_be_used(
        rules in maps(8),
        node in any::<prop::sample::Index>(),
        edge in any::<prop::sample::Index>(),
        to in 0..40u32,
        what in 0..6,
    ) {
        // A changed policy, sealed rightly: refused, or as good as any.
        let mut policy = policy(&text(&rules));
        let at = node.index(policy.nodes.len());
        let edge = edge.index(policy.edges.len());
        match what {
            0 => policy.nodes[at].star = Some(to),
            1 => policy.nodes[at].edges = to,
            2 => policy.edges[edge].child = to,
            3 => policy.edges[edge].parent = to,
            4 => policy.nodes[at].own = Rule { level: (to % 5) as u8, ..policy.nodes[at].own },
            _ => policy.nodes[at].below = Rule { source: to, ..policy.nodes[at].below },
        }
        if let Ok(policy) = Policy::from_bundle(&policy.to_bundle()) {
            for path in ["/", "/a", "/run/tidegate/level/low", "/a/b/home/root/x/y/z"] {
                let rule = policy.lookup(path.as_bytes());
                prop_assert!(usize::from(rule.level) < policy.levels.len());
                prop_assert!((rule.source as usize) < policy.rules.len());
            }
            prop_assert_eq!(policy.lookup(b"/run/tidegate/x").level, policy.top());
        }
    }
}

#[test]
fn no_flip_and_no_truncation_of_a_bundle_is_accepted() {
    let bundle =
        policy("levels top > mid > low\ntop /\nmid /a/*/b lowwrite\nlow ~/x\n").to_bundle();
    for at in 0..bundle.len() {
        assert!(Policy::from_bundle(&bundle[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut bundle = bundle.clone();
            bundle[at] ^= 1 << bit;
            assert!(
                Policy::from_bundle(&bundle).is_err(),
                "bit {bit} of byte {at}"
            );
        }
    }
}
