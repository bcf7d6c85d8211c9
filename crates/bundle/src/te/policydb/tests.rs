use super::pack::pack;
use super::*;
use crate::te::db::{Rule, Says, Term};
use crate::te::example::example;

/// What the reader says of the example changed by `change`.
fn changed(change: impl FnOnce(&mut PolicyDb)) -> PolicyDbError {
    let mut db = example(34);
    change(&mut db);
    read(&pack(&db)).expect_err("it is not a policy")
}

fn malformed(change: impl FnOnce(&mut PolicyDb)) -> &'static str {
    match changed(change) {
        PolicyDbError::Malformed { what, .. } => what,
        other => panic!("{other:?}"),
    }
}

fn fault(change: impl FnOnce(&mut PolicyDb)) -> String {
    match changed(change) {
        PolicyDbError::Fault { of, fault } => format!("{of}: {fault}"),
        other => panic!("{other:?}"),
    }
}

/// What is not there.
fn number(change: impl FnOnce(&mut PolicyDb)) -> (&'static str, usize) {
    match changed(change) {
        PolicyDbError::Number { what, number, .. } => (what, number),
        other => panic!("{other:?}"),
    }
}

/// The example with what this version has room for.
fn of_version(version: u32) -> PolicyDb {
    let mut db = example(version);
    if version < self::version::XPERMS_IOCTL {
        db.rules
            .retain(|rule| !matches!(rule.says, Says::Extended(_)));
    }
    if version < self::version::FILENAME_TRANS {
        db.name_transitions.clear();
    }
    for class in &mut db.classes {
        let plain = crate::te::db::Class::default();
        if version < self::version::NEW_OBJECT_DEFAULTS {
            class.default_user = plain.default_user;
            class.default_range = plain.default_range;
        }
    }
    db
}

#[test]
fn every_version_comes_back() {
    for version in OLDEST..=NEWEST {
        let mut db = of_version(version);
        if version >= self::version::NEVERAUDIT {
            db.never_audited.grow(3);
            db.never_audited.insert(2);
        }
        assert_eq!(read(&pack(&db)), Ok(db), "version {version}");
    }
}

#[test]
fn a_policy_without_ranges_comes_back() {
    let mut db = example(34);
    db.mls = false;
    let mut read = read(&pack(&db)).unwrap();
    assert!(read.context("ann:clerk:boss_t").is_ok());
    assert_eq!(read.users[0].range, Default::default());
    assert_eq!(
        pack(&read).len(),
        pack(&super::read(&pack(&read)).unwrap()).len()
    );
    read.mls = true;
    assert!(super::read(&pack(&read)).is_err());
}

#[test]
fn each_prefix_is_refused_and_so_is_more() {
    let mut bytes = pack(&example(34));
    for end in 0..bytes.len() {
        read(&bytes[..end]).unwrap_err();
    }
    bytes.push(0);
    assert_eq!(read(&bytes), Err(PolicyDbError::Trailing(1)));
}

#[test]
fn other_files_are_told_apart() {
    let bytes = pack(&example(34));
    let with = |at: usize, part: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + part.len()].copy_from_slice(part);
        read(&bytes).unwrap_err()
    };
    assert_eq!(read(b"\x7fELF, and more"), Err(PolicyDbError::Foreign));
    assert_eq!(read(b""), Err(PolicyDbError::Foreign));
    assert_eq!(with(0, &MODULE_MAGIC.to_le_bytes()), PolicyDbError::Module);
    assert_eq!(with(8, b"XenFlask"), PolicyDbError::Xen);
    assert_eq!(with(16, &[36]), PolicyDbError::Version(36));
    assert_eq!(with(16, &[23]), PolicyDbError::Version(23));
}

#[test]
fn what_is_named_has_to_be_there() {
    assert_eq!(number(|db| db.roles[1].types.extend([6])), ("type", 7));
    assert_eq!(number(|db| db.roles[1].dominates.extend([3])), ("role", 4));
    assert_eq!(number(|db| db.users[0].roles.extend([3])), ("role", 4));
    assert_eq!(number(|db| db.types[1].bounds = Some(7)), ("type", 7));
    assert_eq!(number(|db| db.type_aliases[0].1 = 0), ("type", 0));
    assert_eq!(number(|db| db.permissive.extend([6])), ("type", 7));
    assert_eq!(
        number(|db| db.users[0].range.low.sensitivity = 3),
        ("sensitivity", 3)
    );
    assert_eq!(
        number(|db| db.sensitivities[0].categories.extend([4])),
        ("category", 5)
    );
    let names = |db: &mut PolicyDb| match &mut db.classes[1].constraints[0].expression[1] {
        Term::Among(_, _, names, _) => names.extend([6]),
        other => panic!("{other:?}"),
    };
    assert_eq!(number(names), ("type", 7));
    assert_eq!(malformed(|db| db.rules[0].source = 7), "a rule");
    assert_eq!(malformed(|db| db.rules[0].target = 0), "a rule");
    assert_eq!(malformed(|db| db.rules[0].class = 4), "a rule");
    assert_eq!(
        malformed(|db| db.role_allows[0].1 = 4),
        "a role that another may change to"
    );
    assert_eq!(
        malformed(|db| db.name_transitions[0].target = 7),
        "a transition by name"
    );
    assert_eq!(
        malformed(|db| db.name_transitions[0].sources.extend([6])),
        "a transition by name"
    );
    assert_eq!(
        malformed(|db| db.range_transitions[0].class = 4),
        "a transition of ranges"
    );
    assert_eq!(
        malformed(|db| db.memberships[0].extend([6])),
        "attributes of a type"
    );
    assert_eq!(
        malformed(|db| db.genfs[0].paths[0].class = Some(4)),
        "a path's context"
    );
}

#[test]
fn what_is_made_has_a_type_and_no_attribute() {
    // 4 is nobody's, 5 an attribute
    for kind in [0, 4, 5, 7] {
        assert_eq!(
            malformed(|db| db.rules[4].says = Says::Transition(kind)),
            "a rule"
        );
        assert_eq!(
            malformed(|db| db.name_transitions[0].becomes = kind),
            "a transition by name"
        );
        assert_eq!(
            malformed(|db| db.initial_sids[0].1.kind = kind),
            "an initial SID"
        );
    }
}

#[test]
fn a_context_goes_together() {
    let port =
        |change: fn(&mut crate::te::db::Context)| malformed(|db| change(&mut db.ports[0].context));
    // the clerk may not be a file, and nobody has the range
    assert_eq!(port(|it| it.role = 2), "a port's context");
    assert_eq!(port(|it| it.user = 2), "a port's context");
    assert_eq!(port(|it| it.range.low.sensitivity = 2), "a port's context");
}

#[test]
fn expressions_have_their_operands() {
    let constraint = |expression: Vec<Term>| {
        malformed(|db| db.classes[1].constraints[0].expression = expression)
    };
    let value = example(34).classes[1].constraints[0].expression[0].clone();
    assert_eq!(constraint(vec![]), "a constraint");
    assert_eq!(constraint(vec![Term::Not]), "a constraint");
    assert_eq!(constraint(vec![value.clone(), Term::And]), "a constraint");
    assert_eq!(constraint(vec![value.clone(); 2]), "a constraint");
    let deep = |depth: usize| {
        let operands = vec![value.clone(); depth];
        let operators = vec![Term::Or; depth - 1];
        [operands, operators].concat()
    };
    assert_eq!(constraint(deep(6)), "a constraint");
    let mut db = example(34);
    db.classes[1].constraints[0].expression = deep(5);
    assert_eq!(read(&pack(&db)), Ok(db));
    // only what is validated has a third context
    let third = example(34).classes[1].validations[0].expression[0].clone();
    assert_eq!(constraint(vec![third]), "a constraint");

    use crate::te::db::BooleanTerm;
    let conditional =
        |expression: Vec<BooleanTerm>| malformed(|db| db.conditionals[0].expression = expression);
    assert_eq!(conditional(vec![]), "a conditional");
    assert_eq!(conditional(vec![BooleanTerm::Xor]), "a conditional");
    assert_eq!(conditional(vec![BooleanTerm::Is(3)]), "a conditional");
    assert_eq!(conditional(vec![BooleanTerm::Is(1); 2]), "a conditional");
    let deep = [vec![BooleanTerm::Is(1); 11], vec![BooleanTerm::Or; 10]].concat();
    assert_eq!(conditional(deep), "a conditional");
}

#[test]
fn no_two_say_the_same_differently() {
    let twice = "the rule of `staff` and `file_t` for the class `file`: it stands twice";
    assert_eq!(fault(|db| db.rules.push(db.rules[0].clone())), twice);
    let another = "another says of which type it is, too";
    let in_way = |source, change: fn(&mut PolicyDb, Rule)| {
        let rule = Rule {
            source,
            ..example(34).conditionals[0].when_true[1].clone()
        };
        fault(|db| change(db, rule))
    };
    assert!(in_way(2, |db, rule| db.rules.push(rule)).ends_with(another));
    assert!(in_way(2, |db, rule| db.conditionals[0].when_true.push(rule)).ends_with(another));
    assert!(in_way(2, |db, rule| db.conditionals[0].when_false.push(rule)).ends_with(another));
    let more = |db: &mut PolicyDb, rule| {
        let mut conditional = db.conditionals[0].clone();
        (conditional.when_true, conditional.when_false) = (vec![rule], Vec::new());
        db.conditionals.push(conditional);
    };
    assert!(in_way(2, more).ends_with(another));
    assert_eq!(
        malformed(|db| db.range_transitions.push(db.range_transitions[0].clone())),
        "a transition of ranges"
    );
    assert_eq!(
        malformed(|db| db.role_transitions.push(db.role_transitions[0].clone())),
        "a transition of roles"
    );
    assert_eq!(
        malformed(|db| db.genfs[0].paths[1].path = "/sys/kernel".into()),
        "a path's context"
    );
    assert_eq!(
        fault(|db| db.users.push(db.users[0].clone())),
        "a user `ann`: it stands twice"
    );
}

#[test]
fn bounds_are_short_and_hold() {
    let circle = "the type `boss_t`: it is bounded in a circle, or too deep";
    assert_eq!(fault(|db| db.types[0].bounds = Some(2)), circle);
    let attribute = "the type `aide_t`: it is bounded by an attribute";
    assert_eq!(fault(|db| db.types[1].bounds = Some(5)), attribute);
    let role = "the role `clerk`: it has a type that what bounds it has not";
    assert_eq!(fault(|db| db.roles[1].bounds = Some(3)), role);
}

#[test]
fn a_policy_tells_when_a_process_changes() {
    assert_eq!(
        changed(|db| db.classes[0].name = "domain".into()),
        PolicyDbError::Process
    );
    assert_eq!(
        changed(|db| db.classes[0].permissions[0] = "x".into()),
        PolicyDbError::Process
    );
}

#[test]
fn names_are_texts() {
    for name in ["", "a\0b"] {
        assert_eq!(malformed(|db| db.users[0].name = name.into()), "a user");
    }
    assert_eq!(
        malformed(|db| db.users[0].name = "a".repeat(4097)),
        "a user"
    );
}

/// A file can say in a few bytes that a set has its last member far behind.
#[test]
fn sets_of_few_bytes_do_not_fill_the_memory() {
    let mut db = example(34);
    let far = [65_534_usize];
    db.name_transitions[0].sources = far.into_iter().collect();
    let list = db.name_transitions[0].clone();
    db.name_transitions = (0..20_000)
        .map(|at| crate::te::db::NameTransition {
            name: format!("n{at}"),
            ..list.clone()
        })
        .collect();
    db.types.resize(65_535, Default::default());
    let error = read(&pack(&db)).unwrap_err();
    assert!(
        matches!(
            error,
            PolicyDbError::Limit {
                what: "bytes of bitmaps",
                ..
            }
        ),
        "{error:?}"
    );
}
