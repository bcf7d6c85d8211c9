//! A policy's rules expanded: for each source type what it may do to each target type, by class.
//!
//! Rules name types and attributes, of which a type has dozens; to look up each pair of them at a miss would take a
//! kernel hundreds of thousands of instructions. So a row for each source is made here, once: an access decision is
//! three loads then. Types that no rule tells apart share a column, sources share rows, and equal cells are kept once.

use std::collections::HashMap;

use tidegate_bundle::te::db::{Bitmap, BooleanTerm, PolicyDb, Rule, Says};

use crate::classes::{Class, Classes};

/// What a source may do to a target of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Av {
    pub allow: u32,
    pub auditallow: u32,
    pub auditdeny: u32,
}

const NOTHING: Av = Av {
    allow: 0,
    auditallow: 0,
    auditdeny: !0,
};

/// The classes that there is a rule about, and what it says: sorted by class.
type Cell = Vec<(u32, Av)>;

/// A policy's rules, expanded.
#[derive(Debug, Default)]
pub struct Rows {
    /// By the policy's number of a source type, less 1: which of the rows, from 1; 0: it has no rules.
    pub row_of: Vec<u32>,
    /// By the policy's number of a target type, less 1.
    pub column_of: Vec<u32>,
    /// How many columns a row has.
    pub columns: usize,
    /// By column, which of the cells, from 1; 0: no rules.
    pub rows: Vec<Vec<u32>>,
    /// Each once.
    pub cells: Vec<Cell>,
}

/// The value of each boolean, by its number less 1.
pub type Booleans = [bool];

/// Whether an expression over booleans is true.
pub fn is_true(expression: &[BooleanTerm], booleans: &Booleans) -> bool {
    let mut stack = Vec::new();
    for term in expression {
        if let BooleanTerm::Is(number) = term {
            stack.push(booleans[*number as usize - 1]);
            continue;
        }
        let last = stack.pop().unwrap_or_default();
        if let BooleanTerm::Not = term {
            stack.push(!last);
            continue;
        }
        let first = stack.pop().unwrap_or_default();
        stack.push(match term {
            BooleanTerm::Or => first | last,
            BooleanTerm::And => first & last,
            BooleanTerm::Xor | BooleanTerm::Differs => first != last,
            _ => first == last,
        });
    }
    stack.pop().unwrap_or_default()
}

/// The rules that hold with these booleans.
pub fn rules<'p>(db: &'p PolicyDb, booleans: &'p Booleans) -> impl Iterator<Item = &'p Rule> {
    let conditional = db.conditionals.iter().flat_map(|conditional| {
        match is_true(&conditional.expression, booleans) {
            true => &conditional.when_true,
            false => &conditional.when_false,
        }
    });
    db.rules.iter().chain(conditional)
}

impl Rows {
    /// Expands the rules that hold with these booleans.
    pub fn of(db: &PolicyDb, booleans: &Booleans, classes: &Classes) -> Rows {
        let mut by_source: Vec<Vec<Said>> = vec![Vec::new(); db.types.len()];
        let mut targets = Bitmap::with_capacity(db.types.len());
        let mut effects: HashMap<(u32, Av), u32> = HashMap::new();
        for rule in rules(db, booleans) {
            let class = classes.number(rule.class);
            if let Some(av) = Av::of(rule, classes.get(class)) {
                let next = effects.len() as u32;
                by_source[rule.source as usize - 1].push(Said {
                    class,
                    effect: *effects.entry((class, av)).or_insert(next),
                    av,
                    target: rule.target,
                });
                targets.insert(rule.target as usize - 1);
            }
        }
        let mut sources = Bitmap::with_capacity(db.types.len());
        sources.extend((0..db.types.len()).filter(|&n| !by_source[n].is_empty()));

        let (column_of, columns) = groups(db, &targets);
        let mut columns_of: Vec<Vec<u32>> = vec![Vec::new(); db.types.len()];
        let mut seen = vec![false; columns];
        for (kind, &column) in column_of.iter().enumerate() {
            if !db.types[kind].attribute && !std::mem::replace(&mut seen[column as usize], true) {
                for name in db.memberships[kind].ones().filter(|&n| targets.contains(n)) {
                    columns_of[name].push(column);
                }
            }
        }
        let (group_of, _) = groups(db, &sources);
        let mut table = Table {
            columns_of,
            columns,
            states: vec![State::default()],
            known: HashMap::from([(Cell::new(), 0)]),
            changed: HashMap::new(),
            rows: Rows {
                column_of,
                columns,
                ..Rows::default()
            },
        };
        let mut made: HashMap<u32, u32> = HashMap::new();
        for (kind, group) in group_of.into_iter().enumerate() {
            let row = match db.types[kind].attribute {
                true => 0,
                false => *made.entry(group).or_insert_with(|| {
                    let names = db.memberships[kind].ones();
                    table.row(names.flat_map(|name| by_source[name].iter().copied()))
                }),
            };
            table.rows.row_of.push(row);
        }
        table.bound(db);
        table.rows
    }
}

/// Types that none of these names, and no bounds, tell apart: a group's number for each type.
fn groups(db: &PolicyDb, names: &Bitmap) -> (Vec<u32>, usize) {
    let mut known: HashMap<(Bitmap, Option<u32>), u32> = HashMap::new();
    let mut group_of = Vec::new();
    for (kind, memberships) in db.memberships.iter().enumerate() {
        if db.types[kind].attribute {
            group_of.push(0);
            continue;
        }
        let mut key = memberships.clone();
        key.intersect_with(names);
        let next = known.len() as u32;
        group_of.push(*known.entry((key, db.types[kind].bounds)).or_insert(next));
    }
    (group_of, known.len().max(1))
}

/// What rules say of a source and a target, while a row is made; `cell`: which of the rows' cells it is, once one has it.
#[derive(Default)]
struct State {
    says: Cell,
    cell: Option<u32>,
}

/// A rule on access: what it says of a class and a target.
#[derive(Clone, Copy)]
struct Said {
    class: u32,
    /// A number that rules have in common which say the same of the same class.
    effect: u32,
    av: Av,
    target: u32,
}

impl Av {
    /// What a rule alone says of its class; `None`: it is not about access.
    fn of(rule: &Rule, class: &Class) -> Option<Av> {
        Some(match rule.says {
            Says::Allow(mask) => Av {
                allow: class.permissions(mask),
                ..NOTHING
            },
            Says::AuditAllow(mask) => Av {
                auditallow: class.permissions(mask),
                ..NOTHING
            },
            Says::AuditDeny(mask) => Av {
                auditdeny: !class.permissions(!mask),
                ..NOTHING
            },
            _ => return None,
        })
    }
}

/// Most states of most rows are alike: each is kept once, and what a rule makes of one is worked out once.
struct Table {
    columns_of: Vec<Vec<u32>>,
    columns: usize,
    /// The first is that of which no rule speaks.
    states: Vec<State>,
    known: HashMap<Cell, u32>,
    /// By state and effect.
    changed: HashMap<(u32, u32), u32>,
    rows: Rows,
}

impl Table {
    /// The row of a source with these rules; which it is, 0: none.
    fn row(&mut self, rules: impl Iterator<Item = Said>) -> u32 {
        let mut rules: Vec<Said> = rules.collect();
        if rules.is_empty() {
            return 0;
        }
        // those of a class together, as a state has them
        rules.sort_unstable_by_key(|rule| (rule.class, rule.effect));
        let mut row = vec![0; self.columns];
        let columns_of = std::mem::take(&mut self.columns_of);
        for rule in rules {
            let mut last = None;
            for &column in &columns_of[rule.target as usize - 1] {
                let state = &mut row[column as usize];
                *state = match last {
                    Some((before, after)) if before == *state => after,
                    _ => {
                        let after = self.change(*state, &rule);
                        last = Some((*state, after));
                        after
                    }
                };
            }
        }
        self.columns_of = columns_of;
        self.keep(row)
    }

    /// The state after a rule of a class that is no earlier one than those of the rules before.
    fn change(&mut self, state: u32, rule: &Said) -> u32 {
        if let Some(&after) = self.changed.get(&(state, rule.effect)) {
            return after;
        }
        let mut cell = self.states[state as usize].says.clone();
        if cell.last().is_none_or(|(last, _)| *last != rule.class) {
            cell.push((rule.class, NOTHING));
        }
        let av = &mut cell.last_mut().expect("just pushed").1;
        av.allow |= rule.av.allow;
        av.auditallow |= rule.av.auditallow;
        av.auditdeny &= rule.av.auditdeny;
        let after = self.state(cell);
        self.changed.insert((state, rule.effect), after);
        after
    }

    fn state(&mut self, says: Cell) -> u32 {
        let next = self.states.len() as u32;
        let state = *self.known.entry(says.clone()).or_insert(next);
        if state == next {
            self.states.push(State { says, cell: None });
        }
        state
    }

    /// Keeps a row of states; which it is.
    fn keep(&mut self, row: Vec<u32>) -> u32 {
        let row = row.into_iter().map(|state| self.cell(state)).collect();
        self.rows.rows.push(row);
        self.rows.rows.len() as u32
    }

    fn cell(&mut self, state: u32) -> u32 {
        if let Some(cell) = self.states[state as usize].cell {
            return cell;
        }
        let mut says = self.states[state as usize].says.clone();
        let all = says.len();
        says.retain(|(_, av)| *av != NOTHING);
        let cell = if says.is_empty() {
            0
        } else if says.len() < all {
            let state = self.state(says);
            self.cell(state)
        } else {
            self.rows.cells.push(says);
            self.rows.cells.len() as u32
        };
        self.states[state as usize].cell = Some(cell);
        cell
    }

    /// A type that is bounded may no more than the one that bounds it
    /// (`type_attribute_bounds_av()`).
    fn bound(&mut self, db: &PolicyDb) {
        let mut done = vec![false; db.types.len()];
        for kind in 0..db.types.len() {
            self.bound_one(db, kind, &mut done);
        }
    }

    fn bound_one(&mut self, db: &PolicyDb, kind: usize, done: &mut [bool]) {
        if std::mem::replace(&mut done[kind], true) {
            return;
        }
        let Some(parent) = db.types[kind].bounds else {
            return;
        };
        let parent = parent as usize - 1;
        self.bound_one(db, parent, done);
        let row = self.rows.row_of[kind];
        if row == 0 {
            return;
        }
        // a column of bounded targets is bounded by the column of what bounds them
        let mut above: Vec<u32> = (0..self.columns as u32).collect();
        for (target, kind) in db.types.iter().enumerate() {
            if let Some(bounds) = kind.bounds {
                let column = self.rows.column_of[target] as usize;
                above[column] = self.rows.column_of[bounds as usize - 1];
            }
        }
        let states = (0..self.columns)
            .map(|column| {
                let mut cell = self.at(row, column);
                let upper = self.at(self.rows.row_of[parent], above[column] as usize);
                for (class, av) in &mut cell {
                    let allowed = upper.iter().find(|(c, _)| c == class);
                    av.allow &= allowed.map_or(0, |(_, av)| av.allow);
                }
                self.state(cell)
            })
            .collect();
        self.rows.row_of[kind] = self.keep(states);
    }

    fn at(&self, row: u32, column: usize) -> Cell {
        if row == 0 {
            return Cell::new();
        }
        match self.rows.rows[row as usize - 1][column] {
            0 => Cell::new(),
            cell => self.rows.cells[cell as usize - 1].clone(),
        }
    }
}
