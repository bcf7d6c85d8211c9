//! The compiler of the `profile` model's policy: AppArmor's profiles.
//!
//! `apparmor_parser` compiles profiles as they lie in `/etc/apparmor.d`, so every syntax that it
//! accepts is accepted; [`unpack`] reads what it writes, and [`link()`] makes a policy of it. Nothing of AppArmor is needed where the
//! result is enforced.

mod automaton;
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
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod unmediated;
mod unpack;
mod unusable;

use tidegate_bundle::profile::{Capabilities, Mode, PathFlags, Perms, Rlimit};

pub use self::automaton::{Automaton, TooLarge};
pub use self::dfa::Dfa;
pub use self::error::UnpackError;
pub use self::link::{LinkError, link, link_beside, link_usable};
pub use self::overlay::overlay;
pub use self::parser::{Parsed, Parser, ParserError};
pub use self::source::{Block, Says, Source, Statement, source};
pub use self::unmediated::FEATURES;
pub use self::unpack::unpack;

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
