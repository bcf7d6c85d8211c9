//! Random sequences of what programs with capability files do, on this kernel and in the reference model
//! (`tidegate_policy::caps::model`), which must agree on every verdict; races with revocation; and scenes.
//!
//!   caps-random SEED COUNT [OPTIONS]   sequences from this seed on, one after the other, and after each a race
//!   caps-random actor                  a process that does what it is told
//!
//! Runs as root beside a daemon; `scripts/xtask.sh test caps-random-6.12` boots a machine. Options are those of `cargo test`.

mod actor;
mod calls;
mod file;
mod play;
mod race;
mod scene;
mod shrink;
mod stage;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use libtest_mimic::Trial;

use crate::trials::{self, Asked};

/// How long shorter sequences are looked for, of all that fail.
const SHRINKS: Duration = Duration::from_secs(400);

/// Whether it is a copy that is executed by its path.
pub fn is_copy(path: &str) -> bool {
    path.starts_with(stage::COPIES)
}

/// Plays what the words say.
pub fn main(words: &[&str]) -> ExitCode {
    let done = match *words {
        ["actor"] => {
            actor::run();
            Ok(ExitCode::SUCCESS)
        }
        [seed, count, ref words @ ..] => {
            play_all(seed, count, &trials::arguments("caps-random", words))
        }
        _ => Err(anyhow::anyhow!("caps-random SEED COUNT [OPTIONS]")),
    };
    done.unwrap_or_else(|e| {
        eprintln!("{e:#}");
        ExitCode::FAILURE
    })
}

/// What was played, by name, and how often what.
type Tallies = Arc<Mutex<Vec<(String, String)>>>;

/// Plays those that are asked for, each as a trial, and then tells how often they did what.
fn play_all(seed: &str, count: &str, asked: &Asked) -> Result<ExitCode> {
    let first: u64 = seed.parse().context("the seed")?;
    let count: u64 = count.parse().context("the count")?;
    if !asked.lists() {
        stage::prepare()?;
    }
    let tallies = Tallies::default();
    let mut trials = vec![
        trial(
            "taken-out-of-who-narrowed-itself".into(),
            &tallies,
            scene::taken_out_of_who_narrowed_itself,
        ),
        trial(
            "what-was-had-before".into(),
            &tallies,
            scene::what_was_had_before_is_taken_back,
        ),
    ];
    let time = Arc::new(Mutex::new(SHRINKS));
    for seed in first..first + count {
        let time = Arc::clone(&time);
        let sequence = move || {
            play::sequence(
                seed,
                &mut time.lock().unwrap_or_else(PoisonError::into_inner),
            )
        };
        trials.push(trial(format!("sequence-{seed}"), &tallies, sequence));
        let races = move || race::races(seed);
        trials.push(trial(format!("race-{seed}"), &tallies, races));
    }
    let came = asked.run(trials);
    for (name, tally) in tallies.lock().expect("one thread played").iter() {
        println!("{name}: {tally}");
    }
    Ok(came.exit_code())
}

fn trial(
    name: String,
    tallies: &Tallies,
    play: impl FnOnce() -> Result<String> + Send + 'static,
) -> Trial {
    let tallies = Arc::clone(tallies);
    Trial::test(name.clone(), move || {
        let tally = play().map_err(|e| format!("{e:#}"))?;
        let mut tallies = tallies.lock().expect("one thread plays");
        tallies.push((name, tally));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    const CHECK: &str = include_str!("../../../caps/check.sh");
    const ATTACKS: &str = include_str!("../../../caps/attacks.sh");

    #[test]
    fn what_the_catalogue_of_bypasses_names_is_played() {
        crate::bypasses::are_played("Capability files", |name| {
            let heading = format!("echo \"# {name}\"");
            let is_attack = |line: &str| {
                line.starts_with("expect 0 '^shut'") && line.split(' ').any(|word| word == name)
            };
            CHECK.lines().any(|line| line == heading) || ATTACKS.lines().any(is_attack)
        });
    }
}
