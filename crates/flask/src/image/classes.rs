//! Classes and their constraints.

use tidegate_bundle::te::db::{
    Attribute, Bitmap, Class as PolicyClass, Constraint, DefaultRange, From as Origin, Operator,
    Side, Symbol, Term,
};

use super::writer::Writer;
use crate::part;

impl Writer<'_> {
    pub(super) fn classes(&mut self) {
        let mut table: Vec<[u32; 6]> = vec![[0; 6]];
        for class in &self.classes.list {
            let none = PolicyClass::default();
            let policy = class
                .number
                .map_or(&none, |n| &self.db.classes[n as usize - 1]);
            let constraints: Vec<Constraint> = policy
                .constraints
                .iter()
                .map(|c| Constraint {
                    permissions: class.permissions(c.permissions),
                    expression: c.expression.clone(),
                })
                .filter(|c| c.permissions != 0)
                .collect();
            let validations: Vec<Constraint> = policy
                .validations
                .iter()
                .map(|c| Constraint {
                    permissions: 1,
                    expression: c.expression.clone(),
                })
                .collect();
            let own =
                u32::from(class.name == "process") | u32::from(class.name.ends_with("socket")) << 1;
            table.push([
                class.unknown,
                self.constraints(&constraints),
                self.constraints(&validations),
                own,
                u32::from_le_bytes([
                    origin(policy.default_user),
                    origin(policy.default_role),
                    origin(policy.default_type),
                    policy.default_range as u8,
                ]),
                0,
            ]);
        }
        self.head[part::CLASS_AT] = self.out.list(table);
    }

    pub(super) fn constraints(&mut self, list: &[Constraint]) -> u32 {
        if list.is_empty() {
            return 0;
        }
        let mut words = vec![list.len() as u32];
        for constraint in list {
            let mut expression = Vec::new();
            for term in &constraint.expression {
                self.term(term, &mut expression);
            }
            words.extend([constraint.permissions, expression.len() as u32]);
            words.append(&mut expression);
        }
        self.out.list(words)
    }

    pub(super) fn term(&mut self, term: &Term, words: &mut Vec<u32>) {
        let word = |bytes: [u32; 4]| bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24;
        match term {
            Term::Not => words.push(0),
            Term::And => words.push(1),
            Term::Or => words.push(2),
            Term::Compare(attribute, operator) => {
                words.push(word([3, *attribute as u32, *operator as u32, 0]));
            }
            Term::Among(of, operator, set, _) => {
                let (symbol, bits, ones) = match of.what {
                    Symbol::User => (
                        0,
                        self.numbering.users.len(),
                        numbers(&self.numbers.users, set),
                    ),
                    Symbol::Role => (
                        1,
                        self.numbering.roles.len(),
                        numbers(&self.numbers.roles, set),
                    ),
                    Symbol::Type => (2, self.numbering.types.len(), self.kinds(set)),
                };
                let side = match of.of {
                    Side::Source => 0,
                    Side::Target => 1,
                    Side::Third => 2,
                };
                words.push(word([4, symbol, *operator as u32, side]));
                words.push(self.out.bitmap(bits, ones));
            }
        }
    }
}

fn numbers(of: &[u32], set: &Bitmap) -> Vec<u32> {
    set.ones().filter_map(|n| of.get(n).copied()).collect()
}

fn origin(from: Origin) -> u8 {
    match from {
        Origin::Unsaid => 0,
        Origin::Source => 1,
        Origin::Target => 2,
    }
}

// the enumerations are written by their order
const _: () = {
    assert!(Attribute::Low2High2 as u32 == 8);
    assert!(Operator::Incomparable as u32 == 4);
    assert!(DefaultRange::GreatestLowest as u32 == 7);
};
