//! How decisions were resolved: Flask's Table 6, measured and printed.

use super::section::Section;
use super::sheet::{self, Sheet, Text};
use crate::results::Decisions;

/// What Flask's Table 6 has: five builds and the removals between them.
const PRINTED: [(&str, u64, Option<u64>, u64, u64); 3] = [
    ("Kernel", 603_735, Some(175_585), 428_121, 29),
    ("FFS", 76_708, None, 76_700, 8),
    ("PM", 892, None, 890, 2),
];

/// Table 6 of every system that tells, by workload.
#[must_use]
pub fn sheet(section: &Section) -> Sheet {
    let mut sheet = Sheet::new(
        "Flask's Table 6: how decisions were resolved",
        "Of the least disturbed boot. Percentages are of the object manager's own queries.",
        &[
            "object manager",
            "queries",
            "by hint",
            "%",
            "by cache",
            "%",
            "by server",
            "%",
        ],
    );
    for system in &section.systems {
        for (workload, managers) in &system.decisions {
            sheet.group(format!("{}, {workload}", system.title));
            for one in managers {
                sheet.row(line(one, Some(one.hint)));
            }
        }
    }
    if sheet.rows.is_empty() {
        sheet.about += " No system of this run counts its decisions.";
    }
    sheet.group("Printed: Flask, five times make and make clean");
    for (manager, queries, hint, cache, server) in PRINTED {
        let one = Decisions {
            manager: manager.to_owned(),
            queries,
            hint: hint.unwrap_or(0),
            cache,
            server,
        };
        sheet.printed(line(&one, hint));
    }
    sheet
}

fn line(one: &Decisions, hint: Option<u64>) -> Vec<Text> {
    #[allow(
        clippy::cast_precision_loss,
        reason = "shown with seven digits at most"
    )]
    let float = |n: u64| n as f64;
    let count = |n: u64| Text::from(sheet::count(float(n)));
    let share = |n: u64| match one.queries {
        0 => Text::default(),
        all => format!("{:.2}", float(n) / float(all) * 100.0).into(),
    };
    let (hints, hint_share) = match hint {
        Some(n) => (count(n), share(n)),
        None => ("n/a".into(), Text::default()),
    };
    vec![
        one.manager.as_str().into(),
        count(one.queries),
        hints,
        hint_share,
        count(one.cache),
        share(one.cache),
        count(one.server),
        share(one.server),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{published, sample};
    use super::*;

    #[test]
    fn measured_and_printed_stand_in_one_table() {
        let section = Section::new(&sample::run(), "none").unwrap();
        let text = super::super::markdown::sheet(&sheet(&section), 3);
        for words in [
            "Tidegate lomac, build-flask",
            "70.00",
            "1.00",
            "603,735",
            "175,585",
            "n/a",
        ] {
            assert!(text.contains(words), "{words} is not in:\n{text}");
        }
    }

    /// The constants above are the published file's.
    #[test]
    fn what_was_printed_is_what_the_file_has() {
        let rows = published::of(published::Source::Flask);
        let has = |item: String, count: u64| {
            assert!(
                rows.iter()
                    .any(|r| r.item == item && r.value == count.to_string()),
                "{item} {count}"
            );
        };
        for (manager, queries, hint, cache, server) in PRINTED {
            has(format!("{manager}: total queries"), queries);
            has(format!("{manager}: using cache"), cache);
            has(format!("{manager}: calling SS"), server);
            if let Some(hint) = hint {
                has(format!("{manager}: using hint"), hint);
            }
        }
    }
}
