//! This machine's own time: the same work without enforcement and with it, in turn.
//!
//! A round measures nothing enforced, a subject at the top level, and one at the level
//! below; every other round goes the other way about, so that what drifts (heat, other
//! work) falls on all alike. What is compared stands in one round.

mod enforcement;
mod interrupt;
mod work;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

use crate::artefact::Lab;
use crate::define::{System, Workload};
use crate::progress::Countdown;
use crate::results::{Boot, Clock, FORMAT, Run};
use enforcement::{Enforcement, Program};
use interrupt::Interrupt;
use work::Place;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// How often each is measured.
    pub rounds: u32,
    /// The policy: a preset's name, or a map file.
    pub policy: String,
    /// `tidegate` itself.
    pub tidegate: PathBuf,
    /// Where to work: a directory that is made for it, and removed.
    pub dir: PathBuf,
    /// End enforcement that is on already, for the time of the measurement, and leave it
    /// ended.
    pub stop: bool,
    /// Only what is not enforced, to see how far this machine's own figures move.
    pub baseline: bool,
}

/// What the subject of a measurement runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Nothing is enforced.
    None,
    /// At the top level.
    Top,
    /// At the level below.
    Low,
}

/// In the order of even rounds.
const SUBJECTS: [Subject; 3] = [Subject::None, Subject::Top, Subject::Low];

impl Subject {
    fn system(self) -> System {
        let (name, title, about) = match self {
            Self::None => ("none", "none", "Tidegate enforces nothing."),
            Self::Top => (
                "tidegate",
                "Tidegate, unaffected",
                "Tidegate enforces; the subject is at the top level.",
            ),
            Self::Low => (
                "tidegate-user",
                "Tidegate, governed",
                "Tidegate enforces; the subject is at the second level, and so are its files.",
            ),
        };
        System::of_this_machine(name, title, about, self as u32)
    }
}

/// Measures.
///
/// # Errors
/// Without root, where Tidegate cannot enforce or enforces already, and for a workload's
/// failure to be set up. Whatever happens, enforcement is off at the end.
pub fn bench(lab: &Lab, options: &Options) -> Result<Run> {
    ensure!(options.rounds > 0, "--rounds 0 measures nothing");
    let program = Program::new(&options.tidegate);
    let subjects = if options.baseline {
        &SUBJECTS[..1]
    } else {
        ensure!(
            geteuid().is_root(),
            "switching enforcement on and off takes root"
        );
        program.ready(options.stop)?;
        &SUBJECTS[..]
    };
    let interrupt = Interrupt::watch()?;
    let place = Place::new(lab, &options.dir, &options.workloads)?;
    let mut run = empty(options, &program, subjects)?;
    let one: u32 = options
        .workloads
        .iter()
        .map(|w| w.seconds.div_ceil(10))
        .sum();
    let boots = options.rounds * u32::try_from(subjects.len())?;
    let countdown = Countdown::new(lab.progress(), boots * one.max(1), 1);
    for round in 0..options.rounds {
        let mut order = subjects.to_vec();
        if round % 2 == 1 {
            order.reverse();
        }
        for subject in order {
            let system = subject.system();
            let step = countdown.step(&format!("{}, round {}", system.title, round + 1));
            let boot = measure(options, &program, &place, &interrupt, subject, round)
                .with_context(|| system.title.clone())?;
            interrupt.check()?;
            step.done(one.max(1), &boot.failed);
            run.boots.push(boot);
        }
    }
    Ok(run)
}

/// One subject of one round.
fn measure(
    options: &Options,
    program: &Program,
    place: &Place,
    interrupt: &Interrupt,
    subject: Subject,
    round: u32,
) -> Result<Boot> {
    let start = std::time::Instant::now();
    let mut proof = Vec::new();
    let enforcement = match subject {
        Subject::None => None,
        Subject::Top | Subject::Low => {
            let low = subject == Subject::Low;
            Some(Enforcement::start(
                program,
                &options.policy,
                place.dir(),
                low,
            )?)
        }
    };
    let enter = enforcement
        .as_ref()
        .map_or_else(String::new, Enforcement::enter);
    let mut done = Vec::new();
    for workload in &options.workloads {
        let one = place.measure(workload, &enter, interrupt)?;
        done.push((workload.name.clone(), one));
    }
    if let Some(on) = enforcement {
        // Not before: it lets a subject fall, and that costs until the guard is idle again.
        proof.push(on.prove(place.dir())?);
        on.stop()?;
    }
    let mut results = BTreeMap::new();
    for (name, one) in done {
        results.insert(name, one.collect()?);
    }
    Ok(Boot {
        system: subject.system().name,
        disturbance: round,
        recipe: String::new(),
        seconds: start.elapsed().as_secs_f64(),
        proof,
        failed: String::new(),
        absent: false,
        results,
    })
}

fn empty(options: &Options, program: &Program, subjects: &[Subject]) -> Result<Run> {
    let systems = subjects.iter().map(|s| s.system());
    let workloads = options.workloads.iter().cloned();
    let kernel = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut made_with = BTreeMap::new();
    made_with.insert("lab".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    made_with.insert("processor".to_owned(), processor());
    made_with.insert("policy".to_owned(), options.policy.clone());
    if !options.baseline {
        made_with.insert("tidegate".to_owned(), program.version()?);
    }
    Ok(Run {
        format: FORMAT,
        clock: Clock::Machine,
        kernel,
        made_with,
        systems: systems.map(|s| (s.name.clone(), s)).collect(),
        workloads: workloads.map(|w| (w.name.clone(), w)).collect(),
        boots: Vec::new(),
    })
}

/// The processor's name and how many there are.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} x {model}")
}
