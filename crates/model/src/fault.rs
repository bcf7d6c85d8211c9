//! That the property is checked: a model with one rule broken is found out by
//! random sequences, and what shows it is shortened.

use std::sync::Arc;

use fastrand::Rng;
use tidegate_policy::map;

use crate::{Op, POLICY, World, sequence, shrink};

/// A rule that a model under test does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Reading does not demote.
    Observe,
    /// A descriptor that was opened before the demotion still writes.
    Revoke,
    /// Readers of a channel do not fall with its writers.
    Float,
    /// A low object may be renamed to a high place.
    Launder,
    /// A demotion does not look at mappings.
    Mappings,
}

const SEQUENCES: u64 = 20_000;
const LENGTH: usize = 60;
const TRIES: u32 = 2_000;
/// Operations that show a fault, at most.
const MOST: usize = 8;

fn world(fault: Option<Fault>) -> World {
    let policy = map::compile_str("replay", POLICY).unwrap().policy;
    let mut world = World::new(Arc::new(policy), "/srv/replay/0");
    world.fault = fault;
    world
}

/// Does the property fail while these are tried?
fn fails(start: &World, ops: &[Op]) -> bool {
    let mut world = start.clone();
    let mut tried = ops
        .iter()
        .filter(|op| world.step(op).is_some() && world.check().is_err());
    tried.next().is_some()
}

/// The shortest sequence found that shows a fault.
fn shown(fault: Fault) -> Vec<Op> {
    let faulty = world(Some(fault));
    let found = (0..SEQUENCES).find_map(|number| {
        let mut rng = Rng::with_seed(number);
        let seeds = std::iter::repeat_with(|| rng.u64(..)).take(LENGTH);
        let ops = sequence(&faulty, seeds);
        fails(&faulty, &ops).then_some(ops)
    });
    let ops = found.unwrap_or_else(|| panic!("nothing shows {fault:?}"));
    shrink(&ops, TRIES, |some| fails(&faulty, some))
}

#[test]
fn a_broken_rule_is_found_and_shortened() {
    let faults = [
        Fault::Observe,
        Fault::Revoke,
        Fault::Float,
        Fault::Launder,
        Fault::Mappings,
    ];
    for fault in faults {
        let least = shown(fault);
        let told: Vec<String> = least.iter().map(Op::to_string).collect();
        let told = format!("{fault:?} by\n{}", told.join("\n"));
        assert!(least.len() <= MOST, "long: {told}");
        for at in 0..least.len() {
            let mut fewer = least.clone();
            fewer.remove(at);
            assert!(
                !fails(&world(Some(fault)), &fewer),
                "{at} is needless: {told}"
            );
        }
        assert!(
            !fails(&world(None), &least),
            "the sound model fails, too: {told}"
        );
    }
}
