//! What the boots' figures say.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::boot::RULES;
use super::{Boots, Figures};

/// What Tidegate may cost at most, in percent.
const BUDGETS: [(&str, f64); 13] = [
    ("read 1 B", 1.5),
    ("write 1 B", 1.5),
    ("read 1 B of /dev/zero", 1.5),
    ("write 1 B to /dev/null", 1.5),
    ("stat", 1.5),
    ("fstat", 1.5),
    ("open+close", 8.0),
    ("creat+unlink", 5.0),
    ("rename x2", 5.0),
    ("pipe write+read", 12.0),
    ("unix send+recv", 12.0),
    ("fork+exit+wait", 0.5),
    ("vfork+exec", 1.5),
];

/// Instructions of one operation without Tidegate and with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Without.
    pub without: f64,
    /// With.
    pub with: f64,
}

impl Change {
    /// How much more it is with Tidegate, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        (self.with - self.without) * 100.0 / self.without
    }
}

/// One operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Operation {
    /// What is done.
    pub item: String,
    /// By a process at the top level.
    pub system: Change,
    /// By one of alice's at the level `user`, in a directory of hers.
    pub user: Change,
    /// By a process at the top level where `bpf` is in the list of security modules
    /// and nothing is attached.
    pub listed: Option<f64>,
    /// How far the disturbed boots' figures lay from the others, in percent.
    pub noise: Option<f64>,
    /// What it may cost at most, in percent.
    pub budget: Option<f64>,
}

impl Operation {
    /// Whether both levels stay within the budget.
    #[must_use]
    pub fn held(&self) -> Option<bool> {
        let worst = self.system.percent().max(self.user.percent());
        self.budget.map(|most| worst <= most)
    }
}

/// Opening a file that nobody has opened yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sight {
    /// Rules in the map.
    pub rules: usize,
    /// The first open and close of a file.
    pub first: Change,
    /// The second.
    pub second: Change,
}

/// Bytes of kernel memory that Tidegate adds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// For a file that has been opened.
    pub inode: f64,
    /// For a process below the top level.
    pub process: f64,
}

/// The program that was measured; the kernel side is part of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// What `--version` prints.
    pub version: String,
    /// The file's SHA-256.
    pub sha256: String,
    /// The commit it was built from; nothing if the sources were not just that.
    pub commit: Option<String>,
}

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The program.
    pub program: Program,
    /// The kernel, as `uname -r` says it.
    pub kernel: String,
    /// How many figures differed when boots were repeated, and of how many; nothing
    /// if they were not.
    pub differing: Option<(usize, usize)>,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Memory, unless only a brief report was asked for.
    pub memory: Option<Memory>,
    /// Look-ups; the same.
    pub first_sight: Vec<Sight>,
}

impl Report {
    pub(super) fn new(
        program: Program,
        release: String,
        bare: &Boots,
        listed: Option<&Figures>,
        enforcing: &Boots,
    ) -> Result<Self> {
        let both = Both { bare, enforcing };
        let operations = bare
            .plain
            .items("top")
            .into_iter()
            .map(|item| both.operation(item, listed))
            .collect::<Result<_>>()?;
        // a brief measurement has but the operations, and no repeats
        let (memory, first_sight) = if bare.repeat.is_none() {
            (None, Vec::new())
        } else {
            let memory = Memory {
                inode: both.more("inodes", "bytes")?,
                process: both.more("processes", "bytes")?,
            };
            let sights = RULES.iter().map(|rules| both.sight(*rules));
            (Some(memory), sights.collect::<Result<_>>()?)
        };
        Ok(Self {
            program,
            kernel: release,
            differing: bare
                .differing()
                .zip(enforcing.differing())
                .map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            operations,
            memory,
            first_sight,
        })
    }

    /// Reads what [`Report::to_json`] has made.
    ///
    /// # Errors
    /// When the file is not there or is no report.
    pub fn read(file: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(file)?)?)
    }

    /// The report for machines.
    ///
    /// # Errors
    /// When a figure is no number.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether every budget is held.
    #[must_use]
    pub fn held(&self) -> bool {
        self.operations.iter().all(|o| o.held() != Some(false))
    }
}

impl Boots {
    /// How far disturbance moved one figure, in percent.
    fn noise(&self, section: &str, item: &str) -> Option<f64> {
        let plain = self.plain.get(section, item)?;
        let disturbed = self.disturbed.as_ref()?.get(section, item)?;
        Some((disturbed - plain).abs() * 100.0 / plain)
    }

    /// How many figures the repeat gave otherwise, and of how many.
    fn differing(&self) -> Option<(usize, usize)> {
        Some(self.plain.differing(self.repeat.as_ref()?))
    }
}

/// One figure, which has to be there.
fn figure(of: &Figures, section: &str, item: &str) -> Result<f64> {
    of.get(section, item)
        .with_context(|| format!("no figure for {item} ({section})"))
}

struct Both<'a> {
    bare: &'a Boots,
    enforcing: &'a Boots,
}

impl Both<'_> {
    fn change(&self, section: &str, item: &str) -> Result<Change> {
        Ok(Change {
            without: figure(&self.bare.plain, section, item)?,
            with: figure(&self.enforcing.plain, section, item)?,
        })
    }

    fn more(&self, section: &str, item: &str) -> Result<f64> {
        let change = self.change(section, item)?;
        Ok(change.with - change.without)
    }

    fn operation(&self, item: &str, listed: Option<&Figures>) -> Result<Operation> {
        let noise = [self.bare, self.enforcing]
            .iter()
            .flat_map(|boots| ["top", "user"].map(|section| boots.noise(section, item)))
            .flatten()
            .reduce(f64::max);
        let budget = BUDGETS.iter().find(|(name, _)| *name == item);
        Ok(Operation {
            item: item.to_owned(),
            system: self.change("top", item)?,
            user: self.change("user", item)?,
            listed: listed.map(|f| figure(f, "top", item)).transpose()?,
            noise,
            budget: budget.map(|(_, most)| *most),
        })
    }

    fn sight(&self, rules: usize) -> Result<Sight> {
        let section = format!("rules {rules}");
        Ok(Sight {
            rules,
            first: self.change(&section, "open 1")?,
            second: self.change(&section, "open 2")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boots(plain: &str) -> Boots {
        Boots {
            plain: Figures::parse(plain).unwrap(),
            repeat: None,
            disturbed: None,
        }
    }

    fn report(with: &str) -> Result<Report> {
        let program = Program {
            version: "tidegate 0".into(),
            sha256: "00".into(),
            commit: None,
        };
        let bare = "== top\nstat\t4000\nlink\t10\n== user\nstat\t4000\nlink\t10\n== end\n";
        Report::new(program, "6.12".into(), &boots(bare), None, &boots(with))
    }

    #[test]
    fn a_budget_is_for_both_levels() {
        let good = "== top\nstat\t4000\nlink\t20\n== user\nstat\t4040\nlink\t20\n== end\n";
        let good = report(good).unwrap();
        assert!(good.held());
        assert!((good.operations[1].system.percent() - 100.0).abs() < 1e-9);
        assert_eq!(good.operations[1].held(), None);
        let bad = "== top\nstat\t4000\nlink\t10\n== user\nstat\t4100\nlink\t10\n== end\n";
        assert!(!report(bad).unwrap().held());
    }

    #[test]
    fn an_item_that_is_missing_is_an_error() {
        assert!(report("== top\nstat\t1\n== user\nstat\t1\n== end\n").is_err());
    }

    #[test]
    fn noise_is_what_disturbance_moves() {
        let mut both = boots("== top\nread\t100\n== end\n");
        assert_eq!(both.noise("top", "read"), None);
        both.disturbed = Some(Figures::parse("== top\nread\t96\n== end\n").unwrap());
        both.repeat = Some(both.plain.clone());
        assert_eq!(both.noise("top", "read"), Some(4.0));
        assert_eq!(both.differing(), Some((0, 1)));
    }

    #[test]
    fn a_report_survives_json() {
        let with = "== top\nstat\t4000\nlink\t20\n== user\nstat\t4040\nlink\t20\n== end\n";
        let json = report(with).unwrap().to_json().unwrap();
        let again: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(again.to_json().unwrap(), json);
    }
}
