//! Counts refusals: how many there were, their programs, the first and last time, and some numbers of records.

use tidegate_audit::{Record, is_unseen};

/// Programs and records that are named of each.
pub const NAMED: usize = 3;

/// Several refusals in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sum {
    /// How many there were.
    pub count: u64,
    /// Programs' names.
    pub programs: Vec<String>,
    /// When the first was, UTC.
    pub first: String,
    /// And the last.
    pub last: String,
    /// Some records' numbers in the log.
    pub ids: Vec<u64>,
}

impl Sum {
    /// Takes in a record, which stands for so many.
    pub fn add(&mut self, record: &Record, count: u64) {
        let program = record.subject.iter().map(|s| s.comm.clone());
        self.join(&Sum {
            count,
            programs: program.collect(),
            first: record.time.clone(),
            last: record.time.clone(),
            ids: Some(record.id).filter(|id| *id != 0).into_iter().collect(),
        });
    }

    /// Takes in others.
    pub fn join(&mut self, other: &Sum) {
        if self.count == 0 {
            self.first.clone_from(&other.first);
        }
        self.count += other.count;
        self.first = self.first.clone().min(other.first.clone());
        self.last = self.last.clone().max(other.last.clone());
        self.programs.extend_from_slice(&other.programs);
        self.programs.sort();
        self.programs.dedup();
        self.ids.extend_from_slice(&other.ids);
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.truncate(NAMED);
    }

    /// In one line.
    pub fn words(&self) -> String {
        let refusals = if self.count == 1 {
            "refusal"
        } else {
            "refusals"
        };
        let mut programs = self
            .programs
            .iter()
            .take(NAMED)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        if self.programs.len() > NAMED {
            programs.push_str(", …");
        }
        let ids: Vec<_> = self.ids.iter().map(|id| format!("@{id}")).collect();
        let (first, last) = (short(&self.first), short(&self.last));
        let when = if first == last {
            first
        } else {
            format!("{first} to {last}")
        };
        let text = format!(
            "{} {refusals} of {programs}, {when} ({})",
            self.count,
            ids.join(" ")
        );
        text.replace(is_unseen, "?")
    }
}

/// A time to the second.
fn short(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.into(),
    }
}
