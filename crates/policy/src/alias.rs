//! Debian's symbolic links into /usr and /run. What a policy says of a path through one never holds, as objects are known by
//! their canonical paths.

const ALIASES: [(&str, &str); 7] = [
    ("/bin", "/usr/bin"),
    ("/sbin", "/usr/sbin"),
    ("/lib", "/usr/lib"),
    ("/lib64", "/usr/lib64"),
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
    ("/dev/log", "/run/systemd/journal/dev-log"),
];

/// The alias that a path goes through, and what it resolves to.
pub(crate) fn alias(path: &[u8]) -> Option<(&'static str, &'static str)> {
    let goes_through = |(alias, _): &(&str, &str)| {
        let rest = path.strip_prefix(alias.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    ALIASES.into_iter().find(goes_through)
}
