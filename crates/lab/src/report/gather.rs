//! What a run's boots gave, by system and item, with the reasons of gaps.

use std::collections::{BTreeMap, BTreeSet};

use super::section::{Cell, Column, Item};
use crate::define::System;
use crate::results::{Boot, Clock, Run};

/// Why a system has no figure of a workload that is not for it: nothing failed.
pub const NOT_FOR_IT: &str = "this system is not measured by that";
/// What stands for the items of a workload that printed none.
const NO_ITEM: &str = "no figure";

/// Every item of a run, without its cells: in the order of the baseline's least disturbed
/// boot; what only others have, after it.
pub fn items(run: &Run, baseline: &str) -> Vec<Item> {
    let mut boots: Vec<&Boot> = run.boots.iter().collect();
    boots.sort_by_key(|b| (b.system != baseline, b.disturbance));
    let mut items = Vec::new();
    for workload in run.ordered_workloads() {
        let mut seen = BTreeSet::new();
        let item = |name: &str, per: &str| Item {
            id: format!("{}/{name}", workload.name),
            workload: workload.name.clone(),
            heading: workload.title.clone(),
            name: name.to_owned(),
            per: per.to_owned(),
            noise: None,
            cells: Vec::new(),
        };
        let outcomes: Vec<_> = boots
            .iter()
            .filter_map(|b| b.results.get(&workload.name))
            .collect();
        for figure in outcomes.iter().flat_map(|o| &o.figures) {
            if seen.insert(&figure.item) {
                items.push(item(&figure.item, &figure.per));
            }
        }
        // One that failed everywhere is not to be missed for want of an item.
        if seen.is_empty() && !outcomes.is_empty() {
            items.push(item(NO_ITEM, ""));
        }
    }
    items
}

/// One boot's figure for an item, or why there is none.
fn figure(boot: &Boot, item: &Item) -> Result<f64, String> {
    if !boot.failed.is_empty() {
        return Err(boot.failed.clone());
    }
    let Some(outcome) = boot.results.get(&item.workload) else {
        return Err(format!("{} was not run", item.workload));
    };
    if !outcome.failed.is_empty() {
        return Err(outcome.failed.clone());
    }
    match outcome.get(&item.name) {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => Err(format!("it printed {value}, which is no cost")),
        None => Err(format!("{} printed no such item", item.workload)),
    }
}

/// A system's figures for an item.
pub fn cell(run: &Run, system: &System, item: &Item) -> Cell {
    if !system.is_measured_by(&item.workload) {
        return Cell {
            reason: Some(NOT_FOR_IT.to_owned()),
            ..Cell::default()
        };
    }
    let boots = || run.boots.iter().filter(|b| b.system == system.name);
    // A workload may be meant for the first few boots only: that is no failure of the others.
    let meant = |b: &&Boot| !b.failed.is_empty() || b.results.contains_key(&item.workload);
    let never = !boots().any(|b| b.results.contains_key(&item.workload));
    let boots: Vec<&Boot> = boots().filter(|b| never || meant(b)).collect();
    let mut cell = Cell::default();
    let mut reasons = BTreeSet::new();
    for boot in &boots {
        match figure(boot, item) {
            Ok(value) => {
                cell.figures.insert(boot.disturbance, value);
            }
            Err(reason) => {
                reasons.insert(reason);
            }
        }
    }
    let reasons: Vec<String> = reasons.into_iter().collect();
    let reasons = reasons.join("; ");
    cell.reason = match cell.figures.len() {
        0 if boots.is_empty() => Some("it was not booted".to_owned()),
        0 => Some(reasons),
        some if some < boots.len() => {
            Some(format!("{some} of {} boots only: {reasons}", boots.len()))
        }
        _ => None,
    };
    cell
}

/// What there is to say of a system as a whole.
pub fn column(run: &Run, system: &System, base: &System) -> Column {
    let mut boots: Vec<&Boot> = run
        .boots
        .iter()
        .filter(|b| b.system == system.name)
        .collect();
    boots.sort_by_key(|b| b.disturbance);
    let mut decisions = BTreeMap::new();
    for (name, outcome) in boots.iter().flat_map(|b| &b.results) {
        if outcome.failed.is_empty() && !outcome.decisions.is_empty() {
            decisions
                .entry(name.clone())
                .or_insert_with(|| outcome.decisions.clone());
        }
    }
    let failed: BTreeSet<String> = boots
        .iter()
        .filter(|b| !b.failed.is_empty())
        .map(|b| b.failed.clone())
        .collect();
    Column {
        name: system.name.clone(),
        title: system.title.clone(),
        about: system.about.clone(),
        twin: twin(run.clock, system, base),
        mediates_all: system.mediates_all,
        boots: boots.iter().filter(|b| b.failed.is_empty()).count(),
        failed: failed.into_iter().collect(),
        decisions,
    }
}

/// Whether a system is the baseline under another name. On the machine itself systems are
/// not told apart by their definitions.
fn twin(clock: Clock, system: &System, base: &System) -> bool {
    let named = System {
        name: base.name.clone(),
        title: base.title.clone(),
        about: base.about.clone(),
        order: base.order,
        core: base.core,
        ..system.clone()
    };
    clock != Clock::Machine && system.name != base.name && named == *base
}
