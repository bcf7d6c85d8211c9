//! `tidegate`: mandatory access control through BPF LSM, by the command line.

mod amend;
mod asked;
mod caps_record;
mod cli;
mod client;
mod commands;
mod daemon;
mod doctor;
mod exit;
mod learn;
mod mend;
mod other;
mod output;
mod places;
mod profiles;
mod program;
mod protocol;
mod record;
mod selinux;
mod source;
mod tail;
mod te;
mod why;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse_from(cli::Sesearch::in_long(std::env::args_os()));
    match commands::run(cli) {
        Ok(code) => code,
        Err(mut failure) => {
            // why nothing runs here, and never has, may be that nothing can
            if failure.code == exit::Code::NotRunning
                && !Path::new(places::BUNDLES).exists()
                && let Some(obstacle) = doctor::obstacle()
            {
                failure = exit::Failure::cannot_enforce(&obstacle);
            }
            if failure.code == exit::Code::Foreign {
                failure = other::go_on(failure);
            }
            failure.tell();
            failure.code.into()
        }
    }
}
