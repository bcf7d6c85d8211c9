//! Plots, as SVG that a page's style sheet may colour anew.

mod canvas;
mod dots;
mod lines;

use anyhow::Result;
use serde::Serialize;

use super::section::Section;

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

/// Every plot that a section has the figures for.
///
/// # Errors
/// When one cannot be drawn.
pub fn all(section: &Section) -> Result<Vec<Plot>> {
    let mut plots = Vec::new();
    for (workload, heading) in section.workloads() {
        if !lines::is_sweep(section, workload) {
            plots.extend(dots::plot(section, workload, heading)?);
        }
    }
    plots.extend(lines::plots(section)?);
    Ok(plots)
}
