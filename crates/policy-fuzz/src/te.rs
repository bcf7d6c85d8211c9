//! Binary SELinux policies, and what is none.

use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::{Context, Number, PolicyDb};
use tidegate_bundle::te::example::example;
use tidegate_bundle::te::policydb::pack::pack;
use tidegate_bundle::te::policydb::read;

/// So many types' contexts are tried with each other.
const TRIED: usize = 6;

/// A good policy, in one of the two forms that transitions by name have.
pub fn good_policy(is_new: bool) -> Vec<u8> {
    // between the two there is no room for permissions of ioctls
    let version = if is_new { 35 } else { 32 };
    pack(&example(version))
}

/// Reads any bytes as a binary policy, and decides by it.
///
/// # Panics
///
/// If what was accepted does not come back, or a decision by it does not end well.
pub fn policy(bytes: &[u8]) {
    let Ok(mut te) = Te::read(bytes.to_vec()) else {
        return;
    };
    // what a class inherits is written as its own, and what is read past is not written
    let again = PolicyDb {
        passed_over: te.db.passed_over.clone(),
        ..read(&pack(&te.db)).expect("what was read can be written")
    };
    assert_eq!(again, te.db);
    decide(&te);
    for name in te
        .db
        .booleans
        .iter()
        .map(|it| it.name.clone())
        .collect::<Vec<_>>()
    {
        let value = te.values()[0];
        te.set(&name, !value).expect("it is there");
    }
    decide(&te);
    te.summary();
}

/// Asks everything about some valid contexts.
fn decide(te: &Te) {
    let decider = te.decider();
    let contexts = contexts(&te.db);
    for context in &contexts {
        let text = te.db.context_text(context);
        // names may have what stands between names
        let _ = te.db.context(&text);
    }
    let classes = 1..=te.db.classes.len().min(TRIED) as Number;
    for class in classes {
        for source in &contexts {
            for target in &contexts {
                decider.access(source, target, class);
                decider.ioctls(source, target, class, 0x54);
                let names = te.db.name_transitions.first().map(|it| it.name.as_str());
                for made in [
                    decider.transition(source, target, class, names),
                    decider.member(source, target, class),
                    decider.change(source, target, class),
                ] {
                    match made {
                        Ok(made) => assert!(te.db.is_valid(&made)),
                        Err(not) => {
                            te.db.context_text(&not);
                        }
                    }
                }
                decider.may_change(source, target, source, class);
                decider.is_bounded(source, target);
            }
        }
    }
}

/// Contexts of the policy's first types, as objects and, where there is a user for it, as subjects.
fn contexts(db: &PolicyDb) -> Vec<Context> {
    let mut contexts = Vec::new();
    for kind in 1..=db.types.len().min(TRIED) as Number {
        for role in 1..=db.roles.len().min(3) as Number {
            for user in 1..=db.users.len().min(2) as Number {
                let range = db.users[user as usize - 1].range.clone();
                let context = Context {
                    user,
                    role,
                    kind,
                    range,
                };
                if db.is_valid(&context) {
                    contexts.push(context);
                }
            }
        }
    }
    contexts
}

/// Reads any text as a context of the example's policy.
///
/// # Panics
///
/// If one that was accepted does not come back.
pub fn context(db: &PolicyDb, text: &str) {
    if let Ok(context) = db.context(text) {
        assert!(db.is_valid(&context));
        assert_eq!(db.context(&db.context_text(&context)), Ok(context));
    }
}

/// Words of contexts, for a fuzzer without a grammar: a byte of input stands for one.
const WORDS: [&str; 32] = [
    "ann",
    ":",
    "clerk",
    ":",
    "boss_t",
    ":",
    "s0",
    "-",
    "s1",
    ":",
    "c0",
    ",",
    "c1",
    ".",
    "c3",
    "c2",
    "object_r",
    "auditor",
    "aide_t",
    "file_t",
    "doc_t",
    "staff",
    "new_t",
    "bottom",
    "secret",
    " ",
    "ann:clerk:boss_t:",
    "ann:object_r:file_t:",
    "",
    "é",
    "s2",
    "c9",
];

/// A text of such words.
pub fn context_words(bytes: &[u8]) -> String {
    let words = bytes.iter().map(|byte| WORDS[usize::from(byte % 32)]);
    words.collect()
}
