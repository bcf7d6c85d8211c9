//! Patterns of names: AppArmor's globbing (apparmor.d(5), *Globbing*).
//!
//! What differs, and why: directories have no slash at their end, as no canonical path has one; and a class of characters never
//! stands for a slash, negated or not, so that only `**` goes from one directory into another.

use std::collections::BTreeSet;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::escape::{Byte, unescape};
use crate::limits::{MAX_LINE, MAX_NESTING};

/// What `\` may stand before.
const ESCAPED: &[u8] = b"\\\"*?[]{},^-@";

/// What a pattern is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Canonical paths.
    Paths,
    /// Names of Unix sockets: a path, or `@` and an abstract name.
    Sockets,
    /// Names of a service's objects, in whatever form it has them.
    Objects,
}

/// A pattern of names. It is kept as it was written: each of its pieces would take 32 times the byte that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// This byte.
    Byte(u8),
    /// `?`: any byte but a slash.
    Any,
    /// `[a-c]`, `[^a-c]`: any byte but a slash that is in these ranges, or that is not.
    Class {
        /// Whether the byte is in none of the ranges.
        not: bool,
        /// The first and the last byte of each range.
        ranges: Vec<(u8, u8)>,
    },
    /// `*` and `**`: any number of bytes, without slashes, or with; where a whole component is meant, not none, and the first
    /// is no slash.
    Many {
        /// Whether slashes are among them.
        slashes: bool,
        /// Whether a whole component is meant.
        some: bool,
    },
    /// `{a,b}`: one of these.
    Either(Vec<Vec<Part>>),
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum PatternProblem {
    /// It begins with no slash.
    #[error("a path begins with `/`")]
    #[diagnostic(
        code(caps::path_relative),
        help(
            "write the canonical path from the root; an abstract socket's name is written `@NAME`"
        )
    )]
    Relative,
    /// `~`.
    #[error("`~` is not known here")]
    #[diagnostic(
        code(caps::path_home),
        help("write the home out, as /home/ann or {{/root,/home/*}}")
    )]
    Home,
    /// `@{…}`.
    #[error("there are no variables here")]
    #[diagnostic(
        code(caps::path_variable),
        help("write the path out, with {{a,b}} for alternatives")
    )]
    Variable,
    /// Nothing at all.
    #[error("an empty name")]
    #[diagnostic(code(caps::name_empty), help("write `**` for all names"))]
    Nothing,
    /// `//`, or a slash at the end.
    #[error("an empty component")]
    #[diagnostic(
        code(caps::path_empty),
        help(
            "write single slashes and none at the end, for directories too; `/**` behind a path is all that is below it"
        )
    )]
    Empty,
    /// `.` or `..`.
    #[error("`{0}` is not part of a canonical path")]
    #[diagnostic(code(caps::path_dot), help("write the path without it"))]
    Dot(&'static str),
    /// A zero byte.
    #[error("a path has no zero byte")]
    #[diagnostic(code(caps::path_zero), help("leave `\\x00` out"))]
    Zero,
    /// An unknown escape.
    #[error("unknown escape `{0}`")]
    #[diagnostic(
        code(caps::path_escape),
        help(r#"`\` stands before one of `* ? [ ] {{ }} , ^ - @ " \`, and `\xHH` is any byte"#)
    )]
    Escape(String),
    /// `[` or `{` without end.
    #[error("`{0}` is not closed")]
    #[diagnostic(
        code(caps::glob_unclosed),
        help("close it, or write `\\{0}` for the character itself")
    )]
    Unclosed(char),
    /// `]` or `}` without beginning.
    #[error("`{0}` closes nothing")]
    #[diagnostic(code(caps::glob_stray), help("write `\\{0}` for the character itself"))]
    Stray(char),
    /// `[]`, `[b-a]`, and what is no single byte.
    #[error("{0} in `[…]`")]
    #[diagnostic(
        code(caps::glob_class),
        help(
            "write single ASCII characters and ranges of them, as [a-z0-9_]; for others, alternatives as {{é,è}}"
        )
    )]
    Class(&'static str),
    /// `{a}`.
    #[error("`{{…}}` with one alternative")]
    #[diagnostic(
        code(caps::glob_alternatives),
        help("part alternatives by commas, as {{a,b}}, or leave the braces out")
    )]
    Alternatives,
    /// Braces in braces in braces.
    #[error("braces are more than {MAX_NESTING} deep")]
    #[diagnostic(code(caps::glob_nesting), help("write several capabilities"))]
    Nesting,
}

impl Pattern {
    /// Reads a pattern as it is written, in quotes or without.
    ///
    /// # Errors
    ///
    /// The first thing wrong with it.
    pub fn parse(written: &str, names: Names) -> Result<Pattern, PatternProblem> {
        read(written, names)?;
        Ok(Pattern {
            text: written.to_owned(),
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its pieces, in their order, which are read anew each time.
    pub fn parts(&self) -> Vec<Part> {
        // whatever any other sort of names is checked for, this one is, too
        read(&self.text, Names::Objects).expect("it was read when it was made")
    }

    /// Whether it matches a name: slowly, and by another way than automata do.
    pub fn matches(&self, name: &[u8]) -> bool {
        ends(&self.parts(), name, BTreeSet::from([0])).contains(&name.len())
    }

    /// What it begins with, as far as that is written out.
    pub fn literal(&self) -> Vec<u8> {
        self.parts().iter().map_while(Part::byte).collect()
    }

    /// The one name that it matches, if there are no more.
    pub fn single(&self) -> Option<Vec<u8>> {
        self.parts().iter().map(Part::byte).collect()
    }
}

impl Part {
    /// The byte that is written out.
    fn byte(&self) -> Option<u8> {
        match self {
            Part::Byte(byte) => Some(*byte),
            _ => None,
        }
    }
}

/// The pieces of a pattern as it is written.
fn read(written: &str, names: Names) -> Result<Vec<Part>, PatternProblem> {
    let inner = written.strip_prefix('"');
    let inner = inner.map_or(written, |rest| rest.strip_suffix('"').unwrap_or(rest));
    let bytes = unescape(inner, ESCAPED).map_err(PatternProblem::Escape)?;
    check_beginning(&bytes, names)?;
    if names != Names::Objects && !bytes.starts_with(&[Byte::Plain(b'@')]) {
        check_components(&bytes)?;
    }
    Parser {
        bytes: &bytes,
        at: 0,
    }
    .sequence(0)
}

/// A path as a pattern that matches it and nothing else. It has no quotation marks, control characters or line breaks, so that it
/// is a word between quotation marks.
pub fn literal(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars() {
        match c {
            // a quotation mark would end a word, whatever stands before it
            c if c.is_ascii_control() || c == '"' => {
                text.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            c if c != '-' && c != '@' && c.is_ascii() && ESCAPED.contains(&(c as u8)) => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text
}

impl Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(to)
    }
}

/// A pattern whose sort is checked by the code that knows it: see [`Pattern::parse`]. It is as long as a line at most, as its pieces
/// take far more room than its text while they are looked at.
impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Pattern, D::Error> {
        let text = String::deserialize(from)?;
        if text.len() > MAX_LINE {
            return Err(serde::de::Error::invalid_length(text.len(), &"a pattern"));
        }
        read(&text, Names::Objects).map_err(serde::de::Error::custom)?;
        Ok(Pattern { text })
    }
}

/// Checks what a name begins with.
fn check_beginning(bytes: &[Byte], names: Names) -> Result<(), PatternProblem> {
    let (first, second) = (bytes.first().copied(), bytes.get(1).copied());
    match (names, first) {
        (_, None) => Err(PatternProblem::Nothing),
        (Names::Objects, _) => Ok(()),
        (_, Some(Byte::Plain(b'~'))) => Err(PatternProblem::Home),
        (_, Some(Byte::Plain(b'@'))) if second == Some(Byte::Plain(b'{')) => {
            Err(PatternProblem::Variable)
        }
        (Names::Sockets, Some(Byte::Plain(b'@'))) if second.is_none() => {
            Err(PatternProblem::Nothing)
        }
        (Names::Sockets, Some(Byte::Plain(b'@'))) => Ok(()),
        (_, Some(Byte::Plain(b'/'))) => Ok(()),
        _ => Err(PatternProblem::Relative),
    }
}

/// Checks the components of a path, as far as they are written out.
fn check_components(bytes: &[Byte]) -> Result<(), PatternProblem> {
    if bytes.iter().any(|byte| byte.value() == 0) {
        return Err(PatternProblem::Zero);
    }
    if bytes
        .windows(2)
        .any(|pair| pair == [Byte::Plain(b'@'), Byte::Plain(b'{')])
    {
        return Err(PatternProblem::Variable);
    }
    if bytes == [Byte::Plain(b'/')] {
        return Ok(());
    }
    for component in bytes.split(|byte| byte.value() == b'/').skip(1) {
        let values: Vec<u8> = component.iter().map(|byte| byte.value()).collect();
        match values.as_slice() {
            b"" => return Err(PatternProblem::Empty),
            b"." => return Err(PatternProblem::Dot(".")),
            b".." => return Err(PatternProblem::Dot("..")),
            _ => {}
        }
    }
    Ok(())
}

struct Parser<'b> {
    bytes: &'b [Byte],
    at: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<Byte> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Parts up to the end, or to what ends an alternative, which stays.
    fn sequence(&mut self, depth: usize) -> Result<Vec<Part>, PatternProblem> {
        let mut parts = Vec::new();
        while let Some(byte) = self.next() {
            parts.push(match byte {
                Byte::Plain(b'?') => Part::Any,
                Byte::Plain(b'*') => self.many(),
                Byte::Plain(b'[') => self.class()?,
                Byte::Plain(b']') => return Err(PatternProblem::Stray(']')),
                Byte::Plain(b'{') => self.either(depth + 1)?,
                Byte::Plain(b'}') if depth == 0 => return Err(PatternProblem::Stray('}')),
                Byte::Plain(b'}' | b',') if depth > 0 => {
                    self.at -= 1;
                    break;
                }
                byte => Part::Byte(byte.value()),
            });
        }
        Ok(parts)
    }

    /// `*` and `**`, whose first asterisk is taken.
    fn many(&mut self) -> Part {
        let before = self.at.checked_sub(2).map(|at| self.bytes[at]);
        let first = self.at;
        while self.bytes.get(self.at) == Some(&Byte::Plain(b'*')) {
            self.at += 1;
        }
        let is_end = matches!(self.bytes.get(self.at), None | Some(Byte::Plain(b'/')));
        Part::Many {
            slashes: self.at > first,
            some: before == Some(Byte::Plain(b'/')) && is_end,
        }
    }

    /// `[…]`, whose bracket is taken.
    fn class(&mut self) -> Result<Part, PatternProblem> {
        let unclosed = PatternProblem::Unclosed('[');
        let not = self.bytes.get(self.at) == Some(&Byte::Plain(b'^'));
        self.at += usize::from(not);
        let mut ranges = Vec::new();
        loop {
            let low = match self.next().ok_or(unclosed.clone())? {
                Byte::Plain(b']') => break,
                byte => single(byte)?,
            };
            let is_range = self.bytes.get(self.at) == Some(&Byte::Plain(b'-'))
                && self.bytes.get(self.at + 1) != Some(&Byte::Plain(b']'));
            let high = match is_range {
                true => {
                    self.at += 1;
                    single(self.next().ok_or(unclosed.clone())?)?
                }
                false => low,
            };
            if high < low {
                return Err(PatternProblem::Class("a range that goes backwards"));
            }
            ranges.push((low, high));
        }
        match ranges.is_empty() {
            true => Err(PatternProblem::Class("nothing")),
            false => Ok(Part::Class { not, ranges }),
        }
    }

    /// `{…}`, whose brace is taken.
    fn either(&mut self, depth: usize) -> Result<Part, PatternProblem> {
        if depth > MAX_NESTING {
            return Err(PatternProblem::Nesting);
        }
        let mut alternatives = vec![self.sequence(depth)?];
        loop {
            match self.next() {
                Some(Byte::Plain(b',')) => alternatives.push(self.sequence(depth)?),
                Some(_) => break,
                None => return Err(PatternProblem::Unclosed('{')),
            }
        }
        match alternatives.len() {
            1 => Err(PatternProblem::Alternatives),
            _ => Ok(Part::Either(alternatives)),
        }
    }
}

/// A byte that can stand in a class.
fn single(byte: Byte) -> Result<u8, PatternProblem> {
    match byte {
        Byte::Plain(128..) => Err(PatternProblem::Class("a character that is not ASCII")),
        _ if byte.value() == b'/' => Err(PatternProblem::Class("a slash, which it never matches,")),
        byte => Ok(byte.value()),
    }
}

/// Where names that begin at `starts` can end.
fn ends(parts: &[Part], name: &[u8], starts: BTreeSet<usize>) -> BTreeSet<usize> {
    parts.iter().fold(starts, |starts, part| match part {
        Part::Either(alternatives) => alternatives
            .iter()
            .flat_map(|parts| ends(parts, name, starts.clone()))
            .collect(),
        &Part::Many { slashes, some } => {
            let of_one = |start: usize| {
                let is_in = move |byte: &u8| slashes || *byte != b'/';
                let length = name[start..].iter().take_while(|byte| is_in(byte)).count();
                let is_slash = name.get(start) == Some(&b'/');
                let none = some && (length == 0 || is_slash);
                let least = start + usize::from(some);
                let most = if none { 0 } else { start + length + 1 };
                least..most
            };
            starts.into_iter().flat_map(of_one).collect()
        }
        _ => {
            let step = |start: usize| {
                let byte = *name.get(start)?;
                let is = match part {
                    Part::Byte(own) => byte == *own,
                    Part::Class { not, ranges } => {
                        let is_in = ranges
                            .iter()
                            .any(|&(low, high)| (low..=high).contains(&byte));
                        byte != b'/' && is_in != *not
                    }
                    _ => byte != b'/',
                };
                is.then_some(start + 1)
            };
            starts.into_iter().filter_map(step).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn matched(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = Pattern::parse(pattern, Names::Paths).unwrap();
        for name in yes {
            assert!(pattern.matches(name.as_bytes()), "{pattern:?} {name}");
        }
        for name in no {
            assert!(!pattern.matches(name.as_bytes()), "{pattern:?} {name}");
        }
    }

    #[test]
    fn globbing_as_apparmor_has_it() {
        matched(
            "/tmp/*",
            &["/tmp/a", "/tmp/.a"],
            &["/tmp", "/tmp/", "/tmp/a/b"],
        );
        matched(
            "/tmp/**",
            &["/tmp/a", "/tmp/a/b"],
            &["/tmp", "/tmp/", "/tmp//"],
        );
        matched("/tmp/a*", &["/tmp/a", "/tmp/ab"], &["/tmp/a/b"]);
        matched("/tmp**", &["/tmp", "/tmpx", "/tmp/a/b"], &["/tm"]);
        matched("/a/**/c", &["/a/b/c", "/a/b/b/c"], &["/a/c", "/a//c"]);
        matched("/a?", &["/ab"], &["/a", "/a/", "/abc"]);
        matched("/[a-c^]", &["/a", "/c", "/^"], &["/d", "//"]);
        matched("/[^a-c]", &["/d"], &["/a", "//"]);
        matched("/[a-]", &["/a", "/-"], &["/b"]);
        matched(
            "/{,usr/}bin/{a,b{1,2}}",
            &["/bin/a", "/usr/bin/b2"],
            &["/bin/b", "/usr/bin/"],
        );
        matched("/", &["/"], &["", "/a"]);
        matched(r#""/a b\*\x41""#, &["/a b*A"], &["/a bxA"]);
    }

    #[test]
    fn what_is_no_pattern() {
        let of = |text: &str| Pattern::parse(text, Names::Paths).unwrap_err();
        assert_eq!(of("a"), PatternProblem::Relative);
        assert_eq!(of("@a"), PatternProblem::Relative);
        assert_eq!(of("~/a"), PatternProblem::Home);
        assert_eq!(of("@{HOME}/a"), PatternProblem::Variable);
        assert_eq!(of("/@{pid}/a"), PatternProblem::Variable);
        assert_eq!(of("\"\""), PatternProblem::Nothing);
        assert_eq!(of("/a/"), PatternProblem::Empty);
        assert_eq!(of("/a//b"), PatternProblem::Empty);
        assert_eq!(of("/a/../b"), PatternProblem::Dot(".."));
        assert_eq!(of("/a/."), PatternProblem::Dot("."));
        assert_eq!(of(r"/a\n"), PatternProblem::Escape(r"\n".into()));
        assert_eq!(of(r"/a\x00"), PatternProblem::Zero);
        assert_eq!(of("/[a"), PatternProblem::Unclosed('['));
        assert_eq!(of("/{a,b"), PatternProblem::Unclosed('{'));
        assert_eq!(of("/a]"), PatternProblem::Stray(']'));
        assert_eq!(of("/a}"), PatternProblem::Stray('}'));
        assert_eq!(of("/[]"), PatternProblem::Class("nothing"));
        assert_eq!(
            of("/[b-a]"),
            PatternProblem::Class("a range that goes backwards")
        );
        assert_eq!(of("/{a}"), PatternProblem::Alternatives);
        assert_eq!(
            of(&format!("/{}", "{a,".repeat(17))),
            PatternProblem::Nesting
        );
        assert!(matches!(of("/[é]"), PatternProblem::Class(_)));
    }

    #[test]
    fn only_its_text_is_kept() {
        assert_eq!(size_of::<Pattern>(), size_of::<String>());
        let pattern = Pattern::parse("/a/b", Names::Paths).unwrap();
        assert_eq!(pattern.single().unwrap(), b"/a/b");
        assert_eq!(pattern.text.capacity(), 4);
        let many = Pattern::parse("/a/*", Names::Paths).unwrap();
        assert_eq!((many.literal(), many.single()), (b"/a/".to_vec(), None));
    }

    #[test]
    fn one_that_is_longer_than_a_line_is_not_looked_at() {
        let of = |length: usize| {
            let written = postcard::to_allocvec(&"a".repeat(length)).unwrap();
            postcard::from_bytes::<Pattern>(&written).is_ok()
        };
        assert!(of(MAX_LINE) && !of(MAX_LINE + 1));
    }

    #[test]
    fn sockets_and_objects_have_names_of_their_own() {
        let socket = |text| Pattern::parse(text, Names::Sockets);
        assert!(socket("@bus*").unwrap().matches(b"@bus-1"));
        assert!(!socket("/run/*").unwrap().matches(b"@run"));
        assert_eq!(socket("@").unwrap_err(), PatternProblem::Nothing);
        assert_eq!(socket("bus").unwrap_err(), PatternProblem::Relative);
        let object = |text| Pattern::parse(text, Names::Objects).unwrap();
        assert!(object("notes:*").matches(b"notes:1"));
        assert!(object("**").matches(b""));
    }
}
