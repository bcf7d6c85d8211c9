//! `replay`: random operations on this kernel, and on the model beside
//! it; they must agree on every verdict and every level.
//!
//! Runs as root at the top level, on a machine where `crates/model/policy/replay.plm` is in
//! force; `scripts/xtask.sh test replay-6.12` boots one. With `--dry-run` it only shows what it
//! would do, anywhere.

mod attempt;
mod control;
mod inspect;
mod play;
mod sandbox;
mod wire;
mod worker;

use std::iter;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use fastrand::Rng;
use tidegate_bundle::Policy;
use tidegate_model::{Op, POLICY, Program, World, sequence, shrink};
use tidegate_policy::map;

use crate::replay::play::{Divergence, Player, Tally};

/// Random operations on this kernel, compared with the reference model.
#[derive(Debug, Parser)]
#[command(name = "replay")]
struct Cli {
    /// What the random choices follow from; told with every divergence
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Operations to play, on each filesystem one half of them
    #[arg(long, default_value_t = 12_000)]
    ops: usize,
    /// Operations in one sequence, at most
    #[arg(long, default_value_t = 40)]
    length: usize,
    /// Re-runs that shortening a divergence may take
    #[arg(long, default_value_t = 400)]
    shrink: u32,
    /// Stop after so many divergences on one filesystem
    #[arg(long, default_value_t = 3)]
    stop: usize,
    /// Play the one sequence that this number tells, as printed with a divergence
    #[arg(long, conflicts_with = "ops")]
    only: Option<u64>,
    /// Say what would be played and what the model expects of it
    #[arg(long)]
    dry_run: bool,
}

/// Whether it is a copy that is executed by its path: a process of a sequence.
pub fn is_copy(path: &str) -> bool {
    path.starts_with(sandbox::PROGRAMS)
}

/// Plays what the words ask for, or is a process of a sequence.
pub fn main(words: &[&str]) -> ExitCode {
    let program = std::env::args().next().unwrap_or_default();
    if is_copy(&program) {
        // exec has named the process last, and what it had read
        let trusted = program == Program::Trusted.path();
        let me = words.last().and_then(|last| last.split_once(':'));
        let me = me.and_then(|(me, seen)| Some((me.parse().ok()?, seen.parse().ok()?)));
        return match me.map(|(me, seen)| worker::live(me, trusted, seen)) {
            Some(Ok(())) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        };
    }
    match run(&Cli::parse_from(iter::once(&"replay").chain(words))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Where sandboxes are made: on a disk, and in memory.
const PLACES: [(&str, &str); 2] = [("disk", "/srv/replay"), ("memory", "/dev/shm/replay")];

fn run(cli: &Cli) -> Result<bool> {
    let compiled = map::compile_str("replay", POLICY).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let policy = Arc::new(compiled.policy);
    println!("seed {}", cli.seed);
    if cli.dry_run {
        return dry_run(cli, &policy).map(|()| true);
    }
    let mut player = Player::new(Arc::clone(&policy))?;
    let (mut passed, mut failed) = (0, 0);
    let mut numbers = Rng::with_seed(cli.seed);
    for (name, place) in PLACES {
        let (played, diverged) = filesystem(cli, &mut player, name, place, &mut numbers)?;
        passed += played - diverged;
        failed += diverged;
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// The sequence that a number tells.
fn story(cli: &Cli, world: &World, number: u64) -> Vec<Op> {
    let mut rng = Rng::with_seed(number);
    let seeds = std::iter::repeat_with(|| rng.u64(..)).take(cli.length);
    sequence(world, seeds)
}

/// Plays half of the operations in one place: sequences played, and diverged.
fn filesystem(
    cli: &Cli,
    player: &mut Player,
    name: &str,
    place: &str,
    numbers: &mut Rng,
) -> Result<(usize, usize)> {
    let start = Instant::now();
    let mut tally = Tally::default();
    let (mut played, mut diverged) = (0, 0);
    player.move_to(place)?;
    while tally.ops < cli.ops / 2 {
        let number = cli.only.unwrap_or_else(|| numbers.u64(..));
        let ops = story(cli, &player.fresh_world(), number);
        if ops.is_empty() {
            bail!("nothing could be drawn");
        }
        played += 1;
        if let Some(first) = player.play(&ops, &mut tally)? {
            diverged += 1;
            report(cli, player, &ops, first, number)?;
        }
        if cli.only.is_some() || diverged == cli.stop {
            break;
        }
    }
    println!(
        "{name}: {tally}, {diverged} divergences, {:.1} s",
        start.elapsed().as_secs_f32()
    );
    Ok((played, diverged))
}

/// Shortens a divergence and prints it.
fn report(
    cli: &Cli,
    player: &mut Player,
    ops: &[Op],
    first: Divergence,
    number: u64,
) -> Result<()> {
    println!("\ndivergence in sequence {number} (--only {number} plays it alone)");
    let mut last = first;
    let mut broken = None;
    let least = shrink(&ops[..=last.at], cli.shrink, |some| {
        match player.play(some, &mut Tally::default()) {
            Ok(Some(divergence)) => {
                last = divergence;
                true
            }
            Ok(None) => false,
            Err(error) => {
                broken.get_or_insert(error);
                false
            }
        }
    });
    print!("{}", player.tell(&least, &last));
    broken.map_or(Ok(()), Err).context("shorten a divergence")
}

fn dry_run(cli: &Cli, policy: &Arc<Policy>) -> Result<()> {
    let mut numbers = Rng::with_seed(cli.seed);
    let mut tally = Tally::default();
    while tally.ops < cli.ops {
        let number = cli.only.unwrap_or_else(|| numbers.u64(..));
        let mut world = World::new(Arc::clone(policy), "/srv/replay/0");
        for op in story(cli, &world, number) {
            let before = world.clone();
            if let Some(verdict) = world.step(&op) {
                tally.count(&before, &op, verdict, &world);
                if cli.only.is_some() {
                    println!("{op}  → {verdict}{}", play::changes(&before, &world));
                }
            }
        }
        if cli.only.is_some() {
            break;
        }
    }
    println!("{tally}\n{}", tally.table());
    Ok(())
}
