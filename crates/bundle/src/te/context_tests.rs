//! Texts of contexts, by the example's policy.

use super::context::ContextError;
use super::example::example;

/// The context again as a text.
fn text(text: &str) -> Result<String, ContextError> {
    let db = example(34);
    let context = db.context(text)?;
    Ok(db.context_text(&context))
}

#[test]
fn names_and_aliases_are_the_same() {
    for (one, other) in [
        ("ann:clerk:boss_t:s0", "ann:clerk:boss_t:s0"),
        ("ann:object_r:doc_t:bottom", "ann:object_r:file_t:s0"),
        ("ann:clerk:boss_t:s0-s0", "ann:clerk:boss_t:s0"),
        (
            "ann:clerk:boss_t:s0-s1:c0.secret",
            "ann:clerk:boss_t:s0-s1:c0.c3",
        ),
        (
            "ann:clerk:boss_t:s1:c3,c0,c1",
            "ann:clerk:boss_t:s1:c0,c1,c3",
        ),
        ("ann:clerk:boss_t:s1:c1.c2", "ann:clerk:boss_t:s1:c1,c2"),
    ] {
        assert_eq!(text(one).as_deref(), Ok(other));
    }
}

#[test]
fn what_cannot_be_is_told() {
    for form in ["", "ann", "ann:clerk", "ann:clerk:boss_t"] {
        assert_eq!(text(form), Err(ContextError::Form(form.into())));
    }
    for (wrong, what) in [
        ("eve:clerk:boss_t:s0", "user"),
        ("ann:x:boss_t:s0", "role"),
        ("ann:clerk:staff:s0", "type"),
        ("ann:clerk::s0", "type"),
        ("ann:clerk:boss_t:s9", "sensitivity"),
        ("ann:clerk:boss_t:s0:", "category"),
        ("ann:clerk:boss_t:s0:c9", "category"),
        ("ann:clerk:boss_t:s0:c2.c1", "run of categories"),
        ("ann:clerk:boss_t:s0:c2.c2", "run of categories"),
        ("ann:clerk:boss_t:s0-", "sensitivity"),
    ] {
        match text(wrong) {
            Err(ContextError::Name { what: found, .. }) => assert_eq!(found, what, "{wrong}"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
    // not the role's type; high below low; not the user's range
    for wrong in [
        "ann:clerk:new_t:s0",
        "ann:clerk:boss_t:s1-s0",
        "ann:object_r:file_t:s0:c0-s0",
    ] {
        assert_eq!(text(wrong), Err(ContextError::Invalid(wrong.into())));
    }
}
