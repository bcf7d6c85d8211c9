//! Reads SELinux's binary policies: `policydb_read()` of the kernel's security/selinux/ss/policydb.c.
//!
//! A file is its head, a table for each kind of symbol, the rules, and the contexts of objects, in this order. Much is
//! named before it is there (a class's constraints name types), so that numbers of symbols are checked when all
//! symbols are read (`check.rs`). A policy is refused for what the kernel refuses it for, and for what it would
//! carry along and never use.

mod check;
mod constraint;
mod error;
mod labels;
pub mod pack;
mod rules;
mod stream;
mod symbols;
#[cfg(test)]
mod tests;
mod transitions;

pub use self::error::PolicyDbError;
use self::stream::Stream;
pub(crate) use self::symbols::OBJECT_R_NUMBER;
use super::db::{Bitmap, PolicyDb, Unknown};
use crate::limits::MAX_TE_POLICY;

/// The oldest version that is read: the first that has all that the kernel's tables have today but what came with
/// a version of its own (`POLICYDB_VERSION_BOUNDARY`, Linux 2.6.28).
pub const OLDEST: u32 = 24;
/// The newest that is read (`POLICYDB_VERSION_NEVERAUDIT`).
pub const NEWEST: u32 = 35;

/// What a policy begins with (`POLICYDB_MAGIC`), and a module (`POLICYDB_MOD_MAGIC`).
const MAGIC: u32 = 0xf97c_ff8c;
const MODULE_MAGIC: u32 = 0xf97c_ff8d;
/// What follows it: the system that it is for.
const LINUX: &[u8] = b"SE Linux";
const XEN: &[u8] = b"XenFlask";
/// Configuration: contexts have ranges, and what becomes of what is not known.
const MLS: u32 = 1;
const REJECT_UNKNOWN: u32 = 2;
const ALLOW_UNKNOWN: u32 = 4;
/// How many tables of symbols there are, and how many kinds of contexts of objects: InfiniBand's two came later.
const SYMBOLS: u32 = 8;
const CONTEXTS: u32 = 7;
const CONTEXTS_INFINIBAND: u32 = 9;

/// From which version on something is there (`POLICYDB_VERSION_*`).
pub(super) mod version {
    pub const FILENAME_TRANS: u32 = 25;
    pub const ROLETRANS: u32 = 26;
    pub const NEW_OBJECT_DEFAULTS: u32 = 27;
    pub const DEFAULT_TYPE: u32 = 28;
    pub const CONSTRAINT_NAMES: u32 = 29;
    pub const XPERMS_IOCTL: u32 = 30;
    pub const INFINIBAND: u32 = 31;
    pub const COMP_FTRANS: u32 = 33;
    pub const COND_XPERMS: u32 = 34;
    pub const NEVERAUDIT: u32 = 35;
}

/// Reads a binary policy, which may be anything.
///
/// # Errors
///
/// The first thing wrong with it.
pub fn read(bytes: &[u8]) -> Result<PolicyDb, PolicyDbError> {
    if bytes.len() > MAX_TE_POLICY {
        return Err(PolicyDbError::Limit {
            what: "bytes",
            count: bytes.len(),
            max: MAX_TE_POLICY,
        });
    }
    let mut stream = Stream::new(bytes);
    let mut reader = Reader {
        db: head(&mut stream)?,
        stream,
    };
    reader.symbols()?;
    reader.symbols_are_there()?;
    reader.db.process_class().ok_or(PolicyDbError::Process)?;
    reader.rules()?;
    reader.role_transitions()?;
    reader.role_allows()?;
    reader.name_transitions()?;
    reader.labels()?;
    reader.genfs()?;
    reader.range_transitions()?;
    reader.memberships()?;
    reader.bounds_hold()?;
    match reader.stream.rest() {
        0 => Ok(reader.db),
        bytes => Err(PolicyDbError::Trailing(bytes)),
    }
}

/// A policy, read so far.
struct Reader<'s> {
    stream: Stream<'s>,
    db: PolicyDb,
}

/// All before the symbols.
fn head(stream: &mut Stream<'_>) -> Result<PolicyDb, PolicyDbError> {
    let foreign = |_| PolicyDbError::Foreign;
    match stream.u32("").map_err(foreign)? {
        MAGIC => {}
        MODULE_MAGIC => return Err(PolicyDbError::Module),
        _ => return Err(PolicyDbError::Foreign),
    }
    let length = stream.u32("").map_err(foreign)?;
    match stream.bytes(length as usize, "").map_err(foreign)? {
        LINUX => {}
        XEN => return Err(PolicyDbError::Xen),
        _ => return Err(PolicyDbError::Foreign),
    }
    let version = stream.u32("its version")?;
    if !(OLDEST..=NEWEST).contains(&version) {
        return Err(PolicyDbError::Version(version));
    }
    let config = stream.u32("its configuration")?;
    let unknown = match config & (REJECT_UNKNOWN | ALLOW_UNKNOWN) {
        0 => Unknown::Deny,
        REJECT_UNKNOWN => Unknown::Reject,
        ALLOW_UNKNOWN => Unknown::Allow,
        _ => return Err(stream.error("its configuration")),
    };
    let contexts = match version >= version::INFINIBAND {
        true => CONTEXTS_INFINIBAND,
        false => CONTEXTS,
    };
    let tables = [stream.u32("its tables")?, stream.u32("its tables")?];
    if tables != [SYMBOLS, contexts] {
        return Err(stream.error("its tables"));
    }
    let capabilities = stream.bitmap("its capabilities")?;
    let permissive = by_type(&stream.bitmap("permissive types")?);
    let never_audited = match version >= version::NEVERAUDIT {
        true => by_type(&stream.bitmap("types that are never audited")?),
        false => Bitmap::new(),
    };
    Ok(PolicyDb {
        version,
        mls: config & MLS != 0,
        unknown,
        capabilities,
        permissive,
        never_audited,
        ..PolicyDb::default()
    })
}

/// These two maps alone have the bit N for type N.
fn by_type(map: &Bitmap) -> Bitmap {
    map.ones().filter_map(|bit| bit.checked_sub(1)).collect()
}
