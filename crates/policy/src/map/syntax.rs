//! Statements of a map: a line each.

use std::ops::Range;

use super::lexer::{Kind, Token, lines};
use super::network::{self, Cidr};
use super::pattern::PathPattern;
use super::similar::{closest, did_you_mean};
use super::{PathProblem, Problem};
use crate::limits::MAX_LINE;
use crate::{Attrs, Mode};

/// Something and the bytes of the file it was written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spanned<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// A statement and its line.
#[derive(Debug)]
pub(super) struct Line<'s> {
    pub number: u32,
    /// The statement's text, without its comment.
    pub text: &'s str,
    pub span: Range<usize>,
    pub statement: Statement<'s>,
}

#[derive(Debug)]
pub(super) enum Statement<'s> {
    /// As written: highest first.
    Levels(Vec<Spanned<&'s str>>),
    Mode(Mode),
    Include(Spanned<&'s str>),
    Path(PathStatement<'s>),
    Network {
        level: Spanned<&'s str>,
        networks: Vec<Cidr>,
    },
}

#[derive(Debug)]
pub(super) struct PathStatement<'s> {
    pub level: Spanned<&'s str>,
    pub path: Spanned<PathPattern>,
    pub child_of: bool,
    pub attrs: Vec<Spanned<(&'static str, Attrs)>>,
}

/// An error in one statement.
pub(super) type Fault = Spanned<Problem>;

const STATEMENTS: [&str; 3] = ["levels", "mode", "include"];
pub(super) const NEUTRAL: &str = "neutral";
const NETWORK: &str = "network";
const CHILD_OF: &str = "child-of";

/// Whether `word` means something else than a level's name.
pub(super) fn is_reserved(word: &str) -> bool {
    STATEMENTS.contains(&word)
        || [NEUTRAL, NETWORK, CHILD_OF, "interface", "loopback"].contains(&word)
        || Attrs::WORDS.iter().any(|(attr, _)| *attr == word)
}

/// Reads a map's statements; a faulty one is left out and its fault told.
pub(super) fn parse(text: &str) -> (Vec<Line<'_>>, Vec<Fault>) {
    let mut statements = Vec::new();
    let mut faults = Vec::new();
    for (number, tokens) in lines(text) {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let span = first.span.start..last.span.end;
        let parsed = if span.len() > MAX_LINE {
            Err(Fault {
                value: Problem::LineSize,
                span: first.span.clone(),
            })
        } else {
            Words::new(&tokens, span.end).and_then(Words::statement)
        };
        match parsed {
            Ok(statement) => statements.push(Line {
                number,
                text: &text[span.clone()],
                span,
                statement,
            }),
            Err(fault) => faults.push(fault),
        }
    }
    (statements, faults)
}

/// The tokens of a statement that are still to be read.
struct Words<'t, 's> {
    rest: &'t [Token<'s>],
    /// Where the statement ends: the place of what is missing.
    end: usize,
}

impl<'t, 's> Words<'t, 's> {
    fn new(tokens: &'t [Token<'s>], end: usize) -> Result<Self, Fault> {
        let bad = tokens.iter().find_map(|token| match token.kind {
            Kind::Stray => Some(token.fault(Problem::Character(token.text.to_owned()))),
            Kind::Unclosed => Some(token.fault(Problem::Unclosed)),
            _ => None,
        });
        match bad {
            Some(fault) => Err(fault),
            None => Ok(Self { rest: tokens, end }),
        }
    }

    fn next(&mut self) -> Option<&'t Token<'s>> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next token if it is a bare word, else a fault that says `what` was
    /// expected.
    fn word(&mut self, what: &'static str, help: &str) -> Result<Spanned<&'s str>, Fault> {
        match self.next() {
            Some(token) if token.kind == Kind::Word => Ok(token.spanned(token.text)),
            other => Err(self.expected(other, what, help)),
        }
    }

    fn expected(&self, found: Option<&Token<'_>>, what: &'static str, help: &str) -> Fault {
        let span = found.map_or(self.end..self.end, |token| token.span.clone());
        let help = Some(help.to_owned());
        Fault {
            value: Problem::Expected(what, help),
            span,
        }
    }

    fn finish<T>(mut self, value: T) -> Result<T, Fault> {
        match self.next() {
            None => Ok(value),
            Some(token) => Err(token.fault(Problem::Trailing(token.text.to_owned()))),
        }
    }

    fn statement(mut self) -> Result<Statement<'s>, Fault> {
        let first = self.word("a statement", "a line begins with a word")?;
        match first.value {
            "levels" => self.levels(),
            "mode" => self.mode(),
            "include" => self.include(),
            _ => self.rule(first),
        }
    }

    fn levels(mut self) -> Result<Statement<'s>, Fault> {
        const FORM: &str = "write `levels system > user > untrusted`, highest first";
        let mut levels = vec![self.word("a level", FORM)?];
        while let Some(token) = self.next() {
            if token.kind != Kind::Over {
                return Err(self.expected(Some(token), "`>` between two levels", FORM));
            }
            levels.push(self.word("a level", FORM)?);
        }
        Ok(Statement::Levels(levels))
    }

    fn mode(mut self) -> Result<Statement<'s>, Fault> {
        let word = self.word("a mode", "the modes are `enforcing` and `permissive`")?;
        let mode = match word.value {
            "enforcing" => Mode::Enforcing,
            "permissive" => Mode::Permissive,
            other => return Err(word.fault(Problem::Mode(other.to_owned()))),
        };
        self.finish(Statement::Mode(mode))
    }

    fn include(mut self) -> Result<Statement<'s>, Fault> {
        const HELP: &str = "write a preset's name, or a file's: one with a `/` or ending in .plm";
        let what = match self.next() {
            Some(token) if token.kind == Kind::Word => token.spanned(token.text),
            Some(token) if token.kind == Kind::Quoted => {
                token.spanned(token.text.trim_matches('"'))
            }
            other => return Err(self.expected(other, "a preset or a file", HELP)),
        };
        self.finish(Statement::Include(what))
    }

    fn rule(mut self, level: Spanned<&'s str>) -> Result<Statement<'s>, Fault> {
        const HELP: &str =
            "a rule is `LEVEL PATH [child-of] [ATTRIBUTE…]` or `LEVEL network NETWORK`";
        let Some(token) = self.next() else {
            return Err(match statement_like(&level) {
                Some(fault) => fault,
                None => self.expected(None, "a path or `network`", HELP),
            });
        };
        let path = match token.kind {
            Kind::Quoted => PathPattern::parse_quoted(token.text),
            Kind::Word if token.text == NETWORK => return self.network(level),
            Kind::Word if token.text == "interface" => {
                return Err(token.fault(Problem::Interface(level.value.to_owned())));
            }
            Kind::Word => PathPattern::parse_word(token.text),
            _ => {
                return Err(statement_like(&level)
                    .unwrap_or_else(|| self.expected(Some(token), "a path or `network`", HELP)));
            }
        };
        let path = match path {
            Ok(path) => token.spanned(path),
            Err(PathProblem::Relative) => {
                if let Some(fault) = statement_like(&level) {
                    return Err(fault);
                }
                if let Some(word) = closest(token.text, [NETWORK]) {
                    let help = format!("did you mean `{word}`?");
                    return Err(self.expected(Some(token), "a path or `network`", &help));
                }
                return Err(token.fault(PathProblem::Relative.into()));
            }
            Err(problem) => return Err(token.fault(problem.into())),
        };
        self.path(level, path)
    }

    fn path(
        mut self,
        level: Spanned<&'s str>,
        path: Spanned<PathPattern>,
    ) -> Result<Statement<'s>, Fault> {
        let child_of = self.rest.first().is_some_and(|token| token.is(CHILD_OF));
        if child_of {
            self.next();
        }
        let mut attrs: Vec<Spanned<(&str, Attrs)>> = Vec::new();
        while let Some(token) = self.next() {
            if token.is(CHILD_OF) {
                return Err(token.fault(Problem::ChildOf));
            }
            let known = Attrs::WORDS.into_iter().find(|(word, _)| token.is(word));
            let Some(attr) = known else {
                let words = Attrs::WORDS.iter().map(|(word, _)| *word).chain([CHILD_OF]);
                return Err(token.fault(Problem::Attribute {
                    word: token.text.to_owned(),
                    help: did_you_mean(token.text, "the attributes are", words),
                }));
            };
            if level.value == NEUTRAL {
                return Err(token.fault(Problem::NeutralAttribute));
            }
            if attrs.iter().any(|earlier| earlier.value == attr) {
                return Err(token.fault(Problem::AttributeTwice(attr.0.to_owned())));
            }
            attrs.push(token.spanned(attr));
        }
        Ok(Statement::Path(PathStatement {
            level,
            path,
            child_of,
            attrs,
        }))
    }

    fn network(mut self, level: Spanned<&'s str>) -> Result<Statement<'s>, Fault> {
        const HELP: &str =
            "write `loopback`, an address, or a network as 10.0.0.0/8 or 2001:db8::/32";
        if level.value == NEUTRAL {
            return Err(level.fault(Problem::NeutralNetwork));
        }
        let word = self.word("a network", HELP)?;
        let networks = network::parse(word.value).map_err(|problem| word.fault(problem.into()))?;
        self.finish(Statement::Network { level, networks })
    }
}

/// The fault of a line whose first word looks like a misspelt statement.
fn statement_like(word: &Spanned<&str>) -> Option<Fault> {
    let statement = closest(word.value, STATEMENTS)?;
    Some(word.fault(Problem::Statement {
        word: word.value.to_owned(),
        help: format!("did you mean `{statement}`?"),
    }))
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned {
            value,
            span: self.span.clone(),
        }
    }

    fn fault(&self, problem: Problem) -> Fault {
        self.spanned(problem)
    }
}

impl<T> Spanned<T> {
    pub fn fault(&self, problem: Problem) -> Fault {
        Spanned {
            value: problem,
            span: self.span.clone(),
        }
    }
}
