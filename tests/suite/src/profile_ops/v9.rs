//! Rules of `unix` as Linux reads them since 6.17. The parsers of Debian write them into the class of networks, 14, as
//! Ubuntu's kernels read them; Linux reads the same in the class 15, and of what is in the other one the family and type
//! alone. So the automata are made to take the one byte for the other.

use std::fs;
use std::io;

const MAGIC: [u8; 4] = 0x1b5e_783d_u32.to_be_bytes();
/// The table that says what class of bytes each is in.
const CLASSES: u16 = 5;
const NETWORK: usize = 14;
const NETWORK_V9: usize = 15;

/// Rewrites what the parser has written.
pub fn rewrite(from: &str, to: &str) -> io::Result<()> {
    let mut policy = fs::read(from)?;
    let starts: Vec<usize> = policy
        .windows(4)
        .enumerate()
        .filter(|(_, w)| **w == MAGIC)
        .map(|(at, _)| at)
        .collect();
    if starts.is_empty() {
        return Err(wrong("no automata"));
    }
    for start in starts {
        let classes =
            classes(&policy[start..]).ok_or(wrong("an automaton without classes of bytes"))?;
        policy[start + classes + NETWORK_V9] = policy[start + classes + NETWORK];
    }
    fs::write(to, policy)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Where the classes of bytes begin in an automaton.
fn classes(dfa: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u32::from_be_bytes(dfa.get(at..at + 4)?.try_into().ok()?) as usize);
    let half = |at: usize| Some(u16::from_be_bytes(dfa.get(at..at + 2)?.try_into().ok()?));
    let mut at = word(4)?;
    // the tables that stand before it, each aligned to 8 bytes
    while half(at)? != CLASSES {
        at += (12 + word(at + 8)? * usize::from(half(at + 2)?)).next_multiple_of(8);
    }
    Some(at + 12)
}
