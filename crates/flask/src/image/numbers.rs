//! The monitor's numbers of what a policy names.

use std::collections::HashMap;

use tidegate_bundle::te::db::{Bitmap, Context, DefaultRange, Level, PolicyDb, Range};

use super::ImageError;
use crate::numbering::Numbering;
use crate::sid::{self, Sid};

/// Ranges that are made for `glblub`, at most.
const COMMON: usize = 1 << 14;

/// The monitor's numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) types: Vec<u32>,
    pub(super) roles: Vec<u32>,
    pub(super) users: Vec<u32>,
    pub(super) ranges: HashMap<Range, u32>,
    pub(super) levels: HashMap<Level, u32>,
}

impl Numbers {
    pub(super) fn of(
        db: &PolicyDb,
        contexts: &[Option<Context>],
        numbering: &mut Numbering,
    ) -> Result<Numbers, ImageError> {
        let (types, roles, users) = (db.types.iter(), db.roles.iter(), db.users.iter());
        let mut numbers = Numbers {
            types: types.map(|t| numbering.types.take(&t.name)).collect(),
            roles: roles.map(|r| numbering.roles.take(&r.name)).collect(),
            users: users.map(|u| numbering.users.take(&u.name)).collect(),
            ..Numbers::default()
        };
        numbers.levels.insert(Level::default(), 0);
        let known: Vec<Range> = numbering
            .ranges
            .iter()
            .filter_map(|(_, text)| db.range_named(text))
            .collect();
        let labels = contexts
            .iter()
            .flatten()
            .map(|context| context.range.clone());
        let all: Vec<Range> = known.into_iter().chain(ranges(db)).chain(labels).collect();
        for range in all {
            numbers.range(db, numbering, &range);
        }
        if db
            .classes
            .iter()
            .any(|c| c.default_range == DefaultRange::GreatestLowest)
        {
            numbers.common(db, numbering);
        }
        let fits = [
            ("types", numbering.types.len(), sid::TYPES),
            ("roles", numbering.roles.len(), sid::ROLES),
            ("users", numbering.users.len(), sid::ROLES),
            ("ranges", numbering.ranges.len(), sid::RANGES),
        ];
        match fits.iter().find(|(_, count, room)| count > room) {
            Some((what, ..)) => Err(ImageError::TooMany(what)),
            None => Ok(numbers),
        }
    }

    /// A range's number, and those of its ends alone.
    pub(super) fn range(&mut self, db: &PolicyDb, numbering: &mut Numbering, range: &Range) -> u32 {
        if let Some(&known) = self.ranges.get(range) {
            return known;
        }
        for level in [&range.low, &range.high] {
            let next = self.levels.len() as u32;
            self.levels.entry(level.clone()).or_insert(next);
        }
        let number = match db.mls {
            true => numbering.ranges.take(&db.range_text(range)),
            false => 0,
        };
        self.ranges.insert(range.clone(), number);
        for level in [&range.low, &range.high] {
            let single = Range {
                low: level.clone(),
                high: level.clone(),
            };
            self.range(db, numbering, &single);
        }
        number
    }

    /// What any two ranges have in common, as a `default_range` of `glblub` asks for: as many as there is room for.
    pub(super) fn common(&mut self, db: &PolicyDb, numbering: &mut Numbering) {
        let known: Vec<Range> = self.ranges.keys().cloned().collect();
        for one in &known {
            for two in &known {
                let common = Range {
                    low: common(&one.low, &two.low, u32::max),
                    high: common(&one.high, &two.high, u32::min),
                };
                if self.ranges.len() < COMMON && common.high.dominates(&common.low) {
                    self.range(db, numbering, &common);
                }
            }
        }
    }

    pub(super) fn sid(&self, context: &Context) -> Option<Sid> {
        let range = *self.ranges.get(&context.range)?;
        Some(Sid::of(
            self.users[context.user as usize - 1],
            self.roles[context.role as usize - 1],
            self.types[context.kind as usize - 1],
            range,
        ))
    }
}

/// The categories that two levels have in common, in one of their sensitivities.
fn common(one: &Level, two: &Level, which: fn(u32, u32) -> u32) -> Level {
    let mut categories = one.categories.clone();
    categories.intersect_with(&two.categories);
    let bits = categories.maximum().map_or(0, |last| last + 1);
    let mut trimmed = Bitmap::with_capacity(bits);
    trimmed.extend(categories.ones());
    Level {
        sensitivity: which(one.sensitivity, two.sensitivity),
        categories: trimmed,
    }
}

/// Every range that a policy names.
fn ranges(db: &PolicyDb) -> impl Iterator<Item = Range> {
    let contexts = (db.initial_sids.iter().map(|(_, c)| c))
        .chain(db.fs_uses.iter().map(|f| &f.context))
        .chain(
            db.genfs
                .iter()
                .flat_map(|g| g.paths.iter().map(|p| &p.context)),
        )
        .chain(db.ports.iter().map(|p| &p.context))
        .chain(db.nodes.iter().map(|(.., c)| c))
        .chain(db.nodes6.iter().map(|(.., c)| c))
        .map(|context| context.range.clone());
    let users = db.users.iter().flat_map(|user| {
        let level = Range {
            low: user.level.clone(),
            high: user.level.clone(),
        };
        [user.range.clone(), level]
    });
    let transitions = db.range_transitions.iter().map(|t| t.range.clone());
    contexts
        .chain(users)
        .chain(transitions)
        .collect::<Vec<_>>()
        .into_iter()
}
