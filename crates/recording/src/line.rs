//! The lines of a recording: `docs/how-to/try-on-recorded-work.md` is their reference.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

use crate::head::{hex, unhex};

macro_rules! acts {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What a line tells. The operations are those of the audit log.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum Act { $($(#[$doc])* #[serde(rename = $word)] $name,)* }

        impl Act {
            /// All of them.
            pub const ALL: &[Act] = &[$(Act::$name,)*];

            /// Its word in recordings.
            pub fn word(self) -> &'static str {
                match self { $(Act::$name => $word,)* }
            }
        }
    };
}

acts! {
    /// The level that an object had been given when recording began.
    Given = "given",
    /// A process that was there when recording began; its program's file.
    Process = "process",
    /// What it held then.
    Held = "held",
    /// All that was there has been told.
    Begun = "begun",
    /// A process, `peer`, was born; without it, the process itself begins here.
    Fork = "fork",
    /// An exec has succeeded.
    Started = "started",
    /// A process has ended.
    Exit = "exit",
    /// The ends of channels that a process has.
    Channels = "channels",
    /// A Unix connection has ended.
    Closed = "closed",
    /// The last line: what was lost.
    End = "end",
    OpenRead = "open-read",
    OpenWrite = "open-write",
    Exec = "exec",
    Mmap = "mmap",
    ReceiveFd = "receive-fd",
    Create = "create",
    Unlink = "unlink",
    Rename = "rename",
    Link = "link",
    Setattr = "setattr",
    Xattr = "xattr",
    Readlink = "readlink",
    /// Writing by a descriptor: refused, once the writer has fallen below the object.
    WriteRevoked = "write-revoked",
    Connect = "connect",
    Accept = "accept",
    Receive = "receive",
    Send = "send",
    Socket = "socket",
    Signal = "signal",
    Ptrace = "ptrace",
    Sched = "sched",
    Mount = "mount",
    Module = "module",
    Bpf = "bpf",
    System = "system",
    /// The use of a capability that is the top level's.
    Capable = "capable",
    /// Never recorded: the cause of falling with what one reads.
    Pipe = "pipe",
}

impl Act {
    /// From its word.
    pub fn from_word(word: &str) -> Option<Act> {
        Act::ALL.iter().copied().find(|act| act.word() == word)
    }
}

bitflags! {
    /// What is known of an object or an operation: `enum tr_flag` of kernel/abi/recorder.h.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Flags: u32 {
        /// It is read.
        const READS = 1;
        /// It is written or changed.
        const WRITES = 1 << 1;
        /// Its kind neither demotes nor refuses.
        const NEUTRAL = 1 << 2;
        /// Made by the kernel: procfs, sysfs, …
        const KERNEL = 1 << 3;
        /// On FUSE or a network filesystem, whose mount point is the other path.
        const FOREIGN = 1 << 4;
        /// On a filesystem in memory.
        const MEMORY = 1 << 5;
        /// Memory that no path names.
        const UNNAMED = 1 << 6;
        /// Not mounted in the initial namespace.
        const UNMOUNTED = 1 << 7;
        /// Its path cannot be known.
        const UNKNOWN = 1 << 8;
        /// Its path is longer than kept.
        const CUT = 1 << 9;
        /// In /proc/PID, the peer's.
        const PROC = 1 << 10;
        /// Somebody has it open.
        const OPEN = 1 << 11;
        /// Of an exec: the file asked for, not an interpreter.
        const FIRST = 1 << 12;
        /// Made without a name.
        const TMPFILE = 1 << 13;
        /// Of a fork: memory or descriptors are shared.
        const SHARES = 1 << 14;
        /// Bound to an address of this machine's own network.
        const SERVER = 1 << 15;
        /// Creation of a device.
        const DEVICE = 1 << 16;
        /// A System V segment.
        const PRIVATE = 1 << 17;
        /// A rename takes the place of another object.
        const REPLACED = 1 << 18;
        /// Which has no other name.
        const LAST = 1 << 19;
        /// Opened to be written at its end only.
        const APPENDS = 1 << 20;
        /// Mapped to be executed.
        const EXECUTES = 1 << 21;
        /// Of a change of attributes: by what it holds, as its length.
        const CONTENT = 1 << 22;
        /// Of the same: an ioctl.
        const CONTROL = 1 << 23;
    }
}

/// Which inode: its filesystem's device (major << 20 | minor), its number, its generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inode(pub u32, pub u64, pub u32);

impl Inode {
    /// Whether it is none.
    pub fn is_none(&self) -> bool {
        self.1 == 0
    }
}

/// An end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The filesystem's device.
    pub dev: u32,
    /// The pipe's, FIFO's or socket's inode.
    pub ino: u64,
    /// The socket's that it is connected to, 0: it is no socket.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peer: u64,
    /// [`Flags::READS`] and [`Flags::WRITES`].
    pub flags: Flags,
}

/// A line, but the first. A field that does not apply has its default and is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line<'a> {
    /// What it tells.
    pub act: Act,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    #[serde(default)]
    pub time: u64,
    /// Thread group id.
    #[serde(default)]
    pub pid: u32,
    /// Thread id, if it is another.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tid: u32,
    /// When the process started, nanoseconds of `CLOCK_BOOTTIME`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u64,
    /// The real user id.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uid: u32,
    /// The name of its program.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub comm: Cow<'a, str>,
    /// The object manager.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub class: Cow<'a, str>,
    /// What is known of the object and the operation.
    #[serde(default, skip_serializing_if = "Flags::is_empty")]
    pub flags: Flags,
    /// The errno that the operation ended with, positive; 0: it was let through.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u32,
    /// The object's canonical path; what is not UTF-8 as `hex:` and its bytes.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub path: Cow<'a, str>,
    /// The other path: a rename's or link's new one, a foreign filesystem's mount point.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub other: Cow<'a, str>,
    /// The object.
    #[serde(default, skip_serializing_if = "Inode::is_none")]
    pub inode: Inode,
    /// What a rename replaces.
    #[serde(default, skip_serializing_if = "Inode::is_none")]
    pub over: Inode,
    /// The directory of a changed name.
    #[serde(default, skip_serializing_if = "Inode::is_none")]
    pub dir: Inode,
    /// The directory of the other name.
    #[serde(default, skip_serializing_if = "Inode::is_none")]
    pub other_dir: Inode,
    /// The object's type, `st_mode & S_IFMT`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kind: u32,
    /// How many names it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links: u32,
    /// Another process.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peer: u32,
    /// A Unix connection's number; of a socket that is held, its peer's inode.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub channel: u64,
    /// The address family.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub family: u32,
    /// The socket's type.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub socket: u32,
    /// Where to, or whence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port there; of a signal its number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub port: u32,
    /// The socket's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<IpAddr>,
    /// Ends of channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<End>,
    /// The level's name that the process, or the object, had when recording began.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub level: Cow<'a, str>,
    /// The context that it had then under the `te` model.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub context: Cow<'a, str>,
    /// Of the last line: accesses, those told already among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seen: u64,
    /// Of the last line: lines that found no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

impl Line<'_> {
    /// A line that tells nothing but what it is about.
    pub fn new(act: Act) -> Line<'static> {
        Line {
            act,
            time: 0,
            pid: 0,
            tid: 0,
            start: 0,
            uid: 0,
            comm: "".into(),
            class: "".into(),
            flags: Flags::empty(),
            refused: 0,
            path: "".into(),
            other: "".into(),
            inode: Inode::default(),
            over: Inode::default(),
            dir: Inode::default(),
            other_dir: Inode::default(),
            kind: 0,
            links: 0,
            peer: 0,
            channel: 0,
            family: 0,
            socket: 0,
            address: None,
            port: 0,
            bound: None,
            ends: Vec::new(),
            level: "".into(),
            context: "".into(),
            seen: 0,
            lost: 0,
        }
    }
}

/// A path as a line has it.
pub fn path_text(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => text.into(),
        Err(_) => format!("hex:{}", hex(path)),
    }
}

/// The bytes of a path in a line.
pub fn path_bytes(text: &str) -> Cow<'_, [u8]> {
    let coded = text.strip_prefix("hex:").and_then(|h| unhex(h.as_bytes()));
    coded.map_or(Cow::Borrowed(text.as_bytes()), Cow::Owned)
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back() {
        for path in [&b"/home/ann/x"[..], b"/a\xff\xfe", "/é".as_bytes()] {
            assert_eq!(path_bytes(&path_text(path)).as_ref(), path);
        }
        assert_eq!(path_bytes("hex:zz").as_ref(), b"hex:zz");
    }

    #[test]
    fn a_line_leaves_out_what_does_not_apply() {
        let line = Line {
            pid: 7,
            path: "/etc/passwd".into(),
            flags: Flags::READS | Flags::OPEN,
            ..Line::new(Act::OpenRead)
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"act":"open-read","time":0,"pid":7,"flags":"READS | OPEN","path":"/etc/passwd"}"#
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }

    #[test]
    fn every_act_has_its_word() {
        for &act in Act::ALL {
            assert_eq!(Act::from_word(act.word()), Some(act));
        }
    }
}
