//! A small policy that has one of everything: for tests.

use super::db::{
    Attribute, Behavior, Bitmap, Boolean, BooleanTerm, Category, Class, Conditional, Constraint,
    Context, DefaultRange, Extended, ExtendedKind, From, FsUse, Genfs, GenfsPath, Level,
    NameTransition, Number, Operator, Part, PolicyDb, Port, Range, RangeTransition, Role,
    RoleTransition, Rule, Says, Sensitivity, Side, Symbol, Term, Type, Unknown, User,
};

/// The policy, in a version from 34 on; in an older one it would have to say less.
///
/// Types: `boss_t` (1) bounds `aide_t` (2), both are `staff` (5); `file_t` (3), which is called `doc_t`, too;
/// number 4 is nobody's, and `new_t` is 6. Classes: `process` (1), `file` (2), `tcp_socket` (3). Booleans: `open` (on),
/// `strict`. The user `ann` (1) may have the roles `clerk` (2) and `auditor` (3), in the range
/// `s0-s1:c0.c3`.
pub fn example(version: u32) -> PolicyDb {
    let (file, process, clerk, auditor) = (2, 1, 2, 3);
    let (boss, aide, doc, staff, new) = (1, 2, 3, 5, 6);
    PolicyDb {
        version,
        mls: true,
        unknown: Unknown::Allow,
        capabilities: set([1, 4]),
        permissive: set([new as usize - 1]),
        classes: classes(boss),
        types: ["boss_t", "aide_t", "file_t", "", "staff", "new_t"]
            .map(|name| Type {
                name: name.into(),
                attribute: name == "staff",
                bounds: (name == "aide_t").then_some(boss),
            })
            .into(),
        type_aliases: vec![("doc_t".into(), doc)],
        memberships: vec![
            set([0, 4]),
            set([1, 4]),
            set([2]),
            set([3]),
            set([4]),
            set([5]),
        ],
        roles: vec![
            role("object_r", &[], &[]),
            role("clerk", &[1, 2], &[0, 1]),
            role("auditor", &[2], &[0, 5]),
        ],
        users: vec![User {
            name: "ann".into(),
            roles: set([1, 2]),
            range: Range {
                low: level(1, &[]),
                high: level(2, &[0, 1, 2, 3]),
            },
            level: level(1, &[]),
            bounds: None,
        }],
        booleans: [("open", true), ("strict", false)]
            .map(|(name, value)| Boolean {
                name: name.into(),
                value,
            })
            .into(),
        sensitivities: ["s0", "s1"]
            .map(|name| Sensitivity {
                name: name.into(),
                aliases: if name == "s0" {
                    vec!["bottom".into()]
                } else {
                    Vec::new()
                },
                categories: set([0, 1, 2, 3]),
            })
            .into(),
        categories: ["c0", "c1", "c2", "c3"]
            .map(|name| Category {
                name: name.into(),
                aliases: if name == "c3" {
                    vec!["secret".into()]
                } else {
                    Vec::new()
                },
            })
            .into(),
        rules: vec![
            rule(staff, doc, file, Says::Allow(0b111)),
            rule(aide, doc, file, Says::AuditAllow(0b1)),
            rule(staff, doc, file, Says::AuditDeny(!0b100)),
            rule(boss, boss, process, Says::Allow(0b11)),
            rule(boss, doc, process, Says::Transition(aide)),
            rule(boss, doc, file, Says::Member(new)),
            rule(boss, doc, file, Says::Change(new)),
            rule(
                staff,
                doc,
                file,
                Says::Extended(extended(1, 0x54, ExtendedKind::Allow)),
            ),
            rule(
                staff,
                doc,
                file,
                Says::Extended(extended(2, 0, ExtendedKind::DontAudit)),
            ),
        ],
        conditionals: vec![conditional(aide, doc, file, new)],
        role_transitions: vec![RoleTransition {
            role: clerk,
            kind: doc,
            class: process,
            becomes: auditor,
        }],
        role_allows: vec![(clerk, auditor)],
        name_transitions: vec![
            name_transition(&[0, 1], doc, new),
            name_transition(&[2], doc, boss),
        ],
        range_transitions: vec![RangeTransition {
            source: boss,
            target: doc,
            class: process,
            range: Range {
                low: level(1, &[]),
                high: level(2, &[1]),
            },
        }],
        initial_sids: vec![(1, object(boss)), (3, object(doc))],
        fs_uses: vec![FsUse {
            filesystem: "ext4".into(),
            behavior: Behavior::Xattr,
            context: object(doc),
        }],
        genfs: vec![Genfs {
            filesystem: "proc".into(),
            paths: vec![
                genfs_path("/sys/kernel", None, doc),
                genfs_path("/sys", Some(file), new),
            ],
        }],
        ports: vec![Port {
            protocol: 6,
            low: 80,
            high: 81,
            context: object(doc),
        }],
        interfaces: vec![("lo".into(), object(doc), object(new))],
        nodes: vec![([10, 0, 0, 0], [255, 0, 0, 0], object(doc))],
        nodes6: vec![([0xfe; 16], [0xff; 16], object(doc))],
        ..PolicyDb::default()
    }
}

fn classes(boss: Number) -> Vec<Class> {
    let class = |name: &str, permissions: &[&str]| Class {
        name: name.into(),
        permissions: permissions.iter().map(|&name| name.into()).collect(),
        ..Class::default()
    };
    let among = |of, what, bits: &[usize]| {
        let part = Part { of, what };
        Term::Among(
            part,
            Operator::Equal,
            set(bits.iter().copied()),
            Bitmap::new(),
        )
    };
    let dominates = Term::Compare(Attribute::High1High2, Operator::Dominates);
    let file = Class {
        // a writer dominates, or is the boss; of what is validated the third one is the boss
        constraints: vec![Constraint {
            permissions: 0b10,
            expression: vec![
                dominates,
                among(Side::Source, Symbol::Type, &[boss as usize - 1]),
                Term::Or,
            ],
        }],
        validations: vec![Constraint {
            permissions: 0,
            expression: vec![
                among(Side::Third, Symbol::Type, &[boss as usize - 1]),
                Term::Compare(Attribute::User, Operator::Equal),
                Term::And,
            ],
        }],
        default_range: DefaultRange::GreatestLowest,
        default_user: From::Target,
        ..class("file", &["read", "write", "open", "ioctl"])
    };
    vec![
        class("process", &["transition", "signal"]),
        file,
        class("tcp_socket", &["read"]),
    ]
}

/// `strict` takes a permission that `open` without it gives.
fn conditional(source: Number, target: Number, class: Number, becomes: Number) -> Conditional {
    Conditional {
        expression: vec![
            BooleanTerm::Is(1),
            BooleanTerm::Is(2),
            BooleanTerm::Not,
            BooleanTerm::And,
        ],
        when_true: vec![
            rule(source, target, class, Says::Allow(0b1000)),
            rule(source, target, class, Says::Transition(becomes)),
        ],
        when_false: vec![rule(source, target, class, Says::Transition(target))],
    }
}

fn extended(specified: u8, driver: u8, kind: ExtendedKind) -> Extended {
    Extended {
        kind,
        specified,
        driver,
        permissions: [2, 0, 0, 0, 0, 0, 0, 0],
    }
}

fn genfs_path(path: &str, class: Option<Number>, kind: Number) -> GenfsPath {
    GenfsPath {
        path: path.into(),
        class,
        context: object(kind),
    }
}

fn name_transition(sources: &[usize], target: Number, becomes: Number) -> NameTransition {
    NameTransition {
        sources: set(sources.iter().copied()),
        target,
        class: 2,
        name: "note".into(),
        becomes,
    }
}

fn object(kind: Number) -> Context {
    Context {
        user: 1,
        role: 1,
        kind,
        range: Range {
            low: level(1, &[]),
            high: level(1, &[]),
        },
    }
}

fn role(name: &str, dominates: &[usize], types: &[usize]) -> Role {
    Role {
        name: name.into(),
        dominates: set(dominates.iter().copied()),
        types: set(types.iter().copied()),
        bounds: None,
    }
}

fn rule(source: Number, target: Number, class: Number, says: Says) -> Rule {
    Rule {
        source,
        target,
        class,
        says,
    }
}

fn level(sensitivity: Number, categories: &[usize]) -> Level {
    Level {
        sensitivity,
        categories: set(categories.iter().copied()),
    }
}

fn set(bits: impl IntoIterator<Item = usize>) -> Bitmap {
    bits.into_iter().collect()
}
