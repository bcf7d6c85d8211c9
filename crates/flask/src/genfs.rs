//! The automaton of the paths of a filesystem that has no labels of its own (`genfscon`).

use tidegate_bundle::te::contexts::{Automaton, Said};

use crate::classes::Classes;

/// The classes of each kind of file, in the order of an automaton's answers.
pub const FILE_KINDS: [&str; 7] = [
    "file",
    "dir",
    "chr_file",
    "blk_file",
    "fifo_file",
    "lnk_file",
    "sock_file",
];

/// A path of a filesystem, the class of which files it is about, if only of one, and the line that labels them.
pub(crate) type Path<'p> = (&'p str, Option<u32>, u16);

/// Of a filesystem's paths, in the order in which they are looked for: the first that another path begins with, and
/// whose class is its own, counts.
pub(crate) fn genfs(paths: &[Path<'_>], classes: &Classes) -> Automaton {
    let kinds = FILE_KINDS.map(|name| classes.by_name(name));
    let mut classes_of = Box::new([0u8; 256]);
    let mut width = 1u32;
    for byte in paths.iter().flat_map(|(path, ..)| path.bytes()) {
        let class = &mut classes_of[usize::from(byte)];
        if *class == 0 {
            *class = width as u8;
            width += 1;
        }
    }
    // a trie: each node is two states, itself and whatever leaves the paths from there
    let mut nodes: Vec<&[u8]> = vec![b""];
    for (path, ..) in paths {
        for end in 1..=path.len() {
            let prefix = &path.as_bytes()[..end];
            if !nodes.contains(&prefix) {
                nodes.push(prefix);
            }
        }
    }
    let mut automaton = Automaton {
        classes: classes_of,
        width: width as u16,
        start: 1,
        next: vec![0; (1 + 2 * nodes.len()) * width as usize],
        accepts: vec![0; 1 + 2 * nodes.len()],
        answers: vec![[Said::default(); 7]],
    };
    for (at, node) in nodes.iter().enumerate() {
        let (inside, outside) = (1 + 2 * at, 2 + 2 * at);
        let mut answer = [Said::default(); 7];
        for (kind, class) in kinds.iter().enumerate() {
            let fits = |p: &&Path<'_>| {
                node.starts_with(p.0.as_bytes()) && (p.1.is_none() || p.1 == *class)
            };
            answer[kind] = paths.iter().find(fits).map_or(Said::default(), |p| Said {
                line: p.2,
                rank: 1,
                none: 0,
            });
        }
        automaton.answers.push(answer);
        automaton.accepts[inside] = at as u16 + 1;
        automaton.accepts[outside] = at as u16 + 1;
        for class in 0..width as usize {
            automaton.next[inside * width as usize + class] = outside as u16;
            automaton.next[outside * width as usize + class] = outside as u16;
        }
    }
    for (at, node) in nodes.iter().enumerate().skip(1) {
        let (parent, byte) = node.split_at(node.len() - 1);
        let parent = nodes.iter().position(|n| *n == parent).unwrap_or(0);
        let class = usize::from(automaton.classes[usize::from(byte[0])]);
        automaton.next[(1 + 2 * parent) * width as usize + class] = 1 + 2 * at as u16;
    }
    automaton
}
