//! A file context's pattern: the part of PCRE2's syntax that an automaton can match.
//!
//! The source is pcre2pattern(3), and label_file.h for what libselinux compiles: `^`, the pattern and `$`, with
//! `PCRE2_DOTALL` alone, and bytes rather than characters. A parser of its own is needed, as the one of `regex-syntax` reads
//! some of PCRE2's patterns as others: `[a&&b]`, `\<`, `\v`, `a*+`.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, Look, Repetition};

/// Why a pattern cannot be compiled, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: usize,
    pub what: What,
}

/// The two ways in which a pattern can be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// PCRE2 has no such pattern, or reads it in another way in other versions.
    Syntax(&'static str),
    /// PCRE2 has it, an automaton does not.
    Beyond(&'static str),
}

/// Groups in one another, at most: PCRE2's own limit.
const MAX_DEPTH: usize = 250;
/// The highest number in a quantifier: PCRE2's own limit.
const MAX_REPEAT: u32 = 65_535;

/// What matches a path, from its beginning to its end.
///
/// As libselinux puts `^` before the text and `$` behind it, without a group, they are parts of the first and the last of
/// several alternatives only: `/a|/b|/c` matches whatever begins with `/a`, contains `/b` or ends with `/c`.
pub(super) fn parse(text: &str) -> Result<Hir, Fault> {
    let mut parser = Parser {
        text: text.as_bytes(),
        at: 0,
        depth: 0,
    };
    let branches = parser.alternatives()?;
    if parser.at < parser.text.len() {
        return parser.syntax("a `)` that closes no group; write `\\)` for one in a path");
    }
    let last = branches.len() - 1;
    let whole = branches.into_iter().enumerate().map(|(index, branch)| {
        let before = if index == 0 { Hir::empty() } else { anything() };
        let behind = if index == last { end() } else { anything() };
        Hir::concat(vec![before, branch, behind])
    });
    Ok(Hir::alternation(whole.collect()))
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

/// A character of a class, or several.
enum Member {
    Byte(u8),
    Set(ClassBytes),
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Vec<Hir>, Fault> {
        let mut branches = vec![self.sequence()?];
        while self.eat(b'|') {
            branches.push(self.sequence()?);
        }
        Ok(branches)
    }

    fn sequence(&mut self) -> Result<Hir, Fault> {
        let mut items: Vec<Hir> = Vec::new();
        let mut ended = false;
        while let Some(byte) = self.peek()
            && byte != b'|'
            && byte != b')'
        {
            let begin = self.at;
            let item = self.item()?;
            let properties = item.properties();
            // `$` lets a line feed at the very end be; see end()
            if ended && properties.minimum_len() != Some(0) {
                self.at = begin;
                return self.syntax("something that has to stand behind the end, `$`");
            }
            ended |= properties.look_set().contains(Look::End);
            items.push(item);
        }
        Ok(Hir::concat(items))
    }

    fn item(&mut self) -> Result<Hir, Fault> {
        let begin = self.at;
        let byte = self.text[self.at];
        self.at += 1;
        let atom = match byte {
            b'^' => Hir::look(Look::Start),
            b'$' => end(),
            b'.' => any(),
            b'(' => self.group()?,
            b'[' => self.class()?,
            b'\\' => match self.escape(false)? {
                Member::Byte(byte) => Hir::literal([byte]),
                Member::Set(set) => Hir::class(Class::Bytes(set)),
            },
            b'*' | b'+' | b'?' => {
                self.at = begin;
                return self.syntax("a quantifier with nothing to repeat");
            }
            b'{' if self.counts(begin).is_some() => {
                self.at = begin;
                return self.syntax("a quantifier with nothing to repeat");
            }
            byte => Hir::literal([byte]),
        };
        self.quantified(atom, matches!(byte, b'^' | b'$'))
    }

    /// An atom with the quantifier behind it, if there is one.
    fn quantified(&mut self, atom: Hir, is_anchor: bool) -> Result<Hir, Fault> {
        let begin = self.at;
        let (min, max) = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => match self.counts(begin) {
                Some((min, max, behind)) => {
                    self.at = behind - 1;
                    (min, max)
                }
                None => return Ok(atom),
            },
            _ => return Ok(atom),
        };
        self.at += 1;
        if is_anchor {
            self.at = begin;
            return self.syntax("a quantifier with nothing to repeat");
        }
        if max.unwrap_or(min).max(min) > MAX_REPEAT || max.is_some_and(|max| max < min) {
            self.at = begin;
            return self.syntax("a quantifier that counts beyond 65535 or backwards");
        }
        // fewest first or most first: the same paths match
        if !self.eat(b'?') && self.peek() == Some(b'+') {
            return self.beyond("a possessive quantifier; without its second `+` it gives back");
        }
        Ok(Hir::repetition(Repetition {
            min,
            max,
            greedy: true,
            sub: Box::new(atom),
        }))
    }

    /// The counts of a quantifier in braces, and where it ends; other braces are characters as any.
    fn counts(&self, begin: usize) -> Option<(u32, Option<u32>, usize)> {
        let rest = &self.text[begin + 1..];
        let length = rest.iter().position(|&byte| byte == b'}')?;
        let inside = std::str::from_utf8(&rest[..length]).ok()?;
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Some(text.parse().unwrap_or(u32::MAX)),
            false => None,
        };
        let (min, max) = match inside.split_once(',') {
            None if inside.is_empty() => return None,
            None => (number(inside)?, Some(number(inside)?)),
            Some(("", "")) => return None,
            Some(("", max)) => (0, Some(number(max)?)),
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        Some((min, max, begin + length + 2))
    }

    fn group(&mut self) -> Result<Hir, Fault> {
        if self.depth == MAX_DEPTH {
            return self.syntax("over 250 groups in one another");
        }
        match (self.peek(), self.text.get(self.at + 1)) {
            (Some(b'?'), Some(b':')) => self.at += 2,
            (Some(b'?'), _) => {
                return self.beyond("a group of a special kind; only `(` and `(?:` are known");
            }
            (Some(b'*'), _) => return self.beyond("a verb"),
            _ => {}
        }
        self.depth += 1;
        let branches = self.alternatives()?;
        self.depth -= 1;
        match self.eat(b')') {
            true => Ok(Hir::alternation(branches)),
            false => self.syntax("a group that nothing closes; write `\\(` for one in a path"),
        }
    }

    fn class(&mut self) -> Result<Hir, Fault> {
        let negated = self.eat(b'^');
        let mut set = ClassBytes::empty();
        let begin = self.at;
        loop {
            if self.at > begin && self.eat(b']') {
                break;
            }
            let place = self.at;
            let first = self.member()?;
            let is_range =
                self.peek() == Some(b'-') && self.text.get(self.at + 1).is_some_and(|&b| b != b']');
            if !is_range {
                match first {
                    Member::Byte(byte) => set.push(ClassBytesRange::new(byte, byte)),
                    Member::Set(other) => set.union(&other),
                }
                continue;
            }
            self.at += 1;
            match (first, self.member()?) {
                (Member::Byte(low), Member::Byte(high)) if low <= high => {
                    set.push(ClassBytesRange::new(low, high));
                }
                _ => {
                    self.at = place;
                    return self.syntax("a range whose ends are not two characters in order");
                }
            }
        }
        if negated {
            set.negate();
        }
        Ok(Hir::class(Class::Bytes(set)))
    }

    fn member(&mut self) -> Result<Member, Fault> {
        let Some(byte) = self.peek() else {
            return self.syntax("a class that nothing closes; write `\\[` for one in a path");
        };
        self.at += 1;
        match (byte, self.peek()) {
            (b'\\', _) => self.escape(true),
            (b'[', Some(b':')) => self.named(),
            (b'[', Some(b'.' | b'=')) => self.syntax("a collating element"),
            _ => Ok(Member::Byte(byte)),
        }
    }

    /// A class by name, behind its `[`.
    fn named(&mut self) -> Result<Member, Fault> {
        let rest = &self.text[self.at + 1..];
        let length = rest.windows(2).position(|pair| pair == b":]");
        let name = &rest[..length.unwrap_or(0)];
        let (name, negated) = match name.strip_prefix(b"^") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let is = |of: fn(&u8) -> bool| Some(of);
        let holds = match name {
            b"alnum" => is(u8::is_ascii_alphanumeric),
            b"alpha" => is(u8::is_ascii_alphabetic),
            b"ascii" => is(u8::is_ascii),
            b"blank" => is(|byte| matches!(byte, b' ' | b'\t')),
            b"cntrl" => is(u8::is_ascii_control),
            b"digit" => is(u8::is_ascii_digit),
            b"graph" => is(u8::is_ascii_graphic),
            b"lower" => is(u8::is_ascii_lowercase),
            b"print" => is(|byte| matches!(byte, b' '..=b'~')),
            b"punct" => is(u8::is_ascii_punctuation),
            b"space" => is(is_space),
            b"upper" => is(u8::is_ascii_uppercase),
            b"word" => is(is_word),
            b"xdigit" => is(u8::is_ascii_hexdigit),
            _ => None,
        };
        let Some(holds) = holds else {
            return self.syntax("an unknown class of characters");
        };
        self.at += 1 + length.unwrap_or(0) + 2;
        Ok(Member::Set(all(holds, negated)))
    }

    /// What a backslash makes of the character behind it.
    fn escape(&mut self, in_class: bool) -> Result<Member, Fault> {
        let Some(byte) = self.peek() else {
            return self.syntax("a backslash with nothing behind it");
        };
        self.at += 1;
        Ok(match byte {
            b'd' | b'D' => Member::Set(all(u8::is_ascii_digit, byte == b'D')),
            b's' | b'S' => Member::Set(all(is_space, byte == b'S')),
            b'w' | b'W' => Member::Set(all(is_word, byte == b'W')),
            b'a' => Member::Byte(7),
            b'b' if in_class => Member::Byte(8),
            b'e' => Member::Byte(27),
            b'f' => Member::Byte(12),
            b'n' => Member::Byte(b'\n'),
            b'r' => Member::Byte(b'\r'),
            b't' => Member::Byte(b'\t'),
            b'x' => self.hexadecimal()?,
            b'1'..=b'9' if !in_class => {
                self.at -= 1;
                return self.beyond("a back reference");
            }
            b'b' | b'B' | b'G' | b'K' | b'A' | b'Z' | b'z' => {
                self.at -= 1;
                return self.beyond("an assertion");
            }
            byte if byte.is_ascii_alphanumeric() => {
                self.at -= 1;
                return self.beyond("an escape that is not known");
            }
            byte => Member::Byte(byte),
        })
    }

    /// `\xhh`: two digits, as PCRE2 takes fewer for a number, too, which is seldom meant.
    fn hexadecimal(&mut self) -> Result<Member, Fault> {
        let digits = self.text.get(self.at..self.at + 2);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if !digits.is_some_and(|digits| digits.starts_with('+')) => {
                self.at += 2;
                Ok(Member::Byte(byte))
            }
            _ => self.syntax("`\\x` without two hexadecimal digits"),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn syntax<T>(&self, what: &'static str) -> Result<T, Fault> {
        let (at, what) = (self.at, What::Syntax(what));
        Err(Fault { at, what })
    }

    fn beyond<T>(&self, what: &'static str) -> Result<T, Fault> {
        let (at, what) = (self.at, What::Beyond(what));
        Err(Fault { at, what })
    }
}

/// `$`: the end, or a line feed there.
///
/// PCRE2 stops before that line feed. Here it is taken along, which comes to the same, as nothing may follow that asks for
/// more.
fn end() -> Hir {
    let line_feed = Hir::concat(vec![Hir::literal(*b"\n"), Hir::look(Look::End)]);
    Hir::alternation(vec![Hir::look(Look::End), line_feed])
}

fn any() -> Hir {
    Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(
        0, 255,
    )])))
}

fn anything() -> Hir {
    Hir::repetition(Repetition {
        min: 0,
        max: None,
        greedy: true,
        sub: Box::new(any()),
    })
}

/// The bytes of which something holds, or all others.
fn all(holds: fn(&u8) -> bool, negated: bool) -> ClassBytes {
    let bytes = (0..=u8::MAX).filter(|byte| holds(byte) != negated);
    ClassBytes::new(bytes.map(|byte| ClassBytesRange::new(byte, byte)))
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}
