//! The lab's own tables: what each system costs, item by item, and what failed.

use std::collections::BTreeMap;

use super::gather::NOT_FOR_IT;
use super::section::{Item, Section};
use super::sheet::{Sheet, Text, amount, percent};
use super::stats::{self, Standing};

/// The workload whose items the summary is of, if it was measured.
const SINGLE: &str = "micro";

/// The summary: a row a system.
#[must_use]
pub fn summary(section: &Section) -> Sheet {
    let single = section.items.iter().any(|i| i.workload == SINGLE);
    let items: Vec<&Item> = section
        .items
        .iter()
        .filter(|i| !single || i.workload == SINGLE)
        .collect();
    let what = if single { "single operations" } else { "items" };
    let mut sheet = Sheet::new(
        "In short",
        format!(
            "What {} {what} cost more than under “{}”, in percent. Sure are those that are told \
             from noise.",
            items.len(),
            section.systems[section.base()].title
        ),
        &[
            "system", "boots", "least", "median", "most", "sure", "dearest",
        ],
    )
    .words(&[6]);
    for at in section.others() {
        let system = &section.systems[at];
        let mut found: Vec<(f64, Standing, &str)> = items
            .iter()
            .filter_map(|i| {
                let p = i.cells[at].penalty.as_ref()?;
                Some((p.percent, p.standing, i.name.as_str()))
            })
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut cells = vec![
            Text::from(system.title.as_str()),
            system.boots.to_string().into(),
        ];
        if let (Some(least), Some(most)) = (found.first(), found.last()) {
            let percents: Vec<f64> = found.iter().map(|f| f.0).collect();
            let sure = found
                .iter()
                .filter(|f| f.1 == Standing::Significant)
                .count();
            cells.push(marked(least.0, least.1));
            cells.push(percent(stats::median(&percents)).into());
            cells.push(marked(most.0, most.1));
            cells.push(format!("{sure} of {}", found.len()).into());
            cells.push(most.2.into());
        } else {
            let why = if system.failed.is_empty() {
                "no figure in any boot that the baseline has one of".to_owned()
            } else {
                system.failed.join("; ")
            };
            cells.push(Text::default());
            cells.push(sheet.gap(&why));
            cells.extend([Text::default(), Text::default(), Text::default()]);
        }
        sheet.row(cells);
    }
    sheet
}

/// A percentage with the mark of its standing.
#[must_use]
pub fn marked(value: f64, standing: Standing) -> Text {
    let mark = standing.mark();
    let text = Text::from(format!("{mark}{}", percent(value)));
    if mark.is_empty() { text } else { text.faint() }
}

/// One workload: a row an item, a column a system.
#[must_use]
pub fn overhead(section: &Section, workload: &str) -> Sheet {
    let items: Vec<&Item> = section
        .items
        .iter()
        .filter(|i| i.workload == workload)
        .collect();
    let one_per = items.iter().all(|i| i.per == items[0].per);
    let base = section.base();
    let unit = section.clock.unit();
    let mut head = vec!["", &section.systems[base].title, "noise %"];
    head.extend(
        section
            .others()
            .map(|at| section.systems[at].title.as_str()),
    );
    let about = match items.first() {
        Some(item) if one_per && !item.per.is_empty() => format!(" per {}", item.per),
        _ => String::new(),
    };
    let does = section.workload_abouts.get(workload);
    let about = format!(
        "{} “{}”: {unit}{about}. The other systems: percent more.",
        does.map_or("", String::as_str),
        section.systems[base].title
    );
    let about = about.trim_start();
    let heading = items.first().map_or(workload, |i| i.heading.as_str());
    let mut sheet = Sheet::new(heading, about, &head).fixed(3);
    for item in items {
        let name = if one_per {
            item.name.clone()
        } else {
            format!("{}, per {}", item.name, item.per)
        };
        let mut cells = vec![Text::from(name)];
        cells.push(match item.cells[base].mean() {
            Some(mean) => noted(
                &mut sheet,
                amount(mean).into(),
                item.cells[base].reason.as_ref(),
            ),
            None => sheet.gap(item.cells[base].reason.as_deref().unwrap_or("no figure")),
        });
        cells.push(
            item.noise
                .map_or_else(Text::default, |n| format!("{n:.2}").into()),
        );
        for at in section.others() {
            let cell = &item.cells[at];
            cells.push(match &cell.penalty {
                Some(penalty) => {
                    let mut text = marked(penalty.percent, penalty.standing);
                    if let Some(i) = penalty.interval {
                        text.below = format!("[{}, {}]", percent(i.low), percent(i.high));
                    }
                    noted(&mut sheet, text, cell.reason.as_ref())
                }
                None => sheet.gap(cell.reason.as_deref().unwrap_or("no figure")),
            });
        }
        sheet.row(cells);
    }
    sheet
}

fn noted(sheet: &mut Sheet, mut text: Text, reason: Option<&String>) -> Text {
    if let Some(reason) = reason {
        sheet.note(&mut text, reason);
    }
    text
}

/// What gave no figure, and why; none if nothing failed.
#[must_use]
pub fn failures(section: &Section) -> Option<Sheet> {
    let mut sheet = Sheet::new(
        "What failed",
        "Every gap in the tables where there should be a figure, with its reason.",
        &["system", "what", "why"],
    )
    .words(&[1, 2]);
    for (at, system) in section.systems.iter().enumerate() {
        let words = [&system.title, "everything"].map(Text::from);
        if system.boots == 0 {
            let why = if system.failed.is_empty() {
                "it was not booted".to_owned()
            } else {
                system.failed.join("; ")
            };
            sheet.row([words.to_vec(), vec![why.into()]].concat());
            continue;
        }
        let mut gaps: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for item in &section.items {
            let reason = item.cells[at].reason.as_ref();
            if let Some(reason) = reason.filter(|r| *r != NOT_FOR_IT) {
                let key = (item.workload.as_str(), reason.as_str());
                gaps.entry(key).or_default().push(&item.name);
            }
        }
        for ((workload, reason), names) in gaps {
            let all = section
                .items
                .iter()
                .filter(|i| i.workload == workload)
                .count();
            let what = match names.len() {
                some if some == all => format!("all of {workload}"),
                _ => format!("{workload}: {}", names.join("; ")),
            };
            sheet.row(vec![
                system.title.as_str().into(),
                what.into(),
                reason.into(),
            ]);
        }
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn section() -> Section {
        Section::new(&sample::run(), "none").unwrap()
    }

    #[test]
    fn what_failed_is_listed_once_with_its_reason() {
        let sheet = failures(&section()).unwrap();
        let rows: Vec<String> = sheet
            .rows
            .iter()
            .map(|r| {
                r.cells
                    .iter()
                    .map(|c| c.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" | ")
            })
            .collect();
        assert_eq!(
            rows,
            [
                "SELinux | all of build-flask | gcc: exit status 1",
                "TOMOYO | everything | no such module here",
            ]
        );
    }

    #[test]
    fn unsure_figures_are_marked_and_gaps_are_empty() {
        let section = section();
        let sheet = overhead(&section, "micro");
        let mut marked = 0;
        for row in &sheet.rows {
            for cell in &row.cells[3..] {
                assert_eq!(cell.faint, cell.text.starts_with('~'), "{cell:?}");
                marked += usize::from(cell.faint);
            }
            let lost = row.cells.last().unwrap();
            assert!(lost.text.is_empty() && lost.notes == ["a"]);
        }
        assert!(marked > 0 && sheet.notes == ["no such module here"]);
    }

    #[test]
    fn the_summary_is_of_the_single_operations() {
        let sheet = summary(&section());
        assert!(sheet.about.starts_with("What 12 single operations"));
        let lost = sheet.rows.last().unwrap();
        assert!(lost.cells[2..].iter().all(|c| c.text.is_empty()));
    }

    #[test]
    fn one_boot_each_makes_nothing_sure() {
        let mut run = sample::run();
        run.boots.retain(|b| b.disturbance == 0);
        let section = Section::new(&run, "none").unwrap();
        for row in overhead(&section, "micro").rows {
            assert!(row.cells[3..11].iter().all(|c| c.text.starts_with('?')));
        }
    }
}
