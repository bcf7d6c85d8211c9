//! The monitor's globals, mapped: what user space sets, and counters.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::rand::GetRandomFlags;

use crate::Refusals;
use crate::skel::types::{
    bss, bss_caps, bss_profile, bss_te, caps_domain, caps_held_image, caps_session, tg_policy,
};
use crate::sys::{check, map_info};

/// A mapping of zero-initialised globals, shared with the kernel: `T` is their section.
#[derive(Debug)]
pub(crate) struct Section<T> {
    base: *mut T,
    len: usize,
}

// SAFETY: the mapping lives as long as the value; every access is atomic or a
// volatile copy of what user space alone writes.
unsafe impl<T> Send for Section<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Section<T> {}

impl<T> Section<T> {
    /// Maps the globals; an error if they are not this build's.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let size = map_info(fd)?.value_size as usize;
        // what comes last in the section need not fill it
        if size.next_multiple_of(align_of::<T>()) != size_of::<T>() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other globals"));
        }
        let len = size.next_multiple_of(rustix::param::page_size());
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe { mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, fd, 0)? };
        Ok(Section {
            base: base.cast(),
            len,
        })
    }

    fn u32_at(&self, field: impl FnOnce(*mut T) -> *mut u32) -> &AtomicU32 {
        // SAFETY: an aligned field of the mapping, which outlives the reference.
        unsafe { AtomicU32::from_ptr(field(self.base)) }
    }

    fn u64_at(&self, field: impl FnOnce(*mut T) -> *mut u64) -> &AtomicU64 {
        // SAFETY: an aligned field of the mapping, which outlives the reference.
        unsafe { AtomicU64::from_ptr(field(self.base)) }
    }
}

impl<T> Drop for Section<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping; every reference into it borrows `self`.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}

/// The globals of `lomac`, and those that all models share.
#[derive(Debug)]
pub(crate) struct Globals {
    section: Section<bss>,
    /// Held while the policy's header is changed, each time after what it is now.
    changing: Mutex<()>,
}

impl Globals {
    pub fn of(section: Section<bss>) -> Self {
        Globals {
            section,
            changing: Mutex::new(()),
        }
    }

    /// A copy of the policy's header.
    pub fn policy(&self) -> tg_policy {
        // SAFETY: in the mapping; only user space writes it, under the instance lock.
        unsafe { ptr::read_volatile(&raw const (*self.section.base).policy) }
    }

    /// Whether a policy is, or was, in force, and not only there while a start was under way.
    pub fn was_in_force(&self) -> bool {
        let policy = self.policy();
        policy.seqno != 0 && policy.permissive != Refusals::LetThrough as u8
    }

    /// Changes the policy's header, one at a time: every field, then `seqno`, so that no
    /// hook sees the new number with an old field.
    pub fn change_policy(&self, change: impl FnOnce(tg_policy) -> tg_policy) {
        let _one = self.changing.lock().unwrap_or_else(|e| e.into_inner());
        let now = self.policy();
        let new = change(now);
        let seqno = new.seqno;
        let before = tg_policy {
            seqno: now.seqno,
            ..new
        };
        // SAFETY: in the mapping; only user space writes it, under the instance lock.
        unsafe { ptr::write_volatile(&raw mut (*self.section.base).policy, before) };
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).policy.seqno })
            .store(seqno, Ordering::SeqCst);
    }

    /// The kernel's error if it did not tell where its variables are (kernel/lib/ksyms.h).
    pub fn has_symbols(&self) -> io::Result<()> {
        // SAFETY: in the mapping; written by a program that has ended.
        let error = unsafe { ptr::read_volatile(&raw const (*self.section.base).symbols.error) };
        check(error as i32).map(drop)
    }

    /// Makes up the secrets by which paths are remembered (kernel/profile/path/walk.h).
    pub fn make_secrets(&self) -> io::Result<()> {
        let mut secrets = [0u64; 4];
        for secret in &mut secrets {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
            // a multiplier that loses nothing
            *secret = u64::from_ne_bytes(bytes) | 1;
        }
        // SAFETY: in the mapping; nothing reads it before there are profiles.
        unsafe { ptr::write_volatile(&raw mut (*self.section.base).secrets, secrets) };
        Ok(())
    }

    pub fn guard_armed(&self) -> &AtomicU16 {
        // SAFETY: an aligned field of the mapping, which outlives the reference.
        unsafe { AtomicU16::from_ptr(&raw mut (*self.section.base).tx.guard_armed) }
    }

    /// How often something was raised: see kernel/lomac/held.h.
    pub fn rises(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section.u32_at(|b| unsafe { &raw mut (*b).tx.rises })
    }

    pub fn records(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section.u64_at(|b| unsafe { &raw mut (*b).records })
    }

    pub fn events_lost(&self) -> u64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).events_lost })
            .load(Ordering::Relaxed)
    }

    /// Records that have reached a daemon.
    pub fn events_taken(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).events_taken })
    }

    /// Records that the log has, or counts.
    pub fn events_told(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).events_told })
    }

    pub fn labels_failed(&self) -> u64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).labels_failed })
            .load(Ordering::Relaxed)
    }

    pub fn given_used(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section.u64_at(|b| unsafe { &raw mut (*b).given_used })
    }

    /// An entry of the table of given levels has gone: its account has that back (`given_back` of kernel/lomac/object.h).
    pub fn give_back_given(&self, entry: u32) {
        const TABLE: usize = 2; // TG_T_GIVEN
        if entry >> 31 == 0 {
            return;
        }
        let account = ((entry >> 8) & 0xf) as usize * 4096 + ((entry >> 12) & 0xfff) as usize;
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).shares[TABLE].all })
            .fetch_sub(1, Ordering::Relaxed);
        // SAFETY: as above.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).shares[TABLE].own[account] })
            .fetch_sub(1, Ordering::Relaxed);
    }

    /// Not 0: no level is given any more.
    pub fn given_closed(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).given_closed })
    }

    /// Gives up the process whose mappings are looked at now (kernel/lib/look.h); it is 0 again once that has been seen.
    pub fn looks_over(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section.u32_at(|b| unsafe { &raw mut (*b).looks_over })
    }

    /// The file that is looked for among mappings, by its inode's number and its device; (0, 0): any.
    pub fn look_for(&self, (ino, dev): (u64, u32)) {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).looks_dev })
            .store(dev, Ordering::SeqCst);
        // SAFETY: as above.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).looks_ino })
            .store(ino, Ordering::SeqCst);
    }

    /// Says that somebody waits for the turn, for the top: whoever is below waits for him, as long as this is said again and again.
    pub fn wait_for_turn(&self, now: u64, word: u32) {
        let top = usize::from(self.policy().top);
        // SAFETY: an address in the mapping, never dereferenced here; there is one for each level.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).tx_waiters[top].ticket })
            .store(word, Ordering::SeqCst);
        // SAFETY: as above.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).tx_waiters[top].user })
            .store(0, Ordering::SeqCst);
        // SAFETY: as above.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).tx_waiters[top].beat })
            .store(now, Ordering::SeqCst);
    }

    /// Whose the turn is from now on, and since when: no subject can be above it. To be called with
    /// the lock.
    pub fn begin_turn(&self, since: u64) {
        self.wait_for_turn(0, 0);
        let top = self.policy().top.into();
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section
            .u64_at(|b| unsafe { &raw mut (*b).tx.turn.since })
            .store(since, Ordering::SeqCst);
        // SAFETY: as above.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).tx.turn.level })
            .store(top, Ordering::SeqCst);
        // SAFETY: as above.
        self.section
            .u32_at(|b| unsafe { &raw mut (*b).tx.turn.user })
            .store(0, Ordering::SeqCst);
    }

    /// The lock of the demotion transaction, as kernel/lomac/demote/lock.h says.
    pub fn transaction(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.section.u32_at(|b| unsafe { &raw mut (*b).tx.lock })
    }
}

/// The globals of `profile`.
impl Section<bss_profile> {
    /// Says whether the kernel's own AppArmor is at work, too.
    pub fn set_apparmor(&self, active: bool) {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).apparmor_active })
            .store(active.into(), Ordering::Relaxed);
    }

    /// Says that every move of a directory is counted from now on.
    pub fn set_moves_counted(&self) {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).moves_counted })
            .store(1, Ordering::Release);
    }
}

/// Those of `te`.
impl Section<bss_te> {
    /// As `guard_armed`, of the `te` model's guard.
    pub fn guard_armed(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).te_guard_armed })
    }

    /// The SID that a system-wide start gives to each task without one. With 0 such a task is not governed.
    pub fn everyone(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u64_at(|b| unsafe { &raw mut (*b).te_everyone })
    }

    /// How many tasks were met that had none.
    pub fn strays(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u64_at(|b| unsafe { &raw mut (*b).te_strays })
    }

    /// Whose sockets are looked at.
    pub fn first_holds(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).te_first_holds })
    }

    pub fn given_used(&self) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u64_at(|b| unsafe { &raw mut (*b).te_given_used })
    }
}

/// Those of `capability`.
impl Section<bss_caps> {
    /// What there is of a session of the `capability` model, by its place.
    pub fn session(&self, place: usize) -> caps_session {
        // SAFETY: in the mapping; a copy, of which the kernel changes counts only.
        unsafe { ptr::read_volatile(&raw const (*self.base).caps_sessions[place]) }
    }

    /// Whether layers of a session are, or were, of an image: by the session's place and the image's index.
    pub fn has_image(&self, place: usize, image: usize) -> bool {
        // SAFETY: an address in the mapping, never dereferenced here.
        let images =
            self.u64_at(|b| unsafe { &raw mut (*b).caps_sessions[place].images[image / 64] });
        images.load(Ordering::SeqCst) >> (image % 64) & 1 != 0
    }

    /// Takes a place that is free for a session: all of it, then `started`.
    pub fn set_session(&self, place: usize, session: caps_session) {
        let before = caps_session {
            started: 0,
            ..session
        };
        // SAFETY: in the mapping; a place that is free is nobody's in the kernel.
        unsafe { ptr::write_volatile(&raw mut (*self.base).caps_sessions[place], before) };
        self.started(place).store(session.started, Ordering::SeqCst);
    }

    /// When a session started; 0: its place is free.
    pub fn started(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u64_at(|b| unsafe { &raw mut (*b).caps_sessions[place].started })
    }

    /// Tasks in a session, and those who begin it.
    pub fn tasks(&self, place: usize) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).caps_sessions[place].tasks })
    }

    /// What kinds of things were taken from a session: a bit each.
    pub fn taken(&self, place: usize) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).caps_sessions[place].taken })
    }

    /// What there is at the place of a domain.
    pub fn domain(&self, place: usize) -> caps_domain {
        // SAFETY: in the mapping; a copy, which may be of two domains if the place is used again meanwhile.
        unsafe { ptr::read_volatile(&raw const (*self.base).caps_domains[place]) }
    }

    /// An entry of the table of capability files' images.
    pub fn image(&self, index: usize) -> caps_held_image {
        // SAFETY: in the mapping; only user space uses it.
        unsafe { ptr::read_volatile(&raw const (*self.base).caps_images[index]) }
    }

    /// Writes one.
    pub fn set_image(&self, index: usize, image: caps_held_image) {
        // SAFETY: as above.
        unsafe { ptr::write_volatile(&raw mut (*self.base).caps_images[index], image) };
    }

    /// Revocations of capabilities so far.
    pub fn epoch(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).caps_epoch })
    }

    /// As `guard_armed`, of the `capability` model's guard.
    pub fn guard_armed(&self) -> &AtomicU32 {
        // SAFETY: an address in the mapping, never dereferenced here.
        self.u32_at(|b| unsafe { &raw mut (*b).caps_guard_armed })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn of_two_who_change_the_header_neither_is_undone() {
        let len = size_of::<bss>().next_multiple_of(rustix::param::page_size());
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: fresh memory, which `Section` unmaps.
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, prot, MapFlags::PRIVATE) };
        let globals = Globals {
            section: Section {
                base: base.unwrap().cast(),
                len,
            },
            changing: Mutex::new(()),
        };
        const TIMES: u32 = 200_000;
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    globals.change_policy(|now| tg_policy {
                        seqno: now.seqno + 1,
                        ..now
                    });
                }
            });
            for daemon in 1..=TIMES {
                globals.change_policy(|now| tg_policy { daemon, ..now });
            }
        });
        let now = globals.policy();
        assert_eq!((now.seqno, now.daemon), (TIMES, TIMES));
    }
}
