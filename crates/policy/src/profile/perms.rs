//! What a state allows, as a parser writes it.
//!
//! A parser writes it in one of two ways. Newer ones write a table of permissions, of which each
//! state names an entry; older ones put them into the states, in an encoding that grew over
//! 15 years and is taken apart as `security/apparmor/policy_compat.c` does it.

use tidegate_bundle::profile::{Access, Exec, Perms};

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
