//! An automaton as the kernel walks it: a row of next states for each state, without defaults.
//!
//! The parser's tables save room by sharing rows, which takes a comparison for each byte and
//! state that a walk visits. Here a step is one look-up; room is saved by taking the bytes that no
//! state tells apart for one class: an ordinary profile's rows need two thirds of the bytes of the
//! tables that they come from.

use std::collections::HashMap;

use thiserror::Error;

use super::Dfa;

/// An automaton over classes of bytes. State 0 leads nowhere but to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automaton {
    /// The class of each byte.
    pub classes: Box<[u8; 256]>,
    /// How many classes there are: 1 to 256.
    pub width: u16,
    /// The next states, `width` of them for each state, which are the states of the [`Dfa`].
    pub next: Vec<u16>,
}

/// More states than a step can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an automaton of {0} states, where 65,536 are possible")]
pub struct TooLarge(pub usize);

impl Automaton {
    /// Lays out an automaton.
    ///
    /// # Errors
    ///
    /// If there are too many states.
    pub fn new(dfa: &Dfa) -> Result<Automaton, TooLarge> {
        let states = dfa.states();
        let last = u16::try_from(states - 1).map_err(|_| TooLarge(states))?;
        let column = |byte| {
            let next = |state| dfa.step(u32::from(state), byte) as u16;
            (0..=last).map(next).collect::<Vec<u16>>()
        };
        let mut classes = Box::new([0; 256]);
        let mut columns = HashMap::new();
        let mut distinct = Vec::new();
        for byte in 0..=u8::MAX {
            let column = column(byte);
            let next = columns.len();
            let class = *columns.entry(column.clone()).or_insert(next);
            if class == next {
                distinct.push(column);
            }
            classes[usize::from(byte)] = class as u8;
        }
        let rows = (0..states).flat_map(|state| distinct.iter().map(move |column| column[state]));
        Ok(Automaton {
            classes,
            width: distinct.len() as u16,
            next: rows.collect(),
        })
    }

    /// The state that a byte leads to.
    pub fn step(&self, state: u16, byte: u8) -> u16 {
        let class = usize::from(self.classes[usize::from(byte)]);
        self.next[usize::from(state) * usize::from(self.width) + class]
    }

    /// The state that bytes lead to.
    pub fn walk(&self, state: u16, bytes: &[u8]) -> u16 {
        bytes
            .iter()
            .fold(state, |state, &byte| self.step(state, byte))
    }
}
