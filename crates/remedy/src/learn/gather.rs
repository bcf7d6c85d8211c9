//! The refusals of an audit log, each kind once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tidegate_audit::Record;
use tidegate_bundle::Policy;
use tidegate_monitor::Op;

use crate::apparmor::{self, Need};
use crate::lomac::{Refusal, split, suspicion};
use crate::selinux;
use crate::sum::{NAMED, Sum};

/// Falls that are remembered, so that chains can be followed: as many as the kernel does.
const FALLS: usize = 65_536;
/// Links of a chain that are followed.
const LINKS: usize = 64;
/// Kinds of refusals that are told apart.
const KINDS: usize = 5000;
/// Directories: each has fixes of its own to be checked.
const DIRS: usize = 500;
/// Names in one directory that are told apart; the others are counted with the last.
const NAMES: usize = 4;

/// Refusals of one program, operation and object.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The first of them.
    pub refusal: Refusal,
    /// How many there were.
    pub count: u64,
    /// When the first was, UTC.
    pub first: String,
    /// And the last.
    pub last: String,
    /// Some records' numbers.
    pub ids: Vec<u64>,
}

/// What one kind has that no other has.
type Key = (String, u8, u8, String, u8, String, bool);

/// What a log has told.
#[derive(Debug, Default)]
pub struct Gathered {
    kinds: BTreeMap<Key, Kind>,
    names: HashMap<Key, Vec<String>>,
    dirs: HashSet<String>,
    falls: BTreeMap<u64, Record>,
    newest: u64,
    made: HashSet<String>,
    /// The process that gave what it had made another name, and the record of it.
    renaming: Option<(u32, u64)>,
    /// What profiles refused, where the policy has any.
    pub profiles: apparmor::Gathered,
    /// What the SELinux policy refused, where there is one.
    pub te: selinux::Gathered,
    /// Refusals in all, but for those.
    pub refusals: u64,
    /// Refusals for whose kind there was no room.
    pub left_out: u64,
    /// Refusals under other levels than the policy's, or of another build.
    pub foreign: u64,
    /// Records that the daemon had to leave out.
    pub lost: u64,
    /// Lines that are no records.
    pub broken: u64,
}

impl Gathered {
    /// Takes a line of the log. `fits` says whether a refusal is asked for.
    pub fn line(&mut self, line: &str, policy: &Policy, fits: impl Fn(&Record) -> bool) {
        let Ok(record) = serde_json::from_str::<Record>(line) else {
            self.broken += u64::from(!line.trim().is_empty());
            return;
        };
        match record.kind.as_str() {
            "demoted" | "started" => self.fall(record),
            "denied" | "would" if fits(&record) => self.refusal(record, 1, policy),
            "dropped" if fits(&record) => {
                let count = record.count.unwrap_or(0);
                let kind = "denied".into();
                self.refusal(Record { kind, ..record }, count, policy);
            }
            "lost" => self.lost += record.count.unwrap_or(0),
            _ => {}
        }
    }

    fn fall(&mut self, record: Record) {
        // numbers begin anew with each start of the monitor
        if record.id + (FALLS as u64) < self.newest || record.id == 1 {
            self.falls.clear();
            self.newest = 0;
        }
        self.newest = self.newest.max(record.id);
        self.falls.insert(record.id, record);
        if self.falls.len() > FALLS {
            self.falls.pop_first();
        }
    }

    fn refusal(&mut self, record: Record, count: u64, policy: &Policy) {
        if !policy.profiles.profiles.is_empty() && Need::is_told_by(&record) {
            self.profiles.take(&record, count);
            return;
        }
        if let Some(te) = &policy.te
            && selinux::Need::is_told_by(&record)
        {
            let chain = self.chain(record);
            let refusal = Refusal::of(&chain, policy);
            let why = refusal.and_then(|refusal| suspicion(&refusal, policy));
            self.te.take(&chain[0], count, &te.db, why);
            return;
        }
        self.refusals += count;
        let chain = self.chain(record);
        let Some(mut refusal) = Refusal::of(&chain, policy) else {
            self.foreign += count;
            return;
        };
        let record = &chain[0];
        refusal.made = self.is_made(&refusal, record);
        let mut key = key(&refusal, record);
        if let Some((dir, name)) = refusal.path().and_then(split) {
            // a rule of its own tells a name apart
            let rule = record.rule.as_ref().map_or("", |rule| &rule.text);
            let place = format!("{dir}\n{rule}");
            let mut of_place = key.clone();
            of_place.3 = place;
            if !self.dirs.contains(dir) {
                if self.dirs.len() >= DIRS {
                    self.left_out += count;
                    return;
                }
                self.dirs.insert(dir.to_owned());
            }
            let names = self.names.entry(of_place).or_default();
            if !names.iter().any(|known| known == name) {
                if names.len() < NAMES {
                    names.push(name.to_owned());
                } else if let Some(last) = names.last() {
                    key.3 = format!("{}/{last}", dir.trim_end_matches('/'));
                }
            }
        }
        if !self.kinds.contains_key(&key) && self.kinds.len() >= KINDS {
            self.left_out += count;
            return;
        }
        let kind = self.kinds.entry(key).or_insert_with(|| Kind {
            refusal,
            count: 0,
            first: record.time.clone(),
            last: record.time.clone(),
            ids: Vec::new(),
        });
        kind.count += count;
        kind.first = kind.first.clone().min(record.time.clone());
        kind.last = kind.last.clone().max(record.time.clone());
        if kind.ids.len() < NAMED && record.id != 0 {
            kind.ids.push(record.id);
        }
    }

    /// Whether what a refusal is about was made by a lower process, as far as the log tells:
    /// its creation was recorded and let through, or its name by a rename of such a file,
    /// which is recorded at the old name and then at the new one.
    fn is_made(&mut self, refusal: &Refusal, record: &Record) -> bool {
        let Some(path) = refusal.path() else {
            return false;
        };
        let known = self.made.contains(path);
        let mut new = refusal.op == Op::Create;
        if refusal.op == Op::Rename {
            let renaming = self.renaming.take();
            if known {
                self.renaming = Some((refusal.pid, record.id));
            } else if let Some((pid, id)) = renaming {
                new = pid == refusal.pid && (id + 1..id + 4).contains(&record.id);
            }
        }
        if new && record.kind == "would" && self.made.len() < KINDS {
            self.made.insert(path.to_owned());
        }
        known && refusal.op != Op::Create
    }

    /// A record and what led to it, newest first.
    fn chain(&self, record: Record) -> Vec<Record> {
        let mut chain = vec![record];
        while chain.len() < LINKS
            && let Some(last) = chain.last()
            && let Some(before) = last.prev.and_then(|id| self.falls.get(&id))
            && (before.id < last.id || last.id == 0)
        {
            chain.push(before.clone());
        }
        chain
    }

    /// All kinds, in an order that the log's does not matter for.
    pub fn kinds(self) -> Vec<Kind> {
        self.kinds.into_values().collect()
    }
}

fn key(refusal: &Refusal, record: &Record) -> Key {
    let program = refusal.exe.clone().unwrap_or_else(|| refusal.comm.clone());
    let object = record.object.as_ref();
    let what = object.and_then(|o| o.path.clone().or_else(|| o.address.clone()));
    let falls = refusal.falls.iter().map(|fall| {
        let object = &fall.object;
        let what = object.path.clone();
        what.or_else(|| object.address.map(|a| a.to_string()))
            .unwrap_or_default()
    });
    (
        program,
        refusal.op as u8,
        refusal.reason as u8,
        what.unwrap_or_default(),
        refusal.level,
        falls.collect::<Vec<_>>().join("\n"),
        refusal.made,
    )
}

impl Sum {
    /// Of these kinds.
    pub fn of<'k>(kinds: impl Iterator<Item = &'k Kind> + Clone) -> Sum {
        let programs: BTreeSet<&String> = kinds.clone().map(|k| &k.refusal.comm).collect();
        let ids: BTreeSet<u64> = kinds.clone().flat_map(|k| k.ids.iter().copied()).collect();
        let of = |time: fn(&Kind) -> &String| kinds.clone().map(time);
        Sum {
            count: kinds.clone().map(|k| k.count).sum(),
            programs: programs.into_iter().cloned().collect(),
            first: of(|k| &k.first).min().cloned().unwrap_or_default(),
            last: of(|k| &k.last).max().cloned().unwrap_or_default(),
            ids: ids.into_iter().take(NAMED).collect(),
        }
    }
}
