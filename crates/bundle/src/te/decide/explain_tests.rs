use proptest::prelude::*;

use super::*;
use crate::te::db::{Conditional, Constraint, Operator, Part, Side, Symbol, Term};
use crate::te::example::example;

const KINDS: [Number; 4] = [1, 2, 3, 6];

fn contexts(db: &PolicyDb) -> Vec<Context> {
    let roles = 1..=db.roles.len() as Number;
    let ranges = ["s0", "s0-s1", "s1:c0"].map(|text| db.range_named(text).unwrap());
    let mut all = Vec::new();
    for (kind, role) in KINDS
        .into_iter()
        .flat_map(|kind| roles.clone().map(move |role| (kind, role)))
    {
        all.extend(ranges.iter().map(|range| Context {
            user: 1,
            role,
            kind,
            range: range.clone(),
        }));
    }
    all.retain(|context| db.is_valid(context));
    all
}

prop_compose! {
    fn a_rule()(source in 1u32..=6, target in 1u32..=6, class in 1u32..=3, allowed in 0u32..16) -> Rule {
        // nobody has number 4
        let [source, target] = [source, target].map(|it| if it == 4 { 5 } else { it });
        Rule { source, target, class, says: Says::Allow(allowed) }
    }
}

fn a_condition() -> impl Strategy<Value = Vec<BooleanTerm>> {
    let leaf = (1u32..=2).prop_map(|number| vec![BooleanTerm::Is(number)]);
    leaf.prop_recursive(3, 8, 2, |inner| {
        let two = prop::sample::select(vec![
            BooleanTerm::And,
            BooleanTerm::Or,
            BooleanTerm::Xor,
            BooleanTerm::Equal,
            BooleanTerm::Differs,
        ]);
        prop_oneof![
            inner
                .clone()
                .prop_map(|one| [one, vec![BooleanTerm::Not]].concat()),
            (inner.clone(), inner, two)
                .prop_map(|(one, other, how)| [one, other, vec![how]].concat()),
        ]
    })
}

prop_compose! {
    fn a_constraint()(permissions in 1u32..16, names in prop::collection::vec(0usize..6, 0..4), target in any::<bool>())
        -> Constraint
    {
        let of = if target { Side::Target } else { Side::Source };
        let part = Part { of, what: Symbol::Type };
        let among = Term::Among(part, Operator::Differs, names.into_iter().collect(), Default::default());
        Constraint { permissions, expression: vec![among] }
    }
}

prop_compose! {
    fn a_policy()(
        rules in prop::collection::vec(a_rule(), 0..12),
        conditionals in prop::collection::vec((a_condition(), prop::collection::vec(a_rule(), 0..4),
            prop::collection::vec(a_rule(), 0..4)), 0..4),
        constraints in prop::collection::vec((0usize..3, a_constraint()), 0..4),
        role_allows in prop::collection::vec((1u32..=3, 1u32..=3), 0..4),
        target_is_bounded in any::<bool>(),
    ) -> PolicyDb {
        let mut db = example(34);
        db.rules.extend(rules);
        let each = conditionals.into_iter();
        db.conditionals.extend(each.map(|(expression, when_true, when_false)| Conditional {
            expression, when_true, when_false,
        }));
        for (class, constraint) in constraints {
            db.classes[class].constraints.push(constraint);
        }
        db.role_allows = role_allows;
        if target_is_bounded {
            db.types[5].bounds = Some(3);
        }
        db
    }
}

/// All permissions of the class.
fn all(db: &PolicyDb, class: Number) -> u32 {
    (1 << db.classes[class as usize - 1].permissions.len()) - 1
}

proptest! {
    // each asks some thousand questions
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_explained_is_what_is_refused(db in a_policy(), values in any::<[bool; 2]>()) {
        let decider = Decider::new(&db, &values);
        let contexts = contexts(&db);
        for (source, target) in contexts.iter().flat_map(|s| contexts.iter().map(move |t| (s, t))) {
            for class in 1..=3 {
                let asked = all(&db, class);
                let refused = decider.explain(source, target, class, asked);
                let allowed = decider.access(source, target, class).allowed;
                let bits = refused.iter().fold(0, |bits, it| {
                    assert_eq!(bits & it.permissions, 0);
                    bits | it.permissions
                });
                prop_assert_eq!(bits, asked & !allowed);
                for it in &refused {
                    prop_assert!(!it.because.is_empty());
                    fixes(&db, &values, source, target, class, it);
                }
            }
        }
    }
}

/// What is said to refuse alone would let it through if it were otherwise.
fn fixes(
    db: &PolicyDb,
    values: &[bool],
    source: &Context,
    target: &Context,
    class: Number,
    refused: &Refused,
) {
    let [because] = &refused.because[..] else {
        return;
    };
    let mut db = db.clone();
    let mut values = values.to_vec();
    let granted = match because {
        Because::NoRule(dormant) => {
            if let Some(one) = dormant.first() {
                for &(number, value) in &one.settings {
                    values[number as usize - 1] = value;
                }
                let decider = Decider::new(&db, &values);
                let entries = decider.entries(source.kind, target.kind, class);
                let by_rules = entries.fold(0, |all, entry| all | entry.allow);
                let Says::Allow(given) = one.rule.says else {
                    panic!("{:?} allows nothing", one.rule);
                };
                assert_eq!(given & !by_rules, 0);
            }
            // in a rule of its own, which what bounds the source needs, too
            let mut pair = Some((source.clone(), target.clone()));
            while let Some((source, target)) = pair {
                db.rules.push(Rule {
                    source: source.kind,
                    target: target.kind,
                    class,
                    says: Says::Allow(refused.permissions),
                });
                pair = Decider::new(&db, &values).upper(&source, &target);
            }
            return assert!(
                Decider::new(&db, &values)
                    .explain(source, target, class, refused.permissions)
                    .iter()
                    .all(|it| !it.because.iter().any(|it| matches!(it, Because::NoRule(_))))
            );
        }
        Because::Constraint(at) => {
            db.classes[class as usize - 1].constraints.remove(*at);
            true
        }
        Because::Role => {
            db.role_allows.push((source.role, target.role));
            true
        }
        Because::Bounds { .. } => {
            db.types[source.kind as usize - 1].bounds = None;
            true
        }
    };
    let allowed = Decider::new(&db, &values)
        .access(source, target, class)
        .allowed;
    assert_eq!(allowed & refused.permissions != 0, granted, "{because:?}");
}

#[test]
fn a_boolean_is_named_with_the_rule_that_it_turns_on() {
    let db = example(34);
    let decider = Decider::new(&db, &[true, true]);
    let aide = db.context("ann:clerk:aide_t:s0").unwrap();
    let doc = db.context("ann:object_r:file_t:s0").unwrap();
    let refused = decider.explain(&aide, &doc, 2, 0b1000);
    let [Refused { because, .. }] = &refused[..] else {
        panic!("{refused:?}");
    };
    let [Because::NoRule(dormant), Because::Bounds { .. }] = &because[..] else {
        panic!("{because:?}");
    };
    assert_eq!(dormant.len(), 1);
    assert_eq!(dormant[0].settings, [(2, false)]);
    assert!(dormant[0].when);
    // beyond what the class has, there is no rule either
    assert_eq!(decider.explain(&aide, &doc, 2, 1 << 31).len(), 1);
}
