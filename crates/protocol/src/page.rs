//! The status page: a file that whoever caches decisions maps, to learn without asking that they hold no more.
//!
//! It begins as SELinux's does (`struct selinux_kernel_status` of security/selinux/include/security.h), a word each, and
//! is changed as that is: the sequence is odd meanwhile. The file is changed in place and never replaced, so that a
//! mapping is good until the machine goes down, whatever becomes of the daemon.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// Where the daemon has it; 0444, of root's, as its directory is.
pub const PAGE: &str = "/run/tidegate/status";

/// Bytes of the file.
const SIZE: usize = 4096;

/// `SELINUX_KERNEL_STATUS_VERSION`.
const VERSION: u32 = 1;

/// The words of the page.
#[repr(C)]
#[derive(Debug)]
struct Words {
    version: AtomicU32,
    sequence: AtomicU32,
    enforcing: AtomicU32,
    policyload: AtomicU32,
    deny_unknown: AtomicU32,
    enabled: AtomicU32,
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStatus {
    /// The page's number: another one, and what was decided before counts no more.
    pub sequence: u32,
    /// Whether what is not allowed is refused.
    pub enforcing: bool,
    /// The number of the policy in force.
    pub policyload: u32,
    /// Whether what the SELinux policy does not know is refused.
    pub deny_unknown: bool,
    /// Whether a SELinux policy is in force at all.
    pub enabled: bool,
}

/// A mapping of the page.
#[derive(Debug)]
pub struct Page {
    words: NonNull<Words>,
    writable: bool,
}

// SAFETY: the mapping lives as long as the value, and every access to it is atomic.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Maps the page of the daemon for reading.
    ///
    /// # Errors
    /// If there is none, as where Tidegate was never started; or if somebody else than root could change or cut it.
    pub fn open(path: &Path) -> io::Result<Page> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        let about = file.metadata()?;
        let is_roots = |about: &fs::Metadata| about.uid() == 0 && about.mode() & 0o022 == 0;
        let directory = fs::metadata(path.parent().unwrap_or(Path::new("/")))?;
        if !about.is_file() || !is_roots(&about) || !is_roots(&directory) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not root's alone to change", path.display()),
            ));
        }
        Page::map(&file, false)
    }

    /// Maps the page for the process that changes it, and makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be made, or what is there is no file of root's.
    pub fn create(path: &Path) -> io::Result<Page> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o444)
            .custom_flags(flags.bits() as i32)
            .open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} is not a file of the daemon", path.display()),
            ));
        }
        file.set_permissions(fs::Permissions::from_mode(0o444))?;
        // it only ever grows: a process that has it mapped would end by SIGBUS, and so would the
        // daemon, were there no room for what it writes
        if about.len() < SIZE as u64 {
            file.write_all_at(&vec![0; SIZE - about.len() as usize], about.len())?;
        }
        let page = Page::map(&file, true)?;
        page.words().version.store(VERSION, Ordering::Relaxed);
        Ok(page)
    }

    fn map(file: &File, writable: bool) -> io::Result<Page> {
        if file.metadata()?.len() < SIZE as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the status page is too short: `tidegate start` makes it whole",
            ));
        }
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, writable);
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            mmap(
                ptr::null_mut(),
                SIZE,
                prot,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        let words = NonNull::new(at.cast()).ok_or(io::ErrorKind::InvalidData)?;
        let page = Page { words, writable };
        let version = page.words().version.load(Ordering::Relaxed);
        if !writable && version != VERSION {
            let message = format!("the status page has version {version}, this knows {VERSION}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(page)
    }

    #[inline]
    fn words(&self) -> &Words {
        // SAFETY: mapped while `self` is, aligned as a page is, and longer than these words.
        unsafe { self.words.as_ref() }
    }

    /// The number of the page as it is; odd while it is being changed.
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.words().sequence.load(Ordering::Acquire)
    }

    /// What is in force; `None`: it is being changed, or the process that changed it has died over
    /// it.
    pub fn status(&self) -> Option<PageStatus> {
        const TRIES: u32 = 1000;
        let words = self.words();
        let read = |word: &AtomicU32| word.load(Ordering::Relaxed);
        (0..TRIES).find_map(|_| {
            let sequence = self.sequence();
            let status = PageStatus {
                sequence,
                enforcing: read(&words.enforcing) != 0,
                policyload: read(&words.policyload),
                deny_unknown: read(&words.deny_unknown) != 0,
                enabled: read(&words.enabled) != 0,
            };
            fence(Ordering::Acquire);
            let whole = sequence.is_multiple_of(2) && read(&words.sequence) == sequence;
            if !whole {
                std::hint::spin_loop();
            }
            whole.then_some(status)
        })
    }

    /// Says what is in force from now on, under a new number, which it gives back; whoever waits for a change hears of it.
    /// One at a time. Nothing is done where the page was mapped for reading.
    pub fn publish(&self, status: PageStatus) -> u32 {
        let words = self.words();
        let now = words.sequence.load(Ordering::Relaxed);
        if !self.writable {
            return now;
        }
        // one that died over it has left it odd
        words.sequence.store(now | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let write = |word: &AtomicU32, value: u32| word.store(value, Ordering::Relaxed);
        write(&words.enforcing, status.enforcing.into());
        write(&words.policyload, status.policyload);
        write(&words.deny_unknown, status.deny_unknown.into());
        write(&words.enabled, status.enabled.into());
        let next = (now | 1).wrapping_add(1);
        words.sequence.store(next, Ordering::SeqCst);
        let _ = futex::wake(&words.sequence, futex::Flags::empty(), i32::MAX as u32);
        next
    }

    /// Waits until the page has another number than this, or the time is over; whether it has.
    pub fn wait(&self, sequence: u32, at_most: Duration) -> bool {
        let until = std::time::Instant::now() + at_most;
        loop {
            if self.sequence() != sequence {
                return true;
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let left = rustix::time::Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let word = &self.words().sequence;
            // what it says is seen above
            let _ = futex::wait(word, futex::Flags::empty(), sequence, Some(&left));
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn status(policyload: u32) -> PageStatus {
        PageStatus {
            sequence: 0,
            enforcing: policyload.is_multiple_of(2),
            policyload,
            deny_unknown: policyload.is_multiple_of(2),
            enabled: true,
        }
    }

    fn pages() -> (tempfile::TempDir, Page, Page) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("status");
        let ours = Page::create(&path).unwrap();
        let file = File::open(&path).unwrap();
        let theirs = Page::map(&file, false).unwrap();
        (dir, ours, theirs)
    }

    #[test]
    fn what_is_published_is_seen_under_a_new_number() {
        let (dir, ours, theirs) = pages();
        assert_eq!(theirs.sequence(), 0);
        assert!(!theirs.status().unwrap().enabled);
        assert_eq!(ours.publish(status(7)), 2);
        let seen = theirs.status().unwrap();
        assert_eq!((seen.sequence, seen.policyload, seen.enabled), (2, 7, true));
        // another daemon goes on with the same page
        drop(ours);
        let again = Page::create(&dir.path().join("status")).unwrap();
        assert_eq!(again.publish(status(8)), 4);
        assert_eq!(theirs.status().unwrap().policyload, 8);
    }

    #[test]
    fn one_that_died_over_it_is_not_read_until_it_is_fixed() {
        let (_dir, ours, theirs) = pages();
        ours.publish(status(1));
        ours.words().sequence.fetch_add(1, Ordering::SeqCst);
        assert_eq!(theirs.status(), None);
        assert_eq!(ours.publish(status(2)), 4);
        assert_eq!(theirs.status().unwrap().policyload, 2);
    }

    #[test]
    fn who_only_reads_changes_nothing() {
        let (_dir, _ours, theirs) = pages();
        assert_eq!(theirs.publish(status(2)), 0);
        assert_eq!(theirs.sequence(), 0);
    }

    #[test]
    fn a_page_that_others_could_change_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("status");
        Page::create(&path).unwrap();
        let refused = |path: &Path| Page::open(path).unwrap_err().kind();
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
            Page::open(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
            assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        }
        assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Page::open(&link).is_err());
        let short = dir.path().join("short");
        fs::write(&short, "x").unwrap();
        assert!(Page::map(&File::open(&short).unwrap(), false).is_err());
    }

    #[test]
    fn a_status_is_read_whole_while_it_changes_and_who_waits_hears_of_it() {
        let (_dir, ours, theirs) = pages();
        let (theirs, over) = (Arc::new(theirs), Arc::new(AtomicBool::new(false)));
        ours.publish(status(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (page, over) = (Arc::clone(&theirs), Arc::clone(&over));
                std::thread::spawn(move || {
                    let mut last = 0;
                    while !over.load(Ordering::Relaxed) {
                        let Some(seen) = page.status() else { continue };
                        assert_eq!(seen.enforcing, seen.policyload.is_multiple_of(2));
                        assert_eq!(seen.deny_unknown, seen.enforcing);
                        assert!(seen.sequence >= last);
                        last = seen.sequence;
                    }
                })
            })
            .collect();
        for number in 1..20_000 {
            ours.publish(status(number));
        }
        over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|r| r.join().unwrap());

        let before = theirs.sequence();
        assert!(!theirs.wait(before, Duration::from_millis(10)));
        let page = Arc::clone(&theirs);
        let waits = std::thread::spawn(move || page.wait(before, Duration::from_secs(20)));
        std::thread::sleep(Duration::from_millis(20));
        let began = std::time::Instant::now();
        ours.publish(status(0));
        assert!(waits.join().unwrap());
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
