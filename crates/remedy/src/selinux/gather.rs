//! The refusals by a SELinux policy that a log tells of, each kind once.

use std::collections::BTreeMap;

use tidegate_audit::Record;
use tidegate_bundle::te::db::PolicyDb;

use super::need::{Need, Unlearned};
use crate::sum::Sum;

/// Kinds that are told apart.
const KINDS: usize = 20_000;

/// A kind of refusals.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What would have to be allowed.
    pub need: Need,
    /// Why it looks like an attack, if it does.
    pub suspicion: Option<String>,
    /// Whose refusals these are.
    pub of: Sum,
    /// What was refused, for example.
    pub example: String,
}

/// Source, target and class, and what makes it suspicious.
type Key = (String, String, String, Option<String>);

/// What a log has told of a SELinux policy.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The kinds.
    pub seen: BTreeMap<Key, Seen>,
    /// What no rule follows from, by why.
    pub unlearned: BTreeMap<Unlearned, (Sum, String)>,
    /// Refusals in all.
    pub refusals: u64,
    /// Refusals for whose kind there was no room.
    pub left_out: u64,
}

impl Gathered {
    /// Takes a record, which stands for so many; `suspicion` says why it looks like an attack.
    pub fn take(&mut self, record: &Record, count: u64, db: &PolicyDb, suspicion: Option<&str>) {
        self.refusals += count;
        let example = record.deed();
        let need = match Need::of(record, db) {
            Ok(need) => need,
            Err(why) => {
                let new = || (Sum::default(), example);
                let (of, _) = self.unlearned.entry(why).or_insert_with(new);
                of.add(record, count);
                return;
            }
        };
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        let key = (
            word(&record.scontext),
            word(&record.tcontext),
            word(&record.tclass),
            suspicion.map(str::to_owned),
        );
        if self.seen.len() >= KINDS && !self.seen.contains_key(&key) {
            self.left_out += count;
            return;
        }
        let new = || Seen {
            need: need.clone(),
            suspicion: suspicion.map(str::to_owned),
            of: Sum::default(),
            example,
        };
        let seen = self.seen.entry(key).or_insert_with(new);
        seen.need.permissions |= need.permissions;
        for name in need.unknown {
            if !seen.need.unknown.contains(&name) {
                seen.need.unknown.push(name);
            }
        }
        seen.of.add(record, count);
    }
}
