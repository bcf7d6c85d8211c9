//! One comparison: what every system gave for every item, with the reasons of gaps.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use super::gather;
use super::stats::{self, Penalty};
use crate::results::{Clock, Decisions, Run};

/// Items that no system has a hook for: what moves them is no system's cost.
const UNTOUCHED: [&str; 10] = [
    "lmbench/null call",
    "lmbench/signal install",
    "lmbench/protection fault",
    "lmbench/page fault",
    "lmbench/bcopy libc",
    "lmbench/bcopy hand",
    "lmbench/mem read",
    "lmbench/mem write",
    "unixbench/dhrystone",
    "unixbench/whetstone",
];
/// What programs round a figure to, in units of the clock (count.h).
const QUANTUM: f64 = 0.1;

/// Whether the item is one that no system has a say in.
#[must_use]
pub fn is_untouched(id: &str) -> bool {
    UNTOUCHED.contains(&id)
}

/// Figures of one clock on one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Whose units the figures are.
    pub clock: Clock,
    /// The kernel.
    pub kernel: String,
    /// What was measured with what.
    pub made_with: BTreeMap<String, String>,
    /// The name of the system that all are compared with.
    pub baseline: String,
    /// The systems in order; the baseline is one of them.
    pub systems: Vec<Column>,
    /// What each workload does, by its name.
    pub workload_abouts: BTreeMap<String, String>,
    /// The items in order.
    pub items: Vec<Item>,
}

/// A system.
#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it is.
    pub about: String,
    /// It is the baseline under another name, there to show the noise.
    pub twin: bool,
    /// It checks the subject on as much as Tidegate does.
    pub mediates_all: bool,
    /// How many of its boots gave figures.
    pub boots: usize,
    /// Why boots gave nothing, each reason once.
    pub failed: Vec<String>,
    /// Table 6 of each workload, from the least disturbed boot that has it.
    pub decisions: BTreeMap<String, Vec<Decisions>>,
}

/// An item, with a cell for each of [`Section::systems`].
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    /// `workload/item`.
    pub id: String,
    /// The workload's name.
    pub workload: String,
    /// The workload's heading.
    pub heading: String,
    /// The item's own name.
    pub name: String,
    /// What is counted.
    pub per: String,
    /// How far figures of the same thing lie apart, in percent; none if that is not known.
    pub noise: Option<f64>,
    /// What each system gave.
    pub cells: Vec<Cell>,
}

/// What a system gave for an item.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    /// Its figures by disturbance, empty if it gave none.
    pub figures: BTreeMap<u32, f64>,
    /// Against the baseline; none for the baseline itself, and without a pair.
    pub penalty: Option<Penalty>,
    /// Why there are no figures, or not of all boots.
    pub reason: Option<String>,
}

impl Cell {
    /// The figures alone.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.figures.values().copied().collect()
    }

    /// Their mean, if there are any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.figures.is_empty()).then(|| stats::mean(&self.values()))
    }

    /// The pairs of boots that a baseline's cell and this one have in common.
    #[must_use]
    pub fn pairs(&self, base: &Self) -> Vec<(f64, f64)> {
        let pair = |(n, value): (&u32, &f64)| Some((*base.figures.get(n)?, *value));
        self.figures.iter().filter_map(pair).collect()
    }
}

impl Section {
    /// Compares what a run gave.
    ///
    /// # Errors
    /// When the baseline is not in the run.
    pub fn new(run: &Run, baseline: &str) -> Result<Self> {
        let base = run.systems.get(baseline).with_context(|| {
            let names: Vec<_> = run.systems.keys().map(String::as_str).collect();
            format!(
                "there is no system `{baseline}` to compare with: name one of these with --baseline: {}",
                names.join(", ")
            )
        })?;
        let systems = run.ordered_systems();
        let mut items = gather::items(run, baseline);
        for item in &mut items {
            item.cells = systems.iter().map(|s| gather::cell(run, s, item)).collect();
        }
        let columns = systems
            .iter()
            .map(|s| gather::column(run, s, base))
            .collect();
        let mut section = Self {
            clock: run.clock,
            kernel: run.kernel.clone(),
            made_with: run.made_with.clone(),
            baseline: baseline.to_owned(),
            systems: columns,
            workload_abouts: run
                .workloads
                .iter()
                .map(|(name, w)| (name.clone(), w.about.clone()))
                .collect(),
            items,
        };
        section.compare();
        Ok(section)
    }

    /// The baseline's place among the systems.
    #[must_use]
    pub fn base(&self) -> usize {
        let found = self.systems.iter().position(|s| s.name == self.baseline);
        found.expect("`new` has looked")
    }

    /// The places of all other systems.
    pub fn others(&self) -> impl Iterator<Item = usize> {
        let base = self.base();
        (0..self.systems.len()).filter(move |at| *at != base)
    }

    /// An item by its id.
    #[must_use]
    pub fn item(&self, id: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    /// Why none of these ids was measured.
    #[must_use]
    pub fn absence(&self, ids: &[&str]) -> String {
        let run = |id: &str| {
            let workload = id.split('/').next().unwrap_or(id);
            self.items.iter().any(|i| i.workload == workload)
        };
        let mut missing: Vec<&str> = Vec::new();
        for id in ids {
            let what = if run(id) {
                id
            } else {
                id.split('/').next().unwrap_or(id)
            };
            if !missing.contains(&what) {
                missing.push(what);
            }
        }
        format!("{} was not measured", missing.join(" or "))
    }

    /// The workloads by name and heading, in order.
    #[must_use]
    pub fn workloads(&self) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for item in &self.items {
            if found.last().is_none_or(|(name, _)| *name != item.workload) {
                found.push((&item.workload, &item.heading));
            }
        }
        found
    }

    /// How far systems move what none of them has a say in, in percent: the floor of all
    /// noise, where there are such items.
    fn untouched(&self) -> Option<f64> {
        let base = self.base();
        let items = self
            .items
            .iter()
            .filter(|i| UNTOUCHED.contains(&i.id.as_str()));
        let moved = items.flat_map(|item| {
            let apart = |cell: &Cell| stats::apart(self.clock, &cell.pairs(&item.cells[base]));
            item.cells.iter().filter_map(apart).collect::<Vec<_>>()
        });
        moved.reduce(f64::max)
    }

    fn compare(&mut self) {
        let base = self.base();
        let untouched = self.untouched();
        for item in &mut self.items {
            let reference = item.cells[base].clone();
            let own = |cell: &Cell| stats::noise(self.clock, &cell.values());
            let mut noise: Vec<f64> = own(&reference).into_iter().collect();
            let all: Vec<f64> = item.cells.iter().filter_map(own).collect();
            noise.extend((!all.is_empty()).then(|| stats::median(&all)));
            for (cell, _) in item.cells.iter().zip(&self.systems).filter(|(_, s)| s.twin) {
                noise.extend(stats::apart(self.clock, &cell.pairs(&reference)));
            }
            noise.push(QUANTUM / reference.mean().unwrap_or(f64::INFINITY) * 100.0);
            noise.extend(untouched);
            let known = reference.figures.len() > 1 || noise.len() > 2;
            item.noise = noise.into_iter().reduce(f64::max).filter(|_| known);
            for (at, cell) in item
                .cells
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| *at != base)
            {
                let pairs = cell.pairs(&reference);
                cell.penalty = stats::penalty(self.clock, &pairs, item.noise);
                if cell.penalty.is_none() && !cell.figures.is_empty() {
                    cell.reason = Some(format!(
                        "{} gave no figure in a boot that {} has one of",
                        self.baseline, self.systems[at].name
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::super::stats::Standing;
    use super::*;
    use crate::results::Boot;

    #[test]
    fn a_failed_cell_is_never_a_number() {
        let section = Section::new(&sample::run(), "none").unwrap();
        let at = |name| section.systems.iter().position(|s| s.name == name).unwrap();
        for item in &section.items {
            let lost = &item.cells[at("lost")];
            assert!(lost.figures.is_empty() && lost.penalty.is_none());
            assert_eq!(lost.reason.as_deref(), Some("no such module here"));
        }
        let build = section.item("build-flask/make").unwrap();
        assert!(build.cells[at("selinux")].mean().is_none());
        assert_eq!(
            build.cells[at("selinux")].reason.as_deref(),
            Some("gcc: exit status 1")
        );
        assert!(build.cells[at("apparmor")].mean().is_some());
    }

    #[test]
    fn nothing_but_a_positive_figure_counts() {
        let mut run = sample::run();
        for boot in run.boots.iter_mut().filter(|b| b.system == "apparmor") {
            boot.results.get_mut("micro").unwrap().figures[0].value = f64::NAN;
            boot.results.get_mut("micro").unwrap().figures[1].value = 0.0;
        }
        let section = Section::new(&run, "none").unwrap();
        let at = section
            .systems
            .iter()
            .position(|s| s.name == "apparmor")
            .unwrap();
        for item in &section.items[..2] {
            assert!(item.cells[at].mean().is_none() && item.cells[at].reason.is_some());
        }
    }

    #[test]
    fn boots_are_compared_by_their_number() {
        let mut run = sample::run();
        run.boots
            .retain(|b| b.system != "apparmor" || b.disturbance != 1);
        let section = Section::new(&run, "none").unwrap();
        let at = section
            .systems
            .iter()
            .position(|s| s.name == "apparmor")
            .unwrap();
        let penalty = section.items[0].cells[at].penalty.as_ref().unwrap();
        assert_eq!(penalty.pairs, 2);
        run.boots
            .retain(|b| b.system != "none" || b.disturbance == 1);
        let section = Section::new(&run, "none").unwrap();
        assert!(section.items[0].cells[at].penalty.is_none());
        assert!(section.items[0].cells[at].reason.is_some());
    }

    #[test]
    fn a_twin_of_the_baseline_raises_the_noise() {
        let mut run = sample::run();
        let quiet = Section::new(&run, "none").unwrap().items[0].noise.unwrap();
        let mut twin = run.systems["none"].clone();
        twin.name = "again".into();
        let mut boots: Vec<Boot> = run.boots.clone();
        boots.retain(|b| b.system == "none");
        for boot in &mut boots {
            boot.system = "again".into();
            boot.results.get_mut("micro").unwrap().figures[0].value *= 1.5;
        }
        run.systems.insert("again".into(), twin);
        run.boots.extend(boots);
        let section = Section::new(&run, "none").unwrap();
        assert!(quiet < 5.0 && (section.items[0].noise.unwrap() - 50.0).abs() < 1e-9);
        let at = section
            .systems
            .iter()
            .position(|s| s.name == "apparmor")
            .unwrap();
        let standing = section.items[0].cells[at]
            .penalty
            .as_ref()
            .unwrap()
            .standing;
        assert_eq!(standing, Standing::Noise);
    }

    #[test]
    fn on_the_machine_itself_there_are_no_twins() {
        let mut run = sample::run();
        run.clock = Clock::Machine;
        let none = run.systems["none"].clone();
        run.systems
            .values_mut()
            .for_each(|s| s.lsm.clone_from(&none.lsm));
        let section = Section::new(&run, "none").unwrap();
        assert!(section.systems.iter().all(|s| !s.twin));
    }

    #[test]
    fn a_workload_of_the_first_boots_only_has_not_failed_in_the_others() {
        let mut run = sample::run();
        for boot in run.boots.iter_mut().filter(|b| b.disturbance > 0) {
            boot.results.remove("lmbench");
        }
        let section = Section::new(&run, "none").unwrap();
        let cell = &section.item("lmbench/stat").unwrap().cells[2];
        assert_eq!((cell.figures.len(), cell.reason.as_deref()), (1, None));
        for boot in run.boots.iter_mut().filter(|b| b.system == "apparmor") {
            boot.results.remove("lmbench");
        }
        let section = Section::new(&run, "none").unwrap();
        let cell = &section.item("lmbench/stat").unwrap().cells[2];
        assert_eq!(cell.reason.as_deref(), Some("lmbench was not run"));
    }

    #[test]
    fn a_baseline_that_is_not_there_is_told_with_those_that_are() {
        let error = Section::new(&sample::run(), "nothing")
            .unwrap_err()
            .to_string();
        assert!(error.contains("apparmor") && error.contains("--baseline"));
    }
}
