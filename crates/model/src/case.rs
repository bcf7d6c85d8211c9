//! A case: what one subject did, by canonical paths and under any policy. The
//! operations before the last may lower it; the last one is judged.

use std::net::IpAddr;

use crate::{Access, Errno, Level};

/// A subject's operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The subject's level at the beginning.
    pub level: Level,
    /// What it did, in order.
    pub deeds: Vec<Deed>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The canonical path of the program that did it, if it is known: it is trusted
    /// with what its rule says.
    pub program: Option<String>,
    /// The operation.
    pub asked: Asked,
}

/// An object with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Its canonical path.
    pub path: String,
    /// Its level, if it was given one and does not have its rule's.
    pub given: Option<Level>,
}

/// What a subject asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// To open a file.
    Open(Thing, Access),
    /// To map a file, shared and writable.
    Map(Thing),
    /// To execute a file, of which its label counts here.
    Exec(Thing),
    /// To follow a symbolic link, or read an attribute that others may have written.
    Look(Thing),
    /// To change what a file carries besides its content.
    Change(Thing),
    /// To make a file of this path.
    Create(String),
    /// To make this name, be it a new or an old one's; what it stands for is its own.
    Name(String),
    /// To give an object of this level this name.
    Take(Level, String),
    /// To remove a file.
    Remove(Thing),
    /// To connect or send to a named Unix socket.
    Reach(Thing),
    /// To connect to an address: it is sent to and heard.
    Dial(IpAddr),
    /// To hear an address; `None`: one that nobody knows.
    Hear(Option<IpAddr>),
    /// To send to an address.
    Send(IpAddr),
    /// To change something that has this level, and no path: a process, a queue, a key.
    Act(Level),
    /// To observe such a thing.
    Observe(Level),
    /// Something that belongs to the top level.
    Top,
}

/// What is said of a case's last operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The contract allows it.
    Allowed,
    /// It does not, but the program is `permissive`: it is recorded and let through.
    Recorded,
    /// The contract refuses it.
    Refused(Errno),
    /// It makes no sense: a directory on the way is a file.
    Senseless,
}
