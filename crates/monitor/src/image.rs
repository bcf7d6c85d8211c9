//! A policy's profiles as the kernel reads them: an image in an arena (kernel/abi/profile_image.h); and behind it that of
//! its SELinux policy, which is laid out by `tidegate_flask`.

use std::collections::HashSet;
use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use tidegate_bundle::profile::{Linked, Perms, ProfileSet, Rlimit, Table, Target, Walk};
use tidegate_flask::Numbering;

use crate::abi::{TG_ARENA_HALF, TG_ARENA_PAGES, TG_RLIMITS};
use crate::memory::unlocked;
use crate::skel::types::{tg_image, tg_pair, tg_perms, tg_profile, tg_table, tg_walk};
use crate::sys::{Pod, bytes_of};

/// Where every process has the arena: the map's `map_extra`.
pub(crate) const ADDRESS: usize = 1 << 44;
/// The first page of each half is nobody's, so that an offset of 0 means nothing.
const PAGE: u32 = 4096;
const SIZE: usize = TG_ARENA_PAGES as usize * PAGE as usize;

/// A profile's number in every policy: FNV-1a of its name, as the kernel makes it of a name that
/// a task asks for.
pub fn profile_id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |id, byte| {
        (id ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Where the image of a policy begins in the arena, by the policy's number.
fn base(seqno: u32) -> u32 {
    PAGE + (seqno & 1) * TG_ARENA_HALF
}

/// A SELinux policy laid out for a place in the arena, with numbers for names.
pub(crate) struct Tables {
    /// The bytes from that place on.
    pub bytes: Vec<u8>,
    /// The numbers that names have from now on.
    pub numbering: Numbering,
}

/// Writes a policy's profiles beside those in force, and behind them the tables that `te` lays out for a place, with the
/// numbers that names have so far. A policy without tables hands these on: SIDs outlive it.
///
/// # Errors
/// `ENOMEM` if the arena or the memory is too small, `EINVAL` if two names have one number, or there are no tables.
pub(crate) fn write(
    arena: BorrowedFd<'_>,
    set: &ProfileSet,
    te: Option<&dyn Fn(Numbering, u32) -> io::Result<Tables>>,
    seqno: u32,
) -> io::Result<()> {
    let mut image = Image::of(set, base(seqno))?;
    let mapping = Mapping::of(arena)?;
    let mut numbering = mapping.numbering(seqno.wrapping_sub(1))?;
    if let Some(lay_out) = te {
        let place = image.room::<u64>(0);
        let tables = lay_out(numbering, place)?;
        image.bytes.extend_from_slice(&tables.bytes);
        image.set(offset_of!(tg_image, te), place);
        numbering = tables.numbering;
    }
    image.number(&numbering);
    if image.bytes.len() >= (TG_ARENA_HALF - PAGE) as usize {
        return Err(rustix::io::Errno::NOMEM.into());
    }
    mapping.write(base(seqno), &image.bytes)
}

/// Writes an image of capability files to its place, where nobody reads yet.
pub(crate) fn write_caps(arena: BorrowedFd<'_>, at: u32, bytes: &[u8]) -> io::Result<()> {
    Mapping::of(arena)?.write(at, bytes)
}

/// Writes names' numbers where no policy is yet, for the first one to take on.
pub(crate) fn write_names(
    arena: BorrowedFd<'_>,
    numbering: &Numbering,
    seqno: u32,
) -> io::Result<()> {
    let mut image = Image::of(&ProfileSet::default(), base(seqno))?;
    image.number(numbering);
    Mapping::of(arena)?.write(base(seqno), &image.bytes)
}

/// The numbers of names under the policy with this number.
pub(crate) fn numbering(arena: BorrowedFd<'_>, seqno: u32) -> io::Result<Numbering> {
    Mapping::of(arena)?.numbering(seqno)
}

/// Held while the arena is mapped, as there is one place for it.
static PLACE: Mutex<()> = Mutex::new(());

/// The arena in this process.
struct Mapping {
    _place: MutexGuard<'static, ()>,
}

impl Mapping {
    fn of(arena: BorrowedFd<'_>) -> io::Result<Mapping> {
        let place = PLACE.lock().unwrap_or_else(|e| e.into_inner());
        let at = ptr::without_provenance_mut(ADDRESS);
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        // SAFETY: nothing is mapped there, or the call fails.
        unlocked(|| unsafe { mmap(at, SIZE, prot, flags, arena, 0) })?;
        Ok(Mapping { _place: place })
    }

    fn write(&self, offset: u32, bytes: &[u8]) -> io::Result<()> {
        let at = ptr::with_exposed_provenance_mut::<u8>(ADDRESS + offset as usize);
        let whole = bytes.len().next_multiple_of(PAGE as usize);
        // what the kernel cannot give is an error here, and no signal below
        // SAFETY: `offset` and `whole` are of one part of the mapping.
        unsafe { madvise(at.cast(), whole, Advice::LinuxPopulateWrite) }
            .map_err(|_| io::Error::from(rustix::io::Errno::NOMEM))?;
        // SAFETY: mapped, and read by nobody before this policy's number is in force, or a session has these subjects.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        Ok(())
    }
}

impl Mapping {
    /// The numbers of names under the policy with this number; none, if no policy has had a `te` model so far.
    fn numbering(&self, seqno: u32) -> io::Result<Numbering> {
        let word = |at: u32| -> u32 {
            let at = ptr::with_exposed_provenance::<u32>(ADDRESS + at as usize);
            // SAFETY: in the mapping, where whatever is not written reads as zeros.
            unsafe { ptr::read_volatile(at) }
        };
        let head = |field: usize| word(base(seqno) + field as u32);
        let at = head(offset_of!(tg_image, numbering));
        let len = head(offset_of!(tg_image, numbering_len));
        if at == 0 {
            return Ok(Numbering::default());
        }
        let spoilt = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the names of contexts are spoilt",
            )
        };
        if len >= TG_ARENA_HALF || at as usize + len as usize > SIZE {
            return Err(spoilt());
        }
        let at = ptr::with_exposed_provenance::<u8>(ADDRESS + at as usize);
        // SAFETY: in the mapping, and written by nobody while the policy is in force.
        let bytes = unsafe { std::slice::from_raw_parts(at, len as usize) };
        Numbering::read(bytes).ok_or_else(spoilt)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let at = ptr::without_provenance_mut(ADDRESS);
        // SAFETY: our own mapping; no reference into it is left.
        let _ = unsafe { munmap(at, SIZE) };
    }
}

/// An image being laid out.
struct Image {
    base: u32,
    bytes: Vec<u8>,
}

impl Image {
    fn of(set: &ProfileSet, base: u32) -> io::Result<Image> {
        let mut image = Image {
            base,
            bytes: vec![0; size_of::<tg_image>()],
        };
        let tables: Vec<u32> = set.automata.iter().map(|t| image.table(t)).collect();
        // their places, before any of them refers to another
        let room = image.room::<tg_profile>(set.profiles.len());
        let place = |index: usize| room + (index * size_of::<tg_profile>()) as u32;
        let (mut first, mut ids) = (0, HashSet::new());
        let mut children = vec![0; set.profiles.len()];
        for (index, profile) in set.profiles.iter().enumerate().rev() {
            let list = match profile.parent {
                Some(parent) => &mut children[parent as usize],
                None => &mut first,
            };
            let sibling = std::mem::replace(list, place(index));
            let children = children[index];
            let made = image.profile(set, profile, &tables, &place, children, sibling);
            if !ids.insert(made.id) {
                let what = format!("{} has the number of another profile", profile.name);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            image.put(place(index), &made);
        }
        let slots = (2 * set.profiles.len()).next_power_of_two();
        let names = image.names(slots, set, &place);
        let head = tg_image {
            profiles: set.profiles.len() as u32,
            first,
            names,
            names_mask: slots as u32 - 1,
            ..tg_image::default()
        };
        image.put(base, &head);
        Ok(image)
    }

    /// Sets a field of the head.
    fn set(&mut self, field: usize, value: u32) {
        self.put(self.base + field as u32, &value);
    }

    /// Writes down the numbers of names.
    fn number(&mut self, numbering: &Numbering) {
        let names = numbering.to_bytes();
        let (len, place) = (names.len() as u32, self.list(names.into_iter()));
        self.set(offset_of!(tg_image, numbering), place);
        self.set(offset_of!(tg_image, numbering_len), len);
    }

    /// Room for so many values at the end; its place.
    fn room<T>(&mut self, count: usize) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.base + self.bytes.len() as u32;
        self.bytes
            .resize(self.bytes.len() + count * size_of::<T>(), 0);
        at
    }

    fn put<T: Pod>(&mut self, at: u32, value: &T) {
        let at = (at - self.base) as usize;
        self.bytes[at..at + size_of::<T>()].copy_from_slice(bytes_of(value));
    }

    /// A list of values; its place, 0 for an empty one.
    fn list<T: Pod>(&mut self, values: impl ExactSizeIterator<Item = T>) -> u32 {
        if values.len() == 0 {
            return 0;
        }
        let place = self.room::<T>(values.len());
        for (index, value) in values.enumerate() {
            self.put(place + (index * size_of::<T>()) as u32, &value);
        }
        place
    }

    fn table(&mut self, table: &Table) -> u32 {
        let next = self.list(table.next.iter().copied());
        let accepts = self.list(table.accepts.iter().copied());
        let pairs = self.list(table.perms.iter().map(|[owner, other]| tg_pair {
            owner: perms(owner),
            other: perms(other),
            plain: plain(owner) & plain(other),
        }));
        let place = self.room::<tg_table>(1);
        let table = tg_table {
            width: table.width.into(),
            next,
            accepts,
            pairs,
            classes: *table.classes,
        };
        self.put(place, &table);
        place
    }

    fn profile(
        &mut self,
        set: &ProfileSet,
        p: &Linked,
        tables: &[u32],
        place: &impl Fn(usize) -> u32,
        children: u32,
        sibling: u32,
    ) -> tg_profile {
        let walk = |walk: Option<Walk>| {
            walk.map_or(tg_walk::default(), |w| tg_walk {
                table: tables[w.automaton as usize],
                start: w.start.into(),
            })
        };
        let before = p.parent.map_or(0, |parent| {
            set.profiles[parent as usize].name.len() + "//".len()
        });
        let last = &p.name[before..];
        let disconnected = p.disconnected.as_deref().unwrap_or_default();
        tg_profile {
            id: profile_id(&p.name),
            caps_allow: p.capabilities.allow,
            caps_audit: p.capabilities.audit,
            caps_quiet: p.capabilities.quiet,
            file: walk(p.file),
            policy: walk(p.policy),
            attach: walk(p.attachment.map(|a| a.walk)),
            attach_length: p.attachment.map_or(0, |a| a.length),
            parent: p.parent.map_or(0, |parent| place(parent as usize)),
            children,
            sibling,
            targets: self.list(p.targets.iter().map(|target| match target {
                Target::Profile(index) => place(*index as usize),
                Target::Missing => 0,
            })),
            path_flags: p.path_flags.bits(),
            disconnected: self.list(disconnected.bytes()),
            disconnected_len: disconnected.len() as u16,
            mode: p.mode as u8,
            audit: p.audit.into(),
            hat: p.is_hat.into(),
            pad: [0; 3],
            name: self.list(p.name.bytes()),
            name_len: p.name.len() as u32,
            last: self.list(last.bytes()),
            last_len: last.len() as u32,
            limited: p
                .rlimits
                .iter()
                .fold(0, |all, limit| all | 1 << limit.resource),
            limits: self.list(limits(&p.rlimits).into_iter()),
            pad2: 0,
        }
    }

    /// The table in which profiles are found by their ids.
    fn names(&mut self, slots: usize, set: &ProfileSet, place: &impl Fn(usize) -> u32) -> u32 {
        let mut names = vec![0; slots];
        for (index, profile) in set.profiles.iter().enumerate() {
            let mut slot = profile_id(&profile.name) as usize & (slots - 1);
            while names[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            names[slot] = place(index);
        }
        self.list(names.into_iter())
    }
}

/// The limits by resource; none for a profile that has none.
fn limits(rlimits: &[Rlimit]) -> Vec<u64> {
    if rlimits.is_empty() {
        return Vec::new();
    }
    let mut limits = vec![u64::MAX; TG_RLIMITS as usize];
    for limit in rlimits {
        limits[usize::from(limit.resource)] = limit.max;
    }
    limits
}

fn perms(p: &Perms) -> tg_perms {
    tg_perms {
        allow: p.allow.bits(),
        deny: p.deny.bits(),
        audit: p.audit.bits(),
        quiet: p.quiet.bits(),
        exec: p.exec.0,
    }
}

/// What is allowed, and neither denied nor recorded.
fn plain(p: &Perms) -> u32 {
    p.allow.bits() & !(p.deny | p.audit).bits()
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
