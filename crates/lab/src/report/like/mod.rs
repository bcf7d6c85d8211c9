//! The tables of the published chapters in their own shape: measured beside printed.

mod flask;
mod lava;

use super::decisions;
use super::mapping::{self, Means};
use super::published::{self, Row, Source};
use super::section::{Item, Section};
use super::sheet::{Sheet, Text, amount, percent};
use super::stats;
use crate::results::Clock;

/// The tables of a source.
#[must_use]
pub fn sheets(source: Source, section: &Section) -> Vec<Sheet> {
    match source {
        Source::Lava => lava::sheets(section),
        Source::Flask => vec![
            flask::sheet(section),
            decisions::sheet(section),
            flask::prototype(section),
            printed(source),
        ],
        Source::Lomac | Source::Lsm | Source::Spenneberg => {
            // Those that never came up stand with the failures.
            let up = section.others().filter(|at| section.systems[*at].boots > 0);
            let mut sheets: Vec<Sheet> = up.map(|at| block(source, section, at)).collect();
            sheets.push(printed(source));
            sheets
        }
    }
}

/// The workloads that do what a source measured, by comma: those that its rows are mapped to.
#[must_use]
pub fn workloads(source: Source) -> String {
    let mut names: Vec<&str> = match source {
        // beyond its own rows: the stream, and how cost grows
        Source::Lava => vec!["lava", "lava-stream", "lava-names", "lava-many"],
        _ => Vec::new(),
    };
    for row in published::of(source) {
        let means = mapping::means(source.as_str(), &row.benchmark, &row.item);
        for id in means.iter().flat_map(Means::ids) {
            let name = id.split('/').next().unwrap_or(id);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.join(",")
}

/// The systems that a source is about, by comma.
#[must_use]
pub fn systems(source: Source) -> String {
    match source {
        Source::Lava => {
            "apparmor-confined,selinux-confined,tidegate,tidegate-caps-attached,tidegate-caps,tidegate-caps-stream,tidegate-caps-control,monitors"
        }
        _ => "core",
    }
    .to_owned()
}

/// What the measured columns are in.
fn units(section: &Section) -> &'static str {
    match section.clock {
        Clock::Instructions => {
            "Measured figures are said in the source's units with 10⁹ instructions in the place \
             of a second (µs: 1,000 instructions): good for comparing the columns here, not with \
             the printed figures. Of rates, the penalty is what is lost of the rate, as in the \
             source."
        }
        Clock::Vm | Clock::Machine => {
            "Measured times and rates are in the source's units. Of rates, the penalty is what is \
             lost of the rate, as in the source."
        }
    }
}

/// One system's block: the rows of the source's tables.
fn block(source: Source, section: &Section, at: usize) -> Sheet {
    let base = &section.systems[section.base()].title;
    let title = &section.systems[at].title;
    let mut sheet = Sheet::new(
        format!("{title}, in the shape of {}", source.as_str()),
        units(section),
        &["", base, "sd", title, "sd", "penalty %", "printed %"],
    );
    if section.clock == Clock::Instructions && source == Source::Spenneberg {
        sheet.about += " UnixBench's index is rate ÷ base × 10; with instructions for time it is good \
                        for nothing but comparison.";
    }
    let mut group = String::new();
    for row in published::of(source) {
        let Some(Means::Items(ids)) = mapping::means(source.as_str(), &row.benchmark, &row.item)
        else {
            continue;
        };
        let heading = heading(row);
        if heading != group {
            sheet.group(heading.clone());
            group = heading;
        }
        let mut name = Text::from(format!("{} ({})", row.item, row.unit));
        let found = ids.iter().any(|id| section.item(id).is_some());
        if found && section.clock == Clock::Instructions && several(row) {
            sheet.note(
                &mut name,
                "printed: of several processors; measured: of one",
            );
        }
        let mut cells = vec![name];
        cells.extend(measured(&mut sheet, section, row, ids, at));
        cells.push(printed_penalty(&mut sheet, row));
        sheet.row(cells);
    }
    sheet
}

/// Whether a row was measured on more than one processor.
fn several(row: &Row) -> bool {
    let on = |words| row.benchmark.contains(words) || row.item.contains(words);
    on("4 processor") || on("SMP") || on("4 CPUs")
}

/// The heading over rows of one benchmark.
fn heading(row: &Row) -> String {
    match row.baseline.as_str() {
        "" => format!("{}; {}", row.benchmark, row.system),
        base => format!("{}; {} over {base}", row.benchmark, row.system),
    }
}

/// The five measured cells of a row.
fn measured(
    sheet: &mut Sheet,
    section: &Section,
    row: &Row,
    ids: &[&'static str],
    at: usize,
) -> Vec<Text> {
    let found = ids.iter().find_map(|id| Some((*id, section.item(id)?)));
    let Some((id, item)) = found else {
        let mut cells = vec![Text::default(); 5];
        cells[2] = sheet.gap(&section.absence(ids));
        return cells;
    };
    let mut cells = Vec::new();
    for column in [section.base(), at] {
        cells.extend(figures(sheet, item, column, row, id));
    }
    cells.push(loss(section, row, item, at, id));
    // The sources built their whole kernel; the lab builds what can be counted.
    if let Some(about) = section.workload_abouts.get(&item.workload)
        && item.workload.starts_with("build-")
    {
        sheet.note(&mut cells[2], &format!("measured: {about}"));
    }
    if id != ids[0] {
        let words = format!("by {id}; {} was not measured", ids[0]);
        sheet.note(&mut cells[2], &words);
    }
    cells
}

/// Mean and standard deviation in the source's unit.
fn figures(sheet: &mut Sheet, item: &Item, at: usize, row: &Row, id: &str) -> [Text; 2] {
    let cell = &item.cells[at];
    if cell.figures.is_empty() {
        let why = cell.reason.as_deref().unwrap_or("no figure");
        return [sheet.gap(why), Text::default()];
    }
    let values = cell.values();
    let said: Option<Vec<f64>> = values
        .iter()
        .map(|v| mapping::convert(*v, &row.unit, id))
        .collect();
    let Some(said) = said else {
        let why = match row.unit.as_str() {
            "index" => "its base is in another unit than the figure that was measured",
            _ => "the source has the relation alone",
        };
        return [sheet.gap(why), Text::default()];
    };
    let mut mean = Text::from(amount(stats::mean(&said)));
    if let Some(reason) = &cell.reason {
        sheet.note(&mut mean, reason);
    }
    let deviation = stats::deviation(&said).map_or_else(String::new, amount);
    [mean, deviation.into()]
}

/// The penalty as the source counts it.
fn loss(section: &Section, row: &Row, item: &Item, at: usize, id: &str) -> Text {
    let Some(penalty) = &item.cells[at].penalty else {
        return Text::default();
    };
    let value = if row.more_is_better {
        let pairs = item.cells[at].pairs(&item.cells[section.base()]);
        let rate = |v: f64| mapping::convert(v, &row.unit, id).unwrap_or(1.0 / v);
        let losses: Vec<f64> = pairs
            .iter()
            .map(|(b, v)| published::penalty(rate(*b), rate(*v), true))
            .collect();
        stats::middle(section.clock, &losses)
    } else {
        penalty.percent
    };
    let mark = penalty.standing.mark();
    Text {
        faint: !mark.is_empty(),
        ..Text::from(format!("{mark}{}", percent(value)))
    }
}

fn printed_penalty(sheet: &mut Sheet, row: &Row) -> Text {
    let mut cell = Text::from(row.penalty.as_str());
    if let Some(oddity) = row.oddity() {
        sheet.note(&mut cell, &oddity);
    }
    cell
}

/// Everything that the source printed.
fn printed(source: Source) -> Sheet {
    let mut sheet = Sheet::new(
        format!("As {} printed it", source.as_str()),
        match source {
            Source::Spenneberg => {
                "Index scores of UnixBench, not rates; of LMBench what his text tells, without the tables of his appendix."
            }
            Source::Lomac => "Raw rates, not index scores.",
            _ => "",
        },
        &["", "unit", "without", "sd", "with", "sd", "printed %"],
    )
    .words(&[1]);
    let mut group = String::new();
    for row in published::of(source) {
        let heading = heading(row);
        if heading != group {
            sheet.group(heading.clone());
            group = heading;
        }
        let mut item = Text::from(row.item.as_str());
        if let Some(Means::Absolute(why)) =
            mapping::means(source.as_str(), &row.benchmark, &row.item)
        {
            sheet.note(&mut item, &format!("nothing measured beside it: {why}"));
        }
        let penalty = printed_penalty(&mut sheet, row);
        let mut cells = vec![item];
        for field in [&row.unit, &row.base, &row.base_sd, &row.value, &row.sd] {
            cells.push(field.as_str().into());
        }
        cells.push(penalty);
        sheet.printed(cells);
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::define::{System, Workload};

    fn section() -> Section {
        Section::new(&sample::run(), "none").unwrap()
    }

    fn text(sheet: &Sheet) -> String {
        super::super::markdown::sheet(sheet, 4)
    }

    #[test]
    fn each_system_has_its_block_with_what_was_printed() {
        let section = section();
        let sheets = sheets(Source::Lomac, &section);
        let up = section.systems.iter().filter(|s| s.boots > 0).count();
        assert_eq!(
            sheets.len(),
            up,
            "a block for each but the baseline, and the printed one"
        );
        let block = text(&sheets[1]);
        for words in [
            "Execl Throughput (loops/s)",
            "16.4",
            "AppArmor, confined",
            "0.2 (",
            "computes to 0.02 %",
        ] {
            assert!(block.contains(words), "{words} is not in:\n{block}");
        }
    }

    /// Lost of a rate: a cost half as large again is a rate of two thirds.
    #[test]
    fn the_penalty_of_a_rate_is_what_is_lost_of_it() {
        let mut run = sample::run();
        for boot in &mut run.boots {
            let Some(outcome) = boot.results.get_mut("unixbench") else {
                continue;
            };
            for figure in outcome.figures.iter_mut().filter(|f| f.item == "execl") {
                figure.value = if boot.system == "none" {
                    20_000.0
                } else {
                    30_000.0
                };
            }
        }
        let section = Section::new(&run, "none").unwrap();
        let block = &sheets(Source::Lomac, &section)[0];
        let row = block
            .rows
            .iter()
            .find(|r| r.cells[0].text.starts_with("Execl"))
            .unwrap();
        let cells: Vec<&str> = row.cells.iter().map(|c| c.text.as_str()).collect();
        assert_eq!(cells[1..], ["50,000", "0", "33,333", "0", "+33.33", "16.4"]);
    }

    #[test]
    fn a_failed_build_is_a_gap_in_table_5() {
        let sheet = &sheets(Source::Flask, &section())[0];
        let row = sheet
            .rows
            .iter()
            .find(|r| r.cells[0].text == "SELinux")
            .unwrap();
        assert!(row.cells[1..].iter().all(|c| c.text.is_empty()));
        assert!(sheet.notes.contains(&"gcc: exit status 1".to_owned()));
        assert!(text(sheet).contains("Flask-memfs"));
    }

    #[test]
    fn what_a_source_measured_is_there_to_be_measured() {
        for source in Source::ALL {
            assert!(!System::pick(&systems(source)).unwrap().is_empty());
            let picked = Workload::pick(&workloads(source)).unwrap();
            let named: Vec<&str> = picked.iter().map(|w| w.name.as_str()).collect();
            assert!(!named.is_empty(), "{source:?}");
        }
        assert_eq!(
            workloads(Source::Lava),
            "lava,lava-stream,lava-names,lava-many,lava-paced"
        );
    }

    #[test]
    fn every_shape_is_made_of_an_empty_run() {
        let mut run = sample::run();
        run.boots.clear();
        let section = Section::new(&run, "none").unwrap();
        for source in Source::ALL {
            for sheet in sheets(source, &section) {
                let measured = sheet.rows.iter().filter(|r| !r.group && !r.printed);
                for row in measured.filter(|_| sheet.head.len() == 7) {
                    assert!(row.cells[1..6].iter().all(|c| c.text.is_empty()), "{row:?}");
                }
            }
        }
    }
}
