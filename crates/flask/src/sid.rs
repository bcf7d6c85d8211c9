//! SIDs: a context's numbers in one word (`sid_make()` of kernel/te/rules.h).

/// A security identifier. It is never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid(pub u64);

/// What fits into a SID: types, roles and users, and ranges; each one more than the highest number.
pub const TYPES: usize = 1 << 16;
/// Roles, and users.
pub const ROLES: usize = 1 << 12;
/// Ranges.
pub const RANGES: usize = 1 << 24;

impl Sid {
    /// A context that nobody has, as its user has no name: each policy takes it for `unlabeled`.
    pub const NAMELESS: Sid = Sid(1);

    /// Of these numbers, which fit.
    pub fn of(user: u32, role: u32, kind: u32, range: u32) -> Sid {
        let [user, role, kind, range] = [user, role, kind, range].map(u64::from);
        Sid(range << 40 | user << 28 | role << 16 | kind)
    }

    /// Its type's number.
    pub fn kind(self) -> u32 {
        (self.0 & 0xffff) as u32
    }

    /// Its role's.
    pub fn role(self) -> u32 {
        (self.0 >> 16 & 0xfff) as u32
    }

    /// Its user's.
    pub fn user(self) -> u32 {
        (self.0 >> 28 & 0xfff) as u32
    }

    /// Its range's.
    pub fn range(self) -> u32 {
        (self.0 >> 40) as u32
    }
}
