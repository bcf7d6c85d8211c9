//! The property over long random sequences, natively.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_model::{Op, POLICY, World, draw};
use tidegate_policy::map;

fn world() -> World {
    let policy = map::compile_str("replay", POLICY)
        .expect("the policy compiles")
        .policy;
    World::new(Arc::new(policy), "/srv/replay/0")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// No byte that was ever low is in something higher, but by trust; and
    /// levels only fall.
    #[test]
    fn low_bytes_stay_low(seeds in prop::collection::vec(any::<u64>(), 1..200)) {
        let mut world = world();
        let mut done: Vec<Op> = Vec::new();
        for seed in seeds {
            let Some(op) = draw(&world, seed) else { continue };
            let before: Vec<_> = world.living().collect();
            let verdict = world.step(&op).expect("a drawn operation makes sense");
            done.push(op);
            let story = || {
                let lines: Vec<String> = done.iter().map(Op::to_string).collect();
                format!("{}\n{verdict}", lines.join("\n"))
            };
            if let Err(wrong) = world.check() {
                prop_assert!(false, "{wrong}, after\n{}", story());
            }
            for (pid, _, level) in world.living() {
                let was = before.iter().find(|(p, ..)| *p == pid).map_or(u8::MAX, |(.., l)| *l);
                prop_assert!(level <= was, "p{pid} rose, after\n{}", story());
            }
        }
    }
}
