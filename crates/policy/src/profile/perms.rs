//! What a state of an automaton allows: `struct aa_perms` of the kernel.
//!
//! A parser writes it in one of two ways. Newer ones write a table of permissions, of which each
//! state names an entry; older ones put them into the states, in an encoding that grew over
//! 15 years and is taken apart as `security/apparmor/policy_compat.c` does it.

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

/// The permissions of a file rule's state that an older parser wrote, for the owner and for others.
pub(super) fn file(accept: u32, accept2: u32) -> [Perms; 2] {
    [0, 14].map(|shift| {
        let mut allow = file_access(accept >> shift & 0x7f);
        allow |= Access::GETATTR;
        allow.set(Access::CHANGE_PROFILE, accept & 1 << 31 != 0);
        allow.set(Access::ONEXEC, accept & 1 << 30 != 0);
        Perms {
            allow,
            deny: Access::empty(),
            audit: file_access(accept2 >> shift & 0x7f),
            quiet: file_access(accept2 >> shift >> 7 & 0x7f),
            exec: exec(accept >> shift & 0x3fff),
        }
    })
}

/// The permissions of any other rule's state that an older parser wrote; from version 9 on the
/// bits that a file rule's execution took have a meaning here.
pub(super) fn policy(accept: u32, accept2: u32, version: u32) -> Perms {
    let spread = |bits: u32| {
        Access::from_bits_truncate(bits & 0x7f | other(bits >> 14 & 0x7f) | bits & 1 << 31)
    };
    let mut perms = Perms {
        allow: spread(accept),
        audit: spread(accept2 & 0x7fff_ffff),
        quiet: spread(accept2 >> 7 & 0x00ff_ffff),
        ..Perms::default()
    };
    if version < 9 {
        perms.allow |= Access::LOCK;
    } else {
        perms.allow |= Access::from_bits_truncate(extended(accept >> 7 & 0x7f));
        perms.quiet |= Access::from_bits_truncate(extended(accept2 >> 21 & 0x7f));
    }
    perms
}

/// A profile's attachment accepts, or does not.
pub(super) fn attachment(accept: u32) -> Perms {
    Perms {
        allow: Access::from_bits_truncate(accept & 0x7f),
        ..Perms::default()
    }
}

fn file_access(old: u32) -> Access {
    let mut new = Access::from_bits_truncate(old & 0xf);
    if new.contains(Access::READ) {
        new |= Access::GETATTR | Access::OPEN;
    }
    if new.contains(Access::WRITE) {
        new |= Access::SETATTR
            | Access::CREATE
            | Access::DELETE
            | Access::CHMOD
            | Access::CHOWN
            | Access::OPEN;
    }
    new.set(Access::LINK, old & 0x10 != 0);
    new.set(Access::LOCK, old & 0x20 != 0);
    new.set(Access::MMAP_EXEC, old & 0x40 != 0);
    new
}

fn exec(old: u32) -> Exec {
    let mut new = 0;
    for (bit, meaning) in [
        (0x80, Exec::UNCONFINED),
        (0x100, Exec::UNSAFE),
        (0x200, Exec::INHERIT),
    ] {
        if old & bit != 0 {
            new |= meaning;
        }
    }
    new |= match old >> 10 & 0xf {
        0 => 0,
        1 => Exec::UNCONFINED,
        2 => Exec::NAME,
        3 => Exec::NAME | Exec::CHILD,
        index => Exec::TABLE | (index - 4),
    };
    Exec(new)
}

fn other(bits: u32) -> u32 {
    (bits & 0x3) << 8 | (bits & 0x1c) << 18 | (bits & 0x60) << 19
}

fn extended(bits: u32) -> u32 {
    (bits & 0x1) << 7 | (bits & 0x7e) << 9
}
