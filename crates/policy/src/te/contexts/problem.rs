//! What can be wrong with file contexts, each with its place and its fix.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use thiserror::Error;
use tidegate_bundle::limits::{MAX_FILE_CONTEXTS_LINES, MAX_FILE_CONTEXTS_TEXT};

/// One thing wrong with a file of contexts or of substitutions. The diagnostic's code names it for machines.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum ContextsProblem {
    /// A file cannot be read.
    #[error("cannot be read: {0}")]
    #[diagnostic(code(file_contexts::unreadable))]
    Unreadable(String),
    /// More than ASCII.
    #[error("a character that is not ASCII")]
    #[diagnostic(
        code(file_contexts::ascii),
        help("libselinux reads ASCII alone; write another character's bytes as `\\xhh`")
    )]
    Ascii,
    /// A line of one word.
    #[error("a pattern without a context")]
    #[diagnostic(
        code(file_contexts::fields),
        help(
            "write a pattern, a type of file if it is for one alone, and a context or `<<none>>`"
        )
    )]
    Fields,
    /// A second word that is no type of file.
    #[error("`{0}` is not a type of file")]
    #[diagnostic(
        code(file_contexts::kind),
        help(
            "the types are `--`, `-d`, `-c`, `-b`, `-p`, `-l` and `-s`; without one the line is for all files"
        )
    )]
    Kind(String),
    /// What is no context.
    #[error("`{0}` has not the form of a context")]
    #[diagnostic(
        code(file_contexts::context),
        help(
            "write `user:role:type`, with `:range` behind it if the policy has levels, or `<<none>>`"
        )
    )]
    Context(String),
    /// More lines than an answer can number.
    #[error("over {MAX_FILE_CONTEXTS_LINES} lines")]
    #[diagnostic(code(file_contexts::lines))]
    Lines,
    /// Too much text.
    #[error("over {} MiB of text", MAX_FILE_CONTEXTS_TEXT >> 20)]
    #[diagnostic(code(file_contexts::text_size))]
    TextSize,
    /// A pattern that PCRE2 does not read, or not in every version.
    #[error("the pattern has {0}")]
    #[diagnostic(code(file_contexts::pattern), help("see pcre2pattern(3)"))]
    Pattern(&'static str),
    /// A pattern that looks at more than one character at a time.
    #[error("the pattern has {0}, which no automaton can match")]
    #[diagnostic(
        code(file_contexts::beyond),
        help("a path is read once, a byte at a time; say the same with alternatives and classes")
    )]
    Beyond(&'static str),
    /// A pattern of too many states.
    #[error("the pattern repeats too much")]
    #[diagnostic(
        code(file_contexts::large),
        help("a repetition is laid out as often as it counts")
    )]
    Large,
    /// All patterns together have too many states.
    #[error("the patterns up to this one take too many states to be told apart")]
    #[diagnostic(
        code(file_contexts::states),
        help("patterns with `.*` in their midst cost most: name the directories instead")
    )]
    States,
    /// A substitution of one word.
    #[error("a path without what it is replaced by")]
    #[diagnostic(
        code(file_contexts::alias_fields),
        help("write the path that is replaced, and the path in whose place it stands")
    )]
    AliasFields,
    /// A substitution that would never be applied, or lead nowhere.
    #[error("`{0}` cannot stand in a substitution")]
    #[diagnostic(
        code(file_contexts::alias),
        help("write a path from the root, with one slash between components and none at its end")
    )]
    Alias(String),
}

/// A problem with its place: what `miette` shows with the line and the fix.
#[derive(Debug, Clone)]
pub struct ContextsFinding {
    problem: ContextsProblem,
    file: String,
    line: usize,
    source: Option<Box<(NamedSource<Arc<str>>, LabeledSpan)>>,
}

impl ContextsFinding {
    /// A problem of a file as a whole.
    pub(super) fn of_file(problem: ContextsProblem, file: &str) -> Self {
        Self {
            problem,
            file: file.to_owned(),
            line: 0,
            source: None,
        }
    }

    /// A problem at bytes of a file's text; `line` counts from 1.
    pub(super) fn at(
        problem: ContextsProblem,
        source: &NamedSource<Arc<str>>,
        line: usize,
        span: std::ops::Range<usize>,
    ) -> Self {
        let label = LabeledSpan::new_primary_with_span(Some("here".to_owned()), span);
        Self {
            problem,
            file: source.name().to_owned(),
            line,
            source: Some(Box::new((source.clone(), label))),
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> &ContextsProblem {
        &self.problem
    }

    /// The file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; 0 for a problem of the file as a whole.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for ContextsFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.problem),
            line => write!(f, "{}:{line}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for ContextsFinding {}

impl Diagnostic for ContextsFinding {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.code()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        let source = self.source.as_ref();
        source.map(|source| &source.0 as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = self.source.as_ref().map(|source| source.1.clone());
        Some(Box::new(label.into_iter()))
    }
}

/// Why file contexts did not compile: every error found.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{}", match .0.len() {
    1 => "the file contexts have an error".to_owned(),
    errors => format!("the file contexts have {errors} errors"),
})]
pub struct ContextsErrors(#[related] pub Vec<ContextsFinding>);
