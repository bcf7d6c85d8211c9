//! Some patterns, made deterministic: each set of patterns' states that a name can be in at once becomes a state.

use std::collections::HashMap;
use std::hash::Hash;

use super::dfa::{Dfa, Numbers, Run, push};
use super::nfa::Patterns;

/// Determinises patterns, unless that takes more than `max` states. `said` tells what is said where the patterns of some
/// lines match, which are given in the order in which they were added, each once.
pub(crate) fn determinise<A: Clone + Hash + Eq>(
    patterns: &Patterns,
    max: usize,
    said: impl Fn(&[usize]) -> A,
) -> Option<Dfa<A>> {
    let mut build = Build {
        patterns,
        say: said,
        dfa: Dfa::new(),
        states: Numbers(HashMap::new()),
        sets: Vec::new(),
        answers: Numbers(HashMap::new()),
    };
    build.state(Vec::new());
    build.dfa.start = build.state(patterns.starts.clone());
    let mut at = 0;
    while at < build.sets.len() {
        if at > max {
            return None;
        }
        let row = build.row(at);
        build.dfa.rows.push(row);
        at += 1;
    }
    Some(build.dfa)
}

struct Build<'p, A, S> {
    patterns: &'p Patterns,
    say: S,
    dfa: Dfa<A>,
    states: Numbers<Box<[u32]>>,
    sets: Vec<Box<[u32]>>,
    answers: Numbers<A>,
}

impl<A: Clone + Hash + Eq, S: Fn(&[usize]) -> A> Build<'_, A, S> {
    fn state(&mut self, mut nodes: Vec<u32>) -> u32 {
        nodes.sort_unstable();
        nodes.dedup();
        let set: Box<[u32]> = nodes.into();
        let (state, is_new) = self.states.of(set.clone());
        if is_new {
            let said = self.said(&set);
            let (answer, is_new) = self.answers.of(said.clone());
            if is_new {
                self.dfa.answers.push(said);
            }
            self.dfa.accepts.push(answer);
            self.sets.push(set);
        }
        state
    }

    fn row(&mut self, state: usize) -> Vec<Run> {
        let patterns = self.patterns;
        let set = self.sets[state].clone();
        let edges = || {
            set.iter()
                .flat_map(|&at| &patterns.nodes[at as usize].edges)
        };
        // where runs of bytes begin that lead to the same nodes
        let mut begins = [false; 257];
        begins[0] = true;
        for &(low, high, _) in edges() {
            begins[usize::from(low)] = true;
            begins[usize::from(high) + 1] = true;
        }
        let runs: Vec<usize> = (0..256).filter(|&byte| begins[byte]).collect();
        let run_of = |byte: u8| runs.partition_point(|&first| first <= usize::from(byte)) - 1;
        let mut reached = vec![Vec::new(); runs.len()];
        for &(low, high, targets) in edges() {
            for run in &mut reached[run_of(low)..=run_of(high)] {
                run.extend_from_slice(&patterns.targets[targets as usize]);
            }
        }
        let mut row = Vec::with_capacity(runs.len());
        for (run, nodes) in reached.into_iter().enumerate() {
            let last = runs.get(run + 1).map_or(255, |next| next - 1) as u8;
            let next = self.state(nodes);
            push(&mut row, last, next);
        }
        row
    }

    fn said(&self, set: &[u32]) -> A {
        let nodes = set.iter().map(|&at| &self.patterns.nodes[at as usize]);
        let matches = nodes.filter(|node| node.is_match);
        // nodes are numbered in the order in which their lines were added
        let mut lines: Vec<usize> = matches.map(|node| node.line).collect();
        lines.dedup();
        (self.say)(&lines)
    }
}
