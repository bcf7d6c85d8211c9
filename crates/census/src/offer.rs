//! What a kernel offers: rows, made from its symbols, its types' names and its modules' aliases.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use crate::row::{Kind, Row};

/// What no name of the kernel tells, kept by hand from its uapi headers.
const BY_HAND: &str = include_str!("../by-hand.txt");

/// Capabilities by their numbers.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Families of sockets by their numbers, as far as Linux has them as modules.
const FAMILIES: [(&str, &str); 30] = [
    ("1", "unix"),
    ("2", "inet"),
    ("3", "ax25"),
    ("4", "ipx"),
    ("5", "appletalk"),
    ("6", "netrom"),
    ("8", "atmpvc"),
    ("9", "x25"),
    ("10", "inet6"),
    ("11", "rose"),
    ("15", "key"),
    ("16", "netlink"),
    ("17", "packet"),
    ("20", "atmsvc"),
    ("21", "rds"),
    ("24", "pppox"),
    ("26", "llc"),
    ("28", "mpls"),
    ("29", "can"),
    ("30", "tipc"),
    ("31", "bluetooth"),
    ("33", "rxrpc"),
    ("35", "phonet"),
    ("36", "ieee802154"),
    ("38", "alg"),
    ("39", "nfc"),
    ("40", "vsock"),
    ("41", "kcm"),
    ("43", "smc"),
    ("44", "xdp"),
];

/// What a kernel offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The kernel's release, as `uname -r` says it.
    pub release: String,
    /// The rows.
    pub rows: BTreeSet<Row>,
}

/// A line of a list that is no row.
#[derive(Debug)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "neither a release nor a kind and a name: {:?}", self.0)
    }
}

impl Error for Malformed {}

impl Offer {
    /// Reads a list.
    ///
    /// # Errors
    /// A line is neither the release nor a kind and a name.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut offer = Self::default();
        for line in text.lines() {
            let malformed = || Malformed(line.to_owned());
            let (word, name) = line.split_once(' ').ok_or_else(malformed)?;
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(malformed());
            }
            match Kind::of_word(word) {
                Some(kind) => offer.add(kind, name),
                None if word == "release" => offer.release = name.to_owned(),
                None => return Err(malformed()),
            }
        }
        Ok(offer)
    }

    /// Adds a row.
    pub fn add(&mut self, kind: Kind, name: impl Into<String>) {
        self.rows.insert(Row::new(kind, name));
    }

    /// Adds what is kept by hand.
    ///
    /// # Panics
    /// Never: the tests read the list.
    pub fn add_by_hand(&mut self) {
        let by_hand = Self::parse(BY_HAND).expect("the tests read it");
        self.rows.extend(by_hand.rows);
    }

    /// Adds the capabilities up to the last one's number. One that has no name here has its number.
    pub fn add_capabilities(&mut self, last: usize) {
        for number in 0..=last {
            match CAPABILITIES.get(number) {
                Some(name) => self.add(Kind::Capability, *name),
                None => self.add(Kind::Capability, number.to_string()),
            }
        }
    }

    /// Adds what a function of the kernel's BTF tells.
    pub fn add_function(&mut self, name: &str) {
        if let Some(hook) = name.strip_prefix("bpf_lsm_") {
            self.add(Kind::Hook, hook);
        } else if let Some(fs) = name.strip_suffix("_init_fs_context") {
            self.add(Kind::Filesystem, fs);
        } else {
            self.add_call(name);
        }
    }

    /// Adds what a symbol of the kernel's tells.
    pub fn add_symbol(&mut self, name: &str) {
        self.add_call(name);
        if name.starts_with("__") || name == "get_fs_type" {
            return;
        }
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        let stem = |ends: &[&str]| ends.iter().find_map(|end| name.strip_suffix(end));
        if ends(&["_fops", "_file_operations", "_file_ops"]) {
            self.add(Kind::File, name);
        } else if let Some(family) = stem(&["_family_ops"]) {
            self.add(Kind::Family, family);
        } else if ends(&[
            "_stream_ops",
            "_dgram_ops",
            "_seqpacket_ops",
            "_raw_ops",
            "_sockraw_ops",
        ]) {
            self.add(Kind::Socket, name);
        } else if let Some(fs) = stem(&["_fs_type"]) {
            self.add(Kind::Filesystem, fs);
        } else if let Some(family) = stem(&["_genl_family", "_gnl_family", "_nl_family"]) {
            self.add(Kind::Netlink, family);
        }
    }

    /// Adds what an alias of a module tells, which may be built in.
    pub fn add_alias(&mut self, alias: &str) {
        if let Some(fs) = alias.strip_prefix("fs-") {
            self.add(Kind::Filesystem, fs);
        } else if let Some(device) = alias.strip_prefix("devname:") {
            self.add(Kind::Device, device);
        } else if let Some(numbers) = alias.strip_prefix("net-pf-") {
            let (number, rest) = numbers.split_once('-').unwrap_or((numbers, ""));
            let family = FAMILIES.iter().find(|(n, _)| *n == number);
            let family = family.map_or(number, |(_, name)| *name);
            if family == "netlink" {
                self.add(Kind::Netlink, rest);
            } else if rest.is_empty() {
                self.add(Kind::Family, family);
            } else {
                self.add(Kind::Socket, format!("{family}-{rest}"));
            }
        }
    }

    /// `__x64_sys_NAME` of x86-64, `__ia32_sys_NAME` and `__ia32_compat_sys_NAME` of i386.
    fn add_call(&mut self, symbol: &str) {
        let (kind, name) = if let Some(name) = symbol.strip_prefix("__x64_sys_") {
            (Kind::Syscall, name)
        } else if let Some(name) = symbol
            .strip_prefix("__ia32_sys_")
            .or_else(|| symbol.strip_prefix("__ia32_compat_sys_"))
        {
            (Kind::Syscall32, name)
        } else {
            return;
        };
        // a part that the compiler has split off is no call
        if !name.contains('.') {
            self.add(kind, name);
        }
    }
}

/// The list, as the tree has it.
impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "release {}", self.release)?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KERNELS;

    fn rows(fill: impl FnOnce(&mut Offer)) -> Vec<String> {
        let mut offer = Offer::default();
        fill(&mut offer);
        offer.rows.iter().map(Row::to_string).collect()
    }

    #[test]
    fn symbols_tell_what_they_are_named_for() {
        let told = rows(|offer| {
            for symbol in [
                "__x64_sys_open",
                "__ia32_sys_open",
                "__ia32_compat_sys_ioctl",
                "__x64_sys_io_setup.cold",
                "eventfd_fops",
                "__ksymtab_simple_fops",
                "unix_family_ops",
                "unix_stream_ops",
                "shmem_fs_type",
                "get_fs_type",
                "ethtool_genl_family",
                "vfs_read",
            ] {
                offer.add_symbol(symbol);
            }
        });
        assert_eq!(
            told,
            [
                "syscall open",
                "syscall32 ioctl",
                "syscall32 open",
                "family unix",
                "socket unix_stream_ops",
                "filesystem shmem",
                "file eventfd_fops",
                "netlink ethtool",
            ]
        );
    }

    #[test]
    fn functions_tell_hooks_and_filesystems() {
        let told = rows(|offer| {
            for function in ["bpf_lsm_file_open", "proc_init_fs_context", "vfs_read"] {
                offer.add_function(function);
            }
        });
        assert_eq!(told, ["hook file_open", "filesystem proc"]);
    }

    #[test]
    fn aliases_tell_what_modules_bring() {
        let told = rows(|offer| {
            for alias in [
                "fs-xfs",
                "devname:fuse",
                "net-pf-40",
                "net-pf-2-proto-132-type-1",
                "net-pf-16-proto-16-family-nbd",
                "net-pf-99",
                "pci:v00001AF4*",
            ] {
                offer.add_alias(alias);
            }
        });
        assert_eq!(
            told,
            [
                "family 99",
                "family vsock",
                "socket inet-proto-132-type-1",
                "filesystem xfs",
                "device fuse",
                "netlink proto-16-family-nbd",
            ]
        );
    }

    #[test]
    fn a_capability_without_a_name_has_its_number() {
        let told = rows(|offer| offer.add_capabilities(41));
        assert_eq!(told.len(), 42);
        assert!(told.contains(&"capability 41".to_owned()));
        assert!(told.contains(&"capability CHECKPOINT_RESTORE".to_owned()));
    }

    #[test]
    fn the_lists_are_as_they_would_be_written() {
        for (series, text) in KERNELS {
            let offer = Offer::parse(text).unwrap();
            assert!(offer.release.starts_with(series), "{}", offer.release);
            assert_eq!(offer.to_string(), text, "{series}");
        }
    }

    #[test]
    fn each_list_has_all_kinds_and_what_is_kept_by_hand() {
        let mut by_hand = Offer::default();
        by_hand.add_by_hand();
        for (series, text) in KERNELS {
            let offer = Offer::parse(text).unwrap();
            for kind in Kind::ALL {
                assert!(offer.rows.iter().any(|row| row.kind == kind), "{kind:?}");
            }
            assert!(by_hand.rows.is_subset(&offer.rows), "{series}");
        }
    }

    #[test]
    fn what_is_no_row_is_told() {
        for line in ["syscall", "syscall ", "syscall a b", "sysctl kernel", ""] {
            let text = format!("release 6.12\n{line}\n");
            assert!(Offer::parse(&text).is_err(), "{line:?}");
        }
    }
}
