//! `run`: measures, and shows what came out.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use tidegate_lab::artefact::{Image, Kernel, Lab};
use tidegate_lab::define::{System, Workload};
use tidegate_lab::report::like;
use tidegate_lab::report::published::Source;
use tidegate_lab::results::{Clock, Run};
use tidegate_lab::run::{Plan, run};

/// What `run` takes.
#[derive(Debug, Args)]
pub struct Options {
    /// Systems by name, `core`, `all`, or files such as ./mine.toml, by comma; `none`
    /// is always among them
    /// [default: core; with --like those that the paper is about]
    #[arg(long, value_name = "LIST")]
    systems: Option<String>,
    /// Workloads in the same way [default: core; with --like what the paper measured]
    #[arg(long, value_name = "LIST")]
    items: Option<String>,
    /// Measure what a published chapter did, and show its tables
    #[arg(long, value_name = "PAPER", conflicts_with_all = ["items", "workload"])]
    pub like: Option<Source>,
    /// Measure this command, by sh, in place of the workloads
    #[arg(long, value_name = "CMD", conflicts_with = "items")]
    workload: Option<String>,
    /// A directory that the command finds as /payload/own
    #[arg(long, value_name = "DIR")]
    payload: Option<PathBuf>,
    /// Whose units the figures are: executed instructions, or time under KVM
    #[arg(long, value_enum, default_value = "instructions")]
    clock: Clock,
    /// Kernel series, such as 6.12 or 7.2
    #[arg(long, default_value = "6.12")]
    kernel: Kernel,
    /// The image: `measured`, or the tests' own `root`, in which there is no system but
    /// Tidegate, no server and no kernel's sources
    #[arg(long, default_value = "measured")]
    image: Image,
    /// Boots of each system; all but the first are disturbed on purpose [default: 2;
    /// by time 10]
    #[arg(long, value_name = "N")]
    boots: Option<u32>,
    /// Machines at a time [default: as many as there are processors; by time 1]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Keep the results here; what is there and still holds is not measured again, and a
    /// file that has something else in it is left alone
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The static program to measure [default: the one beside this, else the one in PATH]
    #[arg(long, value_name = "FILE")]
    tidegate: Option<PathBuf>,
    /// The commit it was built from, for the report
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
}

/// What everything is compared with.
const BASELINE: &str = "none";
/// What is measured unless told otherwise.
const CORE: &str = "core";

impl Options {
    /// Measures.
    ///
    /// # Errors
    /// For a name that is none, and a machine that cannot be put together.
    pub fn run(self) -> Result<Run> {
        let timed = self.clock != Clock::Instructions;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let boots = self.boots.unwrap_or(if timed { 10 } else { 2 });
        ensure!(boots > 0, "--boots 0 measures nothing");
        let jobs = self.jobs.unwrap_or(if timed { 1 } else { processors });
        let of_paper = |its: fn(Source) -> String| self.like.map_or_else(|| CORE.to_owned(), its);
        let systems = self.systems.unwrap_or_else(|| of_paper(like::systems));
        let items = self.items.unwrap_or_else(|| of_paper(like::workloads));
        let plan = Plan {
            kernel: self.kernel,
            image: self.image,
            clock: self.clock,
            systems: System::pick(&format!("{BASELINE},{systems}"))?,
            workloads: match &self.workload {
                Some(command) => vec![Workload::command(command)],
                None => Workload::pick(&items)?,
            },
            boots,
            tidegate: super::measured(self.tidegate),
            lab: std::env::current_exe().context("where this program is")?,
            commit: self.commit,
            payload: self.payload,
            jobs,
            processors: if timed {
                u32::try_from(processors).context("processors")?
            } else {
                1
            },
        };
        run(&Lab::open()?, &plan, self.json.as_deref())
    }
}
