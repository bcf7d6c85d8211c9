//! What of a rule is not enforced as it is written, by its text.
//!
//! The parser says what it leaves out of a class that the features do not have. It does not say what of a rule gets lost
//! on the way to an automaton that has no room for it: such a rule allows more than it says, and is left out.

use super::unmediated::class_of;
use super::{Says, Statement};

/// The classes of rules that are mediated: the words that they begin with. `all` stands for every
/// class.
const MEDIATED: [&str; 15] = [
    "all",
    "capability",
    "change_profile",
    "file",
    "link",
    "mount",
    "network",
    "pivot_root",
    "ptrace",
    "remount",
    "signal",
    "umount",
    "unix",
    "unmount",
    "userns",
];

/// Flags of a profile that change nothing here, or are taken for another.
const FLAGS: [&str; 6] = [
    "chroot_attach",
    "delegate_deleted",
    "error",
    "interruptible",
    "kill.signal",
    "prompt",
];

/// Something that a rule says and that is not so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    /// What, in the words of the language, and what becomes of the rule for it.
    pub class: String,
    /// Whether the rule has to be left out, as it would allow more than it says.
    pub is_left_out: bool,
}

impl Loss {
    /// What is only told.
    fn told(class: impl Into<String>) -> Loss {
        Loss {
            class: class.into(),
            is_left_out: false,
        }
    }

    /// A condition that nobody looks at. A rule that allows would allow without it, so it allows nothing. A `deny`
    /// refuses all the same, whether the condition is met or not.
    fn condition(what: &str, says: Says) -> Loss {
        let becomes = match says {
            Says::Denied => "it refuses whatever that is",
            Says::Allowed | Says::Asked => "it allows nothing",
        };
        Loss {
            class: format!("{what}: {becomes}"),
            is_left_out: says != Says::Denied,
        }
    }
}

/// What a rule, or a profile's head, loses.
pub(super) fn of(statement: &Statement) -> Vec<Loss> {
    let class = statement.class.as_str();
    if class == "profile" {
        return head(&statement.text);
    }
    if !MEDIATED.contains(&class) {
        return vec![Loss::told(class)];
    }
    if statement.says == Says::Asked {
        return vec![Loss::condition("prompt", Says::Asked)];
    }
    // what stands behind the class's word
    let rest = statement.text.split_once(class).map_or("", |(_, rest)| rest);
    let what = match class {
        "network" => network(rest),
        "umount" | "unmount" => begins_with_condition(rest).then_some("umount condition"),
        "pivot_root" => rest.contains("->").then_some("pivot_root -> profile"),
        "change_profile" => {
            let to = rest.rsplit_once("->").map_or("", |(_, to)| to);
            let class = class_of(to.trim().trim_matches('"'));
            // the parser has no room for its records
            let is_audited = statement.text.split(' ').any(|word| word == "audit");
            let audit = is_audited.then_some("audit of change_profile");
            return class.into_iter().chain(audit).map(Loss::told).collect();
        }
        _ => None,
    };
    what.map(|what| Loss::condition(what, statement.says))
        .into_iter()
        .collect()
}

/// What a rule on networks says beside families, types and permissions: addresses, ports, interfaces, labels, and
/// protocols. `tcp` and `udp` are other words for types, where no type stands beside them.
fn network(rest: &str) -> Option<&'static str> {
    let is_between = |c: char| c.is_whitespace() || "(),".contains(c);
    let words: Vec<&str> = rest.split(is_between).collect();
    let has = |word: &str| words.contains(&word);
    if rest.contains('=') || has("in") {
        return Some("network address");
    }
    (has("icmp") || has("raw") && (has("tcp") || has("udp"))).then_some("network protocol")
}

/// Whether conditions stand before the path of a rule.
fn begins_with_condition(rest: &str) -> bool {
    rest.trim_start()
        .starts_with(|c: char| c.is_ascii_alphabetic())
}

/// What a profile's head says: its flags, and the extended attributes that it attaches by.
fn head(text: &str) -> Vec<Loss> {
    let mut found = Vec::new();
    for group in text.split(')') {
        let Some((before, within)) = group.split_once('(') else {
            continue;
        };
        if before.trim_end_matches([' ', '=']).ends_with("xattrs") {
            found.push(Loss::told("xattrs"));
            continue;
        }
        let words = within.split(|c: char| c.is_whitespace() || c == ',');
        let flags = words.map(|word| word.split('=').next().unwrap_or(word));
        let lost = flags.filter(|flag| FLAGS.contains(flag));
        found.extend(lost.map(|flag| Loss::told(format!("flag {flag}"))));
    }
    found
}
