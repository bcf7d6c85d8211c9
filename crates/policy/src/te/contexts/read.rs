//! The files: lines to what they say.
//!
//! The source is file_contexts(5), with label_support.c for how lines are parted: at blanks, with whatever stands behind
//! the third word passed over.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;
use tidegate_bundle::limits::MAX_FILE_CONTEXTS_LINES;
use tidegate_bundle::te::contexts::{Kind, Line as Place};

use super::Text;
use super::alias::Alias;
use super::pattern::{self, What};
use super::problem::{ContextsFinding, ContextsProblem as Problem};
use super::spec::{self, Spec};

/// What all files say.
#[derive(Default)]
pub(super) struct Read {
    pub specs: Vec<Spec>,
    /// Where each of `specs` stands.
    pub lines: Vec<Place>,
    /// The names of the files that they stand in.
    pub files: Vec<String>,
    pub contexts: Vec<String>,
    pub findings: Vec<ContextsFinding>,
    numbers: HashMap<String, u16>,
}

/// A line's words with their places in the text.
struct Line<'t> {
    source: &'t NamedSource<Arc<str>>,
    number: usize,
    words: Vec<(&'t str, Range<usize>)>,
}

impl Line<'_> {
    fn finding(&self, problem: Problem, word: usize) -> ContextsFinding {
        ContextsFinding::at(
            problem,
            self.source,
            self.number,
            self.words[word].1.clone(),
        )
    }
}

impl Read {
    /// Reads a file of contexts; later ones override those read before.
    pub fn contexts(&mut self, text: &Text) {
        let file = self.files.len() as u8;
        self.files.push(text.name.clone());
        let source = source(text);
        for line in lines(&source) {
            if self.specs.len() == MAX_FILE_CONTEXTS_LINES {
                self.findings.push(line.finding(Problem::Lines, 0));
                return;
            }
            match self.spec(&line) {
                Ok(spec) => {
                    self.lines.push(Place {
                        file,
                        number: line.number as u32,
                        context: spec.context,
                    });
                    self.specs.push(spec);
                }
                Err(finding) => self.findings.push(finding),
            }
        }
    }

    fn spec(&mut self, line: &Line) -> Result<Spec, ContextsFinding> {
        if let Some(at) = line
            .words
            .iter()
            .take(3)
            .position(|(word, _)| !word.is_ascii())
        {
            return Err(line.finding(Problem::Ascii, at));
        }
        let (kind, context) = match &line.words[..] {
            [_] | [] => return Err(line.finding(Problem::Fields, 0)),
            [_, _] => (None, 1),
            [_, (word, _), ..] => match kind_of(word) {
                Some(kind) => (Some(kind), 2),
                None => return Err(line.finding(Problem::Kind((*word).to_owned()), 1)),
            },
        };
        let context = self
            .context(line.words[context].0)
            .map_err(|problem| line.finding(problem, context))?;
        let text = line.words[0].0;
        if let Some(path) = spec::literal(text.as_bytes()) {
            return Ok(Spec::literal(kind, context, path));
        }
        let hir = pattern::parse(text).map_err(|fault| {
            let problem = match fault.what {
                What::Syntax(what) => Problem::Pattern(what),
                What::Beyond(what) => Problem::Beyond(what),
            };
            let span = &line.words[0].1;
            let at = (span.start + fault.at).min(span.end - 1);
            ContextsFinding::at(problem, line.source, line.number, at..span.end)
        })?;
        Ok(Spec::pattern(kind, context, text.as_bytes(), hir))
    }

    fn context(&mut self, text: &str) -> Result<Option<u16>, Problem> {
        if text == "<<none>>" {
            return Ok(None);
        }
        // a range may have colons of its own
        let mut fields = text.splitn(4, ':');
        let named = fields
            .by_ref()
            .take(3)
            .filter(|field| !field.is_empty())
            .count();
        if named < 3 || fields.next().is_some_and(str::is_empty) {
            return Err(Problem::Context(text.to_owned()));
        }
        if let Some(&number) = self.numbers.get(text) {
            return Ok(Some(number));
        }
        // there are no more than lines
        let number = self.contexts.len() as u16;
        self.contexts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        Ok(Some(number))
    }

    /// A problem that was noticed when the lines were compiled, with the line's pattern.
    pub fn finding(&self, problem: Problem, spec: usize, texts: [&Text; 3]) -> ContextsFinding {
        let Some(place) = self.lines.get(spec) else {
            return ContextsFinding::of_file(problem, &texts[0].name);
        };
        let source = source(texts[usize::from(place.file)]);
        let number = place.number as usize;
        let line = lines(&source).find(|line| line.number == number);
        let span = line.map_or(0..0, |line| line.words[0].1.clone());
        ContextsFinding::at(problem, &source, number, span)
    }

    /// Reads a file of substitutions.
    pub fn aliases(&mut self, text: &Text) -> Vec<Alias> {
        let source = source(text);
        let mut aliases = Vec::new();
        for line in lines(&source) {
            let [(from, _), (to, _), ..] = &line.words[..] else {
                self.findings.push(line.finding(Problem::AliasFields, 0));
                continue;
            };
            match [*from, *to].iter().position(|path| !is_clean(path)) {
                Some(at) => {
                    let problem = Problem::Alias(line.words[at].0.to_owned());
                    self.findings.push(line.finding(problem, at));
                }
                None => aliases.push(Alias {
                    from: from.as_bytes().to_owned(),
                    to: to.as_bytes().to_owned(),
                }),
            }
        }
        aliases
    }
}

fn source(text: &Text) -> NamedSource<Arc<str>> {
    NamedSource::new(&text.name, Arc::from(text.text.as_str()))
}

/// Whether a path is written as the kernel tells it.
fn is_clean(path: &str) -> bool {
    path == "/" || path.starts_with('/') && !path.ends_with('/') && !path.contains("//")
}

/// The lines that say something.
fn lines(source: &NamedSource<Arc<str>>) -> impl Iterator<Item = Line<'_>> {
    let text: &str = source.inner();
    let mut begin = 0;
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter_map(move |(index, line)| {
        let offset = begin;
        begin += line.len();
        let words: Vec<_> = line
            .split(is_space)
            .filter(|word| !word.is_empty())
            .map(|word| {
                let at = offset + (word.as_ptr() as usize - line.as_ptr() as usize);
                (word, at..at + word.len())
            })
            .collect();
        let says = words
            .first()
            .is_some_and(|(word, _)| !word.starts_with('#'));
        says.then_some(Line {
            source,
            number: index + 1,
            words,
        })
    })
}

/// `isspace()` of the C locale.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Returns the kind that a line names by its second word.
fn kind_of(word: &str) -> Option<Kind> {
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
