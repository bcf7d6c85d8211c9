//! Why permissions are not allowed: what audit2why(8) asks libsepol (`sepol_compute_av_reason_buffer()`), and by which
//! rule or constraint of the policy.

use super::{Decider, constraint, holds};
use crate::te::db::{Context, Number, Rule, Says};

/// Permissions that are refused for the same reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// A bit each.
    pub permissions: u32,
    /// All that keeps them from being allowed: each of these alone would. Never empty.
    pub because: Vec<Because>,
}

/// What refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// No rule in force allows it; rules of conditionals that would are those that booleans let not hold.
    NoRule(Vec<Dormant>),
    /// A constraint of the class, by its place, is not true.
    Constraint(usize),
    /// The role may not change to the other one: there is no such `allow`.
    Role,
    /// What bounds the source's type may not do it to the target, or what bounds that one's.
    Bounds {
        /// The source, with the type that bounds it.
        source: Context,
        /// The target, with the type that bounds it, if one does.
        target: Context,
    },
}

/// A rule that would allow it, if booleans had other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dormant {
    /// The conditional, by its place.
    pub conditional: usize,
    /// Whether the rule holds while its expression is true.
    pub when: bool,
    /// The rule.
    pub rule: Rule,
    /// The fewest booleans that have to change for it, and the values that they need.
    pub settings: Vec<(Number, bool)>,
}

/// Booleans of one expression whose values are tried; of more, none.
const TRIED: usize = 10;

impl Decider<'_> {
    /// Why permissions are not allowed. What [`access`](Decider::access) allows of them is not in it, and all the
    /// rest is, each bit once. Bits that are none of the class's permissions have no rule.
    pub fn explain(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        permissions: u32,
    ) -> Vec<Refused> {
        let by_rules = self
            .entries(source.kind, target.kind, class)
            .fold(0, |allowed, entry| allowed | entry.allow);
        let dormant = match permissions & !by_rules {
            0 => Vec::new(),
            _ => self.dormant(source, target, class),
        };
        let is_change =
            self.db.process_class() == Some(class) && !self.may_take_role(source, target);
        let changes = match is_change {
            true => self.db.process_transitions(class),
            false => 0,
        };
        let constraints = self.db.classes[class as usize - 1].constraints.iter();
        let failing: Vec<_> = constraints
            .enumerate()
            .filter(|(_, it)| !constraint::holds(self.db, &it.expression, [source, target, target]))
            .map(|(at, it)| (at, it.permissions))
            .collect();
        let upper = self.upper(source, target);
        let bounded = upper.as_ref().map_or(u32::MAX, |(source, target)| {
            self.access(source, target, class).allowed
        });
        let mut all: Vec<Refused> = Vec::new();
        for bit in (0..32).map(|bit| 1 << bit) {
            if permissions & bit == 0 {
                continue;
            }
            let mut because = Vec::new();
            if by_rules & bit == 0 {
                let for_it = dormant.iter().filter(|it| gives(&it.rule) & bit != 0);
                because.push(Because::NoRule(for_it.cloned().collect()));
            }
            let failing = failing.iter().filter(|(_, of)| of & bit != 0);
            because.extend(failing.map(|(at, _)| Because::Constraint(*at)));
            if changes & bit != 0 {
                because.push(Because::Role);
            }
            if let (Some((source, target)), 0) = (&upper, bounded & bit) {
                because.push(Because::Bounds {
                    source: source.clone(),
                    target: target.clone(),
                });
            }
            match all.iter_mut().find(|it| it.because == because) {
                _ if because.is_empty() => {}
                Some(same) => same.permissions |= bit,
                None => all.push(Refused {
                    permissions: bit,
                    because,
                }),
            }
        }
        all
    }

    /// Rules for the two that do not hold, and could.
    fn dormant(&self, source: &Context, target: &Context, class: Number) -> Vec<Dormant> {
        let names = |kind: Number| &self.db.memberships[kind as usize - 1];
        let [sources, targets] = [names(source.kind), names(target.kind)];
        let is_for = |rule: &&Rule| {
            rule.class == class
                && gives(rule) != 0
                && sources.contains(rule.source as usize - 1)
                && targets.contains(rule.target as usize - 1)
        };
        let mut all = Vec::new();
        for (at, conditional) in self.db.conditionals.iter().enumerate() {
            let when = !holds(&conditional.expression, &self.values);
            let rules = match when {
                true => &conditional.when_true,
                false => &conditional.when_false,
            };
            let mut rules = rules.iter().filter(is_for).peekable();
            if rules.peek().is_none() {
                continue;
            }
            let Some(settings) = self.settings(at, when) else {
                continue;
            };
            all.extend(rules.map(|rule| Dormant {
                conditional: at,
                when,
                rule: rule.clone(),
                settings: settings.clone(),
            }));
        }
        all
    }

    /// The fewest booleans that have to change so that a conditional's expression has this value; `None`: nothing
    /// gives it that value, or there are too many to try.
    fn settings(&self, conditional: usize, wanted: bool) -> Option<Vec<(Number, bool)>> {
        let conditional = &self.db.conditionals[conditional];
        let booleans = conditional.booleans();
        if booleans.len() > TRIED {
            return None;
        }
        let mut choices: Vec<u32> = (1..1 << booleans.len()).collect();
        choices.sort_by_key(|choice| choice.count_ones());
        choices.into_iter().find_map(|choice| {
            let changed = booleans.iter().enumerate();
            let changed = changed.filter(|(bit, _)| choice >> bit & 1 == 1);
            let settings: Vec<_> = changed
                .map(|(_, &number)| (number, !self.values[number as usize - 1]))
                .collect();
            let mut values = self.values.clone();
            for &(number, value) in &settings {
                values[number as usize - 1] = value;
            }
            (holds(&conditional.expression, &values) == wanted).then_some(settings)
        })
    }
}

/// What a rule allows.
fn gives(rule: &Rule) -> u32 {
    match rule.says {
        Says::Allow(permissions) => permissions,
        _ => 0,
    }
}
