//! Plots, as SVG that a page's style sheet may colour anew.

mod canvas;
mod dots;
mod lines;

use anyhow::Result;
use serde::Serialize;

use super::section::{Item, Section};

/// A plot.
#[derive(Debug, Serialize)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// It may stand beside another one.
    pub half: bool,
    /// The SVG element.
    pub svg: String,
}

/// Workloads of fewer items than this share a plot.
const FEW: usize = 4;

/// Every plot that a section has the figures for.
///
/// # Errors
/// When one cannot be drawn.
pub fn all(section: &Section) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    let mut few = Vec::new();
    for (workload, heading) in section.workloads() {
        let items: Vec<&Item> = section
            .items
            .iter()
            .filter(|i| i.workload == workload)
            .collect();
        if lines::is_sweep(&items) {
            continue;
        }
        if items.len() < FEW {
            few.extend(items.iter().map(|i| (format!("{heading}: {}", i.name), *i)));
        } else {
            let named: Vec<_> = items.iter().map(|i| (i.name.clone(), *i)).collect();
            plots.extend(dots::plot(section, heading, &named)?);
        }
    }
    plots.extend(dots::plot(section, "Other workloads", &few)?);
    plots.extend(lines::plots(section)?);
    Ok(plots)
}
