//! Random sequences of what programs with capability files do, on this kernel and in the reference model
//! (`tidegate_policy::caps::model`), which must agree on every verdict; races with revocation; and scenes.
//!
//!   caps-random SEED COUNT    sequences from this seed on, one after the other, and after each a race
//!   caps-random actor         a process that does what it is told
//!
//! Runs as root beside a daemon; `scripts/test.sh caps-random-6.12` boots a machine. The last line is `N passed, N failed`.
#![warn(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks
)]

mod actor;
mod calls;
mod file;
mod play;
mod race;
mod scene;
mod shrink;
mod stage;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

/// How long shorter sequences are looked for, of all that fail.
const SHRINKS: Duration = Duration::from_secs(400);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["actor"] => {
            actor::run();
            Ok(0)
        }
        [seed, count] => sequences(seed, count),
        _ => Err(anyhow::anyhow!("caps-random SEED COUNT")),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn sequences(seed: &str, count: &str) -> Result<usize> {
    let first: u64 = seed.parse().context("the seed")?;
    let count: u64 = count.parse().context("the count")?;
    stage::prepare()?;
    let (mut passed, mut failed) = (0, 0);
    let mut tell = |what: &str, result: Result<String>| match result {
        Ok(tally) => {
            passed += 1;
            println!("{what}: {tally}");
        }
        Err(e) => {
            failed += 1;
            println!("FAILED: {what}: {e:#}");
        }
    };
    tell(
        "taken out of who narrowed itself",
        scene::taken_out_of_who_narrowed_itself(),
    );
    tell(
        "what was had before",
        scene::what_was_had_before_is_taken_back(),
    );
    let mut time = SHRINKS;
    for seed in first..first + count {
        tell(&format!("sequence {seed}"), play::sequence(seed, &mut time));
        tell(&format!("race {seed}"), race::races(seed));
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed)
}

#[cfg(test)]
mod tests {
    const CHECK: &str = include_str!("../../caps/check.sh");
    const ATTACKS: &str = include_str!("../../caps/attacks.sh");

    #[test]
    fn what_the_catalogue_of_bypasses_names_is_played() {
        tidegate_bypasses::are_played("Capability files", |name| {
            let heading = format!("echo \"# {name}\"");
            let is_attack = |line: &str| {
                line.starts_with("expect 0 '^shut'") && line.split(' ').any(|word| word == name)
            };
            CHECK.lines().any(|line| line == heading) || ATTACKS.lines().any(is_attack)
        });
    }
}
