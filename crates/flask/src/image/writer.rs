//! An image being written: its rules, types, roles, users and levels.

use std::collections::HashMap;

use tidegate_bundle::layout::Layout;
use tidegate_bundle::te::db::{Bitmap, Context, Level, PolicyDb, Range, Unknown};

use super::ImageError;
use super::numbers::Numbers;
use crate::classes::Classes;
use crate::numbering::Numbering;
use crate::part;
use crate::rows::{Booleans, Rows};

/// Columns in a block of a row: `TE_BLOCK` of kernel/abi/te_image.h.
const BLOCK: usize = 64;

/// What is written, and where.
pub(super) struct Writer<'p> {
    pub(super) db: &'p PolicyDb,
    pub(super) booleans: &'p Booleans,
    pub(super) classes: &'p Classes,
    pub(super) numbering: &'p Numbering,
    pub(super) numbers: &'p Numbers,
    pub(super) out: Layout,
    pub(super) head: [u32; part::COUNT],
    /// The SIDs by which lines of file contexts and of `genfscon` label.
    pub(super) lines: Vec<u64>,
}

impl Writer<'_> {
    pub(super) fn write(&mut self, rows: &Rows) -> Result<(), ImageError> {
        let n = self.numbering;
        let db = self.db;
        self.head[part::TYPES] = n.types.len() as u32;
        self.head[part::ROLES] = n.roles.len() as u32;
        self.head[part::USERS] = n.users.len() as u32;
        self.head[part::CLASSES] = self.classes.list.len() as u32 + 1;
        self.head[part::MLS] = db.mls.into();
        let object_r = db.roles.iter().position(|r| r.name == "object_r");
        self.head[part::OBJECT_R] = object_r.map_or(0, |at| self.numbers.roles[at]);
        self.head[part::PROCESS] = self.classes.by_name("process").unwrap_or(0);
        let capabilities = db.capabilities.ones().map(|bit| bit as u32);
        self.head[part::CAPABILITIES] = self.out.bitmap(64, capabilities.filter(|&bit| bit < 64));
        self.rules(rows);
        self.extended();
        self.head[part::ALLOWS_UNKNOWN] = (db.unknown == Unknown::Allow).into();
        self.types();
        self.roles();
        self.levels();
        self.users();
        self.classes();
        self.entries();
        self.names();
        self.texts();
        self.initial()?;
        self.filesystems()?;
        self.network();
        Ok(())
    }

    pub(super) fn kind(&self, policy: u32) -> u32 {
        self.numbers.types[policy as usize - 1]
    }

    pub(super) fn kinds(&self, set: &Bitmap) -> Vec<u32> {
        let types = set.ones().filter(|&n| n < self.db.types.len());
        types.map(|n| self.numbers.types[n]).collect()
    }

    pub(super) fn rules(&mut self, rows: &Rows) {
        let width = (self.classes.list.len() + 1).next_multiple_of(4);
        self.head[part::CELL_WIDTH] = width as u32;
        let cells: Vec<u32> = rows
            .cells
            .iter()
            .map(|cell| {
                let mut at = vec![0u16; width];
                for (index, (class, _)) in cell.iter().enumerate() {
                    at[*class as usize] = index as u16 + 1;
                }
                let place = self.out.list(at);
                self.out.list(
                    cell.iter()
                        .map(|(_, av)| [av.allow, av.auditallow, av.auditdeny, 0]),
                );
                place
            })
            .collect();
        let of = |index: u32, places: &[u32]| match index {
            0 => 0,
            index => places[index as usize - 1],
        };
        // most of a row is nothing, or what another row has there, too
        let mut blocks: HashMap<&[u32], u32> = HashMap::new();
        let mut places = Vec::new();
        for row in &rows.rows {
            let mut of_row = Vec::new();
            for block in row.chunks(BLOCK) {
                of_row.push(match block.iter().all(|&cell| cell == 0) {
                    true => 0,
                    false => *blocks.entry(block).or_insert_with(|| {
                        let rest = std::iter::repeat_n(0, BLOCK - block.len());
                        let cells = block.iter().map(|&cell| of(cell, &cells));
                        self.out.list(cells.chain(rest))
                    }),
                });
            }
            places.push(self.out.list(of_row));
        }
        let mut row_of = vec![0; self.numbering.types.len()];
        let mut column_of = vec![0; self.numbering.types.len()];
        for (kind, &number) in self.numbers.types.iter().enumerate() {
            row_of[number as usize] = of(rows.row_of[kind], &places);
            column_of[number as usize] = rows.column_of[kind];
        }
        self.head[part::ROWS] = self.out.list(row_of);
        self.head[part::COLUMNS] = self.out.list(column_of);
    }

    pub(super) fn types(&mut self) {
        let count = self.numbering.types.len();
        let permissive = self.kinds(&self.db.permissive);
        self.head[part::PERMISSIVE] = self.out.bitmap(count, permissive);
        if self.db.types.iter().any(|t| t.bounds.is_some()) {
            let mut bounds = vec![0; count];
            for (at, kind) in self.db.types.iter().enumerate() {
                bounds[self.numbers.types[at] as usize] = kind.bounds.map_or(0, |b| self.kind(b));
            }
            self.head[part::BOUNDS] = self.out.list(bounds);
        }
    }

    pub(super) fn roles(&mut self) {
        let (types, roles) = (self.numbering.types.len(), self.numbering.roles.len());
        let mut of_types = vec![0; roles];
        let mut dominates = vec![0; roles];
        let mut allows = vec![0; roles];
        for (at, role) in self.db.roles.iter().enumerate() {
            let number = self.numbers.roles[at];
            // object_r is of everything that is no process, so of all types that there are
            let kinds = match role.name.as_str() {
                "object_r" => {
                    let all = self.db.types.iter().zip(&self.numbers.types);
                    all.filter(|(t, _)| !t.attribute && !t.name.is_empty())
                        .map(|(_, &n)| n)
                        .collect()
                }
                _ => self.kinds(&role.types),
            };
            of_types[number as usize] = self.out.bitmap(types, kinds);
            let above: Vec<u32> = role
                .dominates
                .ones()
                .map(|r| self.numbers.roles[r])
                .collect();
            dominates[number as usize] = self.out.bitmap(roles, above);
            let to = self
                .db
                .role_allows
                .iter()
                .filter(|(from, _)| *from as usize == at + 1);
            let to: Vec<u32> = to
                .map(|(_, to)| self.numbers.roles[*to as usize - 1])
                .collect();
            allows[number as usize] = self.out.bitmap(roles, to);
        }
        self.head[part::ROLE_TYPES] = self.out.list(of_types);
        self.head[part::ROLE_DOMINATES] = self.out.list(dominates);
        self.head[part::ROLE_ALLOWS] = self.out.list(allows);
    }

    pub(super) fn users(&mut self) {
        let roles = self.numbering.roles.len();
        let mut of_roles = vec![0; self.numbering.users.len()];
        let mut ranges = vec![0; self.numbering.users.len()];
        for (at, user) in self.db.users.iter().enumerate() {
            let number = self.numbers.users[at] as usize;
            let mut set: Vec<u32> = user.roles.ones().map(|r| self.numbers.roles[r]).collect();
            // any user's may be what is no process
            set.push(self.head[part::OBJECT_R]);
            of_roles[number] = self.out.bitmap(roles, set);
            ranges[number] = self.numbers.ranges[&user.range];
        }
        self.head[part::USER_ROLES] = self.out.list(of_roles);
        self.head[part::USER_RANGES] = self.out.list(ranges);
    }

    pub(super) fn levels(&mut self) {
        let words = self.db.categories.len().div_ceil(32).max(1);
        let mut levels: Vec<(&Level, u32)> =
            self.numbers.levels.iter().map(|(l, &n)| (l, n)).collect();
        levels.sort_by_key(|(_, number)| *number);
        let table: Vec<[u32; 2]> = levels
            .iter()
            .map(|(level, _)| {
                let categories = level.categories.ones().map(|c| c as u32);
                [level.sensitivity, self.out.bitmap(32 * words, categories)]
            })
            .collect();
        self.head[part::CATEGORY_WORDS] = words as u32;
        self.head[part::LEVEL_AT] = self.out.list(table);

        let count = self.numbering.ranges.len();
        let mut ranges = vec![[0u32; 4]; count];
        for (range, &number) in &self.numbers.ranges {
            let lowest = Range {
                low: range.low.clone(),
                high: range.low.clone(),
            };
            ranges[number as usize] = [
                self.numbers.levels[&range.low],
                self.numbers.levels[&range.high],
                self.numbers.ranges[&lowest],
                1,
            ];
        }
        self.head[part::RANGES] = count as u32;
        self.head[part::RANGE_AT] = self.out.list(ranges);
    }

    pub(super) fn sid(&self, context: &Context) -> u64 {
        self.numbers.sid(context).map_or(0, |sid| sid.0)
    }
}
