//! An attacker of our own: makes every system call that the census has, in both ABIs, and its ioctls, netlink protocols and families
//! of sockets, at the lowest level, as root and as a user, with plausible arguments on higher objects; and a judge looks
//! whether anything higher has changed, or a secret was read.
//!
//!   attack [--seed N] [--seconds N] [--calls FROM-TO] [--leave-out HOOK] [--list]
//!
//! Runs as root where `tests/attack/attack.plm` is in force; `scripts/xtask.sh test attack-6.12` boots a machine.

mod arena;
mod attacker;
mod calls;
mod draw;
mod given;
mod judge;
mod log;
mod look;
mod raw;
mod world;

use std::iter;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use crate::attack::judge::{BATCH, Judge};

/// Calls at the lowest level, and what has changed by them.
#[derive(Debug, Parser)]
#[command(name = "attack")]
struct Cli {
    /// What the order of calls and their arguments follow from
    #[arg(long, env = "ATTACK_SEED", default_value_t = 1)]
    seed: u64,
    /// How long calls are made
    #[arg(long, env = "ATTACK_SECONDS", default_value_t = 60)]
    seconds: u64,
    /// These calls and no others, as a finding tells them
    #[arg(long, env = "ATTACK_CALLS", value_name = "FROM-TO")]
    calls: Option<String>,
    /// Detach the monitor's program on this hook before: a fault that has to be found
    #[arg(long, env = "ATTACK_LEAVE_OUT", value_name = "HOOK")]
    leave_out: Option<String>,
    /// Say which calls these are, and make none
    #[arg(long)]
    list: bool,
}

/// Whether it is a copy that is executed by its path: an attacker or a victim.
pub fn is_copy(path: &str) -> bool {
    [given::ATTACKER, given::VICTIM].contains(&path)
}

/// Plays what the words ask for, or is an attacker or a victim.
pub fn main(words: &[&str]) -> ExitCode {
    let program = std::env::args().next().unwrap_or_default();
    let played = match *words {
        ["run", order] if program == given::ATTACKER => attacker::run(order).map(|()| true),
        [] if program == given::VICTIM => attacker::be_victim().map(|()| true),
        _ => play(&Cli::parse_from(iter::once(&"attack").chain(words))),
    };
    match played {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("attack: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The calls that a word names.
fn range(word: &str) -> Result<(u64, u64)> {
    let both = word.split_once('-').context("FROM-TO")?;
    let (from, to) = (both.0.parse()?, both.1.parse()?);
    anyhow::ensure!(from < to, "{word} is no call");
    Ok((from, to))
}

fn play(cli: &Cli) -> Result<bool> {
    let calls = cli.calls.as_deref().map(range).transpose()?;
    if cli.list {
        let (from, to) = calls.unwrap_or((0, BATCH));
        return Judge::list(cli.seed, from, to).map(|()| true);
    }
    let (first, end) = calls.map_or((0, None), |(from, to)| (from, Some(to)));
    if let Some(hook) = &cli.leave_out {
        world::leave_out(hook)?;
    }
    Judge::new(cli.seed)?.play(first, end, Duration::from_secs(cli.seconds))
}
