//! Statements of a map: a line each.

use std::ops::Range;

use tidegate_bundle::limits::MAX_LINE;
use tidegate_bundle::names::{CHILD_OF, NETWORK, NEUTRAL, STATEMENTS};
use tidegate_bundle::network::Cidr;
use tidegate_bundle::{Attrs, Mode};

use super::pattern::PathPattern;
use super::{PathProblem, Problem};
use crate::lexer::{Kind, lines};
use crate::network;
use crate::similar::{closest, did_you_mean};
use crate::words::{self, Spanned, Wrong};

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

type Words<'t, 's> = words::Words<'t, 's, Problem>;

impl Wrong for Problem {
    fn character(character: &str) -> Self {
        Problem::Character(character.to_owned())
    }

    fn unclosed() -> Self {
        Problem::Unclosed
    }

    fn expected(what: &'static str, help: &str) -> Self {
        Problem::Expected(what, Some(help.to_owned()))
    }

    fn trailing(word: &str) -> Self {
        Problem::Trailing(word.to_owned())
    }
}

impl<'s> Words<'_, 's> {
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
            other => return Err(word.with(Problem::Mode(other.to_owned()))),
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
                return Err(token.spanned(Problem::Interface(level.value.to_owned())));
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
                return Err(token.spanned(PathProblem::Relative.into()));
            }
            Err(problem) => return Err(token.spanned(problem.into())),
        };
        self.path(level, path)
    }

    fn path(
        mut self,
        level: Spanned<&'s str>,
        path: Spanned<PathPattern>,
    ) -> Result<Statement<'s>, Fault> {
        let child_of = self.take(CHILD_OF);
        let mut attrs: Vec<Spanned<(&str, Attrs)>> = Vec::new();
        while let Some(token) = self.next() {
            if token.is(CHILD_OF) {
                return Err(token.spanned(Problem::ChildOf));
            }
            let known = Attrs::WORDS.into_iter().find(|(word, _)| token.is(word));
            let Some(attr) = known else {
                let words = Attrs::WORDS.iter().map(|(word, _)| *word).chain([CHILD_OF]);
                return Err(token.spanned(Problem::Attribute {
                    word: token.text.to_owned(),
                    help: did_you_mean(token.text, "the attributes are", words),
                }));
            };
            if level.value == NEUTRAL {
                return Err(token.spanned(Problem::NeutralAttribute));
            }
            if attrs.iter().any(|earlier| earlier.value == attr) {
                return Err(token.spanned(Problem::AttributeTwice(attr.0.to_owned())));
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
            return Err(level.with(Problem::NeutralNetwork));
        }
        let word = self.word("a network", HELP)?;
        let networks = network::parse(word.value).map_err(|problem| word.with(problem.into()))?;
        self.finish(Statement::Network { level, networks })
    }
}

/// The fault of a line whose first word looks like a misspelt statement.
fn statement_like(word: &Spanned<&str>) -> Option<Fault> {
    let statement = closest(word.value, STATEMENTS)?;
    Some(word.with(Problem::Statement {
        word: word.value.to_owned(),
        help: format!("did you mean `{statement}`?"),
    }))
}
