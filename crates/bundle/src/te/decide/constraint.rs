//! Whether constraints hold: `constraint_expr_eval()`.

use super::pop;
use crate::te::db::{Attribute, Context, Number, Operator, PolicyDb, Side, Symbol, Term};

/// Whether an expression is true of contexts: the source's, the target's, and that of the subject
/// that changes the one to the other.
pub(super) fn holds(db: &PolicyDb, expression: &[Term], contexts: [&Context; 3]) -> bool {
    let [source, target, third] = contexts;
    let mut stack = Vec::new();
    for term in expression {
        let value = match term {
            Term::Not => !pop(&mut stack),
            Term::And => pop(&mut stack) & pop(&mut stack),
            Term::Or => pop(&mut stack) | pop(&mut stack),
            Term::Compare(attribute, how) => compare(db, source, target, *attribute, *how),
            Term::Among(part, how, names, _) => {
                let of = match part.of {
                    Side::Source => source,
                    Side::Target => target,
                    Side::Third => third,
                };
                let number = match part.what {
                    Symbol::User => of.user,
                    Symbol::Role => of.role,
                    Symbol::Type => of.kind,
                };
                names.contains(number as usize - 1) == (*how == Operator::Equal)
            }
        };
        stack.push(value);
    }
    pop(&mut stack)
}

fn compare(
    db: &PolicyDb,
    source: &Context,
    target: &Context,
    attribute: Attribute,
    how: Operator,
) -> bool {
    let ([low1, high1], [low2, high2]) = (
        [&source.range.low, &source.range.high],
        [&target.range.low, &target.range.high],
    );
    let (one, other) = match attribute {
        Attribute::User => return is_equal(source.user, target.user, how),
        Attribute::Type => return is_equal(source.kind, target.kind, how),
        Attribute::Role => return compare_roles(db, source.role, target.role, how),
        Attribute::Low1Low2 => (low1, low2),
        Attribute::Low1High2 => (low1, high2),
        Attribute::High1Low2 => (high1, low2),
        Attribute::High1High2 => (high1, high2),
        Attribute::Low1High1 => (low1, high1),
        Attribute::Low2High2 => (low2, high2),
    };
    ordered(
        how,
        one == other,
        one.dominates(other),
        other.dominates(one),
    )
}

fn compare_roles(db: &PolicyDb, one: Number, other: Number, how: Operator) -> bool {
    let dominates = |one: Number, other: Number| {
        let role = &db.roles[one as usize - 1];
        role.dominates.contains(other as usize - 1)
    };
    ordered(
        how,
        one == other,
        dominates(one, other),
        dominates(other, one),
    )
}

/// Users and types have no order: the reader takes no other operator for them.
fn is_equal(one: Number, other: Number, how: Operator) -> bool {
    (one == other) == (how == Operator::Equal)
}

fn ordered(how: Operator, is_equal: bool, dominates: bool, is_dominated: bool) -> bool {
    match how {
        Operator::Equal => is_equal,
        Operator::Differs => !is_equal,
        Operator::Dominates => dominates,
        Operator::DominatedBy => is_dominated,
        Operator::Incomparable => !dominates && !is_dominated,
    }
}
