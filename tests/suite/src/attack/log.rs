//! What the attacker writes down, in a file that it has mapped: it is there for the judge whatever becomes of the attacker.

use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};

use crate::attack::given::LOG;

/// The last calls that are kept.
pub const KEPT: usize = 64;
/// Most rows that there may be.
const ROWS: usize = 2048;
/// Results that are told apart: success, and each error number.
const RESULTS: usize = 256;

/// What stands in place of a result until there is one.
pub const PENDING: i64 = i64::MIN;

/// A call.
#[repr(C)]
pub struct Entry {
    number: AtomicU64,
    row: AtomicU64,
    args: [AtomicI64; 6],
    result: AtomicI64,
}

/// The file.
#[repr(C)]
pub struct Log {
    /// The call that is made next: a call counts as made before it is.
    next: AtomicU64,
    /// Calls that have returned.
    returned: AtomicU64,
    /// One more than the first call after which a secret was there, or 0.
    leak: AtomicU64,
    /// Descriptors that had to be closed before the attacker could fall.
    dropped: AtomicU64,
    entries: [Entry; KEPT],
    results: [AtomicU8; ROWS * RESULTS],
}

/// A call as the judge reads it.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which call.
    pub number: u64,
    /// Its row.
    pub row: usize,
    /// Its arguments.
    pub args: [i64; 6],
    /// What it returned, an error number below zero, or [`PENDING`].
    pub result: i64,
}

impl Log {
    /// Maps the file, which the judge has made.
    ///
    /// # Errors
    /// It cannot be opened or mapped.
    pub fn map() -> Result<&'static Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(LOG)
            .context(LOG)?;
        // SAFETY: a new mapping of a file that is as long; all of it are atomic numbers, for which any bytes will do.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Self>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        ensure!(
            at != libc::MAP_FAILED,
            "map {LOG}: {}",
            std::io::Error::last_os_error()
        );
        // SAFETY: it stays mapped until the process ends, and is aligned to a page.
        Ok(unsafe { &*at.cast::<Self>() })
    }

    /// The call that is made next.
    pub fn next(&self) -> u64 {
        self.next.load(Relaxed)
    }

    /// Goes on after a call.
    pub fn skip(&self) {
        self.next.fetch_add(1, Relaxed);
    }

    /// So many descriptors could not be held.
    pub fn drop_descriptor(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// A call is about to be made.
    pub fn begin(&self, number: u64, row: usize, args: &[i64; 6]) {
        let entry = &self.entries[number as usize % KEPT];
        entry.number.store(number, Relaxed);
        entry.row.store(row as u64, Relaxed);
        for (to, from) in entry.args.iter().zip(args) {
            to.store(*from, Relaxed);
        }
        entry.result.store(PENDING, Relaxed);
        self.next.store(number + 1, Relaxed);
    }

    /// It has returned.
    pub fn end(&self, number: u64, row: usize, result: i64) {
        self.entries[number as usize % KEPT]
            .result
            .store(result, Relaxed);
        self.returned.fetch_add(1, Relaxed);
        // an error number, or 0: success
        let index = usize::try_from(-result).unwrap_or(0).min(RESULTS - 1);
        if row < ROWS {
            self.results[row * RESULTS + index].store(1, Relaxed);
        }
    }

    /// A secret is there.
    pub fn leaked(&self, number: u64) {
        let _ = self.leak.compare_exchange(0, number + 1, Relaxed, Relaxed);
    }
}

/// The judge's view of the file: it reads, and maps nothing.
#[derive(Debug)]
pub struct Reader(File);

impl Reader {
    /// Makes the file, empty, for a batch that begins with this call.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(first: u64) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(LOG);
        let file = file.context(LOG)?;
        file.set_permissions(Permissions::from_mode(0o666))?;
        file.set_len(size_of::<Log>() as u64)?;
        file.write_all_at(&first.to_ne_bytes(), std::mem::offset_of!(Log, next) as u64)?;
        Ok(Self(file))
    }

    fn word(&self, at: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at as u64).context(LOG)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The call that is made next.
    pub fn next(&self) -> Result<u64> {
        self.word(std::mem::offset_of!(Log, next))
    }

    /// Calls that have returned.
    pub fn returned(&self) -> Result<u64> {
        self.word(std::mem::offset_of!(Log, returned))
    }

    /// Descriptors that could not be held.
    pub fn dropped(&self) -> Result<u64> {
        self.word(std::mem::offset_of!(Log, dropped))
    }

    /// The first call after which a secret was there.
    pub fn leak(&self) -> Result<Option<u64>> {
        Ok(self.word(std::mem::offset_of!(Log, leak))?.checked_sub(1))
    }

    /// The last calls, in their order.
    pub fn last(&self) -> Result<Vec<Told>> {
        let entries = std::mem::offset_of!(Log, entries);
        let mut all = Vec::new();
        let next = self.next()?;
        for number in next.saturating_sub(KEPT as u64)..next {
            let at = entries + number as usize % KEPT * size_of::<Entry>();
            let words = |n: usize| self.word(at + n * 8);
            // what an earlier batch has called is not in this file
            if words(0)? != number {
                continue;
            }
            let mut args = [0; 6];
            for (n, arg) in args.iter_mut().enumerate() {
                *arg = words(2 + n)? as i64;
            }
            all.push(Told {
                number,
                row: words(1)? as usize,
                args,
                result: words(8)? as i64,
            });
        }
        Ok(all)
    }

    /// The results that each row came to: its number, and an error number or 0.
    pub fn states(&self) -> Result<Vec<(usize, usize)>> {
        let mut bytes = vec![0; ROWS * RESULTS];
        self.0
            .read_exact_at(&mut bytes, std::mem::offset_of!(Log, results) as u64)?;
        let set = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0);
        Ok(set.map(|(at, _)| (at / RESULTS, at % RESULTS)).collect())
    }
}
