//! `tidegated`: the daemon, which `tidegate start` starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    tidegated::run_program(words.map(|word| word.to_string_lossy().into_owned()))
}
