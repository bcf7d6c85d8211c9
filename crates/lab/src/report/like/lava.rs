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
#[path = "lava_tests.rs"]
mod tests;
