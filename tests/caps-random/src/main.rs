//! Random sequences of what programs with capability files do, on this kernel and in the reference model
//! (`tidegate_policy::caps::model`), which must agree on every verdict; and races with revocation.
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
mod stage;

use std::process::ExitCode;

use anyhow::{Context, Result};

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
    for seed in first..first + count {
        for (what, result) in [
            ("sequence", play::sequence(seed)),
            ("race", race::races(seed)),
        ] {
            match result {
                Ok(tally) => {
                    passed += 1;
                    println!("{what} {seed}: {tally}");
                }
                Err(e) => {
                    failed += 1;
                    println!("FAILED: {what} {seed}: {e:#}");
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed)
}

#[cfg(test)]
mod tests {
    const BYPASSES: &str = include_str!("../../../docs/bypasses.md");
    const CHECK: &str = include_str!("../../caps/check.sh");
    const ATTACKS: &str = include_str!("../../caps/attacks.sh");

    #[test]
    fn what_the_catalogue_of_bypasses_names_is_played() {
        let (_, section) = BYPASSES
            .split_once("## Capability files")
            .expect("a section");
        // those below are tests/narrow's
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| B")).collect();
        assert!(!rows.is_empty());
        for row in rows {
            let played = row.trim_matches('|').split('|').nth(3).unwrap_or_default();
            let names: Vec<&str> = played.split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "nothing plays {row}");
            for name in names {
                let heading = format!("echo \"# {name}\"");
                let is_attack = |line: &str| {
                    line.starts_with("expect 0 '^shut'") && line.split(' ').any(|word| word == name)
                };
                assert!(
                    CHECK.lines().any(|line| line == heading) || ATTACKS.lines().any(is_attack),
                    "nothing plays `{name}`: {row}"
                );
            }
        }
    }
}
