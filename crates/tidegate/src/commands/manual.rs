//! `completions` and `man`: made from the command line's own definition.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};

pub fn completions(shell: clap_complete::Shell) -> Outcome {
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut io::stdout());
    Ok(())
}

pub fn pages(dir: &Path) -> Outcome {
    let failed = |e| Failure::io(format!("write the manual to {}", dir.display()), e);
    fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)
}
