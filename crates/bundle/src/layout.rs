//! Bytes of an image that the kernel reads, and the places of its parts.

use crate::automaton::Automaton;

/// An image being laid out. Places are offsets in the arena, of which it begins at `base`.
#[derive(Debug)]
pub struct Layout {
    base: u32,
    /// What there is so far.
    pub bytes: Vec<u8>,
}

/// What can be written into an image, as C has it.
pub trait Word: Copy {
    /// Its size.
    const SIZE: usize;
    /// Writes it, little-endian.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! words {
    ($($kind:ty),*) => {$(
        impl Word for $kind {
            const SIZE: usize = size_of::<$kind>();
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
words!(u8, u16, u32, u64);

impl<W: Word, const N: usize> Word for [W; N] {
    const SIZE: usize = W::SIZE * N;
    fn put(self, out: &mut Vec<u8>) {
        for word in self {
            word.put(out);
        }
    }
}

impl Layout {
    /// An empty one, with room for a head of so many words.
    pub fn new(base: u32, head: usize) -> Layout {
        Layout {
            base,
            bytes: vec![0; 4 * head],
        }
    }

    /// The place of what comes next, where any word may be.
    pub fn here(&mut self) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.base + self.bytes.len() as u32
    }

    /// Writes values; the place of the first.
    pub fn list<W: Word>(&mut self, values: impl IntoIterator<Item = W>) -> u32 {
        let place = self.here();
        for value in values {
            value.put(&mut self.bytes);
        }
        place
    }

    /// Writes a bitmap of so many bits.
    pub fn bitmap(&mut self, bits: usize, ones: impl IntoIterator<Item = u32>) -> u32 {
        let mut words = vec![0u32; bits.div_ceil(32).max(1)];
        for one in ones {
            words[one as usize / 32] |= 1 << (one % 32);
        }
        self.list(words)
    }

    /// Room for so many values, of zeros; its place.
    pub fn room<W: Word>(&mut self, count: usize) -> u32 {
        let place = self.here();
        self.bytes.resize(self.bytes.len() + count * W::SIZE, 0);
        place
    }

    /// Writes a value in a place that there is room in.
    pub fn put<W: Word>(&mut self, place: u32, value: W) {
        let at = (place - self.base) as usize;
        let mut bytes = Vec::with_capacity(W::SIZE);
        value.put(&mut bytes);
        self.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
    }

    /// Writes an automaton (`struct tg_automaton` of kernel/abi/automaton.h), whose answers are at a place.
    pub fn automaton<A>(&mut self, a: &Automaton<A>, answers: u32) -> u32 {
        let next = self.list(a.next.iter().copied());
        let accepts = self.list(a.accepts.iter().copied());
        let place = self.list([a.width.into(), a.start.into(), next, accepts, answers]);
        self.bytes.extend_from_slice(&a.classes[..]);
        place
    }

    /// Writes a table that is looked up by the key's hash: the first free slot from there on; its place and mask.
    pub fn hashed<W: Word>(&mut self, entries: &[(u32, W)]) -> (u32, u32) {
        let slots = (2 * entries.len()).next_power_of_two();
        let mask = slots - 1;
        let place = self.room::<W>(slots);
        let mut taken = vec![false; slots];
        for &(hash, entry) in entries {
            let mut at = hash as usize & mask;
            while std::mem::replace(&mut taken[at], true) {
                at = (at + 1) & mask;
            }
            self.put(place + (at * W::SIZE) as u32, entry);
        }
        (place, mask as u32)
    }
}
