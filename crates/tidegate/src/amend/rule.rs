//! A rule of a profile.

use tidegate_policy::profile::{Access, ProfileSet};

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
                if need.access.contains(Access::LINK) {
                    notes.push("the record has the link's name only: its target is any file that allows no less");
                }
                let owner = if need.owned { "owner " } else { "" };
                let modes = modes(need, path, set);
                format!("{owner}{} {modes},", pattern(path, need.shape))
            }
            Object::Capability(name) => format!("capability {name},"),
            Object::Network(family) => {
                notes.push("the record does not have the socket's type: every type is allowed");
                format!("network {family},")
            }
            Object::Signal(peer) => {
                notes.push("the record does not have the signal: every one is allowed");
                let how = match need.access.contains(Access::READ) {
                    true => "receive",
                    false => "send",
                };
                format!("signal ({how}){},", peer_of(peer.as_deref(), &mut notes))
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
        };
        Rule { text, notes }
    }
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
    put(access.contains(Access::LINK), "l");
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

/// A path or name that stands for nothing but itself.
fn pattern(path: &str, shape: Shape) -> String {
    let mut text = String::new();
    for c in path.trim_end_matches('/').chars() {
        if r#"*?[]{}^\""#.contains(c) {
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
