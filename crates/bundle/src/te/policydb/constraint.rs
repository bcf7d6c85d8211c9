//! Expressions of constraints: `read_cons_helper()` of the kernel's policydb.c.

use super::{PolicyDbError, Reader, version};
use crate::te::db::{Attribute, Bitmap, Constraint, Operator, Part, Side, Symbol, Term};

/// Values that an expression has at once, at most (`CEXPR_MAXDEPTH`).
const MAX_DEPTH: usize = 5;

const WHAT: &str = "a constraint";

impl Reader<'_> {
    /// Reads so many constraints; those of a change of contexts may speak of the subject that
    /// changes them.
    pub fn constraints(
        &mut self,
        count: usize,
        has_third: bool,
    ) -> Result<Vec<Constraint>, PolicyDbError> {
        let mut constraints = Vec::new();
        for _ in 0..count {
            let permissions = self.stream.u32(WHAT)?;
            let terms = self.stream.count(WHAT, 12)?;
            let mut expression = Vec::new();
            let mut depth = 0;
            for _ in 0..terms {
                let term = self.term(has_third)?;
                depth = after(&term, depth).ok_or_else(|| self.stream.error(WHAT))?;
                expression.push(term);
            }
            if depth != 1 {
                return Err(self.stream.error(WHAT));
            }
            constraints.push(Constraint {
                permissions,
                expression,
            });
        }
        Ok(constraints)
    }

    fn term(&mut self, has_third: bool) -> Result<Term, PolicyDbError> {
        let mut word = || self.stream.u32(WHAT);
        let [kind, attribute, operator] = [word()?, word()?, word()?];
        let term = match kind {
            1 => Some(Term::Not),
            2 => Some(Term::And),
            3 => Some(Term::Or),
            4 => comparison(attribute, operator),
            5 => {
                let part = part(attribute).filter(|part| has_third || part.of != Side::Third);
                let operator = self::operator(operator)
                    .filter(|how| matches!(how, Operator::Equal | Operator::Differs));
                let names = self.stream.bitmap(WHAT)?;
                let written = match self.db.version >= version::CONSTRAINT_NAMES {
                    true => self.written()?,
                    false => Bitmap::new(),
                };
                part.zip(operator)
                    .map(|(part, operator)| Term::Among(part, operator, names, written))
            }
            _ => None,
        };
        term.ok_or_else(|| self.stream.error(WHAT))
    }
}

impl Reader<'_> {
    /// The same as it was written, with attributes, for tools that show it (`type_set_read()` of libsepol). What was
    /// written with `*`, `~` or without some is not told by a list.
    fn written(&mut self) -> Result<Bitmap, PolicyDbError> {
        let [names, without] = [self.stream.bitmap(WHAT)?, self.stream.bitmap(WHAT)?];
        let flags = self.stream.u32(WHAT)?;
        match flags == 0 && without.is_clear() {
            true => Ok(names),
            false => Ok(Bitmap::new()),
        }
    }
}

/// How many values there are after a term, if it has its operands and there is room.
fn after(term: &Term, depth: usize) -> Option<usize> {
    match term {
        Term::Not => (depth >= 1).then_some(depth),
        Term::And | Term::Or => (depth >= 2).then(|| depth - 1),
        Term::Compare(..) | Term::Among(..) => (depth < MAX_DEPTH).then_some(depth + 1),
    }
}

/// `CEXPR_ATTR`: what can be compared how.
fn comparison(attribute: u32, operator: u32) -> Option<Term> {
    let operator = self::operator(operator)?;
    let attribute = match attribute {
        0x1 => Attribute::User,
        0x2 => Attribute::Role,
        0x4 => Attribute::Type,
        0x20 => Attribute::Low1Low2,
        0x40 => Attribute::Low1High2,
        0x80 => Attribute::High1Low2,
        0x100 => Attribute::High1High2,
        0x200 => Attribute::Low1High1,
        0x400 => Attribute::Low2High2,
        _ => return None,
    };
    let has_no_order = matches!(attribute, Attribute::User | Attribute::Type);
    if has_no_order && !matches!(operator, Operator::Equal | Operator::Differs) {
        return None;
    }
    Some(Term::Compare(attribute, operator))
}

/// `CEXPR_NAMES`: whose name it is, and of what.
fn part(attribute: u32) -> Option<Part> {
    let what = match attribute & 0x7 {
        0x1 => Symbol::User,
        0x2 => Symbol::Role,
        0x4 => Symbol::Type,
        _ => return None,
    };
    let of = match attribute & !0x7 {
        0x0 => Side::Source,
        0x8 => Side::Target,
        0x10 => Side::Third,
        _ => return None,
    };
    Some(Part { of, what })
}

/// `CEXPR_EQ` and its like.
fn operator(operator: u32) -> Option<Operator> {
    Some(match operator {
        1 => Operator::Equal,
        2 => Operator::Differs,
        3 => Operator::Dominates,
        4 => Operator::DominatedBy,
        5 => Operator::Incomparable,
        _ => return None,
    })
}
