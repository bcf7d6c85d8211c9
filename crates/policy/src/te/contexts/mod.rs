//! File contexts: which context a file has by its path, as one automaton that reads a path once.
//!
//! The files are those of file_contexts(5), and the answers are those of selabel_lookup(3) of libselinux 3.8, which Debian
//! 13 has. libselinux asks one pattern after another; here all patterns and substitutions are compiled into a few automata,
//! so that the kernel can tell a path's context by one step in each for each byte. `docs/dev/te-file-contexts.md` has the rules.
//!
//! ```
//! use tidegate_policy::te::contexts::{FileContexts, Kind, Text, Texts};
//!
//! let policy = Text {
//!     name: "file_contexts".into(),
//!     text: "/.* u:r:default_t\n/srv/www(/.*)? u:r:www_t\n/srv/www/socket -s <<none>>\n".into(),
//! };
//! let contexts = FileContexts::compile(&Texts { policy, ..Texts::default() })?;
//! let of = |path: &str, kind| contexts.lookup(path.as_bytes(), kind);
//! assert_eq!(of("/srv/www/index.html", Kind::Regular).context, Some("u:r:www_t"));
//! assert_eq!(of("/srv/www/socket", Kind::Socket).context, None);
//! assert_eq!(of("/srv/www/socket", Kind::Socket).line.unwrap().number, 3);
//! # Ok::<(), tidegate_policy::te::contexts::ContextsErrors>(())
//! ```

mod alias;
mod compile;
mod pattern;
mod problem;
mod product;
mod read;
mod said;
mod spec;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::problem::{ContextsErrors, ContextsFinding, ContextsProblem};
pub use self::said::Said;
use crate::limits::MAX_FILE_CONTEXTS_TEXT;

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
    /// All kinds, in the order of an [answer](FileContexts::answers)'s parts.
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

    /// The kind that a line of file contexts names by its second word.
    fn of_option(word: &str) -> Option<Kind> {
        Some(match word {
            "--" => Kind::Regular,
            "-d" => Kind::Directory,
            "-c" => Kind::Character,
            "-b" => Kind::Block,
            "-p" => Kind::Fifo,
            "-l" => Kind::Symlink,
            "-s" => Kind::Socket,
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

/// A file's text with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The name, for diagnostics.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The texts that make the file contexts of a policy (selabel_file(5)); one that is not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// `file_contexts`.
    pub policy: Text,
    /// `file_contexts.homedirs`, which overrides the policy's.
    pub homedirs: Text,
    /// `file_contexts.local`, which overrides both.
    pub local: Text,
    /// `file_contexts.subs_dist`.
    pub subs_dist: Text,
    /// `file_contexts.subs`, applied before the other.
    pub subs: Text,
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
    /// Reads and compiles `file_contexts` at a path, with the files beside it that have its name and an ending of their own.
    ///
    /// # Errors
    ///
    /// Everything wrong in the files.
    pub fn compile_files(path: &Path) -> Result<FileContexts, ContextsErrors> {
        let mut texts = Texts::default();
        let mut findings = Vec::new();
        for (text, ending) in [
            (&mut texts.policy, ""),
            (&mut texts.homedirs, ".homedirs"),
            (&mut texts.local, ".local"),
            (&mut texts.subs_dist, ".subs_dist"),
            (&mut texts.subs, ".subs"),
        ] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            text.name = name.to_string_lossy().into_owned();
            match std::fs::read(&name) {
                Ok(bytes) => text.text = String::from_utf8_lossy(&bytes).into_owned(),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && !ending.is_empty() => {}
                Err(e) => {
                    let problem = ContextsProblem::Unreadable(e.to_string());
                    findings.push(ContextsFinding::of_file(problem, &text.name));
                }
            }
        }
        match findings.is_empty() {
            true => Self::compile(&texts),
            false => Err(ContextsErrors(findings)),
        }
    }

    /// Compiles file contexts.
    ///
    /// # Errors
    ///
    /// Everything wrong in the texts.
    pub fn compile(texts: &Texts) -> Result<FileContexts, ContextsErrors> {
        let files = [&texts.policy, &texts.homedirs, &texts.local];
        let all = files.into_iter().chain([&texts.subs_dist, &texts.subs]);
        for text in all {
            if text.text.len() > MAX_FILE_CONTEXTS_TEXT {
                let finding = ContextsFinding::of_file(ContextsProblem::TextSize, &text.name);
                return Err(ContextsErrors(vec![finding]));
            }
        }
        let mut read = read::Read::default();
        for text in files {
            read.contexts(text);
        }
        let [dist, local] = [&texts.subs_dist, &texts.subs].map(|text| read.aliases(text));
        if !read.findings.is_empty() {
            return Err(ContextsErrors(read.findings));
        }
        let automata = compile::automata(&read.specs, [&dist, &local]).map_err(|fault| {
            let (problem, spec) = match fault {
                compile::Fault::Large(spec) => (ContextsProblem::Large, spec),
                compile::Fault::States(spec) => (ContextsProblem::States, spec),
            };
            ContextsErrors(vec![read.finding(problem, spec, files)])
        })?;
        Ok(FileContexts {
            automata,
            lines: read.lines,
            files: read.files,
            contexts: read.contexts,
        })
    }

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
