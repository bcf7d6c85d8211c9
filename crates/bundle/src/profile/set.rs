//! The profiles of a policy, linked: names are resolved, automata laid out as the kernel walks them
//! and shared where they are equal.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decide::AF_UNIX;
use super::{Access, Capabilities, Mode, PathFlags, Perms, Rlimit, RuleClass};

/// All profiles of a policy.
///
/// Every index is in range, names are unique, and a profile's parent stands before it;
/// [`limits`](crate::limits) hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileSet {
    /// The profiles, a child after its parent.
    pub profiles: Vec<Linked>,
    /// The automata that they walk.
    pub automata: Vec<Table>,
    /// The rules that nothing mediates, for the loader of the policy.
    pub unmediated: Vec<Unmediated>,
    /// What could not be used, for the loader of the policy.
    pub left_out: Vec<LeftOut>,
}

impl ProfileSet {
    /// Whether a profile lets not even the attributes of every file be seen. One with rules on
    /// files does; one without any may not.
    pub fn hides_attributes(&self) -> bool {
        let shows = |walk: Walk| {
            let table = &self.automata[walk.automaton as usize];
            let mut perms = table.perms.iter().flatten();
            perms.all(|p| p.allow.contains(Access::GETATTR))
        };
        let mut confining = self.profiles.iter().filter(|p| p.confines());
        confining.any(|p| !p.file.is_some_and(shows))
    }

    /// Whether a profile lets something be mounted, so that the name of what it is counts.
    pub fn mounts(&self) -> bool {
        let mounts = |walk: Walk| {
            let table = &self.automata[walk.automaton as usize];
            table.allows_behind(table.step(walk.start, CLASS_MOUNT), Access::WRITE)
        };
        let mut confining = self.profiles.iter().filter(|p| p.confines());
        confining.any(|p| p.policy.is_some_and(mounts))
    }

    /// Whether a profile lets a socket be made, but not everything be sent and received by it, or
    /// wants a record of that. Of unix sockets messages are decided about as they are connected.
    pub fn tells_messages(&self) -> bool {
        const MESSAGES: Access = Access::WRITE.union(Access::READ).union(Access::OPEN);
        let tells = |perms: Perms| {
            let allow = perms.allow - perms.deny;
            allow.contains(Access::CREATE)
                && (!allow.contains(MESSAGES) || perms.audit.intersects(MESSAGES))
        };
        let kinds = || {
            let families = (0..FAMILIES).filter(|&family| family != AF_UNIX);
            families.flat_map(|family| (0..TYPES).map(move |kind| [0, family, 0, kind]))
        };
        let mut confining = self.profiles.iter().filter(|p| p.confines());
        confining.any(|profile| {
            let mut said =
                kinds().filter_map(|kind| self.rules(profile, RuleClass::Network, &kind));
            said.any(|perms| tells(perms) || profile.audit && perms.allow.contains(Access::CREATE))
        })
    }
}

/// Families of addresses, and types of sockets, that there may be: `AF_MAX`, `SOCK_MAX`.
const FAMILIES: u8 = 64;
const TYPES: u8 = 16;

/// The number of the class of rules on mounts: `AA_CLASS_MOUNT`.
const CLASS_MOUNT: u8 = 7;

/// A profile as it is put in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linked {
    /// Its name; a hat's and a child's is `parent//name`.
    pub name: String,
    /// The profile that this one is a child or a hat of: an index into [`ProfileSet::profiles`].
    pub parent: Option<u32>,
    /// It is entered by `change_hat`.
    pub is_hat: bool,
    /// What becomes of what it does not allow.
    pub mode: Mode,
    /// Everything is recorded.
    pub audit: bool,
    /// How it sees paths.
    pub path_flags: PathFlags,
    /// What stands before a path that does not lead to the root.
    pub disconnected: Option<String>,
    /// Linux's capabilities.
    pub capabilities: Capabilities,
    /// The limits that an execution into it sets.
    pub rlimits: Vec<Rlimit>,
    /// Which programs it is for; without it, the one whose path is the last part of its name.
    pub attachment: Option<Attach>,
    /// The rules on files, from the state in which paths begin.
    pub file: Option<Walk>,
    /// All other rules, from the state in which a class's number is read.
    pub policy: Option<Walk>,
    /// Where executions lead that name a profile: [`Exec::index`](super::Exec::index) counts these.
    pub targets: Vec<Target>,
}

/// The name of the profile that one of this name is a child or a hat of. Names are split from their
/// beginning, as the kernel does it: `a///bin/b` is the child `/bin/b` of `a`.
pub fn parent_of(name: &str) -> Option<&str> {
    name.match_indices("//").last().map(|(at, _)| &name[..at])
}

/// Which programs a profile is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The automaton that accepts their paths, by [`Access::EXEC`](super::Access::EXEC).
    pub walk: Walk,
    /// How specific the expression is, in bytes: `xmatch_len`.
    pub length: u32,
}

/// Where a walk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Walk {
    /// An index into [`ProfileSet::automata`].
    pub automaton: u32,
    /// The first state.
    pub start: u16,
}

/// Where an execution leads that names a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// To this one: an index into [`ProfileSet::profiles`].
    Profile(u32),
    /// To one that is not there: what the rule says of that case applies, or it is refused.
    Missing,
}

/// An automaton with what its states allow. State 0 leads nowhere but to itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// The class of each byte, below `width`.
    pub classes: Box<[u8; 256]>,
    /// How many classes there are: 1 to 256.
    pub width: u16,
    /// The next states, `width` of them for each state.
    pub next: Vec<u16>,
    /// By state, an index into `perms`.
    pub accepts: Vec<u16>,
    /// What is allowed to the owner and to others, each pair once.
    pub perms: Vec<[Perms; 2]>,
}

impl Table {
    /// The state after a byte.
    pub(super) fn step(&self, state: u16, byte: u8) -> u16 {
        let class = self.classes[usize::from(byte)];
        self.next[usize::from(state) * usize::from(self.width) + usize::from(class)]
    }

    /// Whether a state that is reached from this one allows something.
    fn allows_behind(&self, state: u16, access: Access) -> bool {
        let mut seen = vec![false; self.accepts.len()];
        let mut left = vec![state];
        while let Some(state) = left.pop() {
            let state = usize::from(state);
            if std::mem::replace(&mut seen[state], true) {
                continue;
            }
            let allowed = &self.perms[usize::from(self.accepts[state])];
            if allowed.iter().any(|perms| perms.allow.contains(access)) {
                return true;
            }
            let width = usize::from(self.width);
            left.extend(&self.next[state * width..][..width]);
        }
        false
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.classes.len()
            + size_of_val(&self.next[..])
            + size_of_val(&self.accepts[..])
            + size_of_val(&self.perms[..])
    }
}

/// A rule that nothing mediates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unmediated {
    /// The profile.
    pub profile: String,
    /// The rule's class: `dbus`, `mqueue`; `stack` and `namespace` are of executions that lead to
    /// several profiles or into a namespace, `xattrs` of an attachment.
    pub class: String,
    /// The file that it stands in.
    pub file: String,
    /// Its line, from 1; 0 for what is of the profile as a whole, or of a rule that was not found.
    pub line: u32,
}

/// Profiles of one file that cannot be used, and are not in the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Their names, as they are written; none, where the file could not be read as far as that.
    pub profiles: Vec<String>,
    /// The file.
    pub file: String,
    /// The line of what is wrong, or of the first of them, from 1; 0: it is not known.
    pub line: u32,
    /// What is wrong, or what disables them.
    pub why: String,
    /// The administrator has disabled the file, by its name in `disable/`: nothing is wrong with it.
    pub disabled: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line != 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(match self.disabled {
            true => ": disabled",
            false => ": left out",
        })?;
        for (at, profile) in self.profiles.iter().enumerate() {
            write!(f, "{} `{profile}`", if at == 0 { "" } else { "," })?;
        }
        write!(f, ": {}", self.why)
    }
}
