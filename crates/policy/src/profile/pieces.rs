//! The text of profiles, split into pieces as the parser's lexer does it: rules, heads of blocks, their ends, includes.

/// How a piece of a profile ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a comma: a rule.
    Comma,
    /// With `{`: a block's head.
    Open,
    /// With `}`.
    Close,
    /// With its line: an include, or the value of a variable.
    Line,
}

/// Words that belong together.
#[derive(Debug)]
pub struct Piece<'t> {
    /// The words.
    pub words: Vec<&'t str>,
    /// The line that it begins at, from 1.
    pub line: u32,
    /// How it ends.
    pub end: End,
    /// Where it begins, in bytes.
    pub begin_at: usize,
    /// Where it ends.
    pub end_at: usize,
}

impl Piece<'_> {
    /// Whether it is neither an include, nor a variable that is set, nor empty.
    pub fn is_rule(&self) -> bool {
        let is_line =
            |word: &str| matches!(word, "include" | "#include") || word.starts_with(['@', '$']);
        self.words.first().is_some_and(|word| !is_line(word))
    }
}

/// Splits a text into its pieces.
pub struct Pieces<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Pieces<'t> {
    /// From the beginning of a text.
    pub fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes blanks and comments; whether a line ended. `#include` is no comment.
    fn blanks(&mut self) -> bool {
        let mut ended = false;
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\n' => {
                    ended = true;
                    self.line += 1;
                    self.at += 1;
                }
                '#' if !self.rest().starts_with("#include") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ if c.is_whitespace() => self.at += c.len_utf8(),
                _ => break,
            }
        }
        ended
    }

    /// The next word: to a blank, or to a comma behind which one is, outside of quotes and of
    /// brackets that it opened. A bracket that stands alone is a word.
    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let mut open = 0;
        let mut quoted = false;
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            let is_last = next.is_none_or(char::is_whitespace);
            match c {
                '\\' => {
                    chars.next();
                }
                '"' => quoted = !quoted,
                _ if quoted => {}
                // a block, which may be empty
                '{' if at == 0 && (is_last || next == Some('}')) => return self.take(1),
                '}' if at == 0 => return self.take(1),
                '{' | '(' | '[' => open += 1,
                '}' | ')' | ']' if open > 0 => open -= 1,
                ',' if open == 0 && is_last => return self.take(at.max(1)),
                _ if c.is_whitespace() && open == 0 => return self.take(at),
                _ => {}
            }
        }
        self.take(rest.len())
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let word = &self.rest()[..bytes];
        self.at += bytes;
        self.line += word.matches('\n').count() as u32;
        word
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        self.blanks();
        let mut piece = Piece {
            words: Vec::new(),
            line: self.line,
            end: End::Line,
            begin_at: self.at,
            end_at: self.at,
        };
        // these end with their line
        let is_line = ["include", "#include", "@{", "$"]
            .iter()
            .any(|begin| self.rest().starts_with(begin))
            && self.is_line();
        while self.at < self.text.len() {
            let word = self.word();
            piece.end_at = self.at;
            match word {
                "," => piece.end = End::Comma,
                "{" => piece.end = End::Open,
                "}" => piece.end = End::Close,
                _ => {
                    piece.words.push(word);
                    let ended = self.blanks();
                    if !(is_line && ended) {
                        continue;
                    }
                }
            }
            if is_line && piece.end == End::Line && piece.words[0].starts_with(['@', '$']) {
                piece.words.clear();
            }
            return Some(piece);
        }
        (!piece.words.is_empty()).then_some(piece)
    }
}

impl Pieces<'_> {
    /// Is this an include, or a variable that is set, and not a rule on a path with a variable?
    fn is_line(&self) -> bool {
        let line = self.rest().lines().next().unwrap_or_default();
        match line.find(|c: char| c.is_whitespace() || c == '=' || c == '+') {
            Some(at) => line.contains("include") || line[at..].trim_start().starts_with(['=', '+']),
            None => false,
        }
    }
}
