//! Lava's tables: absolute figures, so every system that has such figures is a column.

use super::{figures, units};
use crate::report::mapping::{self, Means};
use crate::report::published::{self, Row, Source};
use crate::report::section::Section;
use crate::report::sheet::{Sheet, Text};

const NONE: &str = "no system of this run has the paper's monitors: no lava/… item was measured";

/// Tables 1 to 3, as far as the chapter's text has their figures.
pub fn sheet(section: &Section) -> Sheet {
    let lava = || section.items.iter().filter(|i| i.workload == "lava");
    let has = |at: &usize| lava().any(|i| !i.cells[*at].figures.is_empty());
    let systems: Vec<usize> = (0..section.systems.len()).filter(has).collect();
    let mut head = vec!["", "unit", "printed"];
    if systems.is_empty() {
        head.push("measured");
    }
    head.extend(systems.iter().map(|at| section.systems[*at].title.as_str()));
    let mut sheet = Sheet::new("Lava, beside what was measured", units(section), &head)
        .fixed(3)
        .words(&[1]);
    let mut group = "";
    for row in published::of(Source::Lava) {
        if row.benchmark != group {
            group = &row.benchmark;
            sheet.group(format!("{group}; {}", row.system));
        }
        let mut cells: Vec<Text> = [&row.item, &row.unit, &row.value]
            .map(|s| s.as_str().into())
            .into();
        if systems.is_empty() {
            cells.push(measured(&mut sheet, section, row, None));
        }
        for at in &systems {
            cells.push(measured(&mut sheet, section, row, Some(*at)));
        }
        sheet.printed(cells);
    }
    sheet
}

fn measured(sheet: &mut Sheet, section: &Section, row: &Row, at: Option<usize>) -> Text {
    let ids = match mapping::means("Lava", &row.benchmark, &row.item) {
        Some(Means::Items(ids)) => ids,
        Some(Means::Absolute(why)) => return sheet.gap(why),
        None => return Text::default(),
    };
    let Some(at) = at else {
        return sheet.gap(NONE);
    };
    let Some(item) = ids.iter().find_map(|id| section.item(id)) else {
        return sheet.gap(&section.absence(ids));
    };
    let [mean, _] = figures(sheet, item, at, row, &item.id);
    mean
}
