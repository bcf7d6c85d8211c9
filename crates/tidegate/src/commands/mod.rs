//! The commands, a file each.

mod settle;
mod start;
mod status;
mod stop;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::exit::Outcome;

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Outcome<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Start(args) => start::run(&args, json),
        Command::Stop => stop::run(json),
        Command::Status => status::run(json),
        Command::Settle { level } => settle::run(&level),
        Command::Daemon(how) => crate::daemon::detached(&how),
    }
    .map(|()| ExitCode::SUCCESS)
}
