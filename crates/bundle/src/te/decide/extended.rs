//! Permissions for single ioctls and netlink messages: `security_compute_xperms_decision()`.

use super::Decider;
use crate::te::db::{Context, ExtendedKind, Number};

/// A driver's ioctls (the upper byte of their numbers), all of them one by one (`AVTAB_XPERMS_IOCTLFUNCTION`).
const FUNCTION: u8 = 1;
/// Drivers whose every ioctl is meant (`AVTAB_XPERMS_IOCTLDRIVER`).
const DRIVER: u8 = 2;
/// Types of netlink messages (`AVTAB_XPERMS_NLMSG`).
const MESSAGE: u8 = 3;

/// What is decided of 256 ioctls or messages, a bit for each: `struct extended_perms_decision`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedAccess {
    /// Whether any rule of the three speaks of this source, target and class at all, of whichever driver: without one,
    /// the permission `ioctl` (or `nlmsg`) decides alone.
    pub speaks: bool,
    /// Those that are allowed, of what `ioctl` allows.
    pub allowed: [u32; 8],
    /// Those whose use is recorded.
    pub auditallow: [u32; 8],
    /// Those whose refusal is not.
    pub dontaudit: [u32; 8],
}

impl Decider<'_> {
    /// What the source may do of a driver's ioctls on the target.
    pub fn ioctls(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        driver: u8,
    ) -> ExtendedAccess {
        self.extended(source, target, class, driver, [FUNCTION, DRIVER])
    }

    /// What the source may send of netlink messages whose types have this upper byte.
    pub fn messages(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        upper: u8,
    ) -> ExtendedAccess {
        self.extended(source, target, class, upper, [MESSAGE, MESSAGE])
    }

    fn extended(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        driver: u8,
        of: [u8; 2],
    ) -> ExtendedAccess {
        let mut access = ExtendedAccess::default();
        let entries = self.entries(source.kind, target.kind, class);
        for rule in entries.flat_map(|entry| &entry.extended) {
            if !of.contains(&rule.specified) {
                continue;
            }
            access.speaks = true;
            let permissions = match rule.specified {
                DRIVER => {
                    let word = rule.permissions[usize::from(driver / 32)];
                    [if word >> (driver % 32) & 1 != 0 {
                        u32::MAX
                    } else {
                        0
                    }; 8]
                }
                _ if rule.driver == driver => rule.permissions,
                _ => [0; 8],
            };
            let set = match rule.kind {
                ExtendedKind::Allow => &mut access.allowed,
                ExtendedKind::AuditAllow => &mut access.auditallow,
                ExtendedKind::DontAudit => &mut access.dontaudit,
            };
            for (word, more) in set.iter_mut().zip(permissions) {
                *word |= more;
            }
        }
        access
    }
}
