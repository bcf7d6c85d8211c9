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
    let rest = statement
        .text
        .split_once(class)
        .map_or("", |(_, rest)| rest);
    let what = match class {
        "network" => network(rest),
        "mount" | "remount" => {
            let is_none = has_type(rest) && (class == "remount" || is_of_no_type(rest));
            let told = is_none.then(|| Loss::told("mount condition: no mount is meant"));
            return told.into_iter().collect();
        }
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
/// one protocol of a type. (`tcp` and `udp` are the language's other words for `stream` and `dgram`.)
fn network(rest: &str) -> Option<&'static str> {
    let is_between = |c: char| c.is_whitespace() || "(),".contains(c);
    let words: Vec<&str> = rest.split(is_between).collect();
    let has = |word: &str| words.contains(&word);
    if rest.contains('=') || has("in") {
        return Some("network address");
    }
    has("icmp").then_some("network protocol")
}

/// Whether a rule on mounts asks for a filesystem's type.
fn has_type(rest: &str) -> bool {
    let mut words = rest.split_whitespace();
    words.any(|word| word.starts_with("fstype") || word.starts_with("vfstype"))
}

/// Whether its options are of mounts that the kernel tells no type of. Those that may be there (`in`) may be missing, too.
fn is_of_no_type(rest: &str) -> bool {
    const OPTIONS: [&str; 12] = [
        "bind",
        "move",
        "private",
        "rbind",
        "remount",
        "rprivate",
        "rshared",
        "rslave",
        "runbindable",
        "shared",
        "slave",
        "unbindable",
    ];
    let words = rest.split(|c: char| c.is_whitespace() || "=(),".contains(c));
    let words: Vec<&str> = words.collect();
    let mut names = words
        .iter()
        .map(|word| word.strip_prefix("make-").unwrap_or(word));
    names.any(|name| OPTIONS.contains(&name)) && !words.contains(&"in")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rule of this class loses.
    fn lost(says: Says, class: &str, text: &str) -> Vec<Loss> {
        of(&Statement {
            profile: "a".into(),
            class: class.into(),
            file: "f".into(),
            line: 1,
            text: text.into(),
            says,
            span: 0..0,
        })
    }

    /// The classes that a rule is told with, where it has to be left out.
    fn left_out(class: &str, text: &str) -> Option<String> {
        let [loss] = &lost(Says::Allowed, class, text)[..] else {
            return None;
        };
        loss.is_left_out.then(|| loss.class.clone())
    }

    #[test]
    fn a_rule_on_networks_is_left_out_for_each_condition_that_nobody_looks_at() {
        for rule in [
            "network inet stream port=5432",
            "network inet stream port = 5432",
            "network inet6 dgram port=1024-2048",
            "network inet ip=127.0.0.1",
            "network ip=none",
            "network peer=(ip=10.0.0.1 port=80)",
            "network (send, receive) inet stream ip=::1 port=80 peer=(ip=::1)",
            "network inet interface=lo",
            "network inet label=x",
            "network inet port in (80 443)",
            "audit network tcp port=22",
            "priority=5 network port=22",
            "network(create) inet port=22",
        ] {
            let told = left_out("network", rule);
            assert_eq!(
                told.as_deref(),
                Some("network address: it allows nothing"),
                "{rule}"
            );
        }
        for rule in [
            "network icmp",
            "network inet icmp",
            "network (create) inet icmp",
        ] {
            let told = left_out("network", rule);
            assert_eq!(
                told.as_deref(),
                Some("network protocol: it allows nothing"),
                "{rule}"
            );
        }
        for rule in [
            "network",
            "network inet",
            "network inet stream",
            "network tcp",
            "network inet6 udp",
            "network raw",
            "network (create, bind) unix dgram",
            "network rw netlink raw",
            "priority=5 network inet",
        ] {
            assert_eq!(lost(Says::Allowed, "network", rule), [], "{rule}");
        }
    }

    #[test]
    fn other_rules_are_left_out_for_theirs() {
        for (class, rule, told) in [
            ("umount", "umount fstype=ext4 /mnt/", "umount condition"),
            ("umount", "umount options=(rw) /mnt/", "umount condition"),
            (
                "unmount",
                "unmount options in (rw) /mnt/",
                "umount condition",
            ),
            (
                "pivot_root",
                "pivot_root /mnt/ -> b",
                "pivot_root -> profile",
            ),
            ("pivot_root", "pivot_root -> b", "pivot_root -> profile"),
        ] {
            let told = format!("{told}: it allows nothing");
            assert_eq!(left_out(class, rule), Some(told), "{rule}");
        }
        for (class, rule) in [
            ("umount", "umount"),
            ("umount", "umount /a=b/"),
            ("umount", "umount @{X}/"),
            ("pivot_root", "pivot_root oldroot=/a/ /b/"),
            ("mount", "mount fstype=ext4 options=(ro) /dev/x -> /mnt/"),
            ("mount", "mount options=(rbind) /bind/ -> /mnt/"),
            (
                "mount",
                "mount fstype=ext4 options in (bind, ro) /bind/ -> /mnt/",
            ),
            ("remount", "remount options=(ro) /mnt/"),
            ("unix", "unix bind addr=@x"),
            ("signal", "signal (send) set=(term) peer=b"),
            ("ptrace", "ptrace (read) peer=b"),
        ] {
            assert_eq!(lost(Says::Allowed, class, rule), [], "{rule}");
        }
    }

    #[test]
    fn a_deny_refuses_all_the_same_and_what_is_to_be_asked_is_not_allowed() {
        let [loss] = &lost(Says::Denied, "network", "deny network inet port=25")[..] else {
            panic!("one of them");
        };
        assert!(!loss.is_left_out);
        assert_eq!(loss.class, "network address: it refuses whatever that is");
        let [loss] = &lost(Says::Asked, "file", "prompt /x r")[..] else {
            panic!("one of them");
        };
        assert!(loss.is_left_out);
        assert_eq!(loss.class, "prompt: it allows nothing");
    }

    #[test]
    fn what_changes_no_decision_is_told() {
        for (class, rule, expected) in [
            ("dbus", "dbus (send) bus=system", &["dbus"][..]),
            ("mqueue", "mqueue r /x", &["mqueue"]),
            ("io_uring", "io_uring sqpoll", &["io_uring"]),
            ("set", "set rlimit cpu <= 10", &["set"]),
            ("of-tomorrow", "of-tomorrow /x", &["of-tomorrow"]),
            (
                "mount",
                "mount fstype=ext4 options=(ro, rbind) /a/ -> /b/",
                &["mount condition: no mount is meant"],
            ),
            (
                "mount",
                "mount options=make-rslave fstype=ext4 -> /b/",
                &["mount condition: no mount is meant"],
            ),
            (
                "remount",
                "remount fstype=ext4 /b/",
                &["mount condition: no mount is meant"],
            ),
            ("change_profile", "change_profile -> &b", &["stack"]),
            (
                "change_profile",
                "change_profile /x -> \":ns:b\"",
                &["namespace"],
            ),
            (
                "change_profile",
                "audit change_profile -> b",
                &["audit of change_profile"],
            ),
            ("change_profile", "change_profile -> b", &[]),
        ] {
            let losses = lost(Says::Allowed, class, rule);
            assert!(losses.iter().all(|loss| !loss.is_left_out), "{rule}");
            let told: Vec<_> = losses.iter().map(|loss| loss.class.as_str()).collect();
            assert_eq!(told, expected, "{rule}");
        }
    }

    #[test]
    fn a_head_is_told_by_its_flags() {
        for (text, expected) in [
            ("profile a", &[][..]),
            ("profile a /a flags=(complain, attach_disconnected)", &[]),
            ("/a (delegate_deleted)", &["flag delegate_deleted"]),
            (
                "profile a flags=(kill.signal=hup error=EACCES, interruptible)",
                &["flag kill.signal", "flag error", "flag interruptible"],
            ),
            (
                "profile a /a xattrs=(user.prompt=\"x\") flags=(prompt)",
                &["xattrs", "flag prompt"],
            ),
        ] {
            let losses = lost(Says::Allowed, "profile", text);
            let told: Vec<_> = losses.iter().map(|loss| loss.class.as_str()).collect();
            assert_eq!(told, expected, "{text}");
        }
    }
}
