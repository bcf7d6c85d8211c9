//! Words of a map, by line.
//!
//! `logos` does this part: it gives tokens with byte spans at no cost, and
//! knows where a quote ends. The grammar above it is a statement a line, each
//! known by its first words, so a hand-written matcher ([`syntax`](super::syntax))
//! is shorter than a parser combinator's and recovers from an error by taking
//! the next line.

use std::ops::Range;

use logos::Logos;

/// A token kind.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip r"[ \t\r]+")]
pub(crate) enum Kind {
    #[token("\n")]
    Newline,
    /// From a `#` that begins a word to the end of the line.
    #[regex(r"#[^\n]*", allow_greedy = true)]
    Comment,
    /// The `>` between two levels.
    #[token(">")]
    Over,
    #[regex(r#"[^\s#">][^\s">]*"#)]
    Word,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Quoted,
    #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#)]
    Unclosed,
    /// A character that no token begins with.
    Stray,
}

/// A token of a statement; never a newline or a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'s> {
    pub kind: Kind,
    pub text: &'s str,
    pub span: Range<usize>,
}

/// The lines of `text` that hold at least one token, with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u32, Vec<Token<'_>>)> {
    let mut start = 0;
    text.split_inclusive('\n')
        .zip(1u32..)
        .map(move |(line, number)| {
            let offset = start;
            start += line.len();
            (number, tokens(line, offset))
        })
        .filter(|(_, tokens)| !tokens.is_empty())
}

/// The tokens of one line that begins at byte `offset` of its file.
fn tokens(line: &str, offset: usize) -> Vec<Token<'_>> {
    Kind::lexer(line)
        .spanned()
        .map(|(kind, span)| Token {
            kind: kind.unwrap_or(Kind::Stray),
            text: &line[span.clone()],
            span: span.start + offset..span.end + offset,
        })
        .filter(|token| !matches!(token.kind, Kind::Newline | Kind::Comment))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        lines(text)
            .flat_map(|(_, tokens)| tokens)
            .map(|token| (token.kind, token.text))
            .collect()
    }

    #[test]
    fn words_quotes_and_comments() {
        assert_eq!(
            kinds("low /srv/c# \"/a b\\\"#\" # \"rest\r\n"),
            [
                (Kind::Word, "low"),
                (Kind::Word, "/srv/c#"),
                (Kind::Quoted, "\"/a b\\\"#\""),
            ]
        );
    }

    #[test]
    fn a_quote_ends_with_its_line() {
        assert_eq!(
            kinds("\"/a b\n/c"),
            [(Kind::Unclosed, "\"/a b"), (Kind::Word, "/c")]
        );
        assert_eq!(kinds("\"/a\\"), [(Kind::Unclosed, "\"/a\\")]);
    }

    #[test]
    fn a_blank_that_is_not_ours_is_stray() {
        assert_eq!(
            kinds("\u{a0}a"),
            [(Kind::Stray, "\u{a0}"), (Kind::Word, "a")]
        );
    }

    #[test]
    fn spans_and_lines_count_from_the_file() {
        let text = "a > b\n\n# c\n d";
        let all: Vec<_> = lines(text).collect();
        assert_eq!(all[0].0, 1);
        assert_eq!(all[1].0, 4);
        assert_eq!(all[1].1[0].span, 12..13);
    }
}
