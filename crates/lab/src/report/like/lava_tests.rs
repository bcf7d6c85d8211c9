//! Lava's tables of a made-up run.

use super::super::super::gather::NOT_FOR_IT;
use super::super::super::sheet::Row;
use super::super::super::{overview, sample};
use super::*;
use crate::define::Workload;
use crate::results::{Figure, Run};

/// What each of the requests costs without a system, and what one adds to it.
const ITEMS: [(&str, f64, f64); 6] = [
    ("free", 14_000.0, 2_000.0),
    ("free, 4 KB", 16_000.0, 2_500.0),
    ("active", 14_100.0, 5_000.0),
    ("active, 4 KB", 16_100.0, 5_500.0),
    ("bind", 14_200.0, 9_000.0),
    ("bind with a descriptor, and its end", 29_000.0, 17_000.0),
];

/// The made-up run with requests under the baseline and one system.
fn run() -> Run {
    let mut run = sample::run();
    let made = Workload {
        name: "lava".into(),
        ..run.workloads["micro"].clone()
    };
    run.workloads.insert("lava".into(), made);
    for boot in &mut run.boots {
        let adds = match boot.system.as_str() {
            "none" => 0.0,
            "lomac" => 1.0,
            _ => continue,
        };
        let figures = ITEMS.map(|(item, cost, more)| Figure {
            item: item.into(),
            value: cost + adds * more,
            per: "round trip".into(),
        });
        let outcome = boot.results.entry("lava".into()).or_default();
        outcome.figures.extend(figures);
    }
    run
}

fn cells<'s>(sheet: &'s Sheet, first: &str) -> Vec<&'s str> {
    let row = sheet.rows.iter().find(|r| r.cells[0].text == first);
    let row = row.unwrap_or_else(|| panic!("no row {first}"));
    row.cells.iter().map(|c| c.text.as_str()).collect()
}

#[test]
fn without_requests_all_cells_are_empty_with_the_reason() {
    let sheets = sheets(&sample::section());
    let [sheet] = &sheets[..] else {
        panic!("{} tables", sheets.len());
    };
    for row in sheet.rows.iter().filter(|r| !r.group) {
        let empty = |c: &Text| c.text.is_empty() && !c.notes.is_empty();
        assert!(row.cells[3..].iter().all(empty));
    }
    assert!(sheet.notes.iter().any(|n| n.contains("lava/…")));
}

/// By hand: in units of a thousand.
#[test]
fn what_was_measured_stands_beside_what_was_printed() {
    let section = Section::new(&run(), "none").unwrap();
    let sheet = &sheets(&section)[0];
    assert_eq!(sheet.head[3..], ["none", "Tidegate lomac"]);
    for (row, expected) in [
        ("minimum total fixed cost", ["us", "3.03", "", "2.000"]),
        ("maximum total fixed cost", ["us", "7.98", "", "2.500"]),
        // 17 − 9 − 5
        (
            "create active capability descriptor (UNIX fd)",
            ["us", "0.69", "", "3.000"],
        ),
        // 5 − 2, 9 − 2
        (
            "derive requirements, write (active operation)",
            ["us", "0.41", "", "3.000"],
        ),
        (
            "derive requirements, open (bind operation)",
            ["us", "0.48", "", "7.000"],
        ),
        // half of 14.1, and of 19.1
        ("fastest (active capability)", ["us", "4", "7.050", "9.550"]),
    ] {
        assert_eq!(cells(sheet, row)[1..], expected, "{row}");
    }
    let share = sheet
        .rows
        .iter()
        .find(|r| r.cells[0].text.starts_with("ideal, 10%"));
    let share = &share.unwrap().cells[3];
    assert!(share.text.is_empty() && !share.notes.is_empty());
}

#[test]
fn what_is_added_and_not_told_from_noise_is_marked() {
    for (more, floor, expected) in [
        (5.0, Some(4.0), "5"),
        (5.0, Some(5.0), "~5"),
        (-5.0, Some(6.0), "~5"),
        (5.0, None, "?5"),
    ] {
        let text = told(more, floor, "5".into());
        assert_eq!(
            (text.text.as_str(), text.faint),
            (expected, expected != "5")
        );
    }
}

#[test]
fn what_is_added_is_an_amount() {
    let section = Section::new(&run(), "none").unwrap();
    let sheet = &sheets(&section)[1];
    assert_eq!(sheet.head[1..], ["none", "Tidegate lomac"]);
    let row = cells(sheet, "active, per round trip");
    assert_eq!(row[1..], ["14,100", "+5,000"]);
    assert_eq!(signed(-3.25), "−3.250");
    assert_eq!(signed(0.0), "0");
}

/// By hand: 30,000 times 19,100, and 30,000 times 0.9 of that and 0.1 of 23,200.
#[test]
fn the_rate_is_said_in_instructions_and_not_as_a_share() {
    let mut run = run();
    let section = Section::new(&run, "none").unwrap();
    let sheet = &sheets(&section)[2];
    assert_eq!(cells(sheet, "none")[1..], ["423.0", "", "423.3", ""]);
    let row = cells(sheet, "Tidegate lomac");
    assert_eq!(row[1..], ["573.0", "+35.46", "585.3", "+38.27"]);
    run.clock = Clock::Vm;
    let section = Section::new(&run, "none").unwrap();
    assert_eq!(sheets(&section).len(), 2);
}

#[test]
fn a_system_that_a_workload_is_not_for_has_not_failed() {
    let mut run = run();
    let system = run.systems.get_mut("selinux").unwrap();
    system.only = vec!["micro".into()];
    let section = Section::new(&run, "none").unwrap();
    let at = section.systems.iter().position(|s| s.name == "selinux");
    let cell = &section.item("lava/free").unwrap().cells[at.unwrap()];
    assert_eq!(cell.reason.as_deref(), Some(NOT_FOR_IT));
    let failures = overview::failures(&section).unwrap();
    let of_it = |r: &&Row| r.cells[0].text == "SELinux" && r.cells[1].text.contains("lava");
    assert_eq!(failures.rows.iter().find(of_it), None);
}

#[test]
fn a_share_of_a_processor_is_measured_by_time() {
    let mut run = run();
    run.clock = Clock::Vm;
    let made = Workload {
        name: "lava-paced".into(),
        ..run.workloads["micro"].clone()
    };
    run.workloads.insert("lava-paced".into(), made);
    for boot in run.boots.iter_mut().filter(|b| b.system == "lomac") {
        let outcome = boot.results.entry("lava-paced".into()).or_default();
        outcome.figures.push(Figure {
            item: "active".into(),
            value: 3.2e8,
            per: "second".into(),
        });
    }
    let section = Section::new(&run, "none").unwrap();
    let sheet = &sheets(&section)[0];
    let row = cells(sheet, "actual, large-address-space content processes");
    assert_eq!(row[1..], ["percent", "40", "", "32.00"]);
}
