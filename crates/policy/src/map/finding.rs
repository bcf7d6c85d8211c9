//! Diagnostics with their places.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use thiserror::Error;

use super::Problem;

/// A place in a map: a file of those read, and a span of bytes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub unit: usize,
    pub span: Range<usize>,
}

/// A problem and its place, as the passes note it.
#[derive(Debug)]
pub(super) struct Note {
    pub problem: Problem,
    pub place: Option<Place>,
    /// The earlier statement it clashes with, and what that is.
    pub earlier: Option<(Place, &'static str)>,
}

impl Note {
    pub fn at(problem: impl Into<Problem>, unit: usize, span: Range<usize>) -> Self {
        let place = Some(Place { unit, span });
        Self {
            problem: problem.into(),
            place,
            earlier: None,
        }
    }

    pub fn nowhere(problem: Problem) -> Self {
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

/// A problem in a map, with its place: what `miette` shows with the line, the
/// label and the mend.
#[derive(Debug, Clone)]
pub struct Finding {
    problem: Problem,
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

impl Finding {
    pub(super) fn new(note: Note, source: impl Fn(usize) -> NamedSource<Arc<str>>) -> Self {
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
            Some(label(&problem).to_owned()),
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
    pub fn problem(&self) -> &Problem {
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

fn is_error(problem: &Problem) -> bool {
    problem.severity().unwrap_or_default() == Severity::Error
}

/// What stands beside the marked words.
fn label(problem: &Problem) -> &'static str {
    match problem {
        Problem::RuleTwice
        | Problem::NetworkTwice
        | Problem::LevelsTwice
        | Problem::ModeTwice
        | Problem::LevelTwice(_) => "again here",
        Problem::Expected(..) => "expected here",
        Problem::NoRoot(_) => "these levels need a rule for `/`",
        _ => "here",
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(file), Some((line, column))) = (self.file(), self.position()) {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for Finding {}

impl Diagnostic for Finding {
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

/// Why a map did not compile: every error found, and the warnings beside them.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{}", summary(.findings))]
pub struct MapErrors {
    /// What was found, by file and place.
    #[related]
    pub findings: Vec<Finding>,
}

fn summary(findings: &[Finding]) -> String {
    match findings.iter().filter(|finding| finding.is_error()).count() {
        1 => "the map has an error".to_owned(),
        errors => format!("the map has {errors} errors"),
    }
}
