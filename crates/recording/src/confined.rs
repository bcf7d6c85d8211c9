//! A policy's profiles' view of a recording: which processes are confined by which by now, and what
//! their rules would have refused.
//!
//! A recording has executions, opens of files, changes of names and connections; it does not have
//! whose a file is, whether a file is only appended to, what is mapped for execution, capabilities,
//! attributes, directories that are read, signals' numbers and mounts' places. What it lacks is not
//! guessed: where both answers are possible, the operation is let through.

use std::borrow::Cow;
use std::collections::HashMap;

use tidegate_bundle::profile::{Access, Execution, ProfileSet, RuleClass};

use crate::line::{Act, Flags, Line, path_bytes};

const DIRECTORY: u32 = 0o040_000;

/// What a profile would have refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The profile: an index into [`ProfileSet::profiles`].
    pub profile: usize,
    /// What it was about.
    pub object: String,
    /// The execution leads to a profile that is not there.
    pub missing: bool,
}

/// The processes that are confined.
#[derive(Debug, Default)]
pub(crate) struct Confined {
    /// By process, the profile.
    by: HashMap<u32, usize>,
    /// The profile, if any, of a process that is about to execute something.
    next: HashMap<u32, Option<usize>>,
    /// Accesses that depend on whose the file is.
    pub unsure: u64,
}

impl Confined {
    /// Takes a line in; what it would have been refused.
    pub fn feed(&mut self, set: &ProfileSet, line: &Line<'_>) -> Vec<Refused> {
        let pid = line.pid;
        match line.act {
            Act::Fork if line.peer != 0 => match self.by.get(&pid) {
                Some(&profile) => self.by.insert(line.peer, profile),
                None => self.by.remove(&line.peer),
            },
            Act::Started => match self.next.remove(&pid) {
                Some(Some(profile)) => self.by.insert(pid, profile),
                Some(None) => self.by.remove(&pid),
                None => None,
            },
            Act::Exit => {
                self.next.remove(&pid);
                self.by.remove(&pid)
            }
            _ => None,
        };
        // what Linux itself refused, no profile was asked about
        if line.refused != 0 || line.class.is_empty() || line.act == Act::Held {
            return Vec::new();
        }
        if line.act == Act::Exec {
            let refused = self.execute(set, line);
            return refused.into_iter().collect();
        }
        match self.by.get(&pid) {
            Some(&profile) if set.profiles[profile].confines() => self.asked(set, profile, line),
            _ => Vec::new(),
        }
    }

    /// An execution: where it leads, and whether it may.
    fn execute(&mut self, set: &ProfileSet, line: &Line<'_>) -> Option<Refused> {
        if !line.flags.contains(Flags::FIRST) || !is_known(line) {
            return None;
        }
        let program = path_bytes(&line.path);
        let now = self.by.get(&line.pid).copied();
        let now = now.filter(|&at| set.profiles[at].confines());
        let Some(profile) = now else {
            self.next.insert(line.pid, set.attached(&program, None));
            return None;
        };
        let leads = [true, false].map(|owner| set.execution(profile, &program, owner));
        let (to, missing) = match leads {
            [Execution::Refused, Execution::Refused] => (None, false),
            [Execution::Missing, Execution::Missing | Execution::Refused] => (None, true),
            [one, Execution::Refused | Execution::Missing] => (Some(one), false),
            [_, other] => (Some(other), false),
        };
        self.unsure += u64::from(leads[0] != leads[1]);
        let next = match to {
            Some(Execution::To(to)) => Some(to),
            Some(Execution::Free) => None,
            // what would have been refused goes on as it is
            _ => Some(profile),
        };
        self.next.insert(line.pid, next);
        to.is_none().then(|| Refused {
            profile,
            object: line.path.to_string(),
            missing,
        })
    }

    /// What else a confined process asks.
    fn asked(&mut self, set: &ProfileSet, profile: usize, line: &Line<'_>) -> Vec<Refused> {
        let is_dir = line.kind == DIRECTORY;
        let (reads, writes) = (
            line.flags.contains(Flags::READS),
            line.flags.contains(Flags::WRITES),
        );
        let mut open = Access::empty();
        open.set(Access::READ, reads);
        open.set(Access::WRITE, writes);
        let asked: Vec<(&str, Access)> = match line.act {
            Act::OpenRead | Act::OpenWrite | Act::ReceiveFd => vec![(&line.path, open)],
            Act::Create if !line.flags.contains(Flags::TMPFILE) => {
                vec![(&line.path, Access::CREATE)]
            }
            Act::Unlink => vec![(&line.path, Access::DELETE)],
            Act::Rename => vec![
                (&line.path, Access::READ | Access::WRITE | Access::DELETE),
                (&line.other, Access::WRITE | Access::CREATE),
            ],
            Act::Link => return self.linked(set, profile, line),
            Act::Connect | Act::Accept if line.family != 0 && line.socket != 0 => {
                return connected(set, profile, line).into_iter().collect();
            }
            _ => Vec::new(),
        };
        if !is_known(line) {
            return Vec::new();
        }
        let mut refused = Vec::new();
        for (path, access) in asked {
            let mut whole = path_bytes(path);
            if is_dir {
                whole.to_mut().push(b'/');
            }
            // a name that is made is its maker's
            let mine = line.act == Act::Create;
            if !self.allows(set, profile, &whole, access, mine) {
                refused.push(Refused {
                    profile,
                    object: path.to_owned(),
                    missing: false,
                });
            }
        }
        refused
    }

    /// Whether a path may be had so, by its owner at least.
    fn allows(
        &mut self,
        set: &ProfileSet,
        profile: usize,
        path: &[u8],
        access: Access,
        mine: bool,
    ) -> bool {
        let allows = |owner| {
            let perms = set.file(&set.profiles[profile], path, owner);
            let mut allow = perms.allow - perms.deny;
            // whether it is opened for appending is not recorded
            if allow.contains(Access::APPEND) && !access.contains(Access::DELETE) {
                allow |= Access::WRITE;
            }
            allow.contains(access)
        };
        let owner = allows(true);
        self.unsure += u64::from(!mine && owner && !allows(false));
        owner
    }

    /// A further name: a rule for it that leads on to one for the file's name.
    fn linked(&mut self, set: &ProfileSet, profile: usize, line: &Line<'_>) -> Vec<Refused> {
        if !is_known(line) {
            return Vec::new();
        }
        let (target, name) = (path_bytes(&line.path), path_bytes(&line.other));
        let pair = Cow::from([&name[..], b"\0", &target[..]].concat());
        let mut both = [name, pair].into_iter();
        if both.all(|path| self.allows(set, profile, &path, Access::LINK, false)) {
            return Vec::new();
        }
        vec![Refused {
            profile,
            object: line.other.to_string(),
            missing: false,
        }]
    }
}

/// A socket that is connected, or accepts: by its family and type.
fn connected(set: &ProfileSet, profile: usize, line: &Line<'_>) -> Option<Refused> {
    let ([a, b], [c, d]) = (
        (line.family as u16).to_be_bytes(),
        (line.socket as u16).to_be_bytes(),
    );
    let perms = set.rules(&set.profiles[profile], RuleClass::Network, &[a, b, c, d])?;
    // AppArmor's bit for connect(2) is that for opening
    let access = match line.act {
        Act::Accept => Access::ACCEPT,
        _ => Access::OPEN,
    };
    (!(perms.allow - perms.deny).contains(access)).then(|| Refused {
        profile,
        object: match line.address {
            Some(address) => format!("{address}:{}", line.port),
            None => line.path.to_string(),
        },
        missing: false,
    })
}

/// Whether a line has its path whole.
fn is_known(line: &Line<'_>) -> bool {
    let unknown = Flags::UNKNOWN | Flags::CUT | Flags::UNNAMED | Flags::UNMOUNTED;
    !line.flags.intersects(unknown) && !line.path.is_empty()
}
