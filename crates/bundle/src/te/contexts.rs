//! File contexts, compiled: which context a file has by its path, by automata that read a path once.

use serde::{Deserialize, Serialize};

pub use super::said::Said;

/// A kind of file, by the type in its mode (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file, `--`.
    Regular,
    /// A directory, `-d`.
    Directory,
    /// A character device, `-c`.
    Character,
    /// A block device, `-b`.
    Block,
    /// A named pipe, `-p`.
    Fifo,
    /// A symbolic link, `-l`.
    Symlink,
    /// A socket, `-s`.
    Socket,
}

impl Kind {
    /// All kinds, in the order of an [answer](Automaton)'s parts.
    pub const ALL: [Kind; 7] = [
        Kind::Regular,
        Kind::Directory,
        Kind::Character,
        Kind::Block,
        Kind::Fifo,
        Kind::Symlink,
        Kind::Socket,
    ];

    /// The kind that a file's mode tells of (`S_IFMT`).
    pub fn of_mode(mode: u32) -> Option<Kind> {
        Some(match mode & 0o170_000 {
            0o100_000 => Kind::Regular,
            0o040_000 => Kind::Directory,
            0o020_000 => Kind::Character,
            0o060_000 => Kind::Block,
            0o010_000 => Kind::Fifo,
            0o120_000 => Kind::Symlink,
            0o140_000 => Kind::Socket,
            _ => return None,
        })
    }
}

/// A line that says what some files' context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The file that it stands in: an index into [`FileContexts::files`].
    pub file: u8,
    /// Its number there, from 1.
    pub number: u32,
    /// The context, an index into [`FileContexts::contexts`]; without one, `<<none>>`.
    pub context: Option<u16>,
}

/// File contexts, compiled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileContexts {
    /// The automata, each of which overrides those before it.
    pub automata: Vec<Automaton>,
    /// The lines that answers name.
    pub lines: Vec<Line>,
    /// The names of the files that they stand in.
    pub files: Vec<String>,
    /// The contexts, each once.
    pub contexts: Vec<String>,
}

/// An automaton for some of the lines, which says something of each of [`Kind::ALL`]. A path begins before its first slash.
pub type Automaton = crate::automaton::Automaton<[Said; 7]>;

/// What file contexts say of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'c> {
    /// Its context. Without one, the file is not to be labelled by them.
    pub context: Option<&'c str>,
    /// The line that says so; without one, none matches.
    pub line: Option<&'c Line>,
}

impl FileContexts {
    /// What is said of a path, which begins with `/` and has neither `//` nor a slash at its end, as the kernel tells it.
    pub fn lookup(&self, path: &[u8], kind: Kind) -> Found<'_> {
        let said = self
            .automata
            .iter()
            .map(|automaton| automaton.walk(path)[kind as usize]);
        let said = said.fold(Said::default(), |before, own| own.over(before));
        let line = said.line().map(|line| &self.lines[usize::from(line)]);
        let context = line.and_then(|line| line.context);
        Found {
            context: context.map(|at| self.contexts[usize::from(at)].as_str()),
            line,
        }
    }
}
