//! Two automata walked at once, the second of which overrides the first.

use std::collections::HashMap;

use tidegate_bundle::te::contexts::Said;

use super::said::before_none;
use crate::automaton::dfa::{Dfa, Numbers, Run, push};

/// What lines say when other lines stand behind them, whose automaton is `over`, unless it takes more than `max` states.
/// No line before all of them has a `<<none>>` of a higher rank than `none`.
pub(super) fn product(
    under: &Dfa<[Said; 7]>,
    over: &Dfa<[Said; 7]>,
    none: u8,
    max: usize,
) -> Option<Dfa<[Said; 7]>> {
    let settled = settled(under, over);
    let mut dfa = Dfa::new();
    let mut states: Numbers<(u32, u32)> = Numbers(HashMap::new());
    let mut answers: Numbers<[Said; 7]> = Numbers(HashMap::new());
    let mut pairs = Vec::new();
    let mut state = |pairs: &mut Vec<(u32, u32)>, a: u32, b: u32| {
        let pair = (if settled[b as usize] { 0 } else { a }, b);
        let (state, is_new) = states.of(pair);
        if is_new {
            pairs.push(pair);
        }
        state
    };
    state(&mut pairs, 0, 0);
    dfa.start = state(&mut pairs, under.start, over.start);
    let mut at = 0;
    while at < pairs.len() {
        if at > max {
            return None;
        }
        let (a, b) = pairs[at];
        let mut row = Vec::new();
        for (last, a, b) in both(&under.rows[a as usize], &over.rows[b as usize]) {
            push(&mut row, last, state(&mut pairs, a, b));
        }
        let (before, own) = (under.said(a), over.said(b));
        let said = std::array::from_fn(|kind| before_none(own[kind].over(before[kind]), none));
        let (answer, is_new) = answers.of(said);
        if is_new {
            dfa.answers.push(said);
        }
        dfa.rows.push(row);
        dfa.accepts.push(answer);
        at += 1;
    }
    Some(dfa)
}

/// The runs of two rows at once.
fn both<'r>(a: &'r [Run], b: &'r [Run]) -> impl Iterator<Item = (u8, u32, u32)> + 'r {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        let (&(a_last, a_next), &(b_last, b_next)) = (a.get(i)?, b.get(j)?);
        let last = a_last.min(b_last);
        i += usize::from(a_last == last);
        j += usize::from(b_last == last);
        Some((last, a_next, b_next))
    })
}

/// The states of the second automaton behind which the first one has no say, whatever follows, as where `(/.*)?` matches.
fn settled(under: &Dfa<[Said; 7]>, over: &Dfa<[Said; 7]>) -> Vec<bool> {
    let reach = under
        .answers
        .iter()
        .flatten()
        .map(|said| said.rank.max(said.none))
        .max();
    let reach = reach.unwrap_or_default().max(1);
    let hides = |said: &[Said; 7]| said.iter().all(|said| said.rank >= reach);
    let answers: Vec<bool> = over.answers.iter().map(hides).collect();
    let before = over.predecessors();
    let mut settled: Vec<bool> = over
        .accepts
        .iter()
        .map(|&at| answers[at as usize])
        .collect();
    let mut left: Vec<u32> = (0..)
        .zip(&settled)
        .filter(|(_, is)| !**is)
        .map(|(at, _)| at)
        .collect();
    while let Some(state) = left.pop() {
        for &from in before.of(state) {
            if std::mem::replace(&mut settled[from as usize], false) {
                left.push(from);
            }
        }
    }
    settled
}
