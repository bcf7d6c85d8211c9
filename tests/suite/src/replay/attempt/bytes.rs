//! Real bytes: each that a process writes tells the lowest level it may come
//! from, and each process keeps in its memory which levels it has read from.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tidegate_model::Level;

use super::PAGE;

/// How many levels there may be.
pub const LEVELS: usize = 16;

/// Level 0 as a byte; what is not one of these came from no process.
const LOWEST: u8 = b'a';

/// The policy trusts this program with what it reads.
static TRUSTED: AtomicBool = AtomicBool::new(false);

/// One for each level: has a byte of it been read?
fn marks() -> &'static [AtomicU8; LEVELS] {
    // SAFETY: prepare() has mapped a page there, which stays; others write it
    // by process_vm_writev only, a byte at a time.
    unsafe { &*(PAGE as *const [AtomicU8; LEVELS]) }
}

/// Begins a program, with the marks of the one before it.
pub fn begin(trusted: bool, before: u16) {
    TRUSTED.store(trusted, Ordering::Relaxed);
    for level in (0..LEVELS).filter(|level| before >> level & 1 != 0) {
        see_level(level);
    }
}

/// The marks, a bit for each level.
pub fn seen() -> u16 {
    let marked = |level: &usize| marks()[*level].load(Ordering::Relaxed) != 0;
    (0..LEVELS)
        .filter(marked)
        .fold(0, |bits, level| bits | 1 << level)
}

fn see_level(level: usize) {
    if !TRUSTED.load(Ordering::Relaxed) {
        marks()[level].store(1, Ordering::Relaxed);
    }
}

/// Bytes were read.
pub fn see(bytes: &[u8]) {
    for byte in bytes {
        let level = usize::from(byte.wrapping_sub(LOWEST));
        if level < LEVELS {
            see_level(level);
        }
    }
}

/// The marks of another process were read.
pub fn see_marks(marks: &[u8]) {
    for (level, mark) in marks.iter().enumerate() {
        if *mark != 0 {
            see_level(level);
        }
    }
}

/// The level of the next byte written, by a process at `level`.
pub fn voice(level: Level) -> Level {
    level.min(seen().trailing_zeros() as Level)
}

/// A level as a byte.
pub fn byte(level: Level) -> u8 {
    LOWEST + level
}

/// The lowest level that bytes tell of.
pub fn lowest(bytes: &[u8]) -> Option<Level> {
    let levels = bytes.iter().map(|byte| byte.wrapping_sub(LOWEST));
    levels.filter(|level| usize::from(*level) < LEVELS).min()
}
