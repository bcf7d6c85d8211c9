//! The `profile` model's policy: AppArmor's profiles.
//!
//! `apparmor_parser` compiles profiles as they lie in `/etc/apparmor.d`, so every syntax that it
//! accepts is accepted; [`unpack`] reads what it writes, and [`ProfileSet::link`] makes a policy of it. Nothing of AppArmor is needed where the
//! result is enforced.

mod automaton;
mod decide;
#[cfg(test)]
mod decide_tests;
mod dfa;
mod error;
mod link;
#[cfg(test)]
mod link_tests;
mod loss;
mod overlay;
pub mod pack;
mod parser;
mod perms;
mod pieces;
#[cfg(test)]
mod rules_tests;
mod set;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod unmediated;
mod unpack;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

pub use self::automaton::{Automaton, TooLarge};
pub use self::decide::{Execution, RuleClass, UnixAddress, UnixAsked};
pub use self::dfa::Dfa;
pub use self::error::UnpackError;
pub use self::link::LinkError;
pub use self::overlay::overlay;
pub use self::parser::{Parsed, Parser, ParserError};
pub use self::perms::{Access, Exec, Perms};
pub(crate) use self::set::parent_of;
pub use self::set::{Attach, LeftOut, Linked, ProfileSet, Table, Target, Unmediated, Walk};
pub use self::source::{Block, Says, Source, Statement, source};
pub use self::unmediated::FEATURES;
pub(crate) use self::unpack::RLIMITS;
pub use self::unpack::unpack;

/// What a profile does with what it does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is refused.
    Enforce,
    /// It is recorded and let through. What is refused quietly, by a `deny` without `audit`, stays
    /// refused.
    Complain,
    /// It is refused, and the process is killed.
    Kill,
    /// Nothing is refused: the profile is a name.
    Unconfined,
    /// Somebody is asked: `flags=(prompt)`.
    User,
}

bitflags! {
    /// How a profile sees paths: `path_flags` of the kernel.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct PathFlags: u32 {
        /// Paths begin at the process's root (`chroot_relative`).
        const CHROOT_REL = 0x8;
        /// What is not reached from there has a path all the same (`chroot_attach`).
        const CHROOT_NSCONNECT = 0x10;
        /// What has no path to the root begins with `/` (`attach_disconnected`).
        const CONNECT_PATH = 0x4;
        /// What has lost its name is mediated by it (`mediate_deleted`).
        const MEDIATE_DELETED = 0x10000;
        /// What has lost its name is delegated (`delegate_deleted`).
        const DELEGATE_DELETED = 0x8000;
    }
}

/// One profile, a hat or a child profile among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name; a hat's and a child's is `parent//name`.
    pub name: String,
    /// The profile that it takes the place of.
    pub rename: Option<String>,
    /// Which programs it is for.
    pub attachment: Attachment,
    /// What stands before a path that does not lead to the root.
    pub disconnected: Option<String>,
    /// It is entered by `change_hat`.
    pub is_hat: bool,
    /// What becomes of what it does not allow.
    pub mode: Mode,
    /// Everything is recorded.
    pub audit: bool,
    /// How it sees paths.
    pub path_flags: PathFlags,
    /// Linux's capabilities.
    pub capabilities: Capabilities,
    /// The limits that an execution into it sets.
    pub rlimits: Vec<Rlimit>,
    /// How many rules on packets' security marks it has.
    pub secmark: u16,
    /// All rules but those on files.
    pub policy: Option<Rules>,
    /// The rules on files; without them, the class `file` of [`policy`](Self::policy) has them.
    pub file: Option<Rules>,
}

/// Which programs a profile is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The expression as it was written.
    pub text: Option<String>,
    /// The automaton that accepts their paths; without it, the path is the profile's name.
    pub pattern: Option<Rules>,
    /// How specific the expression is, in bytes.
    pub length: u32,
    /// The extended attributes that it asks for.
    pub xattrs: Vec<String>,
}

/// A set for each thing that may become of a capability, a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// Allowed.
    pub allow: u64,
    /// Recorded although allowed.
    pub audit: u64,
    /// Not recorded although refused.
    pub quiet: u64,
    /// Decided by rules of the class `cap`, too.
    pub extended: u64,
}

/// A resource's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rlimit {
    /// Which: the number in AppArmor's order, which is x86's.
    pub resource: u8,
    /// The hard limit.
    pub max: u64,
}

/// An automaton with what its states allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Where the rules of a class begin: by the class's number.
    pub start: u32,
    /// Where the rules on files begin.
    pub file_start: u32,
    /// By state, what is allowed to the owner and to others.
    pub accepts: Vec<[Perms; 2]>,
    /// The names that executions lead to.
    pub names: Vec<String>,
    /// The automaton.
    pub dfa: Dfa,
}

impl Rules {
    /// Checks that what is allowed can be: `verify_perms()` of the kernel.
    fn check(&self) -> Result<(), &'static str> {
        for perms in self.accepts.iter().flatten() {
            if perms.allow.intersects(perms.deny) {
                return Err("a permission is both allowed and denied");
            }
            if perms.exec.index().is_some_and(|at| at >= self.names.len()) {
                return Err("an execution leads to a name that is not there");
            }
        }
        Ok(())
    }
}
