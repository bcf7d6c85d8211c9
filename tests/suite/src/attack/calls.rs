//! What the attacker calls: a row for each system call of each ABI, each ioctl, netlink protocol and kind of socket.

use anyhow::{Context, Result, bail};

use crate::attack::draw;

const CALLS: &str = include_str!("calls.txt");
const IOCTLS: &str = include_str!("ioctls.txt");

/// Families of sockets by their numbers: those of the census. All types and a choice of protocols are tried of each.
const FAMILIES: [(&str, i64); 12] = [
    ("unix", 1),
    ("inet", 2),
    ("inet6", 10),
    ("key", 15),
    ("netlink", 16),
    ("packet", 17),
    ("mpls", 28),
    ("alg", 38),
    ("vsock", 40),
    ("kcm", 41),
    ("smc", 43),
    ("xsk", 44),
];

/// Protocols of netlink: 0 to this one.
const LAST_NETLINK: i64 = 22;

/// Which way a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// `syscall`.
    X64,
    /// `int 0x80`: arguments of 32 bits.
    I386,
}

impl Abi {
    /// Bytes of a pointer and of a `long`.
    pub fn word(self) -> usize {
        match self {
            Self::X64 => 8,
            Self::I386 => 4,
        }
    }
}

/// What stands for an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A word of `calls.txt`, which `draw.rs` knows.
    Word(&'static str),
    /// One number out of these ranges.
    OneOf(Vec<(i64, i64)>),
    /// A new netlink socket of this protocol.
    Netlink(i64),
    /// A netlink message for this protocol.
    Message(i64),
}

/// One thing to call.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is called in logs: the call's name in the census, and which ioctl, protocol or family.
    pub name: String,
    /// The system call's name alone.
    pub call: &'static str,
    /// The ABI.
    pub abi: Abi,
    /// The number in it.
    pub number: i32,
    /// Its arguments.
    pub args: Vec<Kind>,
}

/// Numbers as the table has them: decimal or hexadecimal, perhaps negative.
fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A number, or two with a dash between them.
fn range(word: &str) -> Option<(i64, i64)> {
    if let Some(one) = number(word) {
        return Some((one, one));
    }
    let (low, high) = word.split_once('-')?;
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some((low, high))
}

fn kind(word: &'static str) -> Option<Kind> {
    if let Some(inner) = word.strip_prefix('{') {
        let ranges = inner.strip_suffix('}')?.split(',').map(range);
        return ranges.collect::<Option<_>>().map(Kind::OneOf);
    }
    if let Some(one) = number(word) {
        return Some(Kind::OneOf(vec![(one, one)]));
    }
    draw::WORDS.contains(&word).then_some(Kind::Word(word))
}

/// The system calls: name, numbers and arguments, of which there may be one ABI alone.
fn calls() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in CALLS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let mut word = || words.next().context("a name and two numbers");
        let (name, numbers) = (word()?, [(Abi::X64, word()?), (Abi::I386, word()?)]);
        let args: Option<Vec<Kind>> = words.map(kind).collect();
        let args = args.with_context(|| format!("an argument of {line:?}"))?;
        if args.len() > 6 {
            bail!("too many arguments: {line:?}");
        }
        for (abi, number) in numbers {
            if number != "-" {
                rows.push(Row {
                    name: name.to_owned(),
                    call: name,
                    abi,
                    number: number.parse()?,
                    args: args.clone(),
                });
            }
        }
    }
    Ok(rows)
}

/// All rows, those of the system calls first.
///
/// # Errors
/// A line of a table is not as it should be.
pub fn rows() -> Result<Vec<Row>> {
    let mut rows = calls()?;
    let find = |call: &str, abi: Abi| {
        let row = rows.iter().find(|row| row.call == call && row.abi == abi);
        row.cloned().with_context(|| format!("no {call}"))
    };
    let one = |value: i64| Kind::OneOf(vec![(value, value)]);
    let mut more = Vec::new();
    for abi in [Abi::X64, Abi::I386] {
        let (ioctl, socket, send) = (
            find("ioctl", abi)?,
            find("socket", abi)?,
            find("sendto", abi)?,
        );
        for line in IOCTLS.lines().filter(|line| !line.starts_with('#')) {
            let (name, request) = line.split_once(' ').context("a name and a number")?;
            let request = number(request).with_context(|| format!("the number of {name}"))?;
            let args = vec![Kind::Word("fd"), one(request), Kind::Word("in")];
            more.push(Row {
                name: format!("ioctl {name}"),
                args,
                ..ioctl.clone()
            });
        }
        for protocol in 0..=LAST_NETLINK {
            let mut args = send.args.clone();
            args[0] = Kind::Netlink(protocol);
            args[1] = Kind::Message(protocol);
            args[2] = one(draw::MESSAGE as i64);
            more.push(Row {
                name: format!("netlink {protocol}"),
                args,
                ..send.clone()
            });
        }
        for (name, family) in FAMILIES {
            let mut args = socket.args.clone();
            args[0] = one(family);
            more.push(Row {
                name: format!("socket {name}"),
                args,
                ..socket.clone()
            });
        }
    }
    rows.extend(more);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidegate_census::{KERNELS, Kind as Of, Offer};

    use super::*;

    /// Calls of the census that are not made, and why.
    const LEFT_OUT: [(&str, &str); 30] = [
        (
            "exit",
            "it ends the worker before it can say what came of the call",
        ),
        (
            "exit_group",
            "it ends the worker before it can say what came of the call",
        ),
        (
            "rt_sigreturn",
            "it loads the worker's registers from a frame that is not there",
        ),
        (
            "sigreturn",
            "it loads the worker's registers from a frame that is not there",
        ),
        ("vfork", "its child would return on the worker's own stack"),
        (
            "fadvise64_64",
            "x86 has no number for it: i386 comes to ia32_fadvise64_64",
        ),
        ("gethostname", "x86 has no number for it"),
        ("ni_syscall", "it is what a number without a call comes to"),
        (
            "old_msgctl",
            "x86 has no number for it: i386 comes to it by ipc",
        ),
        (
            "old_semctl",
            "x86 has no number for it: i386 comes to it by ipc",
        ),
        (
            "old_shmctl",
            "x86 has no number for it: i386 comes to it by ipc",
        ),
        ("pciconfig_iobase", "x86 has no number for it"),
        ("pciconfig_read", "x86 has no number for it"),
        ("pciconfig_write", "x86 has no number for it"),
        ("preadv64", "x86 has no number for it but x32's"),
        ("preadv64v2", "x86 has no number for it but x32's"),
        ("pwritev64", "x86 has no number for it but x32's"),
        ("pwritev64v2", "x86 has no number for it but x32's"),
        (
            "recv",
            "x86 has no number for it: i386 comes to it by socketcall",
        ),
        ("rtas", "x86 has no number for it"),
        ("s390_ipc", "x86 has no number for it"),
        ("s390_pci_mmio_read", "x86 has no number for it"),
        ("s390_pci_mmio_write", "x86 has no number for it"),
        (
            "semtimedop_time32",
            "x86 has no number for it: i386 comes to it by ipc",
        ),
        (
            "send",
            "x86 has no number for it: i386 comes to it by socketcall",
        ),
        ("spu_create", "x86 has no number for it"),
        ("spu_run", "x86 has no number for it"),
        ("stime", "x86 has no number for it: i386 comes to stime32"),
        ("subpage_prot", "x86 has no number for it"),
        ("sync_file_range2", "x86 has no number for it"),
    ];

    /// The names of the census that are of this kind.
    fn census(of: &[Of]) -> BTreeSet<String> {
        let offers = KERNELS.map(|(_, text)| Offer::parse(text).unwrap());
        let rows = offers.into_iter().flat_map(|offer| offer.rows);
        rows.filter(|row| of.contains(&row.kind))
            .map(|row| row.name)
            .collect()
    }

    #[test]
    fn each_call_of_the_census_is_made_or_left_out_for_a_reason() {
        let rows = rows().unwrap();
        let made: BTreeSet<&str> = rows.iter().map(|row| row.call).collect();
        let left_out = LEFT_OUT.map(|(name, _)| name);
        for name in census(&[Of::Syscall, Of::Syscall32]) {
            let times = usize::from(made.contains(name.as_str()))
                + usize::from(left_out.contains(&name.as_str()));
            assert_eq!(times, 1, "{name} is made and left out so often");
        }
    }

    #[test]
    fn each_ioctl_and_family_of_the_census_is_tried() {
        let rows = rows().unwrap();
        for ioctl in census(&[Of::Ioctl]) {
            let begin = format!("ioctl {ioctl}");
            let tried = rows.iter().any(|row| row.name.starts_with(&begin));
            assert!(tried, "{ioctl} is not tried");
        }
        for family in census(&[Of::Family]) {
            let name = format!("socket {family}");
            assert!(
                rows.iter().any(|row| row.name == name),
                "{family} is not tried"
            );
        }
    }

    #[test]
    fn no_number_is_there_twice() {
        let rows = calls().unwrap();
        for abi in [Abi::X64, Abi::I386] {
            let mut seen = BTreeSet::new();
            for row in rows.iter().filter(|row| row.abi == abi) {
                // i386 has two numbers for some calls; the table has the newer one
                assert!(
                    seen.insert(row.number),
                    "{abi:?} {}: {}",
                    row.name,
                    row.number
                );
            }
        }
    }

    #[test]
    fn ranges_are_read() {
        assert_eq!(
            kind("{1,-2,0x10-0x1f}"),
            Some(Kind::OneOf(vec![(1, 1), (-2, -2), (16, 31)]))
        );
        assert_eq!(kind("fd"), Some(Kind::Word("fd")));
        assert_eq!(kind("fdd"), None);
        assert_eq!(kind("{3-1}"), None);
    }
}
