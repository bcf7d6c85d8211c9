//! Some patterns as one nondeterministic automaton over bytes.

use regex_automata::nfa::thompson::{self, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::Hir;

/// Bytes that the states of one pattern may take: repetitions are laid out as often as they count.
const MAX_PATTERN: usize = 1 << 18;

/// Some patterns, each of a line's number.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    pub nodes: Vec<Node>,
    /// Where bytes lead: sets of nodes.
    pub targets: Vec<Box<[u32]>>,
    /// The nodes in which a name begins.
    pub starts: Vec<u32>,
}

/// A state of a pattern.
#[derive(Debug)]
pub(crate) struct Node {
    /// The line's number.
    pub line: usize,
    /// Which bytes lead on, and the targets' set.
    pub edges: Vec<(u8, u8, u32)>,
    /// The pattern matches if the name ends here; then there are no edges.
    pub is_match: bool,
}

/// A pattern that would take too many states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// The line's number.
    pub line: usize,
}

impl Patterns {
    /// Adds a line's pattern. It is asked only about what begins with `prefix`.
    pub fn add(&mut self, line: usize, prefix: &[u8], hir: &Hir) -> Result<(), TooLarge> {
        let nfa = &compile(hir).ok_or(TooLarge { line })?;
        let mut layout = Layout {
            nfa,
            line,
            patterns: self,
            of_state: vec![None; nfa.states().len()],
            closures: vec![None; nfa.states().len()],
        };
        let mut set = layout.closure(nfa.start_anchored(), true);
        layout.finish();
        for &byte in prefix {
            set = self.step(&set, byte);
        }
        for &byte in prefix.iter().rev() {
            self.targets.push(set.into());
            self.nodes.push(Node {
                line,
                edges: vec![(byte, byte, self.targets.len() as u32 - 1)],
                is_match: false,
            });
            set = vec![self.nodes.len() as u32 - 1];
        }
        self.starts.extend(set);
        Ok(())
    }

    fn step(&self, set: &[u32], byte: u8) -> Vec<u32> {
        let edges = set
            .iter()
            .flat_map(|&node| &self.nodes[node as usize].edges);
        let taken = edges.filter(|&&(low, high, _)| (low..=high).contains(&byte));
        let mut next: Vec<u32> = taken
            .flat_map(|&(_, _, targets)| &self.targets[targets as usize])
            .copied()
            .collect();
        next.sort_unstable();
        next.dedup();
        next
    }
}

fn compile(hir: &Hir) -> Option<NFA> {
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(MAX_PATTERN));
    let mut compiler = thompson::Compiler::new();
    compiler.configure(config).build_from_hir(hir).ok()
}

/// A pattern's states while they become nodes.
struct Layout<'p> {
    nfa: &'p NFA,
    line: usize,
    patterns: &'p mut Patterns,
    of_state: Vec<Option<u32>>,
    /// The targets' sets that were made, by the state that a byte leads to.
    closures: Vec<Option<u32>>,
}

impl Layout<'_> {
    /// The nodes that are reached from a state without a byte.
    ///
    /// The end is passed on the way to a match only, as no byte follows it; the start only where no byte was.
    fn closure(&mut self, state: StateID, at_start: bool) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut left = vec![(state, false)];
        while let Some((id, ended)) = left.pop() {
            if !seen.insert((id, ended)) {
                continue;
            }
            match self.nfa.state(id) {
                State::Union { alternates } => {
                    left.extend(alternates.iter().map(|&next| (next, ended)));
                }
                &State::BinaryUnion { alt1, alt2 } => left.extend([(alt1, ended), (alt2, ended)]),
                &State::Capture { next, .. } => left.push((next, ended)),
                &State::Look { look, next } => match look {
                    Look::End => left.push((next, true)),
                    Look::Start if at_start => left.push((next, ended)),
                    _ => {}
                },
                State::Match { .. } => nodes.push(self.node(id)),
                State::Fail => {}
                _ if ended => {}
                _ => nodes.push(self.node(id)),
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn node(&mut self, state: StateID) -> u32 {
        let nodes = &mut self.patterns.nodes;
        let line = self.line;
        let is_match = matches!(self.nfa.state(state), State::Match { .. });
        *self.of_state[state.as_usize()].get_or_insert_with(|| {
            nodes.push(Node {
                line,
                edges: Vec::new(),
                is_match,
            });
            nodes.len() as u32 - 1
        })
    }

    /// Gives all nodes their edges; nodes that are reached by them are made on the way.
    fn finish(&mut self) {
        let mut done = vec![false; self.of_state.len()];
        let mut left: Vec<StateID> = self.unfinished(&mut done);
        while !left.is_empty() {
            for id in left {
                let edges: Vec<_> = match self.nfa.state(id) {
                    State::ByteRange { trans } => vec![(trans.start, trans.end, trans.next)],
                    State::Sparse(sparse) => {
                        let transitions = sparse.transitions.iter();
                        transitions.map(|t| (t.start, t.end, t.next)).collect()
                    }
                    State::Dense(dense) => {
                        let bytes = (0..=u8::MAX).zip(&dense.transitions);
                        bytes.map(|(byte, &next)| (byte, byte, next)).collect()
                    }
                    _ => Vec::new(),
                };
                let edges = edges.into_iter();
                let edges = edges
                    .map(|(low, high, next)| (low, high, self.targets(next)))
                    .collect();
                let node = self.node(id);
                self.patterns.nodes[node as usize].edges = edges;
            }
            left = self.unfinished(&mut done);
        }
    }

    fn unfinished(&self, done: &mut [bool]) -> Vec<StateID> {
        let states = 0..self.of_state.len();
        let new = states
            .filter(|&at| self.of_state[at].is_some() && !std::mem::replace(&mut done[at], true));
        new.map(StateID::must).collect()
    }

    fn targets(&mut self, state: StateID) -> u32 {
        if let Some(set) = self.closures[state.as_usize()] {
            return set;
        }
        let closure = self.closure(state, false);
        let sets = &mut self.patterns.targets;
        sets.push(closure.into());
        let set = sets.len() as u32 - 1;
        self.closures[state.as_usize()] = Some(set);
        set
    }
}
