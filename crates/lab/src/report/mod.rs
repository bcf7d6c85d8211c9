//! From what runs gave to a report: on a terminal, as a page, as Markdown, as CSV.
//!
//! [`section`] compares, by [`stats`]; [`overview`], [`like`] and [`decisions`] make
//! [`sheet`]s of it, beside what was [`published`] (which item stands for which figure:
//! [`mapping`]); [`document`] is all of them, and [`terminal`], [`html`] (with [`plot`]s),
//! [`markdown`] and [`long`] write them down.

pub mod decisions;
pub mod document;
mod gather;
pub mod html;
pub mod like;
pub mod long;
pub mod mapping;
pub mod markdown;
pub mod overview;
pub mod plot;
pub mod published;
#[cfg(test)]
mod sample;
pub mod section;
pub mod sheet;
pub mod stats;
pub mod terminal;
pub mod versus;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::results::{Clock, Run};
use document::Document;
use published::Source;
use section::Section;

/// What the others are compared with, unless told otherwise.
const BASELINE: &str = "none";
/// Columns of a terminal, unless told otherwise.
const WIDTH: u16 = 100;

/// What `report` is asked for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `run` wrote; files of one clock, kernel and image are joined
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The tables of a published chapter, with its figures beside the measured ones
    #[arg(long, value_name = "PAPER")]
    pub like: Option<Source>,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write Markdown here
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page of Markdown here, with the headline and the single operations alone
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Write a row for each system and item here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// The system that the others are compared with
    #[arg(long, value_name = "SYSTEM", default_value = BASELINE)]
    pub baseline: String,
    /// Print JSON instead of tables
    #[arg(long, conflicts_with = "like")]
    pub json: bool,
    /// Columns of the terminal
    #[arg(long, value_name = "N", default_value_t = WIDTH, value_parser = clap::value_parser!(u16).range(60..))]
    pub width: u16,
}

/// Makes the report.
///
/// # Errors
/// When a file cannot be read or written, or has no such baseline.
pub fn run(args: &Args) -> Result<()> {
    let mut runs = Vec::new();
    for file in &args.files {
        runs.push(Run::read(file)?);
    }
    let sections: Result<Vec<Section>> = joined(runs)
        .iter()
        .map(|run| Section::new(run, &args.baseline))
        .collect();
    let sections = sections?;
    let papers = args.like.map_or(Source::ALL.to_vec(), |one| vec![one]);
    let document = Document::new(&sections, &papers)?;
    if let Some(file) = &args.html {
        write(file, &html::page(&document)?)?;
    }
    if let Some(file) = &args.markdown {
        let page = args.html.as_deref().and_then(Path::file_name);
        let page = page.map(|name| name.to_string_lossy());
        write(file, &markdown::document(&document, page.as_deref())?)?;
    }
    if let Some(file) = &args.summary {
        write(file, &markdown::summary(&document))?;
    }
    if let Some(file) = &args.csv {
        let mut text = Vec::new();
        long::write(&sections, &mut text)?;
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let text = if args.json {
        serde_json::to_string_pretty(&sections)? + "\n"
    } else {
        let like = args.like.is_some();
        document
            .parts
            .iter()
            .map(|p| tables(p, like, args.width))
            .collect()
    };
    print(text)
}

/// To standard output.
fn print(text: String) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // `report … | head` has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

/// Prints the tables of one run, or those of a paper, as `report` of its file would.
///
/// # Errors
/// When it has no baseline, or standard output cannot be written to.
pub fn show(run: &Run, like: Option<Source>) -> Result<()> {
    let section = Section::new(run, BASELINE)?;
    let document = Document::new(&[section], like.as_slice())?;
    print(
        document
            .parts
            .iter()
            .map(|p| tables(p, like.is_some(), WIDTH))
            .collect(),
    )
}

/// What a terminal shows of a part.
fn tables(part: &document::Part, like: bool, width: u16) -> String {
    let about = terminal::filled(&part.about, "", width);
    let mut text = format!("{}\n{about}\n", part.title);
    let sheet = |one| terminal::sheet(one, width);
    if like {
        text.extend(part.papers.iter().flat_map(|p| &p.sheets).map(sheet));
        text.extend(part.failures.iter().map(sheet));
    } else {
        text.extend(part.workloads.iter().map(sheet));
        if part.decisions.rows.iter().any(|r| !r.group && !r.printed) {
            text.push_str(&sheet(&part.decisions));
        }
        text.extend(part.failures.iter().map(sheet));
        text.extend(part.versus.iter().map(sheet));
        text.push_str(&sheet(&part.summary));
    }
    text.push_str("~ not told from noise   ? one pair, or no noise floor   (a) a footnote\n");
    text
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// The runs, with those joined that can be compared.
fn joined(runs: Vec<Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.iter_mut().find(|one| comparable(one, &run)) {
            Some(one) => join(one, run),
            None => joined.push(run),
        }
    }
    joined
}

/// Whether figures of two runs may stand in one table: all that both name is the same.
fn comparable(a: &Run, b: &Run) -> bool {
    fn agree<T: PartialEq>(
        a: &std::collections::BTreeMap<String, T>,
        b: &std::collections::BTreeMap<String, T>,
    ) -> bool {
        a.iter()
            .all(|(name, one)| b.get(name).is_none_or(|other| one == other))
    }
    (a.clock, &a.kernel) == (b.clock, &b.kernel)
        && agree(&a.made_with, &b.made_with)
        && agree(&a.systems, &b.systems)
        && agree(&a.workloads, &b.workloads)
}

/// Adds a run's boots to another's. Counted boots of one number are the same boot: results
/// are put together, and the later ones count. Rounds of time are never the same.
fn join(into: &mut Run, run: Run) {
    into.made_with.extend(run.made_with);
    into.systems.extend(run.systems);
    into.workloads.extend(run.workloads);
    let next = into
        .boots
        .iter()
        .map(|b| b.disturbance + 1)
        .max()
        .unwrap_or(0);
    for mut boot in run.boots {
        if run.clock != Clock::Instructions {
            boot.disturbance += next;
        }
        let same = into
            .boots
            .iter_mut()
            .find(|b| (&b.system, b.disturbance) == (&boot.system, boot.disturbance));
        match same {
            Some(old) if boot.failed.is_empty() && old.failed.is_empty() => {
                old.results.extend(boot.results);
            }
            Some(old) if boot.failed.is_empty() => *old = boot,
            Some(_) => {}
            None => into.boots.push(boot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_if_they_can_be_compared() {
        let whole = sample::run();
        let (mut one, mut two) = (whole.clone(), whole.clone());
        one.boots.retain(|b| b.system != "apparmor");
        two.boots.retain(|b| b.system == "apparmor");
        let got = joined(vec![one.clone(), two.clone()]);
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].boots.len(), whole.boots.len());

        for spoil in [
            |run: &mut Run| run.kernel = "7.2".into(),
            |run: &mut Run| run.clock = Clock::Vm,
            |run: &mut Run| run.made_with.values_mut().for_each(|v| v.push('1')),
            |run: &mut Run| run.systems.get_mut("none").unwrap().lsm.push('x'),
        ] {
            let mut other = two.clone();
            spoil(&mut other);
            assert_eq!(joined(vec![one.clone(), other]).len(), 2);
        }
    }

    #[test]
    fn rounds_of_time_stay_apart_and_counted_boots_do_not() {
        let mut run = sample::run();
        let boots = run.boots.len();
        assert_eq!(joined(vec![run.clone(), run.clone()])[0].boots.len(), boots);
        run.clock = Clock::Vm;
        let got = joined(vec![run.clone(), run]);
        assert_eq!(got[0].boots.len(), 2 * boots);
        let section = Section::new(&got[0], "none").unwrap();
        assert_eq!(section.items[0].cells[1].penalty.as_ref().unwrap().pairs, 6);
    }

    #[test]
    fn every_form_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        sample::run().write(&file("run.json")).unwrap();
        let args = Args {
            files: vec![file("run.json")],
            like: None,
            html: Some(file("cost.html")),
            markdown: Some(file("cost.md")),
            summary: Some(file("summary.md")),
            csv: Some(file("cost.csv")),
            baseline: "none".into(),
            json: false,
            width: 100,
        };
        run(&args).unwrap();
        for name in ["cost.html", "cost.md", "cost.csv"] {
            assert!(fs::metadata(file(name)).unwrap().len() > 10_000, "{name}");
        }
        assert!(fs::metadata(file("summary.md")).unwrap().len() > 1_000);
        assert!(
            fs::read_to_string(file("cost.md"))
                .unwrap()
                .contains("(cost.html)")
        );
    }
}
