//! The whole report before it is written down.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::published::Source;
use super::section::Section;
use super::sheet::Sheet;
use super::{decisions, like, overview, plot, versus};
use crate::results::Clock;

const METHOD: &str = include_str!("templates/method.toml");

/// The report.
#[derive(Debug, Serialize)]
pub struct Document {
    /// A part for each kernel and clock.
    pub parts: Vec<Part>,
}

/// What was measured by one clock on one kernel.
#[derive(Debug, Serialize)]
pub struct Part {
    /// The heading.
    pub title: String,
    /// What was measured, in sentences.
    pub about: String,
    /// Name and version of what it was measured with.
    pub made_with: Vec<(String, String)>,
    /// The systems: heading and what it is.
    pub systems: Vec<(String, String)>,
    /// The headline.
    pub summary: Sheet,
    /// Tidegate against the others.
    pub versus: Vec<Sheet>,
    /// What failed.
    pub failures: Option<Sheet>,
    /// The plots.
    pub plots: Vec<plot::Plot>,
    /// A table a workload.
    pub workloads: Vec<Sheet>,
    /// Table 6.
    pub decisions: Sheet,
    /// The tables of the papers.
    pub papers: Vec<Paper>,
    /// How it was measured.
    pub method: Vec<Point>,
}

/// A paper's tables.
#[derive(Debug, Serialize)]
pub struct Paper {
    /// Its name in a word.
    pub name: &'static str,
    /// The paper.
    pub title: &'static str,
    /// Its tables.
    pub sheets: Vec<Sheet>,
}

/// A point of the method.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// The clocks that it is about; none: all.
    #[serde(default, skip_serializing)]
    clocks: Vec<Clock>,
    /// In a few words.
    pub head: String,
    /// In full.
    pub text: String,
}

impl Document {
    /// Makes the report, with the tables of these papers.
    ///
    /// # Errors
    /// When a plot cannot be drawn.
    pub fn new(sections: &[Section], papers: &[Source]) -> Result<Self> {
        let parts: Result<Vec<Part>> = sections.iter().map(|s| part(s, papers)).collect();
        Ok(Self { parts: parts? })
    }
}

/// What a section is called.
#[must_use]
pub fn title(section: &Section) -> String {
    let clock = match section.clock {
        Clock::Instructions => "instructions",
        Clock::Vm => "time in a virtual machine",
        Clock::Machine => "time on the machine itself",
    };
    format!("Linux {}, {clock}", section.kernel)
}

/// What was measured, in a sentence or two.
fn about(section: &Section) -> String {
    let cells = || section.items.iter().flat_map(|item| &item.cells);
    let boots = || cells().map(|c| c.figures.len()).filter(|n| *n > 0);
    let least = boots().min().unwrap_or(0);
    let most = boots().max().unwrap_or(0);
    let (unit, what, caution) = match section.clock {
        Clock::Instructions => (
            "instructions",
            "boot",
            " They are instructions, never time.",
        ),
        Clock::Vm => ("nanoseconds", "boot", ""),
        Clock::Machine => ("nanoseconds", "round", ""),
    };
    let boots = if least == most {
        counted(most, what)
    } else {
        format!("{least} to {}", counted(most, what))
    };
    format!(
        "{} and {}, {boots} each. Figures are {unit} for one operation, KB, connection or build; \
         less is better.{caution}",
        counted(section.systems.len(), "system"),
        counted(section.items.len(), "item"),
    )
}

/// A number of things.
fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

fn part(section: &Section, papers: &[Source]) -> Result<Part> {
    let pairs = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(a, b)| (a.clone(), b.clone())).collect()
    };
    let workloads = section.workloads();
    Ok(Part {
        title: title(section),
        about: about(section),
        made_with: pairs(&section.made_with),
        systems: section
            .systems
            .iter()
            .map(|s| (s.title.clone(), s.about.clone()))
            .collect(),
        summary: overview::summary(section),
        versus: versus::sheets(section),
        failures: overview::failures(section),
        plots: plot::all(section)?,
        workloads: workloads
            .iter()
            .map(|(name, _)| overview::overhead(section, name))
            .collect(),
        decisions: decisions::sheet(section),
        papers: papers
            .iter()
            .map(|source| Paper {
                name: source.as_str(),
                title: source.title(),
                sheets: like::sheets(*source, section),
            })
            .collect(),
        method: method(section.clock)?,
    })
}

/// The points that concern this clock.
///
/// # Errors
/// When the file that comes along is wrong.
pub fn method(clock: Clock) -> Result<Vec<Point>> {
    #[derive(Deserialize)]
    struct File {
        point: Vec<Point>,
    }
    let file: File = toml::from_str(METHOD).context("templates/method.toml")?;
    let mut points = file.point;
    points.retain(|p| p.clocks.is_empty() || p.clocks.contains(&clock));
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_has_its_own_cautions() {
        let heads = |clock| {
            let points = method(clock).unwrap();
            points.into_iter().map(|p| p.head).collect::<Vec<_>>()
        };
        let instructions = heads(Clock::Instructions);
        let time = heads(Clock::Machine);
        assert!(instructions.contains(&"Instructions, not time.".to_owned()));
        assert!(!time.contains(&"Instructions, not time.".to_owned()));
        assert!(time.len() > 5 && instructions.len() > time.len() - 2);
    }
}
