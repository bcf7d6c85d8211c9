//! What others published: every figure as printed, and what is odd about it.

use std::sync::LazyLock;

use super::sheet;

const FILES: [&str; 2] = [
    include_str!("../../published/results.csv"),
    include_str!("../../published/more-results.csv"),
];

/// Whose tables are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Source {
    /// LOMAC (2001), Table 2
    Lomac,
    /// Linux Security Modules (2002), Tables 2 to 8
    Lsm,
    /// The Lava Nucleus (1998), Tables 1 to 3
    Lava,
    /// Flask (1999), Tables 2, 4, 5 and 6, and its Linux prototype's Table 10
    Flask,
    /// Spenneberg's book on SELinux and AppArmor (2008)
    Spenneberg,
}

impl Source {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Lomac,
        Self::Lsm,
        Self::Flask,
        Self::Lava,
        Self::Spenneberg,
    ];

    /// As the first column of the file has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lomac => "LOMAC",
            Self::Lsm => "LSM",
            Self::Lava => "Lava",
            Self::Flask => "Flask",
            Self::Spenneberg => "Spenneberg",
        }
    }

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Lomac => "LOMAC: MAC You Can Live With (USENIX 2001), Table 2",
            Self::Lsm => "Linux Security Modules (USENIX Security 2002), Tables 2 to 8",
            Self::Lava => {
                "Operating System Protection for Fine-Grained Programs (1998), Tables 1 to 3"
            }
            Self::Flask => "The Flask Security Architecture (USENIX Security 1999)",
            Self::Spenneberg => "Spenneberg, SELinux & AppArmor (2008), chapter 3",
        }
    }

    fn of(first_column: &str) -> Option<Self> {
        let named = |s: &&Self| s.as_str() == first_column;
        let at = |part| first_column.contains(part);
        match first_column {
            _ if at("/wright/") => Some(Self::Lsm),
            _ if at("/flask/") || at("/freenix01/") => Some(Self::Flask),
            _ => Self::ALL.iter().find(named).copied(),
        }
    }
}

/// A published figure; numbers are as printed, with the digits that were printed.
#[derive(Debug, Clone)]
pub struct Row {
    /// Where it was published.
    pub source: Source,
    /// What was measured.
    pub system: String,
    /// What it was compared with.
    pub baseline: String,
    /// The benchmark, mostly with the number of the table.
    pub benchmark: String,
    /// The row of the table.
    pub item: String,
    /// The unit.
    pub unit: String,
    /// Whether more is better, as it is for rates.
    pub more_is_better: bool,
    /// Without the system.
    pub base: String,
    /// Its standard deviation.
    pub base_sd: String,
    /// With the system.
    pub value: String,
    /// Its standard deviation.
    pub sd: String,
    /// The penalty in percent; positive is slower.
    pub penalty: String,
}

/// Every row, in the order of the tables' numbers where the files have another.
#[must_use]
pub fn all() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> =
        LazyLock::new(|| FILES.iter().flat_map(|f| read(f)).collect());
    &ROWS
}

/// The rows of one source; what a table's number says comes first.
#[must_use]
pub fn of(source: Source) -> Vec<&'static Row> {
    let mut rows: Vec<&Row> = all().iter().filter(|r| r.source == source).collect();
    rows.sort_by_key(|row| table(&row.benchmark));
    rows
}

/// The number of the table, where the benchmark's name has one.
fn table(benchmark: &str) -> Option<u32> {
    let (_, rest) = benchmark.split_once("(Table ")?;
    rest.trim_end_matches(')').parse().ok()
}

fn read(file: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(file.as_bytes());
    let rows = reader.records().map(|record| {
        let record = record.expect("the published figures come with the program");
        let field = |at: usize| record[at].to_owned();
        Row {
            source: Source::of(&record[0]).unwrap_or_else(|| panic!("no such source: {record:?}")),
            system: field(1),
            baseline: field(2),
            benchmark: field(3),
            item: field(4),
            unit: field(5),
            more_is_better: &record[6] == "higher",
            base: field(7),
            base_sd: field(8),
            value: field(9),
            sd: field(10),
            penalty: field(11),
        }
    });
    rows.collect()
}

/// The ends between which a number lies that was printed with so many digits.
fn printed(text: &str) -> Option<(f64, f64)> {
    let value: f64 = text.parse().ok()?;
    let places = text.split_once('.').map_or(0, |(_, rest)| rest.len());
    let half = 0.5 / 10_f64.powi(i32::try_from(places).ok()?);
    Some((value - half, value + half))
}

impl Row {
    /// The penalty that its two figures give, in percent.
    #[must_use]
    pub fn computed(&self) -> Option<f64> {
        let (base, value): (f64, f64) = (self.base.parse().ok()?, self.value.parse().ok()?);
        Some(penalty(base, value, self.more_is_better))
    }

    /// What is odd about it: a source's own note, or a penalty that its two figures cannot
    /// give, whatever their unprinted digits were.
    #[must_use]
    pub fn oddity(&self) -> Option<String> {
        let mut words = Vec::new();
        if let (Some(base), Some(value), Some(said), Some(computed)) = (
            printed(&self.base),
            printed(&self.value),
            printed(&self.penalty),
            self.computed(),
        ) {
            let ends = [base.0, base.1]
                .map(|b| [value.0, value.1].map(|v| penalty(b, v, self.more_is_better)));
            let ends = ends.as_flattened().iter().copied();
            let least = ends.clone().fold(f64::INFINITY, f64::min);
            let most = ends.fold(f64::NEG_INFINITY, f64::max);
            if said.1 < least || said.0 > most {
                words.push(format!(
                    "printed {} %, computes to {} %",
                    self.penalty,
                    sheet::percent(computed).trim_start_matches('+')
                ));
            }
        }
        if let Some((.., why)) = NOTED.iter().find(|(s, b, i, _)| {
            self.source == *s && self.benchmark.contains(b) && self.item.contains(i) && {
                !self.item.starts_with("Shell") || self.system.starts_with("SELinux")
            }
        }) {
            words.push((*why).to_owned());
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// What is lost in percent: of a rate, or of time.
#[must_use]
pub fn penalty(base: f64, value: f64, more_is_better: bool) -> f64 {
    let change = (value / base - 1.0) * 100.0;
    if more_is_better { -change } else { change }
}

/// What the digits alone do not show: source, part of the benchmark, part of the item.
const NOTED: &[(Source, &str, &str, &str)] = &[
    (
        Source::Lsm,
        "1 processor (Table 3)",
        "mem read",
        "printed as a loss though the value rises",
    ),
    (
        Source::Spenneberg,
        "index",
        "Shell Scripts",
        "an anomaly: no other row of his, nor any other source, is near it; his text names it as the exception",
    ),
    (
        Source::Lomac,
        "",
        "latency",
        "the paper calls the improvement spurious: smaller than the benchmark's variance",
    ),
    (
        Source::Lomac,
        "",
        "Process Creation",
        "the paper calls the improvement spurious: smaller than the benchmark's variance",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(source: Source, benchmark: &str, item: &str) -> Option<String> {
        let row = of(source)
            .into_iter()
            .find(|r| r.benchmark.contains(benchmark) && r.item == item);
        row.unwrap_or_else(|| panic!("{benchmark} {item}")).oddity()
    }

    #[test]
    fn the_known_oddities_are_found() {
        let has = |found: Option<String>, words: &str| {
            assert!(
                found.as_deref().is_some_and(|f| f.contains(words)),
                "{found:?}"
            );
        };
        has(
            odd(Source::Lomac, "UnixBench", "System Call Overhead"),
            "printed 0.2 %, computes to 0.02 %",
        );
        has(
            odd(Source::Lsm, "(Table 7)", "16 clients"),
            "computes to 16.47 %",
        );
        has(
            odd(Source::Lsm, "(Table 8)", "32 clients"),
            "computes to 20.75 %",
        );
        has(odd(Source::Lsm, "(Table 3)", "mem read"), "the value rises");
        let odd: Vec<_> = of(Source::Spenneberg)
            .into_iter()
            .filter(|r| r.item.starts_with("Shell"))
            .collect();
        has(odd[1].oddity(), "anomaly");
        assert!(odd[0].oddity().is_none_or(|o| !o.contains("anomaly")));
    }

    #[test]
    fn what_rounding_explains_is_not_odd() {
        assert_eq!(
            odd(Source::Lomac, "kernel build", "make, Linux 2.2.5"),
            None
        );
        assert_eq!(odd(Source::Lsm, "(Table 2)", "page fault"), None);
        assert_eq!(odd(Source::Flask, "(Table 5)", "elapsed"), None);
    }

    #[test]
    fn every_row_is_of_a_source_and_tables_are_in_order() {
        let rows: usize = Source::ALL.iter().map(|s| of(*s).len()).sum();
        assert_eq!(rows, all().len());
        assert_eq!(of(Source::Lsm)[0].item, "0K file create");
    }
}
