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

use tidegated::paths;

use crate::output::{say, tell};

fn main() -> ExitCode {
    let cli = match cli::Cli::read(setools::Sesearch::in_long(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => return unparsed(&e),
    };
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

/// Tells what is wrong with the command line, which may have names of others in it; or the help that it asks for.
fn unparsed(e: &clap::Error) -> ExitCode {
    let text = e.render().ansi().to_string();
    match e.use_stderr() {
        true => tell!("{}", text.trim_end()),
        false => say!("{}", text.trim_end()),
    }
    ExitCode::from(e.exit_code() as u8)
}
