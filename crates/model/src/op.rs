//! Operations and verdicts: what a process of a sequence can try, in its own
//! words. Everything printed of a divergence is printed here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process, numbered in the order of birth within its sequence.
pub type Pid = u8;
/// A descriptor's place in its table, from 0.
pub type Slot = u8;
/// A mapping's place in its address space, from 0.
pub type At = u8;

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// The process that tries it.
    pub who: Pid,
    /// Whether its second thread does.
    pub second: bool,
    /// What it tries.
    pub act: Act,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// `O_RDONLY`
    Read,
    /// `O_WRONLY`
    Write,
    /// `O_RDWR`
    Both,
    /// `O_WRONLY | O_APPEND`
    Append,
}

impl Access {
    /// Whether what is opened can be read.
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::Both)
    }

    /// Whether what is opened can be written.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// What is changed of an object, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attribute {
    /// `chmod`
    Mode,
    /// `chown`
    Owner,
    /// `utimensat`
    Times,
    /// `truncate`
    Size,
    /// `setxattr` of `user.tag`
    Xattr,
}

/// What is made under a new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// `mkdir`
    Directory,
    /// `symlink`
    Symlink,
    /// `mkfifo`
    Fifo,
    /// `mknod` of a character device
    Device,
}

/// Where a Unix socket is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// A file, by its path in the sandbox.
    Path(String),
    /// An abstract name.
    Abstract(u8),
}

/// A program to execute: `policy/replay.plm` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// Of the top level, without attributes.
    Worker,
    /// Of the middle level.
    User,
    /// Of the lowest level.
    Untrusted,
    /// `nodemote`
    Trusted,
    /// `nonetdemote`
    Courier,
    /// An untrusted script, whose interpreter is of the top level.
    Script,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 6] = [
        Program::Worker,
        Program::User,
        Program::Untrusted,
        Program::Trusted,
        Program::Courier,
        Program::Script,
    ];

    /// Its file.
    pub fn path(self) -> &'static str {
        match self {
            Program::Worker => "/srv/replay-bin/worker",
            Program::User => "/srv/replay-bin/user",
            Program::Untrusted => "/srv/replay-bin/untrusted",
            Program::Trusted => "/srv/replay-bin/trusted",
            Program::Courier => "/srv/replay-bin/courier",
            Program::Script => "/srv/replay-bin/script",
        }
    }
}

/// What a process tries. Paths are those of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[rustfmt::skip]
#[allow(missing_docs)]
pub enum Act {
    // files and their names
    Open { path: String, access: Access, create: bool, truncate: bool, to: Slot },
    /// Opens `/proc/self/fd/SLOT`.
    Reopen { slot: Slot, access: Access, to: Slot },
    Close { slot: Slot },
    Read { slot: Slot },
    Write { slot: Slot },
    /// `ftruncate`
    Resize { slot: Slot },
    Change { path: String, what: Attribute },
    /// `getxattr` of `user.tag`
    GetXattr { path: String },
    Readlink { path: String },
    /// `stat`, and `readdir` of a directory.
    Look { path: String },
    Make { path: String, what: Made },
    /// `O_TMPFILE` in a directory.
    Unnamed { dir: String, to: Slot },
    /// Gives a name to what a descriptor holds.
    Name { slot: Slot, path: String },
    /// `unlink` or `rmdir`
    Remove { path: String },
    Rename { from: String, to: String },
    Link { from: String, to: String },

    // channels
    Pipe { read: Slot, write: Slot },
    Pair { one: Slot, other: Slot },
    Listen { address: Address, to: Slot },
    Connect { address: Address, to: Slot },
    Accept { slot: Slot, to: Slot },
    /// A message of one byte, with a descriptor if there is one to carry.
    Send { slot: Slot, carry: Option<Slot> },
    /// The next message, and the descriptor that comes with it.
    Receive { slot: Slot, to: Slot },
    /// A datagram socket bound to a name.
    Mailbox { address: Address, to: Slot },
    /// A datagram to such a name, from a socket of its own.
    Post { address: Address, carry: Option<Slot> },
    /// `pidfd_getfd`
    Take { from: Pid, slot: Slot, to: Slot },

    // memory
    Memfd { to: Slot },
    /// `mmap` of a descriptor, private or shared, without asking to write.
    Map { slot: Slot, shared: bool, at: At },
    /// `mmap` of shared memory without a name.
    MapFresh { at: At },
    Unmap { at: At },
    /// Reads what is mapped.
    Load { at: At },
    /// Writes through a shared mapping, after `mprotect`.
    Store { at: At },
    Segment { id: u8 },
    Attach { id: u8, write: bool, at: At },
    /// `shmctl(IPC_RMID)`
    Drop { id: u8 },
    Queue { id: u8 },
    Enqueue { id: u8 },
    Dequeue { id: u8 },

    // processes
    Fork { child: Pid },
    /// `clone(CLONE_FILES)`: a process that shares the descriptor table.
    Share { child: Pid },
    Thread,
    Exec { program: Program },
    Exit,
    Signal { pid: Pid },
    Kill { pid: Pid },
    Renice { pid: Pid },
    /// `process_vm_readv`
    Peek { pid: Pid },
    /// `process_vm_writev`
    Poke { pid: Pid },

    // networks
    /// Connects to the network of this level, by TCP.
    Dial { network: u8, to: Slot },
}

/// Why an operation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Errno {
    Perm,
    Io,
    Acces,
    Busy,
    Xdev,
    NoMsg,
}

impl Errno {
    const ALL: [Errno; 6] = [
        Errno::Perm,
        Errno::Io,
        Errno::Acces,
        Errno::Busy,
        Errno::Xdev,
        Errno::NoMsg,
    ];

    /// Its number.
    fn raw(self) -> i32 {
        match self {
            Errno::Perm => libc::EPERM,
            Errno::Io => libc::EIO,
            Errno::Acces => libc::EACCES,
            Errno::Busy => libc::EBUSY,
            Errno::Xdev => libc::EXDEV,
            Errno::NoMsg => libc::ENOMSG,
        }
    }
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was done.
    Done,
    /// It was refused.
    Refused(Errno),
    /// The process was killed for it.
    Killed,
}

impl Verdict {
    /// What an error number of the kernel's means; `None`: nothing that the
    /// contract knows.
    pub fn of_errno(errno: i32) -> Option<Verdict> {
        Errno::ALL
            .into_iter()
            .find(|e| e.raw() == errno)
            .map(Verdict::Refused)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Done => f.write_str("done"),
            Verdict::Refused(errno) => write!(f, "E{}", format!("{errno:?}").to_uppercase()),
            Verdict::Killed => f.write_str("killed"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = if self.second { "'" } else { "" };
        write!(f, "p{}{thread}  {:?}", self.who, self.act)
    }
}
