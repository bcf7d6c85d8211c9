//! What a state of an automaton allows: `struct aa_perms` of the kernel.

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

bitflags! {
    /// Permissions: `AA_MAY_*` of `security/apparmor/include/perms.h`. What a bit means depends on
    /// the rule class.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Access: u32 {
        /// Execute; pivot the root.
        const EXEC = 1 << 0;
        /// Write; send; be traced by; mount.
        const WRITE = 1 << 1;
        /// Read; receive; unmount.
        const READ = 1 << 2;
        /// Write at the end only; make a user namespace.
        const APPEND = 1 << 3;
        /// Create.
        const CREATE = 1 << 4;
        /// Remove.
        const DELETE = 1 << 5;
        /// Open; mount, if a filesystem's own options are such.
        const OPEN = 1 << 6;
        /// Rename.
        const RENAME = 1 << 7;
        /// Change attributes.
        const SETATTR = 1 << 8;
        /// See attributes.
        const GETATTR = 1 << 9;
        /// Change credentials.
        const SETCRED = 1 << 10;
        /// See credentials.
        const GETCRED = 1 << 11;
        /// Change the mode.
        const CHMOD = 1 << 12;
        /// Change the owner.
        const CHOWN = 1 << 13;
        /// Change the group.
        const CHGRP = 1 << 14;
        /// Lock.
        const LOCK = 1 << 15;
        /// Of the second half of a pair of names: only if the one allows no more than the other.
        const LINK_SUBSET = 1 << 15;
        /// Map for execution.
        const MMAP_EXEC = 1 << 16;
        /// Change a mapping's protection.
        const MPROT = 1 << 17;
        /// Give another name.
        const LINK = 1 << 18;
        /// Nothing that a parser writes for a rule that is enforced here.
        const SNAPSHOT = 1 << 19;
        /// Accept a connection.
        const ACCEPT = 1 << 20;
        /// Bind an address.
        const BIND = 1 << 21;
        /// Wait for connections.
        const LISTEN = 1 << 22;
        /// Set an option.
        const SETOPT = 1 << 24;
        /// See an option.
        const GETOPT = 1 << 25;
        /// Stack a profile.
        const STACK = 1 << 28;
        /// Change the profile at the next execution.
        const ONEXEC = 1 << 29;
        /// Change the profile.
        const CHANGE_PROFILE = 1 << 30;
        /// Change the hat.
        const CHANGE_HAT = 1 << 31;
    }
}

/// What a state allows, and what becomes of the program that it lets be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Perms {
    /// What is allowed; the rest is refused.
    pub allow: Access,
    /// What is refused by a `deny`; in complain mode it stays so only where it is in `quiet`, too.
    pub deny: Access,
    /// What is recorded although it is allowed.
    pub audit: Access,
    /// What is not recorded although it is refused.
    pub quiet: Access,
    /// Where an execution leads.
    pub exec: Exec,
}

/// Where the execution of a file leads: `xindex` of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Exec(pub u32);

impl Exec {
    /// Which of the transition table's names, or 0.
    pub const INDEX: u32 = 0x00ff_ffff;
    /// The kind of transition: one of the next four.
    pub const TYPE: u32 = 0x0c00_0000;
    /// No transition to a profile (`ix`, `ux`).
    pub const NONE: u32 = 0;
    /// To the profile of the file's name (`px`); with [`CHILD`](Self::CHILD) to a child (`cx`).
    pub const NAME: u32 = 0x0400_0000;
    /// To a name in the transition table (`px -> name`).
    pub const TABLE: u32 = 0x0800_0000;
    /// Without scrubbing the environment: the lower-case modes.
    pub const UNSAFE: u32 = 0x1000_0000;
    /// To a child profile (`cx`).
    pub const CHILD: u32 = 0x2000_0000;
    /// Within the profile, if nothing else applies (`ix`).
    pub const INHERIT: u32 = 0x4000_0000;
    /// Without a profile, if nothing else applies (`ux`).
    pub const UNCONFINED: u32 = 0x8000_0000;

    /// The index into the transition table, of a transition that has one.
    pub fn index(self) -> Option<usize> {
        (self.0 & Self::TYPE == Self::TABLE).then_some((self.0 & Self::INDEX) as usize)
    }
}
