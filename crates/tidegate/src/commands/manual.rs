//! `completions` and `man`: made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;

use crate::cli::{Cli, MANUAL};
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
    MANUAL.write(Cli::command(), dir).map_err(failed)
}
