//! Runs a plan: boots every system, disturbed in turn, and keeps what each gave.
//!
//! The file is written after every boot; a run that is interrupted goes on where it was,
//! and a boot whose every part is as it was is not made again.

mod boot;
mod payload;
mod plan;
mod transcript;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};

pub use plan::Plan;
pub(crate) use transcript::figures;

use crate::artefact::{Lab, recipe_hash};
use crate::progress::Countdown;
use crate::results::{Boot, Clock, FORMAT, Run};
use crate::vm::{Accelerator, choose};
use payload::Payload;
use plan::Wanted;

/// Carries out a plan, keeping the results in `file` if one is named.
///
/// # Errors
/// When a machine cannot be put together, or the file cannot be read or written. What
/// fails inside a machine is part of the results.
pub fn run(lab: &Lab, plan: &Plan, file: Option<&Path>) -> Result<Run> {
    check(lab, plan)?;
    file.map_or(Ok(()), Run::writable)?;
    lab.setup(std::slice::from_ref(&plan.kernel), plan.image)?;
    payload::remove_orphans(lab.cache().root())?;
    let wanted = plan.wanted();
    ensure!(
        !wanted.is_empty(),
        "nothing to measure: by this clock none of these workloads means anything"
    );
    let earlier = match file {
        Some(file) if file.exists() => earlier(file, &wanted)?,
        _ => Vec::new(),
    };
    let run = Mutex::new(empty(lab, plan)?);
    let keep = |boot: Option<Boot>| {
        let mut run = run
            .lock()
            .expect("no job panics while it holds the results");
        run.boots.extend(boot);
        run.boots.sort_by_key(|b| place(&wanted, b));
        file.map_or(Ok(()), |file| run.write(file))
    };
    let total: u32 = wanted.iter().map(Wanted::seconds).sum();
    let countdown = Countdown::new(lab.progress(), total, plan.jobs);
    // First all that is known: a run that ends early has lost nothing of it.
    let mut missing = Vec::new();
    for one in &wanted {
        let payload = Payload::new(lab, plan, one.system, &one.workloads)?;
        let recipe = recipe(lab, plan, one, &payload)?;
        if let Some(boot) = known(&earlier, one, &recipe) {
            countdown.known(one.seconds());
            keep(Some(boot.clone()))?;
        } else {
            missing.push((one, recipe));
        }
    }
    let queue = Mutex::new(missing.into_iter());
    let stop = AtomicBool::new(false);
    let next = || {
        let mut queue = queue
            .lock()
            .expect("no job panics while it holds the queue");
        queue.next().filter(|_| !stop.load(Ordering::Relaxed))
    };
    let one = |wanted: &Wanted<'_>, recipe: String| {
        let payload = Payload::new(lab, plan, wanted.system, &wanted.workloads)?;
        let what = format!("{}, boot {}", wanted.system.title, wanted.disturbance + 1);
        let step = countdown.step(&what);
        let boot = boot::boot(lab, plan, wanted, &payload, recipe)?;
        step.done(wanted.seconds(), &boot.failed);
        keep(Some(boot))
    };
    std::thread::scope(|scope| {
        let job = || {
            while let Some((wanted, recipe)) = next() {
                if let Err(error) = one(wanted, recipe) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error).with_context(|| wanted.system.title.clone());
                }
            }
            Ok(())
        };
        let jobs: Vec<_> = (0..plan.jobs.max(1)).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().try_for_each(|job| match job.join() {
            Ok(result) => result,
            Err(_) => bail!("a job panicked"),
        })
    })?;
    keep(None)?;
    Ok(run.into_inner().expect("every job has ended"))
}

/// A clock that this machine does not have is refused, not replaced.
fn check(lab: &Lab, plan: &Plan) -> Result<()> {
    match plan.clock {
        Clock::Instructions => Ok(()),
        Clock::Vm => {
            let choice = choose(lab)?;
            ensure!(
                choice.accelerator == Accelerator::Kvm,
                "no time can be taken in a machine here: {}. Count instructions instead \
                 (--clock instructions)",
                choice.reason
            );
            Ok(())
        }
        Clock::Machine => bail!("this machine's own time is `tidegate bench`"),
    }
}

/// A run without boots.
fn empty(lab: &Lab, plan: &Plan) -> Result<Run> {
    let mut made_with = BTreeMap::new();
    let mut say = |what: &str, is: String| {
        made_with.insert(what.to_owned(), is);
    };
    say("lab", env!("CARGO_PKG_VERSION").to_owned());
    say("qemu", version(lab.tools()?.qemu().arg("--version"))?);
    say(
        "compiler",
        version(std::process::Command::new("gcc").arg("--version"))?,
    );
    if plan.systems.iter().any(|s| s.tidegate) {
        let mut program = std::process::Command::new(&plan.tidegate);
        let told = version(program.arg("--version"));
        say(
            "tidegate",
            told.with_context(|| format!("{}: `make static` builds it", plan.tidegate.display()))?,
        );
        say("tidegate sha256", payload::digest(&plan.tidegate)?);
        if let Some(commit) = &plan.commit {
            say("tidegate commit", commit.clone());
        }
    }
    let systems = plan.systems.iter().map(|s| (s.name.clone(), s.clone()));
    let workloads = plan.workloads.iter().map(|w| (w.name.clone(), w.clone()));
    Ok(Run {
        format: FORMAT,
        clock: plan.clock,
        kernel: lab.kernel(&plan.kernel)?.release,
        made_with,
        systems: systems.collect(),
        workloads: workloads.collect(),
        boots: Vec::new(),
    })
}

/// The first line that a program prints of itself.
fn version(command: &mut std::process::Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .with_context(|| format!("running {program}"))?;
    ensure!(output.status.success(), "{program} tells no version");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A boot that need not be made again. Twins have one recipe, and each its own boots.
fn known<'a>(earlier: &'a [Boot], wanted: &Wanted<'_>, recipe: &str) -> Option<&'a Boot> {
    earlier.iter().find(|b| {
        b.recipe == recipe
            && b.failed.is_empty()
            && (b.system.as_str(), b.disturbance) == (&wanted.system.name, wanted.disturbance)
    })
}

/// Where a boot stands among those that are wanted.
fn place(wanted: &[Wanted<'_>], boot: &Boot) -> Option<usize> {
    let same = |w: &Wanted<'_>| w.system.name == boot.system && w.disturbance == boot.disturbance;
    wanted.iter().position(same)
}

/// The boots that a file holds already.
///
/// # Errors
/// If there are others among them than this run gives, which would be lost.
fn earlier(file: &Path, wanted: &[Wanted<'_>]) -> Result<Vec<Boot>> {
    let boots = Run::read(file)?.boots;
    if let Some(boot) = boots.iter().find(|b| !is_wanted(wanted, b)) {
        bail!(
            "{} holds what this run does not measure, such as boot {} of {}: name another file, \
             or all its systems, items and boots",
            file.display(),
            boot.disturbance + 1,
            boot.system
        );
    }
    Ok(boots)
}

/// Whether a run gives all that an earlier boot gave.
fn is_wanted(wanted: &[Wanted<'_>], boot: &Boot) -> bool {
    place(wanted, boot).is_some_and(|at| {
        let named = |name: &String| wanted[at].workloads.iter().any(|w| w.name == *name);
        boot.results.keys().all(named)
    })
}

/// Everything that decides the figures of a boot.
fn recipe(lab: &Lab, plan: &Plan, wanted: &Wanted<'_>, payload: &Payload) -> Result<String> {
    let paths = [
        lab.tools()?.path().to_owned(),
        lab.kernel(&plan.kernel)?.vmlinux(),
        lab.image(plan.image)?,
        lab.scratch()?,
        lab.guest_init()?,
    ];
    let mut parts: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            Some(
                path.strip_prefix(lab.cache().root())
                    .ok()?
                    .display()
                    .to_string(),
            )
        })
        .collect();
    parts.extend([
        payload.digest()?,
        wanted.system.lsm.clone(),
        plan.append(wanted),
        wanted.rtc(),
        format!("{:?} {}", plan.clock, plan.processors),
    ]);
    parts.extend(wanted.workloads.iter().map(|w| w.name.clone()));
    Ok(recipe_hash(
        &parts.iter().map(String::as_str).collect::<Vec<_>>(),
    ))
}
