//! What a run's boots gave, by system and item, with the reasons of gaps.

use std::collections::{BTreeMap, BTreeSet};

use super::section::{Cell, Column, Item};
use crate::define::System;
use crate::results::{Boot, Run};

/// Every item of a run, without its cells: in the order of the baseline's least disturbed
/// boot; what only others have, after it.
pub fn items(run: &Run, baseline: &str) -> Vec<Item> {
    let mut boots: Vec<&Boot> = run.boots.iter().collect();
    boots.sort_by_key(|b| (b.system != baseline, b.disturbance));
    let mut items = Vec::new();
    for workload in run.ordered_workloads() {
        let mut seen = BTreeSet::new();
        let outcomes = boots.iter().filter_map(|b| b.results.get(&workload.name));
        for figure in outcomes.flat_map(|o| &o.figures) {
            if seen.insert(&figure.item) {
                items.push(Item {
                    id: format!("{}/{}", workload.name, figure.item),
                    workload: workload.name.clone(),
                    heading: workload.title.clone(),
                    name: figure.item.clone(),
                    per: figure.per.clone(),
                    noise: None,
                    cells: Vec::new(),
                });
            }
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
    let mut cell = Cell::default();
    let mut reasons = BTreeSet::new();
    let mut boots = 0;
    for boot in run.boots.iter().filter(|b| b.system == system.name) {
        boots += 1;
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
        0 if boots == 0 => Some("it was not booted".to_owned()),
        0 => Some(reasons),
        some if some < boots => Some(format!("{some} of {boots} boots only: {reasons}")),
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
    let same = |a: &System, b: &System| {
        (&a.lsm, &a.append, &a.setup, &a.enter) == (&b.lsm, &b.append, &b.setup, &b.enter)
    };
    Column {
        name: system.name.clone(),
        title: system.title.clone(),
        about: system.about.clone(),
        twin: system.name != base.name && same(system, base),
        boots: boots.iter().filter(|b| b.failed.is_empty()).count(),
        failed: failed.into_iter().collect(),
        decisions,
    }
}
