//! Automata that answer, in a section.
//!
//! They are written as they lie in memory: 16 bits for a state, little-endian. Their sizes are checked against what is there
//! before any is copied.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::BundleError;
use super::section::{Reader, Room, Writer};
use crate::automaton::Automaton;
use crate::limits::MAX_STATES;

/// Writes an automaton.
pub(super) fn write<A: Serialize>(out: &mut Writer, automaton: &Automaton<A>) {
    out.0.extend_from_slice(&automaton.classes[..]);
    out.value(&automaton.width);
    out.value(&automaton.start);
    out.value(&automaton.accepts.len());
    for number in automaton.next.iter().chain(&automaton.accepts) {
        out.0.extend_from_slice(&number.to_le_bytes());
    }
    out.list(&automaton.answers);
}

impl Reader<'_> {
    /// Reads an automaton, whose form is still to be checked. Its tables, and its answers with the bytes that each owns, take room
    /// as they are read.
    pub fn answering_automaton<A: DeserializeOwned>(
        &mut self,
        room: &mut Room,
        own_bytes: impl Fn(&A) -> usize,
    ) -> Result<Automaton<A>, BundleError> {
        let classes = Box::new(super::array(self.bytes("classes", 256)?));
        let width: u16 = self.value("width")?;
        let start = self.value("start")?;
        let states = self.count("states of an automaton", MAX_STATES)?;
        let next = self.numbers("states", states * usize::from(width))?;
        let accepts = self.numbers("states' answers", states)?;
        room.take(size_of_val(&classes[..]) + size_of_val(&next[..]) + size_of_val(&accepts[..]))?;
        let bytes = |answer: &A| size_of::<A>() + own_bytes(answer);
        Ok(Automaton {
            classes,
            width,
            next,
            accepts,
            answers: self.list_within("answers of an automaton", MAX_STATES, room, bytes)?,
            start,
        })
    }
}
