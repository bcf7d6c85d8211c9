//! Arguments, drawn by a seed and a call's number.
//!
//! Pointers are below 4 GB, so that both ABIs can have the same ones.

use anyhow::{Context, Result};
use fastrand::Rng;

use crate::attack::arena::{Arena, Fields, PLAY, PLAY_SIZE};
use crate::attack::calls::{Abi, Kind, Row};
use crate::attack::given::{self, Given};
use crate::sys;

/// The words of `calls.txt`.
pub const WORDS: [&str; 42] = [
    "addr",
    "argv",
    "clone",
    "clone3",
    "dir",
    "fd",
    "fdp",
    "flags",
    "fs",
    "hand",
    "how",
    "in",
    "iov",
    "ipcflags",
    "ipckey",
    "key",
    "len",
    "mmsg",
    "mode",
    "msg",
    "msq",
    "new",
    "num",
    "oflags",
    "out",
    "path",
    "perf",
    "pid",
    "proto",
    "req",
    "riov",
    "sa",
    "salen",
    "schedattr",
    "sem",
    "shm",
    "sig",
    "siginfo",
    "str",
    "ts",
    "uid",
    "xn",
];

/// Bytes of a netlink message.
pub const MESSAGE: usize = 96;

/// Names of filesystems.
const FILESYSTEMS: [&str; 16] = [
    "tmpfs",
    "proc",
    "sysfs",
    "ext4",
    "overlay",
    "bpf",
    "cgroup2",
    "devpts",
    "mqueue",
    "ramfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "fuse",
    "hugetlbfs",
    "devtmpfs",
];

/// Names of attributes.
const ATTRIBUTES: [&str; 8] = [
    "user.word",
    "user.new",
    "trusted.word",
    "trusted.overlay.opaque",
    "security.capability",
    "security.selinux",
    "system.posix_acl_access",
    "system.posix_acl_default",
];

/// Other texts: names of keys, modules, queues, algorithms, options.
const TEXTS: [&str; 16] = [
    given::NAME,
    "user",
    "keyring",
    "logon",
    "big_key",
    "dummy",
    "loop",
    "tcp",
    "none",
    "size",
    "source",
    "ro",
    "new",
    "_ses",
    "1",
    "",
];

/// A netlink socket that a call is to be handed.
fn netlink(protocol: i64) -> i64 {
    sys::syscall!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, protocol).unwrap_or(-1)
}

/// What arguments are drawn from.
#[derive(Debug)]
pub struct Draw<'g> {
    /// The memory.
    pub arena: Arena,
    given: &'g Given,
    paths: Vec<String>,
    /// Descriptors that are open before the first call are below this.
    descriptors: i32,
    rng: Rng,
    abi: Abi,
}

impl<'g> Draw<'g> {
    /// What is drawn from these, with all descriptors below a number.
    pub fn new(arena: Arena, given: &'g Given, descriptors: i32) -> Self {
        let paths = given::paths(given);
        Self {
            arena,
            given,
            paths,
            descriptors,
            rng: Rng::with_seed(0),
            abi: Abi::X64,
        }
    }

    /// The arguments of a call.
    ///
    /// # Errors
    /// The tables have a word that has no meaning here.
    pub fn args(&mut self, seed: u64, number: u64, row: &Row) -> Result<[i64; 6]> {
        self.rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.abi = row.abi;
        let mut args = [0; 6];
        for (arg, kind) in args.iter_mut().zip(&row.args) {
            *arg = match kind {
                Kind::OneOf(ranges) => {
                    let (low, high) = ranges[self.rng.usize(..ranges.len())];
                    self.rng.i64(low..=high)
                }
                Kind::Netlink(protocol) => netlink(*protocol),
                Kind::Message(protocol) => self.message(*protocol),
                Kind::Word(word) => self.word(word).with_context(|| format!("no word {word}"))?,
            };
        }
        Ok(args)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(..of.len())]
    }

    /// What a word stands for.
    fn word(&mut self, word: &str) -> Option<i64> {
        let abi = self.abi;
        Some(match word {
            "fd" => self.descriptor(),
            "dir" if self.rng.u8(..5) < 3 => libc::AT_FDCWD.into(),
            "dir" => self.descriptor(),
            "path" => self.path(),
            "new" if self.rng.bool() => {
                let root = self.one(&given::ROOTS);
                let dir = self.one(&["top", "top/dir", "top/theirs-dir", "low", "secret"]);
                self.arena.text(&format!("{root}/{dir}/new"))
            }
            "new" => self.path(),
            "pid" => self.process(),
            "sig" => self.one(&[0, 1, 2, 9, 10, 11, 12, 14, 15, 17, 18, 19, 23, 29, 34, 64]),
            "in" => self.words(),
            "out" => self.arena.out() as i64,
            "len" => self.one(&[0, 1, 8, 64, 512, 4096]),
            "num" => self.number(),
            "flags" => self.one(&[0, 0, 0x100, 0x200, 0x400, 0x800, 0x1000, 1, 2, 4, 0x8000]),
            "uid" => self.one(&[0, 0, 1000, 1000, 1, 65534, -1]),
            "mode" => self.one(&[
                0, 0o777, 0o666, 0o4755, 0o2755, 0o1777, 0o600, 0o40777, 0o10666, 0o140777,
            ]),
            "oflags" => self.open_flags(),
            "addr" => (PLAY + self.rng.usize(..PLAY_SIZE / 2) / 4096 * 4096) as i64,
            "iov" => self.vector(),
            "riov" => {
                let at = self.given.secret_at as i64;
                let fields = Fields::default()
                    .long(abi, at)
                    .long(abi, 64)
                    .long(abi, at)
                    .long(abi, 64);
                self.arena.put(&fields.0)
            }
            "msg" => {
                let fields = self.header();
                self.arena.put(&fields.0)
            }
            "mmsg" => {
                let first = self.header().u64(0);
                let mut both = first.0;
                both.extend(self.header().u64(0).0);
                self.arena.put(&both)
            }
            "sa" => self.address(),
            "salen" => self.one(&[2, 12, 16, 28, 110]),
            "ts" if self.rng.u8(..8) == 0 => 0,
            "ts" => {
                let mut fields = Fields::default();
                for _ in 0..4 {
                    let value = self.one(&[0, 0, 1, 1000, 1_000_000, 0x3fff_ffff, 0x3fff_fffe]);
                    fields = fields.long(abi, value);
                }
                self.arena.put(&fields.0)
            }
            "str" => {
                let text = self.one(&TEXTS);
                self.arena.text(text)
            }
            "fs" => {
                let text = self.one(&FILESYSTEMS);
                self.arena.text(text)
            }
            "xn" => {
                let text = self.one(&ATTRIBUTES);
                self.arena.text(text)
            }
            "fdp" => self.arena.out() as i64,
            "argv" => {
                let path = self.path();
                let fields = Fields::default().long(abi, path).long(abi, 0);
                self.arena.put(&fields.0)
            }
            "clone" => self.clone_flags() | self.one(&[0, 17]),
            "clone3" => self.clone_arguments(),
            "how" => {
                let (flags, mode) = (self.open_flags(), self.one(&[0, 0o666]));
                let fields = Fields::default().u64(flags as u64).u64(mode);
                let resolve = self.rng.u64(..32);
                self.arena.put(&fields.u64(resolve).0)
            }
            "hand" => self.handle(),
            "ipckey" => {
                let key = self.given.ipc_key;
                self.one(&[0, key, key, key + 1]).into()
            }
            "ipcflags" => self.one(&[0, 0o666, 0o1666, 0o3666]),
            "shm" => self.ipc(0),
            "sem" => self.ipc(1),
            "msq" => self.ipc(2),
            "key" => {
                let key = i64::from(self.given.key);
                self.one(&[key, key, key, -1, -2, -3, -4, -5, 0, 1, 16])
            }
            "perf" => {
                let mut fields = Fields::default().u32(self.rng.u32(..8)).u32(136);
                for _ in 0..16 {
                    let value = self.one(&[0, 1, 2, 3, 1 << 5]);
                    fields = fields.u64(value);
                }
                self.arena.put(&fields.0)
            }
            "proto" => self.one(&[
                0, 0, 0, 1, 4, 6, 15, 16, 17, 115, 132, 136, 255, 256, 262, 768,
            ]),
            "req" => self.one(&[
                0x5401, 0x5402, 0x5421, 0x5452, 0x5413, 0x541b, 0x8901, 0x8902, 0x8912,
            ]),
            "schedattr" => {
                let (policy, nice) = (self.rng.u32(..8), self.one(&[0, 1, 19, u32::MAX - 19]));
                let priority = self.one(&[0, 1, 99]);
                let fields = Fields::default()
                    .u32(48)
                    .u32(policy)
                    .u64(0)
                    .u32(nice)
                    .u32(priority);
                self.arena.put(&fields.u64(0).u64(0).u64(0).0)
            }
            "siginfo" => {
                let signal = self.one(&[0, 9, 10, 11, 15, 34]);
                let code = self.one(&[-1, -6, -60, 0, 1]);
                let notify = self.process();
                let fields = Fields::default()
                    .u32(signal)
                    .u32(0)
                    .u32(code as u32)
                    .u32(notify as u32);
                self.arena
                    .put(&fields.u64(notify as u64).u64(0).u64(0).u64(0).0)
            }
            _ => return None,
        })
    }

    fn descriptor(&mut self) -> i64 {
        match self.rng.u8(..16) {
            0 => -1,
            1 => given::SHARED[0].into(),
            2 => given::SHARED[1].into(),
            3 => self.rng.i64(100..110),
            _ => self.rng.i64(3..i64::from(self.descriptors.max(4))),
        }
    }

    /// A path: every other one is of the guarded files, or the attacker's own beside them.
    fn path(&mut self) -> i64 {
        let all = self.paths.len();
        let at = match self.rng.bool() {
            true => self.rng.usize(..given::BESIDE.min(all)),
            false => self.rng.usize(..all),
        };
        self.arena.text(&self.paths[at])
    }

    fn process(&mut self) -> i64 {
        match self.rng.u8(..12) {
            0 => 0,
            1 => 1,
            2 => -1,
            3 => std::process::id().into(),
            4 => std::os::unix::process::parent_id().into(),
            5 => -i64::from(self.given.processes[0]),
            _ => self.given.processes[self.rng.usize(..self.given.processes.len())].into(),
        }
    }

    /// A number that may be anything: small, a descriptor, a process, a pointer, a mask.
    fn number(&mut self) -> i64 {
        match self.rng.u8(..10) {
            0 | 1 => 0,
            2 => 1,
            3 => self.rng.i64(..64),
            4 => self.descriptor(),
            5 => self.process(),
            6 => self.arena.out() as i64,
            7 => 1 << self.rng.u8(..32),
            8 => self.path(),
            _ => self.one(&[-1, 0x1000, 0x7fff_ffff]),
        }
    }

    /// A structure of which nothing is known.
    fn words(&mut self) -> i64 {
        let mut fields = Fields::default();
        for _ in 0..256 / self.abi.word() {
            let value = self.number();
            fields = fields.long(self.abi, value);
        }
        self.arena.put(&fields.0)
    }

    fn open_flags(&mut self) -> i64 {
        let access = self.one(&[libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR]);
        let more = self.one(&[
            0,
            0,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_APPEND,
            libc::O_PATH,
            libc::O_TMPFILE,
            libc::O_DIRECTORY,
            libc::O_NOFOLLOW,
        ]);
        // a FIFO that nobody has, and a terminal, are not waited for
        i64::from(access | more | libc::O_NONBLOCK)
    }

    /// Two pieces of memory, for results and with content.
    fn vector(&mut self) -> i64 {
        let (out, content) = (self.arena.out() as i64, self.words());
        let fields = Fields::default().long(self.abi, out).long(self.abi, 64);
        let fields = fields.long(self.abi, content).long(self.abi, 64);
        self.arena.put(&fields.0)
    }

    fn address(&mut self) -> i64 {
        let root = self.one(&given::ROOTS);
        let unix = |path: &str| {
            let mut fields = Fields::default().u16(1);
            fields.0.extend(path.as_bytes());
            fields.0.resize(110, 0);
            fields
        };
        let pid = self.process() as u32;
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let fields = match self.rng.u8(..8) {
            0 => unix(&format!("{root}/top/socket")),
            1 => unix("/run/tidegate/tidegate.sock"),
            2 => unix(&format!("{root}/top/new")),
            3 => unix("\0attack"),
            4 => Fields::default()
                .u16(2)
                .u16(22_u16.to_be())
                .u32(loopback)
                .u64(0),
            5 => Fields::default().u16(16).u16(0).u32(pid).u32(1),
            6 => Fields::default().u16(0),
            _ => Fields::default()
                .u16(10)
                .u16(22_u16.to_be())
                .u32(0)
                .u64(0)
                .u64(1_u64.to_be())
                .u32(0),
        };
        let mut bytes = fields.0;
        bytes.resize(128, 0);
        self.arena.put(&bytes)
    }

    /// A message's header: a name, two pieces of memory, and a descriptor or credentials.
    fn header(&mut self) -> Fields {
        let (name, vector) = (self.address(), self.vector());
        let name = self.one(&[0, name]);
        let (kind, value) = (self.one(&[1, 2]), self.descriptor());
        let length = 2 * self.abi.word() + 12;
        let control = Fields::default()
            .long(self.abi, length as i64)
            .u32(1)
            .u32(kind);
        let control = self
            .arena
            .put(&control.u32(value as u32).u32(0).u32(0).u32(0).0);
        let fields = Fields::default().long(self.abi, name).long(self.abi, 110);
        let fields = fields.long(self.abi, vector).long(self.abi, 2);
        let fields = fields.long(self.abi, control).long(self.abi, length as i64);
        fields.long(self.abi, 0)
    }

    /// Flags of clone(2) by which the child does not share this process's memory: it would return on the same stack.
    fn clone_flags(&mut self) -> i64 {
        let mut flags = 0;
        for _ in 0..self.rng.u8(..3) {
            flags |= self.one(&[
                libc::CLONE_FS,
                libc::CLONE_FILES,
                libc::CLONE_NEWNS,
                libc::CLONE_SYSVSEM,
                libc::CLONE_NEWUTS,
                libc::CLONE_NEWIPC,
                libc::CLONE_NEWUSER,
                libc::CLONE_NEWPID,
                libc::CLONE_NEWNET,
                libc::CLONE_NEWCGROUP,
                libc::CLONE_PARENT,
            ]);
        }
        flags.into()
    }

    /// Arguments of clone3(2), a control group among them.
    fn clone_arguments(&mut self) -> i64 {
        const INTO_CGROUP: u64 = 1 << 33;
        let flags = self.clone_flags() as u64 | self.one(&[0, INTO_CGROUP]);
        let (wish, size) = (self.words() as u64, self.one(&[0, 0, 1]));
        let group = self.descriptor() as u64;
        // flags, pidfd, child and parent's numbers; the signal; stack, its size, storage of threads; numbers, their count; group
        let fields = Fields::default().u64(flags).u64(0).u64(0).u64(0).u64(17);
        let fields = fields
            .u64(0)
            .u64(0)
            .u64(0)
            .u64(if size == 0 { 0 } else { wish });
        self.arena.put(&fields.u64(size).u64(group).0)
    }

    /// A file's handle, by a guess.
    fn handle(&mut self) -> i64 {
        let inode = match self.rng.bool() {
            true => self.given.inodes[self.rng.usize(..self.given.inodes.len())],
            false => self.rng.u64(1..64),
        };
        // FILEID_INO32_GEN, and any generation
        let fields = Fields::default().u32(8).u32(1).u32(inode as u32).u32(0);
        let mut bytes = fields.0;
        bytes.resize(144, 0);
        self.arena.put(&bytes)
    }

    fn ipc(&mut self, which: usize) -> i64 {
        let known = i64::from(self.given.ipc[which]);
        match self.rng.u8(..4) {
            0 => self.rng.i64(..8),
            _ => known,
        }
    }

    /// A netlink message that asks for something, of a type that its protocol may have.
    fn message(&mut self, protocol: i64) -> i64 {
        let kind = match protocol {
            // NETLINK_ROUTE
            0 => self.rng.u16(16..124),
            // NETLINK_NETFILTER: a subsystem and a number
            12 => self.rng.u16(..13) << 8 | self.rng.u16(..32),
            // NETLINK_AUDIT
            9 => self.rng.u16(1000..1130),
            _ => self.rng.u16(16..64),
        };
        let flags = self.one(&[5, 0x305, 0x405, 0x605, 0x105]);
        let mut fields = Fields::default()
            .u32(MESSAGE as u32)
            .u16(kind)
            .u16(flags)
            .u32(1)
            .u32(0);
        // an ifinfomsg that takes the first interface down; else a genlmsghdr and whatever
        fields = match self.rng.bool() {
            true => fields.u32(0).u32(1).u32(0).u32(1),
            false => fields.u32(self.rng.u32(..16)),
        };
        while fields.0.len() < MESSAGE {
            let value = self.number();
            fields = fields.u32(value as u32);
        }
        self.arena.put(&fields.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::calls;

    #[test]
    fn the_same_number_draws_the_same_arguments_and_each_word_has_a_meaning() {
        let given = Given {
            processes: vec![7, 8],
            secret_at: 4096,
            ipc: [1, 2, 3],
            ipc_key: 4,
            key: 5,
            inodes: vec![6],
        };
        let mut draw = Draw::new(Arena::map().unwrap(), &given, 40);
        for (number, row) in calls::rows().unwrap().iter().enumerate() {
            let mut drawn = || {
                let args = draw.args(3, number as u64, row).unwrap();
                draw.arena.end_call();
                args
            };
            let (once, again) = (drawn(), drawn());
            // a netlink socket is another one each time
            if row
                .args
                .iter()
                .all(|kind| !matches!(kind, Kind::Netlink(_)))
            {
                assert_eq!(once, again, "{}", row.name);
            }
            assert!(
                row.abi == Abi::X64 || once.iter().all(|arg| *arg < 1 << 32),
                "{}",
                row.name
            );
        }
    }
}
