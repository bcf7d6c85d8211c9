//! `cargo xtask`: runs Tidegate's tests. `make test` and what CI calls are calls of it.
//!
//! A suite on a kernel is a part. Parts need steps: programs that are built, images of machines, trees of other programs.
//! Parts that are played in a machine of one kind share one. Everything runs as soon as all that it needs is there, as
//! many jobs at a time as there are processors; nothing is tried twice. docs/dev/testing.md describes it.

mod cargo;
mod counts;
mod lint;
mod part;
mod play;
mod process;
mod report;
mod schedule;
mod suite;
mod table;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use part::Part;
use play::Play;
use schedule::Job;
use suite::{How, Step};
use table::{MORE, QUICK, SUITES, TEST};

/// Runs Tidegate's tests
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play parts, each once all that it needs is built; the last line is `N passed, N failed`
    ///
    /// Logs are in target/test-logs, the results as JSON in target/test-results.json. Exit status: 0 if all passed.
    Test(Test),
    /// List all parts
    List,
    /// Build programs as tests have them
    Build {
        /// Their names; all if none is given
        programs: Vec<String>,
    },
    /// Build programs as tests have them, and put them into a directory for a machine
    Payload {
        /// The directory
        dir: PathBuf,
        /// Their names
        #[arg(required = true)]
        programs: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Test {
    /// Parts, as `cargo xtask list` names them
    #[arg(value_name = "PART", conflicts_with = "set")]
    parts: Vec<String>,
    /// A set of parts, in place of their names
    #[arg(long, value_enum, default_value_t = Set::Test)]
    set: Set,
    /// Jobs at a time; else as many as there are processors, up to 4
    #[arg(long, env = "TEST_JOBS", value_name = "N")]
    jobs: Option<NonZero<usize>>,
    /// Processors of each machine; else as many as there are for each job
    #[arg(long, value_name = "N")]
    smp: Option<NonZero<usize>>,
    /// Minutes that each part may take; else as many as the table of suites says
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Words for the parts' own programs, such as names of scenarios
    #[arg(last = true)]
    words: Vec<String>,
}

/// Parts that are played together.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Set {
    /// The everyday loop: lint, unit tests, one machine
    Quick,
    /// What shows that each model holds
    Test,
    /// What is slow, and rarely tells anything new
    More,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Test(options) => test(options),
        Command::List => {
            list();
            Ok(true)
        }
        Command::Build { programs } => enter().and_then(|()| build(&programs)),
        Command::Payload { dir, programs } => payload(&dir, &programs),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn list() {
    for part in Part::all() {
        let name = part.name();
        let set = if TEST.contains(&name.as_str()) {
            "make test"
        } else if MORE.contains(&name.as_str()) {
            "make test-more"
        } else {
            ""
        };
        println!("{name:<24} {set}");
    }
}

fn test(options: Test) -> Result<bool> {
    let names: Vec<&str> = match options.set {
        _ if !options.parts.is_empty() => options.parts.iter().map(String::as_str).collect(),
        Set::Quick => QUICK.to_vec(),
        Set::Test => TEST.to_vec(),
        Set::More => MORE.to_vec(),
    };
    let mut parts: Vec<Part> = Vec::new();
    for name in names {
        let part = Part::named(name)?;
        if !parts.iter().any(|other| other.name() == part.name()) {
            parts.push(part);
        }
    }
    enter()?;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let places = options.jobs.map_or(processors.min(4), NonZero::get);
    let smp = options
        .smp
        .map_or((processors / places).max(1), NonZero::get);
    end_all_with_this()?;
    let play = Play::new(smp, options.minutes, options.words)?;
    schedule::run(jobs(&play, &parts), places);
    let asked: Vec<String> = parts.into_iter().map(Part::name).collect();
    play.report().close(&play.results(), &asked)
}

/// Goes to the workspace's directory.
fn enter() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::set_current_dir(&root).with_context(|| root.display().to_string())
}

fn build(programs: &[String]) -> Result<bool> {
    let names: Vec<&str> = programs.iter().map(String::as_str).collect();
    let status = cargo::build(&names).stdout(Stdio::null()).status();
    Ok(status.context("cannot run cargo")?.success())
}

fn payload(dir: &Path, programs: &[String]) -> Result<bool> {
    let dir = std::path::absolute(dir)?;
    enter()?;
    if !build(programs)? {
        return Ok(false);
    }
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    for program in programs {
        cargo::install(
            &cargo::programs(&cargo::target()?).join(program),
            &dir.join(program),
        )?;
    }
    Ok(true)
}

/// Programs that this process has started end when it is told to.
fn end_all_with_this() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            process::end_all(128 + signal);
        }
    });
    Ok(())
}

/// The steps that parts need, and the parts; those of one machine are one job.
fn jobs<'a>(play: &'a Play, parts: &[Part]) -> Vec<Job<'a>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut alone: Vec<Part> = Vec::new();
    let mut machines: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for part in parts {
        part.suite
            .needs
            .iter()
            .for_each(|step| need(&mut steps, *step));
        match &part.suite.how {
            How::Machine(guest) => {
                let machine = match (guest.place.shared(), part.kernel) {
                    (true, Some(kernel)) => format!("machine-{}-{kernel}", guest.place.name()),
                    _ => format!("machine-{}", part.name()),
                };
                if !order.contains(&machine) {
                    order.push(machine.clone());
                }
                machines.entry(machine).or_default().push(*part);
            }
            _ => {
                order.push(part.name());
                alone.push(*part);
            }
        }
    }
    let mut jobs: Vec<Job<'a>> = steps.iter().map(|step| step_job(play, *step)).collect();
    for name in order {
        match machines.remove(&name) {
            Some(mut parts) => {
                // whatever order they were asked for in
                parts.sort_by_key(|part| SUITES.iter().position(|s| s.name == part.suite.name));
                jobs.push(machine_job(play, name, parts));
            }
            None => jobs.extend(
                alone
                    .iter()
                    .find(|p| p.name() == name)
                    .map(|p| part_job(play, *p)),
            ),
        }
    }
    jobs
}

/// Adds a step and those that it needs.
fn need(steps: &mut Vec<Step>, step: Step) {
    for before in step.needs() {
        need(steps, *before);
    }
    if !steps.contains(&step) {
        steps.push(step);
    }
}

fn step_job(play: &Play, step: Step) -> Job<'_> {
    Job {
        name: step.name().into(),
        needs: step.needs().iter().map(|s| s.name().into()).collect(),
        cargo: matches!(step, Step::Lab | Step::Programs | Step::Tests),
        run: Box::new(move || play.step(step.name(), step)),
        skip: Box::new(move |need| {
            play.report()
                .say(&format!("{:<18} not without {need}", step.name()))
        }),
    }
}

fn needs(part: &Part) -> Vec<String> {
    part.suite.needs.iter().map(|s| s.name().into()).collect()
}

fn part_job(play: &Play, part: Part) -> Job<'_> {
    Job {
        name: part.name(),
        needs: needs(&part),
        cargo: matches!(part.suite.how, How::Unit | How::Boots(_)),
        run: Box::new(move || play.alone(part)),
        skip: Box::new(move |need| not_played(play, part, need)),
    }
}

fn machine_job(play: &Play, name: String, parts: Vec<Part>) -> Job<'_> {
    let skipped = parts.clone();
    Job {
        needs: parts.iter().flat_map(needs).collect(),
        name: name.clone(),
        cargo: false,
        run: Box::new(move || play.together(&name, &parts)),
        skip: Box::new(move |need| {
            skipped
                .into_iter()
                .for_each(|part| not_played(play, part, need))
        }),
    }
}

fn not_played(play: &Play, part: Part, need: &str) {
    let _ = play.report().fresh_log(&part.name());
    play.report().played(
        &part.name(),
        std::time::Duration::ZERO,
        Err(format!("not played, as {need} failed")),
    );
}
