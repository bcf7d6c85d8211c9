//! A row: one thing that a kernel offers.

use std::fmt;

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A system call of x86-64.
    Syscall,
    /// A system call as i386 calls it. The table of [`Kind::Syscall`] decides it.
    Syscall32,
    /// A capability.
    Capability,
    /// A hook of the security modules.
    Hook,
    /// A family of sockets.
    Family,
    /// A type of sockets within a family.
    Socket,
    /// A type of filesystem.
    Filesystem,
    /// A kind of open file, by its operations.
    File,
    /// A device that the kernel loads a module for.
    Device,
    /// An ioctl whose handler asks for a capability or reaches somebody else.
    Ioctl,
    /// A protocol or family of netlink.
    Netlink,
    /// Something of a task that another task can have, too.
    State,
}

impl Kind {
    /// All, in the order of the lists.
    pub const ALL: [Self; 12] = [
        Self::Syscall,
        Self::Syscall32,
        Self::Capability,
        Self::Hook,
        Self::Family,
        Self::Socket,
        Self::Filesystem,
        Self::File,
        Self::Device,
        Self::Ioctl,
        Self::Netlink,
        Self::State,
    ];

    /// The word that the lists have for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::Syscall32 => "syscall32",
            Self::Capability => "capability",
            Self::Hook => "hook",
            Self::Family => "family",
            Self::Socket => "socket",
            Self::Filesystem => "filesystem",
            Self::File => "file",
            Self::Device => "device",
            Self::Ioctl => "ioctl",
            Self::Netlink => "netlink",
            Self::State => "state",
        }
    }

    /// The kind that a word stands for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The kind whose table decides rows of this one.
    #[must_use]
    pub fn decided_as(self) -> Self {
        match self {
            Self::Syscall32 => Self::Syscall,
            other => other,
        }
    }
}

/// One thing that a kernel offers. Rows are sorted by kind, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Its kind.
    pub kind: Kind,
    /// Its name, without spaces.
    pub name: String,
}

impl Row {
    /// A row.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// The row of a table that decides this one.
    #[must_use]
    pub fn decided_as(&self) -> Self {
        Self::new(self.kind.decided_as(), self.name.clone())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.name)
    }
}
