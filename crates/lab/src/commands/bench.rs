//! `bench`: this machine's own time.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tidegate_lab::artefact::Lab;
use tidegate_lab::bench::{self, bench};
use tidegate_lab::define::Workload;
use tidegate_lab::results::Run;

/// What `bench` takes.
#[derive(Debug, Args)]
pub struct Options {
    /// How often each is measured: the more, the narrower the intervals
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Workloads by name, `core`, `all`, or files such as ./mine.toml, by comma
    #[arg(long, value_name = "LIST", default_value = "core")]
    items: String,
    /// Measure this command, by sh, in place of the workloads
    #[arg(long, value_name = "CMD", conflicts_with = "items")]
    workload: Option<String>,
    /// The policy: a preset, or a map file
    #[arg(long, value_name = "PRESET|FILE.plm", default_value = "workstation")]
    policy: String,
    /// Where to work: a directory that is made for it, and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp/tidegate-bench")]
    dir: PathBuf,
    /// If Tidegate enforces already: end that, and leave it ended
    #[arg(long)]
    stop: bool,
    /// Measure only without enforcement: how far do this machine's own figures move?
    #[arg(long)]
    baseline: bool,
    /// Keep the results here, for `report`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The program to measure [default: the one beside this, else the one in PATH]
    #[arg(long, value_name = "FILE")]
    tidegate: Option<PathBuf>,
}

impl Options {
    /// Measures.
    ///
    /// # Errors
    /// Where enforcement cannot be switched on and off.
    pub fn run(self) -> Result<Run> {
        let options = bench::Options {
            workloads: match &self.workload {
                Some(command) => vec![Workload::command(command)],
                None => Workload::pick(&self.items)?,
            },
            rounds: self.rounds,
            policy: self.policy,
            tidegate: super::measured(self.tidegate),
            dir: self.dir,
            stop: self.stop,
            baseline: self.baseline,
        };
        self.json.as_deref().map_or(Ok(()), Run::writable)?;
        let run = bench(&Lab::open()?, &options)?;
        if let Some(file) = &self.json {
            run.write(file)?;
        }
        Ok(run)
    }
}
