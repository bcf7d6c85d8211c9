//! What has been decided about a row.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::offer::Offer;
use crate::row::{Kind, Row};

/// The tables. That of [`Kind::Syscall`] decides i386's calls, too.
const TABLES: [(Kind, &str); 11] = [
    (Kind::Syscall, include_str!("../decisions/syscall.csv")),
    (
        Kind::Capability,
        include_str!("../decisions/capability.csv"),
    ),
    (Kind::Hook, include_str!("../decisions/hook.csv")),
    (Kind::Family, include_str!("../decisions/family.csv")),
    (Kind::Socket, include_str!("../decisions/socket.csv")),
    (
        Kind::Filesystem,
        include_str!("../decisions/filesystem.csv"),
    ),
    (Kind::File, include_str!("../decisions/file.csv")),
    (Kind::Device, include_str!("../decisions/device.csv")),
    (Kind::Ioctl, include_str!("../decisions/ioctl.csv")),
    (Kind::Netlink, include_str!("../decisions/netlink.csv")),
    (Kind::State, include_str!("../decisions/state.csv")),
];

/// What is done about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The model's rules are asked, by the hooks that are named; scenarios play it.
    Mediated,
    /// It takes a capability that is refused below the top.
    Privilege,
    /// Nothing is asked, for the reason that is given.
    Neutral,
    /// It is refused below the top, by the hooks that are named; scenarios play it.
    Refused,
    /// It is known to be open: the scenarios show that, and docs/explain/what-gets-past.md says what it means.
    Gap,
}

impl Verdict {
    /// All, in the order of the page that an auditor reads.
    pub const ALL: [Self; 5] = [
        Self::Mediated,
        Self::Refused,
        Self::Privilege,
        Self::Neutral,
        Self::Gap,
    ];
}

/// A line of a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The row's name.
    pub name: String,
    /// The decision; `None`: nobody has decided.
    pub decision: Option<Verdict>,
    /// The hooks, or the capabilities, that it is by. `fall` is the demotion transaction, which is no hook.
    by: String,
    /// The scenarios that play it.
    scenarios: String,
    /// The rule, the argument, or what is open.
    pub why: String,
}

impl Decision {
    /// The hooks, or the capabilities, that it is by.
    pub fn by(&self) -> impl Iterator<Item = &str> {
        self.by.split_whitespace()
    }

    /// The scenarios that play it.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.scenarios.split_whitespace()
    }
}

/// All decisions.
#[derive(Debug, Clone)]
pub struct Table(BTreeMap<Row, Decision>);

impl Table {
    /// Reads the tables of this tree.
    ///
    /// # Errors
    /// A line is not as it should be, or two are about one row: which, in words.
    pub fn read() -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (kind, text) in TABLES {
            for line in csv::Reader::from_reader(text.as_bytes()).deserialize() {
                let decision: Decision =
                    line.map_err(|e| format!("decisions/{}.csv: {e}", kind.word()))?;
                let row = Row::new(kind, decision.name.clone());
                if let Some(twice) = all.insert(row, decision) {
                    return Err(format!("{} {} is there twice", kind.word(), twice.name));
                }
            }
        }
        Ok(Self(all))
    }

    /// All lines, sorted by their rows.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, &Decision)> {
        self.0.iter()
    }

    /// What has been decided about a row; `None`: nobody has decided.
    #[must_use]
    pub fn verdict(&self, row: &Row) -> Option<Verdict> {
        self.0.get(&row.decided_as())?.decision
    }

    /// The rows that nobody has decided on.
    #[must_use]
    pub fn undecided<'o>(&self, offer: &'o Offer) -> Vec<&'o Row> {
        let open = |row: &&Row| self.verdict(row).is_none();
        offer.rows.iter().filter(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::KERNELS;

    fn table() -> Table {
        Table::read().unwrap()
    }

    /// The rows of all supported kernels, as the tables have them.
    fn offered() -> BTreeSet<Row> {
        let offers = KERNELS.map(|(_, text)| Offer::parse(text).unwrap());
        let rows = offers.iter().flat_map(|offer| &offer.rows);
        rows.map(Row::decided_as).collect()
    }

    /// Fails with all of them, a line each.
    fn none(what: &str, rows: Vec<String>) {
        assert!(
            rows.is_empty(),
            "{} {what}:\n{}",
            rows.len(),
            rows.join("\n")
        );
    }

    #[test]
    fn each_row_of_each_kernel_is_decided_on() {
        let table = table();
        let open = offered()
            .iter()
            .filter(|row| table.verdict(row).is_none())
            .map(Row::to_string)
            .collect();
        none("rows that nobody has decided on", open);
    }

    #[test]
    fn each_decision_is_about_a_row() {
        let offered = offered();
        let idle = table()
            .iter()
            .filter(|(row, _)| !offered.contains(*row))
            .map(|(row, _)| row.to_string())
            .collect();
        none("decisions about what no supported kernel has", idle);
    }

    #[test]
    fn each_decision_has_what_it_stands_on() {
        let lacks = |d: &Decision| match d.decision {
            Some(Verdict::Mediated | Verdict::Refused) => {
                d.by().next().is_none() || d.scenarios().next().is_none() || d.why.is_empty()
            }
            Some(Verdict::Privilege) => d.by().next().is_none() || d.why.is_empty(),
            Some(Verdict::Neutral) => d.by().next().is_some() || d.why.is_empty(),
            Some(Verdict::Gap) => {
                d.by().next().is_some() || d.scenarios().next().is_none() || d.why.is_empty()
            }
            // what is open is said, too
            None => d.why.is_empty(),
        };
        let table = table();
        let lacking = table
            .iter()
            .filter(|(_, decision)| lacks(decision))
            .map(|(row, _)| row.to_string())
            .collect();
        none("decisions without hook, scenario or argument", lacking);
    }

    #[test]
    fn what_privilege_covers_is_refused_below_the_top() {
        let table = table();
        let unfounded = table
            .iter()
            .filter(|(_, d)| d.decision == Some(Verdict::Privilege))
            .flat_map(|(row, d)| d.by().map(move |capability| (row, capability)))
            .filter(|(_, capability)| {
                table.verdict(&Row::new(Kind::Capability, *capability)) != Some(Verdict::Refused)
            })
            .map(|(row, capability)| format!("{row}: {capability}"))
            .collect();
        none("rows by a capability that is not refused", unfounded);
    }

    /// The hooks that `lomac` has programs on.
    fn hooks() -> BTreeSet<String> {
        let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
        let mut hooks = BTreeSet::new();
        for dir in [kernel.join("lomac"), kernel.join("lomac/demote")] {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_none_or(|end| end != "h") {
                    continue;
                }
                let text = fs::read_to_string(path).unwrap();
                for section in text.split("SEC(\"").skip(1) {
                    let name = section.split('"').next().unwrap_or_default();
                    let name = name.trim_start_matches('?');
                    let hook = name
                        .strip_prefix("lsm/")
                        .or_else(|| name.strip_prefix("lsm.s/"));
                    hooks.extend(hook.map(str::to_owned));
                }
            }
        }
        hooks
    }

    #[test]
    fn each_hook_that_decides_is_one_of_tidegates() {
        let hooks = hooks();
        assert!(hooks.contains("file_open"));
        let table = table();
        let none_such = table
            .iter()
            .filter(|(_, d)| matches!(d.decision, Some(Verdict::Mediated | Verdict::Refused)))
            .flat_map(|(row, d)| d.by().map(move |hook| (row, hook)))
            .filter(|(_, hook)| *hook != "fall" && !hooks.contains(*hook))
            .map(|(row, hook)| format!("{row}: {hook}"))
            .collect();
        none("rows by a hook that Tidegate is not on", none_such);
    }

    #[test]
    fn each_hook_that_tidegate_is_on_is_said_to_decide() {
        let table = table();
        let idle: Vec<String> = hooks()
            .into_iter()
            .filter(|hook| {
                table.verdict(&Row::new(Kind::Hook, hook.as_str())) == Some(Verdict::Neutral)
            })
            .collect();
        none("hooks that Tidegate is on, called neutral", idle);
    }

    /// The table of docs/dev/census.md: how many rows of each kind have which decision.
    fn counts(table: &Table) -> String {
        let mut all = BTreeMap::<Kind, Vec<Option<Verdict>>>::new();
        for (row, decision) in table.iter() {
            all.entry(row.kind).or_default().push(decision.decision);
        }
        let line = |of: &str, verdicts: &[Option<Verdict>]| {
            let known = Verdict::ALL.map(Some).into_iter().chain([None]);
            let count = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
            let cells: String = known.map(|v| format!(" {} |", count(v))).collect();
            format!("| {of} | {} |{cells}\n", verdicts.len())
        };
        let kinds: String = all
            .iter()
            .map(|(kind, verdicts)| line(&format!("`{}`", kind.word()), verdicts))
            .collect();
        let sum: Vec<_> = all.into_values().flatten().collect();
        kinds + &line("all", &sum)
    }

    #[test]
    fn the_page_has_how_many_rows_are_decided_how() {
        let counts = counts(&table());
        assert!(
            include_str!("../../../docs/dev/census.md").contains(&counts),
            "docs/dev/census.md should have these lines:\n{counts}"
        );
    }

    #[test]
    fn calls_of_i386_are_decided_with_those_of_the_same_name() {
        let table = table();
        let call = |kind| table.verdict(&Row::new(kind, "read"));
        assert_eq!(call(Kind::Syscall), Some(Verdict::Mediated));
        assert_eq!(call(Kind::Syscall32), call(Kind::Syscall));
    }

    #[test]
    fn what_is_new_is_undecided() {
        let mut offer = Offer::default();
        offer.add_function("__x64_sys_read");
        offer.add_function("bpf_lsm_not_there_yet");
        offer.add_capabilities(41);
        offer.add_symbol("__x64_sys_never_heard_of");
        let table = table();
        let told: Vec<String> = table
            .undecided(&offer)
            .into_iter()
            .map(Row::to_string)
            .collect();
        for new in [
            "syscall never_heard_of",
            "capability 41",
            "hook not_there_yet",
        ] {
            assert!(told.contains(&new.to_owned()), "{new}: {told:?}");
        }
        assert!(!told.contains(&"syscall read".to_owned()));
    }
}
