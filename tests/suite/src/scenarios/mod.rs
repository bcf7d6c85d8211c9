//! What Tidegate must allow and refuse, played on a running kernel.
//!
//! Runs as root in a machine of its own, beside the `tidegate` program: starts
//! it with a policy for the purpose, plays every scenario in processes of its
//! own, and says what came of each. `docs/reference/lomac.md` is what it judges by.

mod check;
mod compat;
mod daemon;
mod devfuse;
mod disk;
mod forge;
mod helper;
mod ipcs;
mod level;
mod net;
mod place;
mod report;
mod run;
mod scenario;
mod setup;
mod subject;
mod sys;
mod topics;
mod unixsock;
mod uring;

use std::process::ExitCode;

use crate::trials;

/// Whether it is a copy, wherever it is and whatever its name: it is told which part of a scenario to play.
pub fn is_copy(words: &[&str]) -> bool {
    matches!(words, ["--one" | "--helper", ..])
}

/// Plays the scenarios that the words choose, or a part of one.
pub fn main(words: &[&str]) -> ExitCode {
    match *words {
        ["--one", name] => run::play_one(name),
        ["--helper", ref words @ ..] => helper::main(words),
        _ => run::play(&trials::arguments("scenarios", words)),
    }
}
