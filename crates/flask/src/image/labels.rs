//! What labelling decisions look up: transitions, by types and by names, and initial SIDs.

use std::collections::HashMap;

use tidegate_bundle::te::db::Says;

use super::ImageError;
use super::writer::Writer;
use crate::part;
use crate::rows;

/// Initial SIDs that the kernel has room for.
const INITIAL: usize = 32;

impl Writer<'_> {
    pub(super) fn entries(&mut self) {
        let db = self.db;
        let mut entries: HashMap<u64, u32> = HashMap::new();
        for rule in rows::rules(db, self.booleans) {
            let (kind, becomes) = match rule.says {
                Says::Transition(becomes) => (1, becomes),
                Says::Member(becomes) => (2, becomes),
                Says::Change(becomes) => (3, becomes),
                _ => continue,
            };
            let class = self.classes.number(rule.class);
            let key = key(kind, class, self.kind(rule.source), self.kind(rule.target));
            // what always holds comes first, and counts
            entries.entry(key).or_insert(self.kind(becomes));
        }
        for t in &db.range_transitions {
            let class = self.classes.number(t.class);
            let key = key(4, class, self.kind(t.source), self.kind(t.target));
            entries.insert(key, self.numbers.ranges[&t.range] + 1);
        }
        for t in &db.role_transitions {
            let role = self.numbers.roles[t.role as usize - 1];
            let key = key(5, self.classes.number(t.class), role, self.kind(t.kind));
            entries.insert(key, self.numbers.roles[t.becomes as usize - 1]);
        }
        let mut entries: Vec<(u64, u32)> = entries.into_iter().collect();
        entries.sort_unstable();
        let entries: Vec<(u32, [u64; 2])> = entries
            .into_iter()
            .map(|(key, value)| (hash(key), [key, value.into()]))
            .collect();
        let (place, mask) = self.out.hashed(&entries);
        self.head[part::ENTRIES] = place;
        self.head[part::ENTRIES_MASK] = mask;
    }

    pub(super) fn names(&mut self) {
        let bits = self.numbering.types.len();
        let mut sets: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut entries = Vec::new();
        for t in &self.db.name_transitions {
            let key = key(1, self.classes.number(t.class), 0, self.kind(t.target));
            let sources = self.kinds(&t.sources);
            let sources = match sets.get(&sources) {
                Some(&place) => place,
                None => {
                    let place = self.out.bitmap(bits, sources.iter().copied());
                    sets.insert(sources, place);
                    place
                }
            };
            let name = t.name.as_bytes();
            let text = self.out.list(name.iter().copied());
            let entry = [
                key as u32,
                (key >> 32) as u32,
                text,
                name.len() as u32,
                sources,
                self.kind(t.becomes),
            ];
            entries.push((hash(key ^ u64::from(text_hash(name))), entry));
        }
        let (place, mask) = self.out.hashed(&entries);
        self.head[part::NAMES] = place;
        self.head[part::NAMES_MASK] = mask;
    }

    /// What the parts of contexts are called.
    pub(super) fn texts(&mut self) {
        let n = self.numbering;
        let mut entries = Vec::new();
        for (part, names) in [&n.users, &n.roles, &n.types, &n.ranges]
            .into_iter()
            .enumerate()
        {
            for (number, name) in names.iter() {
                let (part, text) = (part as u32, self.out.list(name.bytes()));
                let entry = [text, name.len() as u32, part, number];
                entries.push((text_hash(name.as_bytes()).wrapping_add(part), entry));
            }
        }
        let (place, mask) = self.out.hashed(&entries);
        self.head[part::TEXTS] = place;
        self.head[part::TEXTS_MASK] = mask;
    }

    pub(super) fn initial(&mut self) -> Result<(), ImageError> {
        let mut table = [0; INITIAL];
        for (number, context) in &self.db.initial_sids {
            if let Some(place) = table.get_mut(*number as usize) {
                *place = self.sid(context);
            }
        }
        for (number, name) in [(1, "kernel"), (3, "unlabeled")] {
            if table[number] == 0 {
                return Err(ImageError::NoInitial(name));
            }
        }
        // what the policy has no context for is unlabeled
        let unlabeled = table[3];
        self.head[part::INITIAL] = self
            .out
            .list(table.map(|sid| if sid == 0 { unlabeled } else { sid }));
        Ok(())
    }
}

/// `te_key()`
fn key(kind: u64, class: u32, source: u32, target: u32) -> u64 {
    kind << 60 | u64::from(class & 0xfff) << 40 | u64::from(source) << 20 | u64::from(target)
}

/// `te_hash()`
fn hash(key: u64) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// `te_text_hash()`: FNV-1a.
pub(super) fn text_hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash: u32, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
