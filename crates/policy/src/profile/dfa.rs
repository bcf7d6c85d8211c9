//! A profile's automata: the table set of `apparmor_parser`, checked and walked as
//! `security/apparmor/match.c` does it.

use super::UnpackError;

/// The states that mean something by themselves.
pub(super) const NO_MATCH: u32 = 0;
pub(super) const START: u32 = 1;

const MAGIC: u32 = 0x1b5e_783d;
const HEADER: usize = 16;
/// In the header's flags: a state may take what it does not say from another state.
const DIFF_ENCODED: u16 = 1;
/// In the header's flags: there are transitions that no byte makes.
const OUT_OF_BAND: u16 = 2;
/// The same, in a state's base.
const STATE_DIFF: u32 = 0x8000_0000;
const STATE_OUT_OF_BAND: u32 = 0x2000_0000;
const BASE: u32 = 0x00ff_ffff;

/// A deterministic automaton over bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dfa {
    /// What a state accepts: an index of the permissions, or permissions themselves.
    pub(super) accept: Vec<u32>,
    pub(super) accept2: Vec<u32>,
    pub(super) base: Vec<u32>,
    pub(super) default: Vec<u32>,
    pub(super) next: Vec<u32>,
    pub(super) check: Vec<u32>,
    /// The class of each byte; no table: each byte is its own.
    pub(super) classes: Option<Box<[u8; 256]>>,
}

impl Dfa {
    /// Reads the content of an `aadfa` element.
    pub(super) fn unpack(blob: &[u8]) -> Result<Dfa, UnpackError> {
        let bad = UnpackError::Dfa;
        // the tables are aligned to 8 bytes from the stream's start
        let pad = blob.iter().take(8).take_while(|&&byte| byte == 0).count();
        let blob = &blob[pad..];
        if be32(blob, 0) != Some(MAGIC) {
            return Err(bad("its magic number"));
        }
        let head = be32(blob, 4).ok_or(bad("its header"))? as usize;
        let flags = be16(blob, 12).ok_or(bad("its flags"))?;
        if flags & !(DIFF_ENCODED | OUT_OF_BAND) != 0 || head < HEADER {
            return Err(bad("its flags"));
        }
        let mut rest = blob.get(head..).ok_or(bad("its header"))?;
        let mut tables: [Option<Vec<u32>>; 8] = Default::default();
        while !rest.is_empty() {
            let (id, table, size) = table(rest).ok_or(bad("a table"))?;
            let place = tables.get_mut(id).ok_or(bad("a table's number"))?;
            if place.replace(table).is_some() {
                return Err(bad("a table that stands twice"));
            }
            rest = rest.get(size..).unwrap_or_default();
        }
        let [accept, base, check, default, classes, _, accept2, next] = tables;
        let need = |table: Option<Vec<u32>>, what| table.ok_or(bad(what));
        let dfa = Dfa {
            accept: need(accept, "its accept table")?,
            accept2: accept2.unwrap_or_default(),
            base: need(base, "its base table")?,
            default: need(default, "its default table")?,
            next: need(next, "its next table")?,
            check: need(check, "its check table")?,
            classes: classes
                .map(|classes| {
                    let bytes: Option<Vec<u8>> =
                        classes.iter().map(|&c| u8::try_from(c).ok()).collect();
                    bytes
                        .and_then(|bytes| <Box<[u8; 256]>>::try_from(bytes).ok())
                        .ok_or(bad("its byte classes"))
                })
                .transpose()?,
        };
        dfa.check(flags)?;
        Ok(dfa)
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.base.len()
    }

    /// The state that a byte leads to.
    pub fn step(&self, state: u32, byte: u8) -> u32 {
        let class = match &self.classes {
            Some(classes) => classes[usize::from(byte)],
            None => byte,
        };
        self.go(state, |base| Some(base + usize::from(class)))
    }

    /// The state that bytes lead to.
    pub fn walk(&self, state: u32, bytes: &[u8]) -> u32 {
        bytes
            .iter()
            .fold(state, |state, &byte| self.step(state, byte))
    }

    /// The state that the transition which no byte makes leads to.
    pub fn step_out_of_band(&self, state: u32) -> u32 {
        if self.base[state as usize] & STATE_OUT_OF_BAND == 0 {
            return NO_MATCH;
        }
        self.go(state, |base| base.checked_sub(1))
    }

    fn go(&self, mut state: u32, entry: impl Fn(usize) -> Option<usize>) -> u32 {
        loop {
            let base = self.base[state as usize];
            if let Some(at) = entry((base & BASE) as usize)
                && self.check[at] == state
            {
                return self.next[at];
            }
            state = self.default[state as usize];
            if base & STATE_DIFF == 0 {
                return state;
            }
        }
    }

    /// Checks that no walk leaves the tables or goes in a circle.
    fn check(&self, flags: u16) -> Result<(), UnpackError> {
        let bad = |what| Err(UnpackError::Dfa(what));
        let (states, entries) = (self.base.len(), self.next.len());
        if states < 2 || self.accept.len() != states || self.default.len() != states {
            return bad("its number of states");
        }
        if !self.accept2.is_empty() && self.accept2.len() != states {
            return bad("its second accept table");
        }
        if self.check.len() != entries {
            return bad("its number of transitions");
        }
        let in_range = |table: &[u32]| table.iter().all(|&state| (state as usize) < states);
        if !in_range(&self.default) || !in_range(&self.next) || !in_range(&self.check) {
            return bad("a state that is not there");
        }
        for &base in &self.base {
            if base & !(BASE | STATE_DIFF | STATE_OUT_OF_BAND) != 0
                || (base & STATE_DIFF != 0 && flags & DIFF_ENCODED == 0)
                || (base & STATE_OUT_OF_BAND != 0 && (flags & OUT_OF_BAND == 0 || base & BASE == 0))
            {
                return bad("a state's flags");
            }
            if (base & BASE) as usize + 255 >= entries {
                return bad("a state's transitions");
            }
        }
        self.check_chains()?;
        // a walk stops there, or does not: both have to come to the same
        let leaves = |byte| self.step(NO_MATCH, byte) != NO_MATCH;
        if (0..=u8::MAX).any(leaves) || self.step_out_of_band(NO_MATCH) != NO_MATCH {
            return bad("the state of what does not match");
        }
        Ok(())
    }

    /// States that take what they do not say from each other have to end with one that does not.
    fn check_chains(&self) -> Result<(), UnpackError> {
        let mut ends = vec![false; self.states()];
        for start in 0..self.states() {
            let mut chain = Vec::new();
            let mut at = start;
            while self.base[at] & STATE_DIFF != 0 && !ends[at] {
                if chain.len() == self.states() {
                    return Err(UnpackError::Dfa("states that end nowhere"));
                }
                chain.push(at);
                at = self.default[at] as usize;
            }
            for state in chain {
                ends[state] = true;
            }
        }
        Ok(())
    }
}

/// The table that stands at the beginning: its number from 0, its entries, and the bytes it takes.
fn table(bytes: &[u8]) -> Option<(usize, Vec<u32>, usize)> {
    const HEAD: usize = 12;
    let id = usize::from(be16(bytes, 0)?).checked_sub(1)?;
    let width = match be16(bytes, 2)? {
        1 => 1,
        2 => 2,
        4 => 4,
        _ => return None,
    };
    let entries = be32(bytes, 8)? as usize;
    let content = bytes
        .get(HEAD..)?
        .get(..entries.checked_mul(width)?)
        .filter(|content| !content.is_empty())?;
    let table = content
        .chunks_exact(width)
        .map(|entry| entry.iter().fold(0, |n, &byte| n << 8 | u32::from(byte)))
        .collect();
    Some((id, table, (HEAD + content.len()).next_multiple_of(8)))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
