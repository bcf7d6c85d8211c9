//! Lava's tables as far as the chapter's text has their figures, and what was measured in the same terms.

use super::{figures, units};
use crate::report::mapping::{self, Means};
use crate::report::published::{self, Row, Source};
use crate::report::section::{Item, Section};
use crate::report::sheet::{Sheet, Text, amount, percent};
use crate::report::stats::{self, Standing};
use crate::results::Clock;

const NONE: &str = "no system of this run was measured by requests: no lava/… item";

/// The requests a second of which the authors tell the share of a processor.
const RATE: f64 = 30_000.0;

/// A kind of request in a mix, and how many of ten it is.
type Mix = &'static [(&'static str, f64)];

/// Mixes of requests: all on what was opened before, and the authors' "very conservative estimate" of one in ten that opens.
const MIXES: [(&str, Mix); 2] = [
    ("active", &[("lava/active", 10.0)]),
    (
        "a bind among ten",
        &[("lava/active", 9.0), ("lava/bind", 1.0)],
    ),
];

/// All of them.
pub fn sheets(section: &Section) -> Vec<Sheet> {
    let mut sheets = vec![printed(section)];
    sheets.extend(added(section));
    sheets.extend(at_the_rate(section));
    sheets
}

fn is_lavas(item: &Item) -> bool {
    item.workload == "lava" || item.workload.starts_with("lava-")
}

/// The systems that have figures of requests, by their numbers.
fn systems(section: &Section) -> Vec<usize> {
    let has = |at: &usize| {
        let mut items = section.items.iter().filter(|i| is_lavas(i));
        items.any(|i| !i.cells[*at].figures.is_empty())
    };
    (0..section.systems.len()).filter(has).collect()
}

/// What was printed, and beside it what was measured.
fn printed(section: &Section) -> Sheet {
    let systems = systems(section);
    let mut head = vec!["", "unit", "printed"];
    if systems.is_empty() {
        head.push("measured");
    }
    head.extend(systems.iter().map(|at| section.systems[*at].title.as_str()));
    let about = format!(
        "{} Its figures are from the chapter's text: its tables are pictures in the copy that was to be had. Lava's are of one \
         way, and of a monitor at each end; measured is a request with its reply. Rows of fixed actions and of authorization are what \
         a system adds to that, and a row of one-way IPC is half of it.",
        units(section)
    );
    let mut sheet = Sheet::new("Lava, beside what was measured", about, &head)
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
        let means = mapping::means("Lava", &row.benchmark, &row.item);
        if systems.is_empty() {
            cells.push(match means {
                Some(Means::Absolute(why)) => sheet.gap(why),
                _ => sheet.gap(NONE),
            });
        }
        for at in &systems {
            cells.push(measured(&mut sheet, section, row, means, *at));
        }
        sheet.printed(cells);
    }
    sheet
}

fn measured(
    sheet: &mut Sheet,
    section: &Section,
    row: &Row,
    means: Option<Means>,
    at: usize,
) -> Text {
    let value = match means {
        Some(Means::Absolute(why)) => return sheet.gap(why),
        None => return Text::default(),
        Some(Means::Items(ids)) => {
            let Some(item) = ids.iter().find_map(|id| section.item(id)) else {
                return sheet.gap(&section.absence(ids));
            };
            let [mean, _] = figures(sheet, item, at, row, &item.id);
            return mean;
        }
        Some(Means::More(..)) if at == section.base() => return Text::default(),
        Some(Means::More(plus, minus)) => {
            let sum = |ids: &[&'static str]| -> Result<f64, &'static str> {
                ids.iter().map(|id| more(section, id, at).ok_or(*id)).sum()
            };
            let more = sum(plus).and_then(|plus| Ok(plus - sum(minus)?));
            let floor = floor(section, &[plus, minus].concat());
            return match more {
                Ok(more) => told(more, floor, said(more, row)),
                Err(id) => sheet.gap(&why_not(section, id, at)),
            };
        }
        Some(Means::Half(id)) => mean(section, id, at).map(|whole| whole / 2.0).ok_or(id),
    };
    match value {
        Ok(value) => said(value, row).into(),
        Err(id) => sheet.gap(&why_not(section, id, at)),
    }
}

/// A figure in the source's unit.
fn said(value: f64, row: &Row) -> String {
    mapping::convert(value, &row.unit, "").map_or_else(String::new, amount)
}

/// By how much figures of these items lie apart without any reason; none if that is not known.
fn floor(section: &Section, ids: &[&str]) -> Option<f64> {
    let of = |id: &&str| -> Option<f64> {
        let item = section.item(id)?;
        Some(item.noise? / 100.0 * item.cells[section.base()].mean()?)
    };
    ids.iter().map(of).sum()
}

/// What is added, marked as long as it is not told from noise.
fn told(more: f64, floor: Option<f64>, text: String) -> Text {
    let standing = match floor {
        None => Standing::Untested,
        Some(floor) if more.abs() <= floor => Standing::Noise,
        Some(_) => return text.into(),
    };
    Text::from(format!("{}{text}", standing.mark())).faint()
}

/// Why a system has no figure of an item.
fn why_not(section: &Section, id: &str, at: usize) -> String {
    match section.item(id) {
        None => section.absence(&[id]),
        Some(item) => {
            let reason = item.cells[at].reason.clone();
            reason.unwrap_or_else(|| "no boot in common with the baseline".to_owned())
        }
    }
}

fn mean(section: &Section, id: &str, at: usize) -> Option<f64> {
    section.item(id)?.cells[at].mean()
}

/// What a system adds to an item, of the boots that it has in common with the baseline.
fn more(section: &Section, id: &str, at: usize) -> Option<f64> {
    added_to(section, section.item(id)?, at)
}

fn added_to(section: &Section, item: &Item, at: usize) -> Option<f64> {
    let pairs = item.cells[at].pairs(&item.cells[section.base()]);
    let more: Vec<f64> = pairs.iter().map(|(base, with)| with - base).collect();
    (!more.is_empty()).then(|| stats::middle(section.clock, &more))
}

/// What each system adds to a request and to what is like it, as an amount: what a percentage does not tell, as it is of another
/// whole each time.
fn added(section: &Section) -> Option<Sheet> {
    let systems = systems(section);
    let base = section.base();
    let others: Vec<usize> = systems.into_iter().filter(|at| *at != base).collect();
    if others.is_empty() {
        return None;
    }
    let mut head = vec!["", section.systems[base].title.as_str()];
    head.extend(others.iter().map(|at| section.systems[*at].title.as_str()));
    let about = format!(
        "In {}. The other systems: what they add.",
        section.clock.unit()
    );
    let mut sheet = Sheet::new("What is added", about, &head).fixed(2);
    let mut group = "";
    for item in section.items.iter().filter(|i| is_lavas(i)) {
        if item.heading != group {
            group = &item.heading;
            sheet.group(group);
        }
        let mut cells = vec![Text::from(format!("{}, per {}", item.name, item.per))];
        cells.push(match item.cells[base].mean() {
            Some(mean) => amount(mean).into(),
            None => sheet.gap(&why_not(section, &item.id, base)),
        });
        for at in &others {
            cells.push(match added_to(section, item, *at) {
                Some(more) => told(more, floor(section, &[&item.id]), signed(more)),
                None => sheet.gap(&why_not(section, &item.id, *at)),
            });
        }
        sheet.row(cells);
    }
    Some(sheet)
}

fn signed(more: f64) -> String {
    match amount(more.abs()).as_str() {
        "0" => "0".to_owned(),
        text if more < 0.0 => format!("−{text}"),
        text => format!("+{text}"),
    }
}

/// Instructions a second at the authors' rate. What share of a processor that is instructions do not tell.
fn at_the_rate(section: &Section) -> Option<Sheet> {
    if section.clock != Clock::Instructions {
        return None;
    }
    let of = |mix: Mix, at: usize| -> Option<f64> {
        let weighed = |(id, of_ten): &(&str, f64)| Some(mean(section, id, at)? * of_ten / 10.0);
        mix.iter().map(weighed).sum()
    };
    let base = section.base();
    let measured = |at: &usize| of(MIXES[1].1, *at).is_some();
    let systems: Vec<usize> = systems(section).into_iter().filter(measured).collect();
    if systems.is_empty() {
        return None;
    }
    let mut sheet = Sheet::new(
        "At 30,000 requests a second",
        "Millions of instructions a second, of client, service and whoever stands between, and how much of that is added in \
         percent: computed from a round trip by packets, not measured. What share of a processor it is depends on how many \
         instructions that one executes in a second, which this clock does not know; the workload lava-paced measures the share \
         where there is time.",
        &["system", MIXES[0].0, "added %", MIXES[1].0, "added %"],
    );
    for at in systems {
        let mut cells = vec![Text::from(section.systems[at].title.as_str())];
        for (_, mix) in MIXES {
            let (own, others) = (of(mix, at), of(mix, base));
            cells.push(own.map_or_else(Text::default, |v| amount(v * RATE / 1e6).into()));
            let more = own.zip(others).filter(|_| at != base);
            cells.push(more.map_or_else(Text::default, |(v, b)| {
                percent((v / b - 1.0) * 100.0).into()
            }));
        }
        sheet.row(cells);
    }
    Some(sheet)
}

#[cfg(test)]
mod tests {
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
}
