//! Calls as 32-bit programs make them. This program is one of 64 bits, and may make them all the same: `int 0x80` takes
//! the numbers and the arguments of i386.

use std::cell::Cell;
use std::path::Path;

use nix::errno::Errno;

use crate::scenarios::sys::{Map, PAGE};
use crate::sys::{c, i386};

/// A call by its number for i386. Its arguments, five at most, are numbers or addresses of [`Low`] memory; there are 0
/// where there are fewer.
pub fn call(number: u32, args: &[u32]) -> Result<u32, Errno> {
    let arg = |n: usize| args.get(n).copied().unwrap_or(0);
    let number = number.try_into().map_err(|_| Errno::ENOSYS)?;
    match i386(number, &[arg(0), arg(1), arg(2), arg(3), arg(4), 0]) {
        error @ -4095..=-1 => Err(Errno::from_raw(-error)),
        answer => Ok(answer as u32),
    }
}

/// A page that a 32-bit address leads to, for what calls are to find by one.
#[derive(Debug)]
pub struct Low {
    page: Map,
    used: Cell<usize>,
}

impl Low {
    /// An empty one.
    pub fn new() -> Result<Low, Errno> {
        let page = Map::anonymous(libc::MAP_PRIVATE | libc::MAP_32BIT)?;
        let used = Cell::new(0);
        Ok(Low { page, used })
    }

    /// Puts bytes there; their address.
    ///
    /// # Panics
    ///
    /// If the page is full.
    pub fn put(&self, bytes: &[u8]) -> u32 {
        let at = self.used.get();
        self.used.set(at + bytes.len().next_multiple_of(8));
        assert!(self.used.get() <= PAGE, "the page is full");
        // SAFETY: within the page, which is mapped writable as long as this lives, and nobody has a reference to it.
        let to = unsafe { self.page.0.add(at) };
        // SAFETY: the same; the bytes lie elsewhere.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        to as usize as u32
    }

    /// Puts words of 32 bits there.
    pub fn put_words(&self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.put(&bytes)
    }

    /// Puts a path or another text there.
    pub fn put_text(&self, text: impl AsRef<Path>) -> u32 {
        self.put(c(text).as_bytes_with_nul())
    }
}
