//! The long form: a row for each system and item, for other programs.

use std::io::Write;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::section::Section;
use super::stats::{self, Standing};

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The clock.
    pub clock: String,
    /// The kernel.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// The item.
    pub item: String,
    /// What is counted.
    pub per: String,
    /// The system.
    pub system: String,
    /// How many figures it gave.
    pub n: usize,
    /// The mean of the baseline's figures, in units of the clock.
    pub baseline_mean: Option<f64>,
    /// The mean of its own.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub sd: Option<f64>,
    /// The penalty in percent; positive is slower.
    pub penalty_percent: Option<f64>,
    /// The interval's lower end, in percent.
    pub low: Option<f64>,
    /// The interval's upper end, in percent.
    pub high: Option<f64>,
    /// Where the interval comes from.
    pub interval: Option<String>,
    /// The item's noise floor, in percent.
    pub noise_percent: Option<f64>,
    /// Whether the penalty is told from noise; empty where that was not tested.
    pub significant: Option<bool>,
    /// Why there are no figures, or not of all boots.
    pub reason: Option<String>,
}

/// The rows of a section.
#[must_use]
pub fn rows(section: &Section) -> Vec<Row> {
    let base = section.base();
    let mut rows = Vec::new();
    for item in &section.items {
        for (system, cell) in section.systems.iter().zip(&item.cells) {
            let penalty = cell.penalty.as_ref();
            let interval = penalty.and_then(|p| p.interval);
            rows.push(Row {
                clock: format!("{:?}", section.clock).to_lowercase(),
                kernel: section.kernel.clone(),
                workload: item.workload.clone(),
                item: item.name.clone(),
                per: item.per.clone(),
                system: system.name.clone(),
                n: cell.figures.len(),
                baseline_mean: item.cells[base].mean(),
                mean: cell.mean(),
                sd: stats::deviation(&cell.values()),
                penalty_percent: penalty.map(|p| p.percent),
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                interval: interval.map(|i| i.source.name().to_owned()),
                noise_percent: item.noise,
                significant: match penalty.map(|p| p.standing) {
                    Some(Standing::Significant) => Some(true),
                    Some(Standing::Noise) => Some(false),
                    Some(Standing::Untested) | None => None,
                },
                reason: cell.reason.clone(),
            });
        }
    }
    rows
}

/// Writes the rows of these sections.
///
/// # Errors
/// When they cannot be written.
pub fn write(sections: &[Section], to: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for row in sections.iter().flat_map(rows) {
        writer.serialize(row)?;
    }
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let section = sample::section();
        let mut file = Vec::new();
        write(std::slice::from_ref(&section), &mut file).unwrap();
        let read: Vec<Row> = csv::Reader::from_reader(file.as_slice())
            .deserialize()
            .map(Result::unwrap)
            .collect();
        assert_eq!(read, rows(&section));
        assert_eq!(read.len(), section.items.len() * section.systems.len());
    }

    #[test]
    fn a_failed_row_has_its_reason_and_no_figure() {
        let rows = rows(&sample::section());
        let lost: Vec<&Row> = rows.iter().filter(|r| r.system == "lost").collect();
        assert!(!lost.is_empty());
        for row in lost {
            assert_eq!(
                (row.n, row.mean, row.penalty_percent, row.low),
                (0, None, None, None)
            );
            assert_eq!(row.reason.as_deref(), Some("no such module here"));
        }
    }
}
