//! The bytes of a binary policy: numbers are little-endian, texts and lists have their lengths before them
//! (`next_entry()` and `str_read()` of the kernel's security/selinux/ss/policydb.c, `ebitmap_read()` of ebitmap.c).
//!
//! No count is believed: each is held against the bytes that are left before anything is allocated for it.

use super::PolicyDbError;
use crate::limits::{MAX_TE_BITMAPS, MAX_TE_NAME, MAX_TE_SYMBOLS};
use crate::te::db::{Bitmap, Number};

/// Bits in an element of a bitmap (`EBITMAP_UNIT`).
const UNIT: u32 = 64;

/// What is left of a policy.
#[derive(Debug)]
pub(super) struct Stream<'s> {
    all: &'s [u8],
    at: usize,
    /// Bytes that its bitmaps take in memory. In the file they may be far smaller.
    bitmaps: usize,
}

impl<'s> Stream<'s> {
    pub fn new(all: &'s [u8]) -> Self {
        Self {
            all,
            at: 0,
            bitmaps: 0,
        }
    }

    pub fn rest(&self) -> usize {
        self.all.len() - self.at
    }

    /// What is wrong here.
    pub fn error(&self, what: &'static str) -> PolicyDbError {
        PolicyDbError::Malformed {
            offset: self.at,
            what,
        }
    }

    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'s [u8], PolicyDbError> {
        let taken = self.all[self.at..]
            .get(..count)
            .ok_or_else(|| self.error(what))?;
        self.at += count;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], PolicyDbError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N, what)?);
        Ok(array)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, PolicyDbError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, PolicyDbError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, PolicyDbError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// How many of something follow, each of which takes so many bytes at least.
    pub fn count(&mut self, what: &'static str, bytes: usize) -> Result<usize, PolicyDbError> {
        let count = self.u32(what)? as usize;
        match count > self.rest() / bytes {
            true => Err(self.error(what)),
            false => Ok(count),
        }
    }

    /// A text whose length was read before: never empty, as in the kernel.
    pub fn text(&mut self, length: u32, what: &'static str) -> Result<String, PolicyDbError> {
        if !(1..=MAX_TE_NAME).contains(&(length as usize)) {
            return Err(self.error(what));
        }
        let bytes = self.bytes(length as usize, what)?;
        match str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(self.error(what)),
        }
    }

    /// A text with its length before it.
    pub fn counted_text(&mut self, what: &'static str) -> Result<String, PolicyDbError> {
        let length = self.u32(what)?;
        self.text(length, what)
    }

    /// A number of one of so many.
    pub fn number(&mut self, of: usize, what: &'static str) -> Result<Number, PolicyDbError> {
        let number = self.u32(what)?;
        self.among(number, of, what)
    }

    /// Checks a number that was read: it is one of so many.
    pub fn among(
        &self,
        number: u32,
        of: usize,
        what: &'static str,
    ) -> Result<Number, PolicyDbError> {
        match number >= 1 && number as usize <= of {
            true => Ok(number),
            false => Err(self.error(what)),
        }
    }

    /// A set of bits, as long as there are any; none is behind `MAX_TE_SYMBOLS`. Whether each bit
    /// names something is still to be checked, as a set may stand before what it is of.
    pub fn bitmap(&mut self, what: &'static str) -> Result<Bitmap, PolicyDbError> {
        let [unit, end, count] = [self.u32(what)?, self.u32(what)?, self.u32(what)?];
        let is_empty = end == 0;
        if unit != UNIT || end % UNIT != 0 || (!is_empty && count == 0) {
            return Err(self.error(what));
        }
        let mut words = Vec::new();
        let mut next = 0;
        for _ in 0..if is_empty { 0 } else { count } {
            let start = self.u32(what)?;
            let bits = u64::from_le_bytes(self.array(what)?);
            let is_in_order = start % UNIT == 0 && start >= next && start < end;
            if !is_in_order || bits == 0 || start as usize > MAX_TE_SYMBOLS {
                return Err(self.error(what));
            }
            next = start + UNIT;
            words.push((start, bits));
        }
        if next != end {
            return Err(self.error(what));
        }
        let last = words.last().map(|(start, bits)| start + bits.ilog2());
        let length = last.map_or(0, |last| last as usize + 1);
        self.room_for(length)?;
        let mut bitmap = Bitmap::with_capacity(length);
        for (start, bits) in words {
            for bit in (0..UNIT).filter(|bit| bits >> bit & 1 != 0) {
                bitmap.insert((start + bit) as usize);
            }
        }
        Ok(bitmap)
    }

    /// Takes room for a set of so many bits, of all that the policy may have.
    pub fn room_for(&mut self, bits: usize) -> Result<(), PolicyDbError> {
        self.bitmaps += size_of::<Bitmap>() + bits.div_ceil(8);
        match self.bitmaps > MAX_TE_BITMAPS {
            true => Err(PolicyDbError::Limit {
                what: "bytes of bitmaps",
                count: self.bitmaps,
                max: MAX_TE_BITMAPS,
            }),
            false => Ok(()),
        }
    }
}
