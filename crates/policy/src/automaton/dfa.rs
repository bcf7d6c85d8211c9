//! A deterministic automaton while it is built: rows by runs of bytes, as most states lead nearly all bytes to one other.

use std::collections::HashMap;
use std::hash::Hash;

/// A run of bytes: its last one, and where it leads.
pub(crate) type Run = (u8, u32);

/// An automaton whose states say something. State 0 leads nowhere but to itself.
#[derive(Debug, Clone)]
pub(crate) struct Dfa<A> {
    /// By state, its runs from byte 0 to 255, where two neighbours lead to different states.
    pub rows: Vec<Vec<Run>>,
    /// By state, what is said of a name that ends there: an index into `answers`.
    pub accepts: Vec<u32>,
    /// What can be said. The first is of state 0.
    pub answers: Vec<A>,
    /// Where names begin.
    pub start: u32,
}

impl<A> Dfa<A> {
    /// An automaton without any state yet.
    pub fn new() -> Dfa<A> {
        Dfa {
            rows: Vec::new(),
            accepts: Vec::new(),
            answers: Vec::new(),
            start: 0,
        }
    }

    pub fn step(&self, state: u32, byte: u8) -> u32 {
        let row = &self.rows[state as usize];
        row[row.partition_point(|&(last, _)| last < byte)].1
    }

    pub fn walk(&self, state: u32, bytes: &[u8]) -> u32 {
        let step = |state, &byte| self.step(state, byte);
        bytes.iter().fold(state, step)
    }

    /// What is said in a state.
    pub fn said(&self, state: u32) -> &A {
        &self.answers[self.accepts[state as usize] as usize]
    }
}

/// Adds a run to a row.
pub(crate) fn push(row: &mut Vec<Run>, last: u8, next: u32) {
    match row.last_mut() {
        Some(run) if run.1 == next => run.0 = last,
        _ => row.push((last, next)),
    }
}

/// Numbers for different things, as they come.
#[derive(Debug)]
pub(crate) struct Numbers<T>(pub HashMap<T, u32>);

impl<T: Hash + Eq> Numbers<T> {
    /// The number of a thing, and whether it is a new one.
    pub fn of(&mut self, thing: T) -> (u32, bool) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(thing).or_insert(next);
        (number, number == next)
    }
}

/// Which states lead to a state.
#[derive(Debug)]
pub(crate) struct Predecessors {
    begins: Vec<u32>,
    states: Vec<u32>,
}

impl Predecessors {
    /// Those that lead to `state`.
    pub fn of(&self, state: u32) -> &[u32] {
        let at = state as usize;
        &self.states[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

impl<A> Dfa<A> {
    /// Which states lead to each.
    pub fn predecessors(&self) -> Predecessors {
        let mut begins = vec![0_u32; self.rows.len() + 1];
        for &(_, next) in self.rows.iter().flatten() {
            begins[next as usize + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut ends = begins.clone();
        let mut states = vec![0; self.rows.iter().map(Vec::len).sum()];
        for (state, row) in (0..).zip(&self.rows) {
            for &(_, next) in row {
                let end = &mut ends[next as usize];
                states[*end as usize] = state;
                *end += 1;
            }
        }
        Predecessors { begins, states }
    }
}
