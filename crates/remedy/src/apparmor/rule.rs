//! A rule of a profile.

use tidegate_bundle::profile::{Access, ProfileSet};

use super::need::{Need, Object, Shape};

/// A rule, as it is written, and what is to be known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// With its comma.
    pub text: String,
    /// What the record did not tell, so that the rule does not ask for it.
    pub notes: Vec<&'static str>,
}

impl Rule {
    /// The rule that lets a profile allow what is needed, as narrow as the record has it.
    pub fn new(need: &Need, set: &ProfileSet) -> Rule {
        let mut notes = Vec::new();
        let text = match &need.object {
            Object::File(path) => {
                if need.shape == Shape::Any && path != "/" {
                    notes.push("whether it is a directory is not known: both are named");
                }
                let owner = if need.owned && need.user {
                    "owner "
                } else {
                    ""
                };
                let modes = modes(need, path, set);
                format!("{owner}{} {modes},", pattern(path, need.shape))
            }
            Object::Link(name, Some(target)) => {
                let [name, target] = [name, target].map(|path| pattern(path, Shape::File));
                format!("link {name} -> {target},")
            }
            Object::Link(name, None) => {
                notes.push(
                    "the record does not have the link's target: it is any file that is allowed no less",
                );
                format!("{} l,", pattern(name, Shape::File))
            }
            Object::Capability(name) => format!("capability {name},"),
            Object::Network(family, kind) => {
                if family == "unix" {
                    notes.push(
                        "the record has neither addresses nor the other end: any are allowed",
                    );
                }
                match kind {
                    Some(kind) => format!("network {family} {kind},"),
                    None => {
                        notes.push(
                            "the record does not have the socket's type: every type is allowed",
                        );
                        format!("network {family},")
                    }
                }
            }
            Object::Signal(peer, signal) => {
                let set = match signal {
                    Some(signal) => format!(" set=({signal})"),
                    None => {
                        notes.push("the record does not have the signal: every one is allowed");
                        String::new()
                    }
                };
                let words = [(Access::WRITE, "send"), (Access::READ, "receive")];
                let peer = peer_of(peer.as_deref(), &mut notes);
                format!("signal ({}){set}{peer},", how(need, &words))
            }
            Object::Ptrace(peer) => {
                let words = [
                    (Access::WRITE, "trace"),
                    (Access::READ, "read"),
                    (Access::APPEND, "tracedby"),
                    (Access::CREATE, "readby"),
                ];
                let how = words
                    .iter()
                    .filter(|(access, _)| need.access.contains(*access));
                let how: Vec<&str> = how.map(|(_, word)| *word).collect();
                let peer = peer_of(peer.as_deref(), &mut notes);
                format!("ptrace ({}){peer},", how.join(", "))
            }
            Object::Mount(place) => {
                notes.push(
                    "the record has the place only: any source, type and options are allowed there",
                );
                format!("mount -> {},", pattern(place, need.shape))
            }
            Object::Umount(place) => format!("umount {},", pattern(place, need.shape)),
            Object::Pivot(place) => {
                notes.push("the record has the new root only: the old one may go anywhere");
                format!("pivot_root {},", pattern(place, need.shape))
            }
            Object::Userns => "userns,".into(),
            Object::ChangeProfile(name) => format!("change_profile -> {name},"),
        };
        Rule { text, notes }
    }
}

/// The permissions of a rule on another process.
fn how(need: &Need, words: &[(Access, &str)]) -> String {
    let asked = words
        .iter()
        .filter(|(access, _)| need.access.contains(*access));
    asked.map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
}

/// The permissions of a rule on a file.
fn modes(need: &Need, path: &str, set: &ProfileSet) -> String {
    let changes = Access::WRITE | Access::CREATE | Access::DELETE;
    let mut modes = String::new();
    let mut put = |so: bool, word: &str| {
        if so {
            modes.push_str(word);
        }
    };
    let access = need.access;
    put(access.contains(Access::READ), "r");
    put(access.intersects(changes), "w");
    put(
        access.contains(Access::APPEND) && !access.intersects(changes),
        "a",
    );
    put(access.contains(Access::LOCK), "k");
    put(access.contains(Access::MMAP_EXEC), "m");
    if access.contains(Access::EXEC) {
        put(true, transition(need, path, set));
    }
    modes
}

/// How a program is executed: in its own profile or child where there is one, else in the same.
pub fn transition(need: &Need, path: &str, set: &ProfileSet) -> &'static str {
    let own = set.find(&need.profile);
    let attached = |parent| set.attached(path.as_bytes(), parent);
    if own.is_some() && attached(own).is_some() {
        return "Cx";
    }
    match attached(None) {
        Some(other) if Some(other) != own => "Px",
        _ => "ix",
    }
}

/// The condition on the other process, if its profile is known.
fn peer_of(peer: Option<&str>, notes: &mut Vec<&'static str>) -> String {
    match peer {
        Some(name) => format!(" peer={}", pattern(name, Shape::File)),
        None => {
            notes.push("the other process's profile is not known: every one is allowed");
            String::new()
        }
    }
}

/// Where the next name is a process's or a user's number, which another day is another one.
const NUMBERED: [&str; 2] = ["/proc/", "/run/user/"];

/// What stands for it.
const ANY_NUMBER: &str = "[0-9]*";

/// A path with such a number: what is before it, and behind it.
fn numbered(path: &str) -> Option<(&str, &str)> {
    let head = NUMBERED.into_iter().find(|head| path.starts_with(head))?;
    let rest = path[head.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number =
        rest.len() < path.len() - head.len() && (rest.is_empty() || rest.starts_with('/'));
    is_number.then_some((head, rest))
}

/// The path, as what it has in common with those that are in one rule with it.
pub fn general(path: &str) -> String {
    match numbered(path) {
        Some((head, rest)) => format!("{head}{ANY_NUMBER}{rest}"),
        None => path.to_owned(),
    }
}

/// A path or name that stands for nothing but itself, a process's or user's number apart.
fn pattern(path: &str, shape: Shape) -> String {
    let (mut text, rest) = match numbered(path) {
        Some((head, rest)) => (format!("{head}{ANY_NUMBER}"), rest),
        None => (String::new(), path),
    };
    for c in rest.trim_end_matches('/').chars() {
        if "*?[]{}^".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    match shape {
        // the root's own
        _ if text.is_empty() => text.push('/'),
        Shape::Any => text.push_str("{,/}"),
        Shape::Dir => text.push('/'),
        Shape::File => {}
    }
    let plain = |c: char| c.is_alphanumeric() || "/._-+:%~@\\*?[]{}^,".contains(c);
    let is_plain = text.chars().all(plain) && !text.ends_with(',');
    if is_plain {
        text
    } else {
        format!("\"{text}\"")
    }
}
