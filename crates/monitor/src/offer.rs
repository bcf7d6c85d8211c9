//! What this kernel offers, for the census: from its types, its symbols and its modules' aliases.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use libbpf_rs::btf::types::{Struct, Union};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, TypeId};
use rustix::system::uname;
use tidegate_census::{Kind, Offer};

/// What others of a task's are looked for in.
const HOLDERS: [(&str, &str); 3] = [
    ("task_struct", "task"),
    ("signal_struct", "signal"),
    ("nsproxy", "nsproxy"),
];

/// Types that count users.
const COUNTERS: [&str; 4] = ["refcount_t", "atomic_t", "atomic_long_t", "atomic64_t"];

/// Parts of names of members that count users.
const COUNTS: [&str; 6] = ["count", "cnt", "ref", "users", "usage", "active"];

/// Structures that count users.
const COUNTED: [&str; 3] = ["kref", "percpu_ref", "ns_common"];

/// How deep structures without a name are looked into.
const DEPTH: u32 = 4;

/// What the kernel's types tell: hooks, system calls, filesystems and what tasks share.
///
/// # Errors
/// The kernel was built without BTF.
pub fn by_types() -> io::Result<Offer> {
    let mut offer = Offer {
        release: uname().release().to_string_lossy().into_owned(),
        ..Offer::default()
    };
    let btf = Btf::from_vmlinux().map_err(io::Error::other)?;
    for function in btf.type_by_kind::<BtfType<'_>>() {
        if function.kind() == BtfKind::Func {
            offer.add_function(&text(function.name()));
        }
    }
    for (name, word) in HOLDERS {
        let named = |holder: &Struct<'_>| holder.name() == Some(OsStr::new(name));
        let Some(holder) = btf.type_by_kind::<Struct<'_>>().find(named) else {
            continue;
        };
        for (member, ty) in members(&btf, *holder, DEPTH) {
            let to = (ty.kind() == BtfKind::Ptr)
                .then(|| ty.next_type().map(strip))
                .flatten();
            if to.is_some_and(|to| to.kind() == BtfKind::Struct && is_counted(&btf, to, DEPTH)) {
                offer.add(Kind::State, format!("{word}.{member}"));
            }
        }
    }
    Ok(offer)
}

/// All that this kernel offers.
///
/// # Errors
/// The kernel was built without BTF, or /proc or the modules' lists cannot be read.
pub fn whole() -> io::Result<Offer> {
    let mut offer = by_types()?;
    for line in fs::read_to_string("/proc/kallsyms")?.lines() {
        let mut words = line.split_whitespace().skip(2);
        // one of a module has its name behind it
        if let (Some(symbol), None) = (words.next(), words.next()) {
            offer.add_symbol(symbol);
        }
    }
    let modules = Path::new("/lib/modules").join(&offer.release);
    for line in there(&modules.join("modules.alias"))?.lines() {
        if let Some(alias) = line.strip_prefix("alias ") {
            offer.add_alias(alias.split(' ').next().unwrap_or_default());
        }
    }
    for entry in there(&modules.join("modules.builtin.modinfo"))?.split('\0') {
        let alias = entry.split_once('.').map(|(_, field)| field);
        if let Some(alias) = alias.and_then(|field| field.strip_prefix("alias=")) {
            offer.add_alias(alias);
        }
    }
    let last = fs::read_to_string("/proc/sys/kernel/cap_last_cap")?;
    offer.add_capabilities(last.trim().parse().map_err(io::Error::other)?);
    offer.add_by_hand();
    Ok(offer)
}

/// A file's text; a kernel without modules has none.
fn there(path: &Path) -> io::Result<String> {
    match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => Ok(String::from_utf8_lossy(&read?).into_owned()),
    }
}

fn text(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// A type without `const` and the like, and without other names for it, but those that count.
fn strip(mut ty: BtfType<'_>) -> BtfType<'_> {
    while ty.is_mod() || (ty.kind() == BtfKind::Typedef && !is_counter(ty)) {
        match ty.next_type() {
            Some(next) => ty = next,
            None => break,
        }
    }
    ty
}

fn is_counter(ty: BtfType<'_>) -> bool {
    ty.kind() == BtfKind::Typedef && COUNTERS.contains(&text(ty.name()).as_str())
}

/// The members of a structure or union, and those of parts of it that have no name.
fn members<'b>(btf: &'b Btf<'_>, of: BtfType<'b>, depth: u32) -> Vec<(String, BtfType<'b>)> {
    let own: Vec<(Option<&OsStr>, TypeId)> = if let Ok(all) = Struct::try_from(of) {
        let member = |i| all.get(i).map(|m| (m.name, m.ty));
        (0..all.len()).filter_map(member).collect()
    } else if let Ok(all) = Union::try_from(of) {
        let member = |i| all.get(i).map(|m| (m.name, m.ty));
        (0..all.len()).filter_map(member).collect()
    } else {
        Vec::new()
    };
    let mut told = Vec::new();
    for (name, id) in own {
        let Some(ty) = btf.type_by_id::<BtfType<'_>>(id).map(strip) else {
            continue;
        };
        match name {
            Some(name) => told.push((text(Some(name)), ty)),
            None if depth > 0 => told.extend(members(btf, ty, depth - 1)),
            None => (),
        }
    }
    told
}

/// Does a structure count its holders?
fn is_counted(btf: &Btf<'_>, structure: BtfType<'_>, depth: u32) -> bool {
    members(btf, structure, depth).iter().any(|(name, ty)| {
        let counts = COUNTS.iter().any(|part| name.contains(part));
        let kind = text(ty.name());
        name == "users"
            || (is_counter(*ty) && counts)
            || (ty.kind() == BtfKind::Struct && COUNTED.contains(&kind.as_str()))
    })
}
