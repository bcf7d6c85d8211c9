//! Diagnostics with their places, in whichever language.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use thiserror::Error;

/// What can be wrong in a language.
pub trait Labelled: Diagnostic {
    /// What stands beside the marked words.
    fn label(&self) -> &'static str;
}

/// A place in a text: a file of those read, and a span of bytes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub unit: usize,
    pub span: Range<usize>,
}

/// A problem and its place, as the passes note it.
#[derive(Debug)]
pub(crate) struct Note<P> {
    pub problem: P,
    pub place: Option<Place>,
    /// The earlier statement it clashes with, and what that is.
    pub earlier: Option<(Place, &'static str)>,
}

impl<P: Labelled> Note<P> {
    pub fn at(problem: impl Into<P>, unit: usize, span: Range<usize>) -> Self {
        let place = Some(Place { unit, span });
        Self {
            problem: problem.into(),
            place,
            earlier: None,
        }
    }

    pub fn nowhere(problem: P) -> Self {
        Self {
            problem,
            place: None,
            earlier: None,
        }
    }

    pub fn is_error(&self) -> bool {
        is_error(&self.problem)
    }

    pub fn earlier(mut self, place: Place, label: &'static str) -> Self {
        self.earlier = Some((place, label));
        self
    }
}

/// A problem with its place: what `miette` shows with the line, the label and the fix.
#[derive(Debug, Clone)]
pub struct Finding<P> {
    problem: P,
    source: Option<NamedSource<Arc<str>>>,
    labels: Vec<LabeledSpan>,
    /// The other place, when it is in another file.
    elsewhere: Option<Elsewhere>,
}

/// A second place in another file, which `miette` shows as a related diagnostic.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{message}")]
#[diagnostic(severity(Advice))]
struct Elsewhere {
    message: &'static str,
    #[source_code]
    text: NamedSource<Arc<str>>,
    #[label("here")]
    span: miette::SourceSpan,
}

impl<P: Labelled> Finding<P> {
    fn new(note: Note<P>, source: impl Fn(usize) -> NamedSource<Arc<str>>) -> Self {
        let Note {
            problem,
            place,
            earlier,
        } = note;
        let Some(place) = place else {
            return Self {
                problem,
                source: None,
                labels: Vec::new(),
                elsewhere: None,
            };
        };
        let mut labels = vec![LabeledSpan::new_primary_with_span(
            Some(problem.label().to_owned()),
            place.span.clone(),
        )];
        let mut elsewhere = None;
        match earlier {
            Some((other, message)) if other.unit == place.unit => {
                labels.push(LabeledSpan::new_with_span(
                    Some(message.to_owned()),
                    other.span,
                ));
            }
            Some((other, message)) => {
                elsewhere = Some(Elsewhere {
                    message,
                    text: source(other.unit),
                    span: other.span.into(),
                });
            }
            None => {}
        }
        Self {
            problem,
            source: Some(source(place.unit)),
            labels,
            elsewhere,
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> &P {
        &self.problem
    }

    /// Whether it is an error rather than a warning.
    pub fn is_error(&self) -> bool {
        is_error(&self.problem)
    }

    /// The file it is in, unless it is about a file that could not be read.
    pub fn file(&self) -> Option<&str> {
        self.source.as_ref().map(NamedSource::name)
    }

    /// The bytes of the file it is about.
    pub fn span(&self) -> Option<Range<usize>> {
        let span = self.labels.first()?.inner();
        Some(span.offset()..span.offset() + span.len())
    }

    /// The line and column, both from 1; the column counts characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        let before = self.source.as_ref()?.inner().get(..self.span()?.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1))
    }
}

fn is_error(problem: &impl Diagnostic) -> bool {
    problem.severity().unwrap_or_default() == Severity::Error
}

impl<P: Labelled> fmt::Display for Finding<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(file), Some((line, column))) = (self.file(), self.position()) {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        fmt::Display::fmt(&self.problem, f)
    }
}

impl<P: Labelled> std::error::Error for Finding<P> {}

impl<P: Labelled> Diagnostic for Finding<P> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.code()
    }

    fn severity(&self) -> Option<Severity> {
        self.problem.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let elsewhere = self.elsewhere.as_ref()?;
        Some(Box::new(std::iter::once(elsewhere as &dyn Diagnostic)))
    }
}

/// Notes in the order of their places, with the texts that they are about.
pub(crate) fn findings<P: Labelled>(
    mut notes: Vec<Note<P>>,
    sources: &[NamedSource<Arc<str>>],
) -> Vec<Finding<P>> {
    notes.sort_by_key(|note| {
        note.place
            .as_ref()
            .map(|place| (place.unit, place.span.start))
    });
    notes
        .into_iter()
        .map(|note| Finding::new(note, |unit| sources[unit].clone()))
        .collect()
}

/// In words, how many errors something has.
pub(crate) fn summary<P: Labelled>(what: &str, findings: &[Finding<P>]) -> String {
    match findings.iter().filter(|finding| finding.is_error()).count() {
        1 => format!("{what} has an error"),
        errors => format!("{what} has {errors} errors"),
    }
}
