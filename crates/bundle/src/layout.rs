//! Bytes of an image that the kernel reads, and the places of its parts.

use crate::automaton::Automaton;

/// An image being laid out, or measured. Places are offsets in the arena, of which it begins at `base`.
#[derive(Debug)]
pub struct Layout {
    base: u32,
    /// Its bytes so far.
    len: usize,
    /// What they are; none: it is measured alone.
    bytes: Option<Vec<u8>>,
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
            len: 4 * head,
            bytes: Some(vec![0; 4 * head]),
        }
    }

    /// One that is measured: it has a length and no bytes.
    pub fn measured(base: u32, head: usize) -> Layout {
        Layout {
            bytes: None,
            ..Layout::new(base, head)
        }
    }

    /// How many bytes there are so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All that there is; of one that is measured, nothing.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.unwrap_or_default()
    }

    /// Adds zeros up to this length.
    fn extend(&mut self, len: usize) {
        self.len = len;
        if let Some(bytes) = &mut self.bytes {
            bytes.resize(len, 0);
        }
    }

    /// The place of what comes next, where any word may be.
    pub fn here(&mut self) -> u32 {
        self.extend(self.len.next_multiple_of(8));
        self.base + self.len as u32
    }

    /// Writes values; the place of the first.
    pub fn list<W: Word>(&mut self, values: impl IntoIterator<Item = W>) -> u32 {
        let place = self.here();
        match &mut self.bytes {
            Some(bytes) => {
                for value in values {
                    value.put(bytes);
                }
                self.len = bytes.len();
            }
            None => self.len += W::SIZE * values.into_iter().count(),
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
        self.extend(self.len + count * W::SIZE);
        place
    }

    /// Writes a value in a place that there is room in.
    pub fn put<W: Word>(&mut self, place: u32, value: W) {
        let Some(bytes) = &mut self.bytes else {
            return;
        };
        let at = (place - self.base) as usize;
        let mut word = Vec::with_capacity(W::SIZE);
        value.put(&mut word);
        bytes[at..at + word.len()].copy_from_slice(&word);
    }

    /// Writes an automaton (`struct tg_automaton` of kernel/abi/automaton.h), whose answers are at a place.
    pub fn automaton<A>(&mut self, a: &Automaton<A>, answers: u32) -> u32 {
        let next = self.list(a.next.iter().copied());
        let accepts = self.list(a.accepts.iter().copied());
        let place = self.list([a.width.into(), a.start.into(), next, accepts, answers]);
        // right behind its words, where the next list would begin later
        if let Some(bytes) = &mut self.bytes {
            bytes.extend_from_slice(&a.classes[..]);
        }
        self.len += a.classes.len();
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
