//! Substitutions: a path's beginning that is taken for another one.
//!
//! A substitution maps a prefix to a prefix, so nothing has to be rewritten when a path is looked up: behind `/bin` the
//! automaton is where it is behind `/usr/bin`.

use std::collections::BTreeMap;

use crate::automaton::dfa::{Dfa, push};

/// A line of `file_contexts.subs` or `file_contexts.subs_dist`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alias {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// A place in the paths that are replaced.
#[derive(Default)]
struct Node {
    children: BTreeMap<u8, usize>,
    /// The path is replaced as the alias of this number says.
    alias: Option<usize>,
}

/// Lets an automaton replace the beginnings of paths before it looks at them.
///
/// Of several aliases that fit, the first one counts, not the longest (`selabel_apply_subs()` of label_file.c), and one is
/// applied once.
pub(super) fn apply<A>(dfa: &mut Dfa<A>, aliases: &[Alias]) {
    if aliases.is_empty() {
        return;
    }
    let mut trie = vec![Node::default()];
    for (index, alias) in aliases.iter().enumerate() {
        let mut at = 0;
        for &byte in &alias.from {
            let made = trie.len();
            let child = *trie[at].children.entry(byte).or_insert(made);
            if child == made {
                trie.push(Node::default());
            }
            at = child;
        }
        trie[at].alias.get_or_insert(index);
    }
    let begin = dfa.rows.len() as u32;
    let mut places = vec![Place::default(); trie.len()];
    places[0].state = dfa.start;
    // a child stands behind its parent
    for at in 0..trie.len() {
        let Place {
            state,
            alias: chosen,
        } = places[at];
        // at this path's end, or before a slash
        let own = trie[at]
            .alias
            .filter(|&own| chosen.is_none_or(|chosen| own < chosen));
        let mut accept = state;
        let mut below = (dfa.step(state, b'/'), chosen);
        if let Some(index) = own {
            let to = &aliases[index].to;
            accept = dfa.walk(dfa.start, to);
            // the root's slash is there already
            let is_root = to == b"/";
            below = (
                if is_root {
                    accept
                } else {
                    dfa.step(accept, b'/')
                },
                own,
            );
        }
        let mut row = Vec::new();
        for byte in 0..=u8::MAX {
            let (next, chosen) = match byte {
                b'/' => below,
                _ => (dfa.step(state, byte), chosen),
            };
            let next = match trie[at].children.get(&byte) {
                Some(&child) => {
                    places[child] = Place {
                        state: next,
                        alias: chosen,
                    };
                    begin + child as u32
                }
                None => next,
            };
            push(&mut row, byte, next);
        }
        dfa.rows.push(row);
        dfa.accepts.push(dfa.accepts[accept as usize]);
    }
    dfa.start = begin;
}

/// How a place in the paths that are replaced is reached.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The state of the automaton, after the path as it is replaced up to here.
    state: u32,
    /// The alias that replaced it.
    alias: Option<usize>,
}
