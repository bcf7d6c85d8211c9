//! Object classes and their permissions, by SELinux's names where it has one.

use serde::{Deserialize, Serialize};

/// An object class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Files of any kind but directories.
    File,
    /// Directories.
    Dir,
    /// Files that are executed.
    Program,
    /// Files that are mapped for execution.
    Library,
    /// Peers and own addresses of TCP.
    Tcp,
    /// Those of UDP.
    Udp,
    /// Those of Unix sockets.
    Unix,
    /// Objects of a service, by its number in [`Capabilities::services`](super::Capabilities::services).
    Service(u16),
}

/// Permissions of all classes but services, a bit each. A service has its own, by their order.
pub mod permission {
    #![allow(missing_docs)]
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 1 << 1;
    pub const APPEND: u32 = 1 << 2;
    pub const CREATE: u32 = 1 << 3;
    pub const UNLINK: u32 = 1 << 4;
    pub const RENAME: u32 = 1 << 5;
    pub const LINK: u32 = 1 << 6;
    pub const SETATTR: u32 = 1 << 7;
    pub const LOCK: u32 = 1 << 8;
    pub const IOCTL: u32 = 1 << 9;
    pub const RMDIR: u32 = 1 << 10;
    pub const EXECUTE: u32 = 1 << 11;
    pub const LOAD: u32 = 1 << 12;
    pub const CONNECT: u32 = 1 << 13;
    pub const BIND: u32 = 1 << 14;
}

use permission::*;

/// A permission's word and its bit.
pub type Word = (&'static str, u32);

const FILE: &[Word] = &[
    ("read", READ),
    ("write", WRITE),
    ("append", APPEND),
    ("create", CREATE),
    ("unlink", UNLINK),
    ("rename", RENAME),
    ("link", LINK),
    ("setattr", SETATTR),
    ("lock", LOCK),
    ("ioctl", IOCTL),
];
const DIR: &[Word] = &[
    ("read", READ),
    ("create", CREATE),
    ("rmdir", RMDIR),
    ("rename", RENAME),
    ("setattr", SETATTR),
];
const SOCKET: &[Word] = &[
    ("connect", CONNECT),
    ("bind", BIND),
    ("read", READ),
    ("write", WRITE),
];

impl Class {
    /// The classes that every file has, by the words that it calls them.
    pub const WORDS: [(&'static str, Class); 7] = [
        ("file", Class::File),
        ("dir", Class::Dir),
        ("program", Class::Program),
        ("library", Class::Library),
        ("tcp", Class::Tcp),
        ("udp", Class::Udp),
        ("unix", Class::Unix),
    ];

    /// The class of this word.
    pub fn of_word(word: &str) -> Option<Class> {
        let known = Class::WORDS.into_iter().find(|(known, _)| *known == word);
        known.map(|(_, class)| class)
    }

    /// Its word; none for a service, which has a name.
    pub fn word(self) -> Option<&'static str> {
        let known = Class::WORDS.into_iter().find(|(_, class)| *class == self);
        known.map(|(word, _)| word)
    }

    /// Its permissions; a service's stand with it.
    pub fn permissions(self) -> &'static [Word] {
        match self {
            Class::File => FILE,
            Class::Dir => DIR,
            Class::Program => &[("execute", EXECUTE)],
            Class::Library => &[("load", LOAD)],
            Class::Tcp | Class::Udp | Class::Unix => SOCKET,
            Class::Service(_) => &[],
        }
    }

    /// All its permissions.
    pub fn all(self) -> u32 {
        self.permissions().iter().fold(0, |all, (_, bit)| all | bit)
    }

    /// What access operations need: the rights that an active capability can have.
    pub fn access(self) -> u32 {
        match self {
            Class::File => READ | WRITE | APPEND | LOCK | IOCTL,
            Class::Dir => READ,
            Class::Tcp | Class::Udp | Class::Unix => READ | WRITE,
            Class::Program | Class::Library | Class::Service(_) => 0,
        }
    }

    /// Those of them that are the object's binding alone to check, unless a subject controls them. The others have hooks of
    /// their own, off the path of reads and writes, and are checked at each use.
    pub fn controllable(self) -> u32 {
        self.access() & (READ | WRITE | APPEND)
    }

    /// Whether a bind operation leaves something bound, which can expire and be revoked.
    pub fn is_bound(self) -> bool {
        !matches!(self, Class::Program | Class::Library)
    }
}
