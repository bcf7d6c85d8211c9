//! What a scenario is, and the list of all.

use crate::scenarios::check::Outcome;
use crate::scenarios::topics;

/// What a scenario shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary work that must not be refused, and must not demote.
    Allow,
    /// What a row of the mediation table refuses, or the subject that it demotes.
    Deny,
    /// An attack out of docs/dev/bypasses.md.
    Bypass,
    /// How Tidegate itself behaves.
    Life,
}

impl Kind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Allow => "allow",
            Kind::Deny => "deny",
            Kind::Bypass => "bypass",
            Kind::Life => "life",
        }
    }
}

/// One scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// What it is called by.
    pub name: &'static str,
    /// What it shows.
    pub kind: Kind,
    /// Beginning of the row of docs/reference/lomac.md's table that it is about, or empty.
    pub row: &'static str,
    /// In one line.
    pub about: &'static str,
    /// Plays it, in a process at the top level.
    pub play: fn() -> Outcome,
    /// The entry of docs/explain/what-gets-past.md that says why it fails.
    pub gap: Option<&'static str>,
    /// It ends enforcement or changes it for all: played after the others.
    pub last: bool,
    /// It takes most of a minute on an emulated processor, for what hardly differs between kernels.
    pub slow: bool,
}

impl Scenario {
    const fn new(
        kind: Kind,
        name: &'static str,
        about: &'static str,
        play: fn() -> Outcome,
    ) -> Self {
        Scenario {
            name,
            kind,
            row: "",
            about,
            play,
            gap: None,
            last: false,
            slow: false,
        }
    }

    /// It is about this row of the table.
    pub const fn of(mut self, row: &'static str) -> Self {
        self.row = row;
        self
    }

    /// It fails, as this entry of docs/explain/what-gets-past.md says.
    pub const fn gap(mut self, entry: &'static str) -> Self {
        self.gap = Some(entry);
        self
    }

    /// It takes long.
    pub const fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// It is played after the others.
    pub const fn last(mut self) -> Self {
        self.last = true;
        self
    }
}

/// Ordinary work.
pub const fn allow(name: &'static str, about: &'static str, play: fn() -> Outcome) -> Scenario {
    Scenario::new(Kind::Allow, name, about, play)
}

/// A rule of the model.
pub const fn deny(name: &'static str, about: &'static str, play: fn() -> Outcome) -> Scenario {
    Scenario::new(Kind::Deny, name, about, play)
}

/// An attack.
pub const fn bypass(name: &'static str, about: &'static str, play: fn() -> Outcome) -> Scenario {
    Scenario::new(Kind::Bypass, name, about, play)
}

/// Tidegate's own life.
pub const fn life(name: &'static str, about: &'static str, play: fn() -> Outcome) -> Scenario {
    Scenario::new(Kind::Life, name, about, play)
}

/// Every scenario, in the order they are played.
pub fn all() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = topics::TOPICS
        .iter()
        .flat_map(|t| t.iter().copied())
        .collect();
    all.sort_by_key(|s| s.last);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tidegate_census::{Table, Verdict};

    use super::*;

    const LOMAC: &str = include_str!("../../../../docs/reference/lomac.md");
    const BYPASSES: &str = include_str!("../../../../docs/dev/bypasses.md");
    const LIMITATIONS: &str = include_str!("../../../../docs/explain/what-gets-past.md");
    const SHARED: &str = include_str!("../../../../docs/reference/shared-state.md");

    #[test]
    fn names_are_unique_and_plain() {
        let mut seen = HashSet::new();
        for s in all() {
            assert!(seen.insert(s.name), "{} twice", s.name);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(s.name.chars().all(plain), "{}", s.name);
            assert!(!s.about.is_empty() && s.name.len() <= 40, "{}", s.name);
        }
    }

    /// Cells of the tables' rows that begin with this.
    fn rows<'t>(text: &'t str, begin: &str) -> Vec<Vec<&'t str>> {
        let rows = text.lines().filter(|l| l.starts_with(begin));
        rows.map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
            .collect()
    }

    /// First cells of the mediation table.
    fn mediated() -> Vec<&'static str> {
        let table = LOMAC
            .split("| operation | rule |")
            .nth(1)
            .expect("the table of operations");
        let rows = table.lines().skip(2).take_while(|l| l.starts_with('|'));
        rows.map(|l| l.trim_matches('|').split('|').next().unwrap_or("").trim())
            .collect()
    }

    #[test]
    fn every_row_of_the_table_has_an_allow_and_a_deny_test() {
        for row in mediated() {
            for kind in [Kind::Allow, Kind::Deny] {
                let tested = all()
                    .iter()
                    .any(|s| s.kind == kind && !s.row.is_empty() && row.starts_with(s.row));
                assert!(tested, "no {} test for: {row}", kind.word());
            }
        }
    }

    #[test]
    fn every_test_of_a_row_names_a_row() {
        for s in all().iter().filter(|s| !s.row.is_empty()) {
            assert!(
                mediated().iter().any(|r| r.starts_with(s.row)),
                "{}: no row `{}`",
                s.name,
                s.row
            );
        }
    }

    #[test]
    fn the_catalogue_of_bypasses_and_the_scenarios_agree() {
        // those below are others'
        let (lomac, _) = BYPASSES.split_once("## Profiles").expect("a section");
        let entries = rows(lomac, "| B");
        let mut ids = HashSet::new();
        let mut listed = HashSet::new();
        for cells in &entries {
            assert_eq!(
                cells.len(),
                4,
                "id, attack, what stops it, scenario: {cells:?}"
            );
            assert!(ids.insert(cells[0]), "{} twice", cells[0]);
            assert!(cells.iter().all(|c| !c.is_empty()), "{cells:?}");
            let name = cells[3].trim_matches('`');
            let played = all().into_iter().find(|s| s.name == name);
            assert_eq!(
                played.map(|s| s.kind),
                Some(Kind::Bypass),
                "{}: {name}",
                cells[0]
            );
            assert!(listed.insert(name), "{name} twice");
        }
        for s in all().iter().filter(|s| s.kind == Kind::Bypass) {
            assert!(
                listed.contains(s.name),
                "{} is not in docs/dev/bypasses.md",
                s.name
            );
        }
    }

    #[test]
    fn every_decision_of_the_census_is_played() {
        let scenarios = all();
        let unplayed: Vec<String> = Table::read()
            .unwrap()
            .iter()
            .filter(|(_, decision)| decision.decision.is_some())
            .flat_map(|(row, decision)| decision.scenarios().map(move |name| (row, decision, name)))
            .filter(|(_, decision, name)| {
                let played = scenarios.iter().find(|s| s.name == *name);
                // a gap shows that it is not so, and what is known to be open is shown by a gap
                let is_gap = decision.decision == Some(Verdict::Gap);
                played.is_none_or(|s| s.gap.is_some() != is_gap)
            })
            .map(|(row, _, name)| format!("{row}: {name}"))
            .collect();
        assert!(unplayed.is_empty(), "nothing plays {unplayed:#?}");
    }

    #[test]
    fn every_kind_of_shared_state_is_played_or_said_to_be_nobodys() {
        let kinds = rows(SHARED, "| ");
        let kinds = kinds.iter().filter(|cells| cells[0] != "what");
        for cells in kinds {
            assert_eq!(
                cells.len(),
                4,
                "what, what becomes of it, where, scenario: {cells:?}"
            );
            let mut played = cells[3].split('`').skip(1).step_by(2).peekable();
            let is_open = ["nothing yet", "neutral"]
                .iter()
                .any(|word| cells[1].starts_with(word));
            assert!(
                is_open || played.peek().is_some(),
                "nothing plays: {}",
                cells[0]
            );
            for name in played {
                assert!(all().iter().any(|s| s.name == name), "no scenario `{name}`");
            }
        }
    }

    #[test]
    fn every_gap_is_written_down() {
        for s in all() {
            let Some(entry) = s.gap else { continue };
            assert!(
                LIMITATIONS.contains(entry),
                "{}: no entry `{entry}`",
                s.name
            );
            assert!(
                LIMITATIONS.contains(s.name),
                "{} is not named in docs/explain/what-gets-past.md",
                s.name
            );
        }
    }
}
