//! `tidegate`: mandatory access control through BPF LSM, by the command line.

mod bundle;
mod cli;
mod client;
mod commands;
mod doctor;
mod exit;
#[cfg(test)]
mod layers;
mod options;
mod output;
mod profiles;
mod protocol;
mod setools;
mod source;
mod te;
mod upgrade;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use tidegated::paths;

fn main() -> ExitCode {
    let cli = cli::Cli::parse_from(setools::Sesearch::in_long(std::env::args_os()));
    match commands::run(cli) {
        Ok(code) => code,
        Err(mut failure) => {
            // why nothing runs here, and never has, may be that nothing can
            if failure.code == exit::Code::NotRunning
                && !Path::new(paths::BUNDLES).exists()
                && let Some(obstacle) = doctor::obstacle()
            {
                failure = exit::Failure::cannot_enforce(&obstacle);
            }
            if failure.code == exit::Code::Foreign {
                failure = upgrade::go_on(failure);
            }
            failure.tell();
            failure.code.into()
        }
    }
}
