//! What Tidegate costs: the same programs on the same kernel without it and with
//! it, counted in instructions.
//!
//! The boots that are compared differ in nothing but Tidegate. The error bars come
//! from boots that were disturbed on purpose (a longer command line, another first
//! second of the clock, the kernel at another address), not from repeats, which have
//! to agree to the last digit: one boot of each kind is repeated to see that they do.

mod boot;
mod figures;
mod report;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::artefact::{Image, Kernel, Lab};
use boot::{Mode, Payload};
use figures::Figures;
pub use report::{Change, Memory, Operation, Program, Report, Sight};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// On which kernel.
    pub kernel: Kernel,
    /// The static `tidegate` to measure.
    pub tidegate: PathBuf,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
    /// Only the operations: neither noise nor memory nor look-ups.
    pub brief: bool,
}

/// The boots of one mode.
#[derive(Debug)]
struct Boots {
    plain: Figures,
    /// The same once more.
    repeat: Option<Figures>,
    disturbed: Option<Figures>,
}

/// Boots the machines and compares.
///
/// # Errors
/// When a machine cannot be built or fails, or an item is missing in one of them.
pub fn measure(lab: &Lab, options: &Options) -> Result<Report> {
    let payload = Payload::new(lab, &options.tidegate, options.brief)?;
    count(lab, options, &payload)
}

fn count(lab: &Lab, options: &Options, payload: &Payload) -> Result<Report> {
    lab.setup(std::slice::from_ref(&options.kernel), Image::Root)?;
    let boot = |mode: Mode, disturbed, what: &str| {
        let step = lab.progress().step(&format!("counting, {mode}{what}"));
        let figures = payload.boot(lab, &options.kernel, mode, disturbed)?;
        step.done();
        anyhow::Ok(figures)
    };
    let boots = |mode| {
        let more = |disturbed, what| {
            let wanted = !options.brief;
            wanted.then(|| boot(mode, disturbed, what)).transpose()
        };
        anyhow::Ok(Boots {
            plain: boot(mode, false, "")?,
            repeat: more(false, ", once more")?,
            disturbed: more(true, ", disturbed")?,
        })
    };
    let bare = boots(Mode::Bare)?;
    let listed = (!options.brief)
        .then(|| boot(Mode::Listed, false, ""))
        .transpose()?;
    let enforcing = boots(Mode::Enforcing)?;
    let release = lab.kernel(&options.kernel)?.release;
    let program = payload.program(options.commit.clone())?;
    Report::new(program, release, &bare, listed.as_ref(), &enforcing)
}

/// The report of an earlier [`measure`] of the very same parts, or else that of one
/// made now: the same parts execute as many instructions.
///
/// # Errors
/// As [`measure`].
pub fn recall_or_measure(lab: &Lab, options: &Options) -> Result<Report> {
    let payload = Payload::new(lab, &options.tidegate, options.brief)?;
    let recipe = boot::recipe(lab, options, &payload)?;
    let parts: Vec<&str> = recipe.iter().map(String::as_str).collect();
    let kind = format!("cost-{}", options.kernel);
    let dir = lab.cache().ensure(&kind, &parts, |dir| {
        let report = count(lab, options, &payload)?;
        Ok(fs::write(dir.join("report.json"), report.to_json()?)?)
    })?;
    let file = dir.join("report.json");
    let mut report = Report::read(&file).with_context(|| format!("reading {}", file.display()))?;
    report.program.commit.clone_from(&options.commit);
    Ok(report)
}
