//! What a profile was asked for, in AppArmor's words, and a SELinux policy, in its own.

use tidegate_bundle::Policy;
use tidegate_flask::Class;
use tidegate_monitor::{Asked, Op};

/// The capabilities, by number.
const CAPABILITIES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The families of sockets, by number.
const FAMILIES: [&str; 46] = [
    "unspec",
    "unix",
    "inet",
    "ax25",
    "ipx",
    "appletalk",
    "netrom",
    "bridge",
    "atmpvc",
    "x25",
    "inet6",
    "rose",
    "decnet",
    "netbeui",
    "security",
    "key",
    "netlink",
    "packet",
    "ash",
    "econet",
    "atmsvc",
    "rds",
    "sna",
    "irda",
    "pppox",
    "wanpipe",
    "llc",
    "ib",
    "mpls",
    "can",
    "tipc",
    "bluetooth",
    "iucv",
    "rxrpc",
    "isdn",
    "phonet",
    "ieee802154",
    "caif",
    "alg",
    "nfc",
    "vsock",
    "kcm",
    "qipcrtr",
    "smc",
    "xdp",
    "mctp",
];

/// What was asked of a SELinux policy, in its words.
#[derive(Debug, Clone)]
pub struct OfTe {
    /// The class.
    pub class: String,
    /// The permissions asked for.
    pub request: String,
    /// Those that are not allowed.
    pub denied: String,
}

/// What a record says was asked of a policy; in numbers, if the policy is not known any more.
pub fn of_te(policy: Option<&Policy>, asked: &Asked) -> OfTe {
    let te = policy.and_then(|policy| policy.te.as_ref());
    let class = te.and_then(|te| Class::numbered(&te.db, asked.class));
    let words = |mask: u32| match &class {
        Some(class) => class.names(mask).collect::<Vec<_>>().join(" "),
        None => format!("{mask:#x}"),
    };
    OfTe {
        request: words(asked.asked),
        denied: words(asked.denied),
        class: class.map_or_else(|| asked.class.to_string(), |class| class.name),
    }
}

/// The types of sockets, by number: `SOCK_STREAM` is 1.
const TYPES: [&str; 11] = [
    "",
    "stream",
    "dgram",
    "raw",
    "rdm",
    "seqpacket",
    "dccp",
    "",
    "",
    "",
    "packet",
];

/// Signals, by the number that AppArmor has for them: `sig_names` of the kernel.
const SIGNALS: [&str; 36] = [
    "", "hup", "int", "quit", "ill", "trap", "abrt", "bus", "fpe", "kill", "usr1", "segv", "usr2",
    "pipe", "alrm", "term", "stkflt", "chld", "cont", "stop", "stp", "ttin", "ttou", "urg", "xcpu",
    "xfsz", "vtalrm", "prof", "winch", "io", "pwr", "sys", "emt", "lost", "", "exists",
];

/// The number of the first real-time signal.
const REAL_TIME: u16 = 128;

/// A signal's name, as a rule has it.
pub fn signal(number: u16) -> Option<String> {
    match number.checked_sub(REAL_TIME) {
        Some(above) => Some(format!("rtmin+{above}")),
        None => word(&SIGNALS, number),
    }
}

/// Its number, by that.
pub fn signal_number(name: &str) -> Option<u16> {
    match name.strip_prefix("rtmin+") {
        Some(above) => above.parse().ok().map(|above: u16| REAL_TIME + above),
        None => position(&SIGNALS, name),
    }
}

/// The name of a type of sockets, as a rule has it.
pub fn socket_type(number: u16) -> Option<String> {
    word(&TYPES, number)
}

/// Its number, by that.
pub fn socket_type_number(name: &str) -> Option<u16> {
    position(&TYPES, name)
}

fn word(names: &[&str], number: u16) -> Option<String> {
    let name = names.get(usize::from(number))?;
    (!name.is_empty()).then(|| (*name).to_owned())
}

fn position(names: &[&str], name: &str) -> Option<u16> {
    let at = names
        .iter()
        .position(|&known| known == name && !known.is_empty());
    at.map(|at| at as u16)
}

/// A capability's name, or its number where it has none here.
pub fn capability(number: u16) -> String {
    name(&CAPABILITIES, number)
}

/// The same of a family of sockets.
pub fn family(number: u16) -> String {
    name(&FAMILIES, number)
}

/// A capability's number, by what [`capability`] calls it.
pub fn capability_number(name: &str) -> Option<u16> {
    number(&CAPABILITIES, name)
}

/// The same of a family of sockets.
pub fn family_number(name: &str) -> Option<u16> {
    number(&FAMILIES, name)
}

fn number(names: &[&str], name: &str) -> Option<u16> {
    position(names, name).or_else(|| name.parse().ok())
}

fn name(names: &[&str], number: u16) -> String {
    word(names, number).unwrap_or_else(|| number.to_string())
}

/// Permissions, as an operation has them.
pub fn permissions(op: Option<Op>, access: u32) -> String {
    match op {
        Some(Op::Mount) => words(&["pivot_root", "mount", "umount"], access),
        Some(Op::ChangeProfile) => "change_profile".into(),
        Some(Op::ChangeOnexec) => "change_onexec".into(),
        Some(Op::ChangeHat) => "change_hat".into(),
        Some(Op::Userns) => words(&["", "", "", "userns_create"], access),
        _ => letters(access),
    }
}

fn words(words: &[&str], access: u32) -> String {
    let words = words.iter().enumerate();
    let asked = words.filter(|(bit, _)| access & 1 << bit != 0);
    asked.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

/// Those of files, as AppArmor's own records have them: `aa_file_perm_chrs` of its lib.c.
fn letters(access: u32) -> String {
    let letters = "xwracd         km l     ".bytes().enumerate();
    let has = |&(bit, letter): &(usize, u8)| letter != b' ' && access & 1 << bit != 0;
    let mut word: String = letters.filter(has).map(|(_, c)| char::from(c)).collect();
    // what has no letter is shown as what it is part of
    for (bits, letter) in [(1 << 6 | 1 << 9, 'r'), (1 << 8 | 1 << 12 | 1 << 13, 'w')] {
        if access & bits != 0 && !word.contains(letter) {
            word.push(letter);
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_and_families_have_the_kernels_numbers() {
        for (number, name) in [
            (0, "chown"),
            (21, "sys_admin"),
            (40, "checkpoint_restore"),
            (41, "41"),
        ] {
            assert_eq!(capability(number), name);
            assert_eq!(capability_number(name), Some(number));
        }
        for (number, name) in [(2, "inet"), (16, "netlink"), (17, "packet"), (45, "mctp")] {
            assert_eq!(family(number), name);
            assert_eq!(family_number(name), Some(number));
        }
    }

    #[test]
    fn signals_and_types_have_the_numbers_of_rules() {
        for (number, name) in [
            (1, "hup"),
            (15, "term"),
            (31, "sys"),
            (35, "exists"),
            (136, "rtmin+8"),
        ] {
            assert_eq!(signal(number).as_deref(), Some(name));
            assert_eq!(signal_number(name), Some(number));
        }
        assert_eq!(
            (signal(34), signal(0), signal_number("")),
            (None, None, None)
        );
        for (number, name) in [
            (1, "stream"),
            (2, "dgram"),
            (5, "seqpacket"),
            (10, "packet"),
        ] {
            assert_eq!(socket_type(number).as_deref(), Some(name));
            assert_eq!(socket_type_number(name), Some(number));
        }
        assert_eq!((socket_type(7), socket_type(0)), (None, None));
    }

    #[test]
    fn permissions_are_those_of_the_operation() {
        assert_eq!(permissions(Some(Op::Mount), 0b10), "mount");
        assert_eq!(permissions(Some(Op::Mount), 0b1), "pivot_root");
        assert_eq!(permissions(Some(Op::Userns), 0b1000), "userns_create");
        assert_eq!(permissions(Some(Op::OpenRead), 0b110), "wr");
    }
}
