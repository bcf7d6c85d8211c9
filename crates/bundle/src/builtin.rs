//! The rules that every policy has, and no map may change: Tidegate's own
//! safety rests on them. The compiler adds them, and the reader of bundles
//! looks for them.

use crate::attrs::Attrs;

/// Paths that belong to Tidegate with all below them.
pub const RESERVED: [&str; 5] = [
    "/run/tidegate",
    "/sys/fs/bpf",
    "/etc/tidegate",
    "/var/lib/tidegate",
    "/var/log/tidegate",
];

/// A built-in rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    /// The path, which has no `*`.
    pub path: String,
    /// The integrity level: an index into the levels, lowest first.
    pub level: u8,
    /// The attributes.
    pub attrs: Attrs,
}

/// Returns the built-in rules for `levels`, lowest first.
pub fn rules(levels: &[String]) -> Vec<Builtin> {
    let top = levels.len().saturating_sub(1) as u8;
    let rule = |path: &str, level, attrs| Builtin {
        path: path.to_owned(),
        level,
        attrs,
    };
    let mut rules: Vec<_> = RESERVED
        .iter()
        .map(|path| rule(path, top, Attrs::empty()))
        .collect();
    // Any subject may ask; the daemon sees the caller's level and judges.
    rules.push(rule("/run/tidegate/tidegate.sock", top, Attrs::LOWWRITE));
    // A subject that may open a file may lock it, or have a lease of it: the daemon would wait.
    for lock in ["/run/tidegate/lock", "/run/tidegate/locks"] {
        rules.push(rule(lock, top, Attrs::LOWNOOPEN));
    }
    // To read one of these is to fall to its level: `tidegate run --level`.
    rules.extend((0u8..).zip(levels).map(|(level, name)| {
        rule(
            &format!("/run/tidegate/level/{name}"),
            level,
            Attrs::empty(),
        )
    }));
    rules
}
