//! What a record says a profile was asked for, and did not allow.

use tidegate_audit::{Record, UNCONFINED, is_unseen};
use tidegate_bundle::profile::Access;
use tidegate_monitor::{Op, Reason};

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// A file, a directory, or a name that one is to have.
    File(String),
    /// A further name of a file, and the file's own if that is known.
    Link(String, Option<String>),
    /// A capability.
    Capability(String),
    /// Sockets of a family, and of a type if that is known.
    Network(String, Option<String>),
    /// A signal to another process, or from it, by the other's profile and the signal if those are known.
    Signal(Option<String>, Option<String>),
    /// Tracing another process, or being traced by it.
    Ptrace(Option<String>),
    /// A mount at a place.
    Mount(String),
    /// The end of a mount.
    Umount(String),
    /// Another root.
    Pivot(String),
    /// A user namespace.
    Userns,
    /// Another profile, now or at the next execution.
    ChangeProfile(String),
}

/// Whether a path is a directory's, which ends in `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Not known.
    Any,
    /// It is not.
    File,
    /// It is.
    Dir,
}

/// What a profile has to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The profile that refused.
    pub profile: String,
    /// What it is about.
    pub object: Object,
    /// What was asked for and refused.
    pub access: Access,
    /// What the path is of.
    pub shape: Shape,
    /// The file is owned by the user that asked.
    pub owned: bool,
    /// The user that asked is not root, of whose files `owner` would say nothing.
    pub user: bool,
}

/// What other records tell of what a record is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'k> {
    /// Another name of the same file.
    pub name: Option<&'k str>,
    /// The profile of the other process.
    pub peer: Option<&'k str>,
}

/// Why no rule follows from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unlearned {
    /// It is not by the rules of a profile.
    Reason(Reason),
    /// It does not tell which profile refused.
    Profile,
    /// Its path cannot be written in a rule.
    Path,
    /// It lacks what the rule would be about.
    Object,
    /// It is a link, and a rule would be about its target.
    Target,
}

/// What helps where no rule does; `None`: rules decide.
pub fn advice(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Disconnected => {
            "its path does not lead to the root: `flags=(attach_disconnected)` gives it one"
        }
        Reason::NoProfile => {
            "the profile that the execution leads to is not there, or no_new_privs keeps it from changing"
        }
        Reason::Source => {
            "name the source of the mount from the root, without `.`, `..` and symbolic links: mount(8) does so by itself"
        }
        _ => return None,
    })
}

impl Unlearned {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Unlearned::Reason(reason) => {
                advice(reason).unwrap_or("it could not be decided in time: try again")
            }
            Unlearned::Profile => {
                "the record does not tell whose profile refused: the process was gone, or the policy is not known any more"
            }
            Unlearned::Path => {
                "the record does not have its path whole, or not in characters that a rule can write"
            }
            Unlearned::Object => "the record does not tell what it was about",
            Unlearned::Target => {
                "the link's name is allowed more than its target, which the record does not tell: `link NAME -> TARGET,` lets it be"
            }
        }
    }
}

impl Need {
    /// Whether a record is of a profile's refusal.
    pub fn is_told_by(record: &Record) -> bool {
        let subject = record.subject.as_ref();
        subject.is_some_and(|s| s.profile.is_some()) || record.reason() == Some(Reason::Profile)
    }

    /// From a profile's record.
    pub fn of(record: &Record, known: Known<'_>) -> Result<Need, Unlearned> {
        match record.reason() {
            Some(Reason::Profile) => {}
            Some(other) => return Err(Unlearned::Reason(other)),
            None => return Err(Unlearned::Object),
        }
        let op = record.op().ok_or(Unlearned::Object)?;
        let denied = record.denied.as_deref();
        let mine = record.subject.as_ref().and_then(|s| s.profile.clone());
        let object = record.object.as_ref();
        let path = || {
            let path = object.and_then(|o| o.path.clone());
            path.filter(|path| is_whole(path)).ok_or(Unlearned::Path)
        };
        let mut need = Need {
            profile: mine.clone().unwrap_or_default(),
            object: Object::Userns,
            access: letters(denied.unwrap_or_default()),
            shape: Shape::Any,
            owned: false,
            user: record.subject.as_ref().is_some_and(|s| s.uid != 0),
        };
        match op {
            Op::Capable | Op::Bpf => {
                let capability = match op {
                    // a process that is confined gets at what is loaded only by that one
                    Op::Bpf => Some("mac_admin".into()),
                    _ => record.capability.clone(),
                };
                need.object = Object::Capability(capability.ok_or(Unlearned::Object)?);
            }
            Op::Socket | Op::Connect | Op::Accept | Op::Send | Op::Receive | Op::ReceiveFd
                if record.family.is_some() =>
            {
                let family = record.family.clone().filter(|name| is_word(name));
                let kind = record.socket.clone().filter(|name| is_word(name));
                need.object = Object::Network(family.ok_or(Unlearned::Object)?, kind);
            }
            Op::Signal | Op::Ptrace => {
                let other = object.and_then(|o| o.profile.clone());
                let signal = record.signal.clone().filter(|name| is_word(name));
                let other = other.or_else(|| known.peer.map(str::to_owned));
                need.between(op, mine, other, signal)?;
            }
            Op::Mount => {
                let place = path()?;
                need.object = match denied {
                    Some("umount") => Object::Umount(place),
                    Some("pivot_root") => Object::Pivot(place),
                    _ => Object::Mount(place),
                };
            }
            Op::Userns => {}
            Op::ChangeProfile | Op::ChangeOnexec => {
                let name = object.filter(|o| o.ino.is_none());
                let name = name.and_then(|o| o.path.clone());
                let name = name
                    .filter(|name| is_plain(name))
                    .ok_or(Unlearned::Object)?;
                need.access = match op {
                    Op::ChangeProfile => Access::CHANGE_PROFILE,
                    _ => Access::ONEXEC,
                };
                need.object = Object::ChangeProfile(name);
            }
            Op::ChangeHat | Op::System => return Err(Unlearned::Object),
            Op::Link => {
                let target = known.name.filter(|name| is_whole(name)).map(str::to_owned);
                // no letter of it: the name may be linked, and leads to more than its target does
                if target.is_none() && !need.access.contains(Access::LINK) {
                    return Err(Unlearned::Target);
                }
                need.access = Access::LINK;
                need.object = Object::Link(path()?, target);
            }
            _ => {
                need.object = Object::File(path()?);
                if matches!(op, Op::OpenWrite | Op::Exec | Op::Mmap) {
                    need.shape = Shape::File;
                }
                // a name that is to be made will be its maker's
                need.owned = op == Op::Create && object.is_some_and(|o| o.ino.is_none());
            }
        }
        if need.profile.is_empty() || is_number(&need.profile) {
            return Err(Unlearned::Profile);
        }
        Ok(need)
    }

    /// Of two processes either one's profile may have refused: the doer's to do it, or the other's
    /// to have it done to it.
    fn between(
        &mut self,
        op: Op,
        mine: Option<String>,
        other: Option<String>,
        signal: Option<String>,
    ) -> Result<(), Unlearned> {
        let suffered = match op {
            Op::Signal => Access::READ,
            _ => Access::APPEND | Access::CREATE,
        };
        let peer = match &mine {
            Some(_) if !self.access.intersects(suffered) => other,
            // by the other's profile, of which the record has no letters if the doer has none
            _ => {
                if mine.is_none() {
                    self.access = suffered;
                }
                self.profile = other
                    .filter(|p| p != UNCONFINED)
                    .ok_or(Unlearned::Profile)?;
                Some(mine.unwrap_or_else(|| UNCONFINED.into()))
            }
        };
        let peer = peer.filter(|name| !is_number(name) && is_plain(name));
        self.object = match op {
            Op::Signal => Object::Signal(peer, signal),
            _ => Object::Ptrace(peer),
        };
        Ok(())
    }

    /// Takes in what else was asked of the same.
    pub fn add(&mut self, other: &Need) {
        self.access |= other.access;
        self.owned &= other.owned;
        if self.shape == Shape::Any {
            self.shape = other.shape;
        } else if other.shape != Shape::Any && other.shape != self.shape {
            // it was the one, and later the other
            self.shape = Shape::Any;
        }
    }
}

/// Permissions by AppArmor's letters.
fn letters(letters: &str) -> Access {
    let each = letters.chars().map(|letter| match letter {
        'x' => Access::EXEC,
        'w' => Access::WRITE,
        'r' => Access::READ,
        'a' => Access::APPEND,
        'c' => Access::CREATE,
        'd' => Access::DELETE,
        'k' => Access::LOCK,
        'm' => Access::MMAP_EXEC,
        'l' => Access::LINK,
        _ => Access::empty(),
    });
    each.collect()
}

/// Whether the record has the path whole, and in characters that a rule can write.
fn is_whole(path: &str) -> bool {
    path.starts_with('/') && is_plain(path)
}

/// Whether a rule can write it: a backslash before a quote is one word to a lexer and two to another.
fn is_plain(text: &str) -> bool {
    let is_odd = |c: char| is_unseen(c) || matches!(c, '"' | '\\' | char::REPLACEMENT_CHARACTER);
    !text.contains(is_odd)
}

/// Whether it can be a word of the profiles' language: a name of a list, or its number.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '-');
    !text.is_empty() && text.chars().all(is_plain)
}

/// A profile whose name was not known.
fn is_number(name: &str) -> bool {
    name.strip_prefix("profile ")
        .is_some_and(|n| n.len() == 16 && n.chars().all(|c| c.is_ascii_hexdigit()))
}
