//! Decides as SELinux's security server does, from the policy as it was read: the reference that faster tables are
//! held against.
//!
//! `context_struct_compute_av()`, `security_compute_sid()` and what they call in the kernel's
//! security/selinux/ss/services.c, `mls_compute_sid()` of mls.c. Contexts have to be valid under the policy, and
//! numbers of classes the policy's.

mod constraint;
mod explain;
#[cfg(test)]
mod explain_tests;
mod extended;
mod label;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use self::explain::{Because, Dormant, Refused};
pub use self::extended::ExtendedAccess;
use super::db::{BooleanTerm, Conditional, Context, Extended, Number, PolicyDb, Rule, Says};

/// What is decided of a source, a target and a class: `struct av_decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Permissions that are allowed, a bit each.
    pub allowed: u32,
    /// Permissions whose use is recorded.
    pub auditallow: u32,
    /// Permissions whose refusal is recorded.
    pub auditdeny: u32,
    /// Whether the source is permissive: what is not allowed is let through.
    pub permissive: bool,
    /// Whether nothing of the source is recorded.
    pub never_audited: bool,
}

/// What all rules in force say of a source, a target and a class.
#[derive(Debug, Clone)]
struct Entry {
    allow: u32,
    auditallow: u32,
    auditdeny: u32,
    transition: Option<Number>,
    member: Option<Number>,
    change: Option<Number>,
    extended: Vec<Extended>,
}

/// A policy's decisions, with its booleans as they were when it was made.
#[derive(Debug, Clone)]
pub struct Decider<'p> {
    db: &'p PolicyDb,
    values: Vec<bool>,
    rules: HashMap<(Number, Number, Number), Entry>,
}

impl<'p> Decider<'p> {
    /// Of a policy and its booleans' values, in their order.
    ///
    /// # Panics
    ///
    /// If there are fewer values than booleans.
    pub fn new(db: &'p PolicyDb, values: &[bool]) -> Self {
        let mut decider = Self {
            db,
            values: values.to_vec(),
            rules: HashMap::new(),
        };
        let conditional = db.conditionals.iter().flat_map(|conditional| {
            match holds(&conditional.expression, values) {
                true => &conditional.when_true,
                false => &conditional.when_false,
            }
        });
        for rule in db.rules.iter().chain(conditional) {
            decider.add(rule);
        }
        decider
    }

    fn add(&mut self, rule: &Rule) {
        let key = (rule.source, rule.target, rule.class);
        let entry = self.rules.entry(key).or_insert(Entry {
            allow: 0,
            auditallow: 0,
            auditdeny: u32::MAX,
            transition: None,
            member: None,
            change: None,
            extended: Vec::new(),
        });
        match &rule.says {
            Says::Allow(permissions) => entry.allow |= permissions,
            Says::AuditAllow(permissions) => entry.auditallow |= permissions,
            Says::AuditDeny(permissions) => entry.auditdeny &= permissions,
            Says::Transition(kind) => entry.transition = Some(*kind),
            Says::Member(kind) => entry.member = Some(*kind),
            Says::Change(kind) => entry.change = Some(*kind),
            Says::Extended(extended) => entry.extended.push(extended.clone()),
        }
    }

    /// The policy.
    pub fn db(&self) -> &'p PolicyDb {
        self.db
    }

    /// What the source may do with the target, an object of this class.
    pub fn access(&self, source: &Context, target: &Context, class: Number) -> Access {
        let mut access = Access {
            allowed: 0,
            auditallow: 0,
            auditdeny: u32::MAX,
            permissive: self.db.permissive.contains(source.kind as usize - 1),
            never_audited: self.db.never_audited.contains(source.kind as usize - 1),
        };
        for entry in self.entries(source.kind, target.kind, class) {
            access.allowed |= entry.allow;
            access.auditallow |= entry.auditallow;
            access.auditdeny &= entry.auditdeny;
        }
        for constraint in &self.db.classes[class as usize - 1].constraints {
            if constraint.permissions & access.allowed != 0
                && !constraint::holds(self.db, &constraint.expression, [source, target, target])
            {
                access.allowed &= !constraint.permissions;
            }
        }
        if self.db.process_class() == Some(class) && !self.may_take_role(source, target) {
            access.allowed &= !self.db.process_transitions(class);
        }
        access.allowed &= self.bounds(source, target, class);
        access
    }

    /// Whether a process may go from the one's role to the other's.
    fn may_take_role(&self, source: &Context, target: &Context) -> bool {
        let pair = (source.role, target.role);
        pair.0 == pair.1 || self.db.role_allows.contains(&pair)
    }

    /// What the type that bounds the source's leaves of its permissions.
    fn bounds(&self, source: &Context, target: &Context, class: Number) -> u32 {
        self.upper(source, target)
            .map_or(u32::MAX, |(source, target)| {
                self.access(&source, &target, class).allowed
            })
    }

    /// The source with the type that bounds its own, and the target with the one that bounds its, if there is one.
    fn upper(&self, source: &Context, target: &Context) -> Option<(Context, Context)> {
        let above = |context: &Context| self.db.types[context.kind as usize - 1].bounds;
        let of = |context: &Context, kind| Context {
            kind,
            ..context.clone()
        };
        let upper = above(source)?;
        let target = above(target).map_or_else(|| target.clone(), |upper| of(target, upper));
        Some((of(source, upper), target))
    }

    /// Rules of a source, a target and a class, by all names that rules have for the two.
    fn entries(
        &self,
        source: Number,
        target: Number,
        class: Number,
    ) -> impl Iterator<Item = &Entry> {
        let names = |kind: Number| self.db.memberships[kind as usize - 1].ones();
        names(source).flat_map(move |source| {
            names(target).filter_map(move |target| {
                let key = (source as Number + 1, target as Number + 1, class);
                self.rules.get(&key)
            })
        })
    }
}

impl Conditional {
    /// Whether its expression is true with these values of booleans, in their order (`cond_evaluate_expr()`).
    ///
    /// # Panics
    ///
    /// If there are fewer values than booleans.
    pub fn is_true(&self, values: &[bool]) -> bool {
        holds(&self.expression, values)
    }
}

/// Whether an expression over booleans is true (`cond_evaluate_expr()`).
fn holds(expression: &[BooleanTerm], values: &[bool]) -> bool {
    let mut stack = Vec::new();
    for term in expression {
        let value = match term {
            BooleanTerm::Is(number) => values[*number as usize - 1],
            BooleanTerm::Not => !pop(&mut stack),
            two => {
                let [second, first] = [pop(&mut stack), pop(&mut stack)];
                match two {
                    BooleanTerm::Or => first | second,
                    BooleanTerm::And => first & second,
                    BooleanTerm::Equal => first == second,
                    _ => first ^ second,
                }
            }
        };
        stack.push(value);
    }
    pop(&mut stack)
}

/// The last value: the reader has checked that there is one.
fn pop(stack: &mut Vec<bool>) -> bool {
    stack.pop().expect("an expression has its operands")
}
