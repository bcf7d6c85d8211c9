//! Equal states merged, and bytes that no state tells apart.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::dfa::{Dfa, Numbers, Run, push};

/// Merges states that say the same of whatever follows, and drops those that no name leads to. State 0 stays.
///
/// States are parted by what they say, and then by which part each byte leads to, until no part is parted further (Moore).
/// A part that is parted keeps its number for most of its states, so that only those are looked at again that lead to
/// others (Hopcroft's "smaller half").
pub(crate) fn minimise<A: Clone + Hash + Eq>(dfa: &Dfa<A>) -> Dfa<A> {
    let dfa = &reachable(dfa);
    let before = dfa.predecessors();
    let mut parts = dfa.accepts.clone();
    let mut sizes = vec![0_usize; dfa.answers.len()];
    for &part in &parts {
        sizes[part as usize] += 1;
    }
    let mut dirty: Vec<u32> = (0..dfa.rows.len() as u32).collect();
    while !dirty.is_empty() {
        let mut groups: HashMap<(u32, Vec<Run>), Vec<u32>> = HashMap::new();
        for state in dirty.drain(..) {
            let row = renamed(&dfa.rows[state as usize], |next| parts[next as usize]);
            let key = (parts[state as usize], row);
            groups.entry(key).or_default().push(state);
        }
        let mut by_part: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
        for ((part, _), states) in groups {
            by_part.entry(part).or_default().push(states);
        }
        for (part, mut groups) in by_part {
            let looked_at: usize = groups.iter().map(Vec::len).sum();
            // those that were not looked at are alike, and other than the rest
            if looked_at == sizes[part as usize] {
                let largest = (0..groups.len()).max_by_key(|&at| (groups[at].len(), groups[at][0]));
                groups.swap_remove(largest.unwrap_or_default());
            }
            for group in groups {
                sizes[part as usize] -= group.len();
                let fresh = sizes.len() as u32;
                sizes.push(group.len());
                for state in group {
                    parts[state as usize] = fresh;
                    dirty.extend(before.of(state));
                }
            }
        }
        dirty.sort_unstable();
        dirty.dedup();
    }
    merged(dfa, &parts)
}

/// One state for each part, in the order in which the parts first appear.
fn merged<A: Clone + Hash + Eq>(dfa: &Dfa<A>, parts: &[u32]) -> Dfa<A> {
    let mut numbers = Numbers(HashMap::new());
    let mut firsts = Vec::new();
    let mut names = Vec::with_capacity(parts.len());
    for (state, &part) in parts.iter().enumerate() {
        let (name, is_new) = numbers.of(part);
        if is_new {
            firsts.push(state);
        }
        names.push(name);
    }
    let mut answers = Numbers(HashMap::new());
    let mut least = Dfa {
        start: names[dfa.start as usize],
        ..Dfa::new()
    };
    for state in firsts {
        let said = dfa.said(state as u32);
        let (answer, is_new) = answers.of(said);
        if is_new {
            least.answers.push(said.clone());
        }
        least.accepts.push(answer);
        least
            .rows
            .push(renamed(&dfa.rows[state], |next| names[next as usize]));
    }
    least
}

/// The states that a name can lead to, in the order in which a search by breadth meets them.
fn reachable<A: Clone + Hash + Eq>(dfa: &Dfa<A>) -> Dfa<A> {
    let mut numbers = Numbers(HashMap::new());
    numbers.of(0);
    let mut order = vec![0];
    let (start, is_new) = numbers.of(dfa.start);
    order.extend(is_new.then_some(dfa.start));
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < order.len() {
        let row = renamed(&dfa.rows[order[at] as usize], |next| {
            let (number, is_new) = numbers.of(next);
            order.extend(is_new.then_some(next));
            number
        });
        rows.push(row);
        at += 1;
    }
    let mut answers = Numbers(HashMap::new());
    let mut kept = Dfa {
        rows,
        start,
        ..Dfa::new()
    };
    for state in order {
        let said = dfa.said(state);
        let (answer, is_new) = answers.of(said);
        if is_new {
            kept.answers.push(said.clone());
        }
        kept.accepts.push(answer);
    }
    kept
}

/// A row by other names, with runs merged that lead to the same.
fn renamed(row: &[Run], mut name: impl FnMut(u32) -> u32) -> Vec<Run> {
    let mut renamed = Vec::with_capacity(row.len());
    for &(last, next) in row {
        push(&mut renamed, last, name(next));
    }
    renamed
}

/// The class of each byte, and a byte of each class.
pub(crate) fn classes<A>(dfa: &Dfa<A>) -> (Box<[u8; 256]>, Vec<u8>) {
    // bytes are told apart where a run ends; what lies between is then compared as columns
    let mut ends = [false; 256];
    ends[255] = true;
    for &(last, _) in dfa.rows.iter().flatten() {
        ends[usize::from(last)] = true;
    }
    let mut classes = Box::new([0; 256]);
    let mut columns: Numbers<Vec<u32>> = Numbers(HashMap::new());
    let mut representatives = Vec::new();
    let mut first = 0;
    for last in (0..=u8::MAX).filter(|&byte| ends[usize::from(byte)]) {
        let column = (0..dfa.rows.len() as u32).map(|state| dfa.step(state, last));
        let (class, is_new) = columns.of(column.collect());
        representatives.extend(is_new.then_some(last));
        classes[first..=usize::from(last)].fill(class as u8);
        first = usize::from(last) + 1;
    }
    (classes, representatives)
}
