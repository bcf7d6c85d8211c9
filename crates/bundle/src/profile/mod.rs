//! The `profile` model's policy: AppArmor's profiles, linked, and what they say.

mod decide;
mod perms;
mod set;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

pub use self::decide::{Execution, RuleClass, UnixAddress, UnixAsked};
pub use self::perms::{Access, Exec, Perms};
pub use self::set::{
    Attach, LeftOut, Linked, ProfileSet, Table, Target, Unmediated, Walk, parent_of,
};

/// Resources with limits: `RLIM_NLIMITS`.
pub const RLIMITS: u16 = 16;

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
