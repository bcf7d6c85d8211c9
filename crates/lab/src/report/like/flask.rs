//! Flask's Table 5, and the table of its Linux prototype.

use super::{figures, loss, printed_penalty};
use crate::report::mapping::{self, Means};
use crate::report::published::{self, Row, Source};
use crate::report::section::Section;
use crate::report::sheet::{Sheet, Text};
use crate::results::Clock;

/// Flask's Table 5: a row a configuration.
pub fn sheet(section: &Section) -> Sheet {
    let time = match section.clock {
        Clock::Instructions => "10⁹ instructions",
        Clock::Vm | Clock::Machine => "time (s)",
    };
    let mut sheet = Sheet::new(
        "Flask's Table 5: make of an application of 20 .c files",
        "Printed: seconds, the mean of four runs after an uncounted one.",
        &["configuration", time, "sd", "slowdown %"],
    );
    sheet.group(format!(
        "Measured, over {}",
        section.systems[section.base()].title
    ));
    let rows = published::of(Source::Flask);
    let rows: Vec<&Row> = rows
        .into_iter()
        .filter(|r| r.benchmark.contains("(Table 5)"))
        .collect();
    let build = section.item("build-flask/make");
    for (at, system) in section.systems.iter().enumerate() {
        let mut cells = vec![Text::from(system.title.as_str())];
        if let Some(item) = build {
            cells.extend(figures(&mut sheet, item, at, rows[0], &item.id));
            cells.push(loss(section, rows[0], item, at, &item.id));
        } else {
            cells.push(sheet.gap(&section.absence(&["build-flask/make"])));
            cells.extend([Text::default(), Text::default()]);
        }
        sheet.row(cells);
    }
    sheet.group("Printed, over Fluke and Fluke-memfs; time in s");
    for row in rows {
        let penalty = printed_penalty(&mut sheet, row);
        sheet.printed(vec![
            row.system.as_str().into(),
            row.value.as_str().into(),
            Text::default(),
            penalty,
        ]);
    }
    sheet
}

/// The Flask architecture in Linux: percentages of every system beside the printed ones.
pub fn prototype(section: &Section) -> Sheet {
    let mut head = vec!["", "unit", "without", "with", "printed %"];
    head.extend(
        section
            .others()
            .map(|at| section.systems[at].title.as_str()),
    );
    let mut sheet = Sheet::new(
        "Flask in Linux: the SELinux prototype's Table 10 (FREENIX 2001)",
        "The systems' columns are measured penalties in percent.",
        &head,
    )
    .fixed(5)
    .words(&[1]);
    for row in published::of(Source::Flask) {
        let Some(Means::Items(ids)) = mapping::means("Flask", &row.benchmark, &row.item) else {
            continue;
        };
        if !row.benchmark.contains("(Table 10)") {
            continue;
        }
        let mut cells: Vec<Text> = [&row.item, &row.unit, &row.base, &row.value]
            .map(|s| s.as_str().into())
            .into();
        cells.push(printed_penalty(&mut sheet, row));
        for at in section.others() {
            cells.push(match section.item(ids[0]) {
                Some(item) if item.cells[at].penalty.is_some() => {
                    loss(section, row, item, at, ids[0])
                }
                Some(item) => sheet.gap(item.cells[at].reason.as_deref().unwrap_or("no figure")),
                None => sheet.gap(&section.absence(ids)),
            });
        }
        sheet.row(cells);
    }
    sheet
}
