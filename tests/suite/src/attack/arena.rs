//! Memory at fixed places, which calls are handed and write to, and the structures that lie in it.
//!
//! Pointers are below 4 GB, so that both ABIs can have the same ones.

use std::ffi::CString;

use anyhow::{Result, ensure};

use crate::attack::calls::Abi;
use crate::attack::given;

/// Where what is handed to calls lies, and how much of it there is.
const ARENA: usize = 0x1000_0000;
const ARENA_SIZE: usize = 1 << 20;
/// Where results go: pages at the arena's begin.
const OUT: usize = 4096;
const OUTS: usize = 16;

/// Memory that calls may unmap, protect or fill, and how much of it there is.
pub const PLAY: usize = 0x2000_0000;
pub const PLAY_SIZE: usize = 16 << 20;

/// Memory at a fixed place; what calls are handed, and what they write.
#[derive(Debug)]
pub struct Arena {
    /// How far it is in use: content is in its second half.
    used: usize,
    /// The pieces for results that are in use.
    outs: usize,
}

/// Maps memory at a place where nothing is.
fn map(at: usize, len: usize) -> Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: nothing that is mapped is replaced.
    let got = unsafe { libc::mmap(at as *mut libc::c_void, len, protection, flags, -1, 0) };
    ensure!(
        got as usize == at,
        "map memory at {at:#x}: {}",
        std::io::Error::last_os_error()
    );
    Ok(())
}

impl Arena {
    /// Maps both regions: once in a process.
    ///
    /// # Errors
    /// Something is mapped there.
    pub fn map() -> Result<Self> {
        map(ARENA, ARENA_SIZE)?;
        map(PLAY, PLAY_SIZE)?;
        Ok(Self {
            used: ARENA_SIZE / 2,
            outs: 0,
        })
    }

    /// Forgets what the last call had; whether a secret was in it.
    pub fn end_call(&mut self) -> bool {
        let len = self.outs * OUT;
        // SAFETY: the pieces are mapped, and nobody else has them; calls that change mappings get other addresses.
        let bytes = unsafe { std::slice::from_raw_parts_mut(ARENA as *mut u8, len) };
        let leaked = given::has_secret(bytes);
        bytes.fill(0);
        (self.used, self.outs) = (ARENA_SIZE / 2, 0);
        leaked
    }

    /// A piece for a result.
    pub fn out(&mut self) -> usize {
        let at = ARENA + self.outs.min(OUTS - 1) * OUT;
        self.outs = (self.outs + 1).min(OUTS);
        at
    }

    /// A copy of these bytes.
    pub fn put(&mut self, bytes: &[u8]) -> i64 {
        let len = bytes.len().next_multiple_of(16);
        if self.used + len > ARENA_SIZE {
            self.used = ARENA_SIZE / 2;
        }
        let at = ARENA + self.used;
        self.used += len;
        // SAFETY: as in `end_call`; no caller has half of the arena at once.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        at as i64
    }

    /// A copy of a text.
    pub fn text(&mut self, text: &str) -> i64 {
        let text = CString::new(text).unwrap_or_default();
        self.put(text.as_bytes_with_nul())
    }
}

/// Bytes of a structure, by fields.
#[derive(Default)]
pub struct Fields(pub Vec<u8>);

impl Fields {
    /// Adds a value of two bytes.
    pub fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Adds one of four.
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Adds one of eight.
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Adds a pointer or `long`.
    pub fn long(self, abi: Abi, value: i64) -> Self {
        match abi {
            Abi::X64 => self.u64(value as u64),
            Abi::I386 => self.u32(value as u32),
        }
    }
}
