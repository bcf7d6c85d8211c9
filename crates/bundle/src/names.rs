//! Names that a policy may have and give. The compilers check them, and so does the reader of
//! bundles: a level's name is also that of a file in `/run/tidegate/level`.

use crate::attrs::Attrs;
use crate::limits::{MAX_CAPS_NAME, MAX_LEVEL_NAME, MAX_POLICY_NAME};

/// Words that begin the statements of a map that are no rules.
pub const STATEMENTS: [&str; 3] = ["levels", "mode", "include"];
/// The word of a map that stands in the place of a level, for objects without one.
pub const NEUTRAL: &str = "neutral";
/// The word of a map that stands before a network.
pub const NETWORK: &str = "network";
/// The word of a map that stands behind the path of a rule for what is below it.
pub const CHILD_OF: &str = "child-of";

/// Returns whether `name` can be a policy's name.
pub fn is_policy_name(name: &str) -> bool {
    (1..=MAX_POLICY_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// Returns whether `name` can be a level's name.
pub fn is_level_name(name: &str) -> bool {
    name.len() <= MAX_LEVEL_NAME && is_word(name) && !is_reserved(name)
}

/// Returns whether `name` can be the name of a capability file's subject or service, or of a
/// service's permission or operation.
pub fn is_capability_name(name: &str) -> bool {
    name.len() <= MAX_CAPS_NAME
        && is_word(name)
        && !["as", "by", "operand", "expires", "uses"].contains(&name)
}

fn is_word(name: &str) -> bool {
    let is_in = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_in)
}

/// Returns whether `word` means something else in a map than a level's name.
fn is_reserved(word: &str) -> bool {
    STATEMENTS.contains(&word)
        || [NEUTRAL, NETWORK, CHILD_OF, "interface", "loopback"].contains(&word)
        || Attrs::WORDS.iter().any(|(attr, _)| *attr == word)
}
