//! Patterns to automata.
//!
//! Patterns become one nondeterministic automaton ([`nfa`]), which is made deterministic ([`subset`]) and as small as it can
//! be ([`minimise`]).

pub(crate) mod dfa;
pub(crate) mod minimise;
pub(crate) mod nfa;
pub(crate) mod subset;

use tidegate_bundle::automaton::Automaton;

use self::dfa::Dfa;
use self::minimise::{classes, minimise};

impl<A: Clone + std::hash::Hash + Eq> Dfa<A> {
    /// Its last form, unless 16 bits do not number its states or answers.
    pub(crate) fn finished(&self) -> Option<Automaton<A>> {
        let dfa = minimise(self);
        let (classes, representatives) = classes(&dfa);
        let states = u16::try_from(dfa.rows.len() - 1).ok()?;
        u16::try_from(dfa.answers.len() - 1).ok()?;
        let next = (0..=u32::from(states)).flat_map(|state| {
            let dfa = &dfa;
            let step = move |&byte| dfa.step(state, byte) as u16;
            representatives.iter().map(step)
        });
        Some(Automaton {
            classes,
            width: representatives.len() as u16,
            next: next.collect(),
            accepts: dfa.accepts.iter().map(|&at| at as u16).collect(),
            start: dfa.start as u16,
            answers: dfa.answers,
        })
    }
}
