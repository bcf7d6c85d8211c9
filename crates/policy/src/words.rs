//! The words of a statement as a grammar takes them, one after another.

use std::marker::PhantomData;
use std::ops::Range;

use crate::lexer::{Kind, Token};

/// Something and the bytes of the file it was written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Range<usize>,
}

impl<T> Spanned<T> {
    /// Something else of the same place.
    pub fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned {
            value,
            span: self.span.clone(),
        }
    }
}

/// What can be wrong with words in every language.
pub(crate) trait Wrong {
    /// A character that begins no word.
    fn character(character: &str) -> Self;
    /// A quote without end.
    fn unclosed() -> Self;
    /// Something else was needed.
    fn expected(what: &'static str, help: &str) -> Self;
    /// A statement that goes on after its end.
    fn trailing(word: &str) -> Self;
}

/// The tokens of a statement that are still to be read.
pub(crate) struct Words<'t, 's, P> {
    rest: &'t [Token<'s>],
    /// Where the statement ends: the place of what is missing.
    end: usize,
    wrong: PhantomData<P>,
}

impl<'t, 's, P: Wrong> Words<'t, 's, P> {
    pub fn new(tokens: &'t [Token<'s>], end: usize) -> Result<Self, Spanned<P>> {
        let bad = tokens.iter().find_map(|token| match token.kind {
            Kind::Stray => Some(token.spanned(P::character(token.text))),
            Kind::Unclosed => Some(token.spanned(P::unclosed())),
            _ => None,
        });
        match bad {
            Some(fault) => Err(fault),
            None => Ok(Self {
                rest: tokens,
                end,
                wrong: PhantomData,
            }),
        }
    }

    /// The next token, which stays.
    pub fn peek(&self) -> Option<&'t Token<'s>> {
        self.rest.first()
    }

    pub fn next(&mut self) -> Option<&'t Token<'s>> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Takes the next token if it is this word.
    pub fn take(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is(word));
        if is {
            self.next();
        }
        is
    }

    /// The next token if it is a bare word, else a fault that says `what` was
    /// expected.
    pub fn word(&mut self, what: &'static str, help: &str) -> Result<Spanned<&'s str>, Spanned<P>> {
        match self.next() {
            Some(token) if token.kind == Kind::Word => Ok(token.spanned(token.text)),
            other => Err(self.expected(other, what, help)),
        }
    }

    pub fn expected(
        &self,
        found: Option<&Token<'_>>,
        what: &'static str,
        help: &str,
    ) -> Spanned<P> {
        Spanned {
            value: P::expected(what, help),
            span: found.map_or(self.end..self.end, |token| token.span.clone()),
        }
    }

    pub fn finish<T>(mut self, value: T) -> Result<T, Spanned<P>> {
        match self.next() {
            None => Ok(value),
            Some(token) => Err(token.spanned(P::trailing(token.text))),
        }
    }
}

impl Token<'_> {
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    pub fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned {
            value,
            span: self.span.clone(),
        }
    }
}
