//! `completions` and `man`: made from the command line's own definition.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::output::say;

pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

pub fn pages(dir: &Path) -> Outcome {
    let failed = |e| Failure::io(format!("write the manual to {}", dir.display()), e);
    fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)
}
