//! `tidegate`: mandatory access control through BPF LSM, by the command line.
#![warn(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod cli;
mod client;
mod commands;
mod daemon;
mod exit;
mod places;
mod protocol;
mod record;
mod source;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            anstream::eprintln!("{:?}", failure.report);
            failure.code.into()
        }
    }
}
