//! Statements of a capability file: a line each, most of them in a block.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use tidegate_bundle::caps::{Class, Names, Objects, Pattern, SocketType, permission};
use tidegate_bundle::limits::{MAX_EXPIRY, MAX_LINE};
use tidegate_bundle::names::is_capability_name;
use tidegate_bundle::network::Cidr;

use super::CapsProblem as Problem;
use super::operation::{self, OperationStatement};
use crate::lexer::{Kind, Token, lines};
use crate::network;
use crate::similar::did_you_mean;
use crate::words::{self, Spanned};

/// An error in one statement.
pub(super) type Fault = Spanned<Problem>;
pub(super) type Words<'t, 's> = words::Words<'t, 's, Problem>;

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
    Include(Spanned<&'s str>),
    Subject(Spanned<&'s str>),
    Service {
        name: Spanned<&'s str>,
        socket: Spanned<Pattern>,
        socket_type: Option<SocketType>,
    },
    /// `}`.
    Close,
    // In a subject.
    Capability(CapabilityStatement<'s>),
    Control {
        class: Class,
        permissions: u32,
    },
    Expires(u32),
    // In a service.
    Permissions(Vec<Spanned<&'s str>>),
    Operation(OperationStatement<'s>),
}

#[derive(Debug)]
pub(super) struct CapabilityStatement<'s> {
    pub class: ClassOf<'s>,
    pub objects: Spanned<Objects>,
    pub becomes: Option<Spanned<&'s str>>,
    pub expires: Option<Spanned<u32>>,
    pub uses: Option<Spanned<u32>>,
}

/// A capability's class, and what may be done.
#[derive(Debug)]
pub(super) enum ClassOf<'s> {
    Known(Class, u32),
    Service(Spanned<&'s str>, Vec<Spanned<&'s str>>),
}

/// All addresses of both families.
const ANY: [Cidr; 2] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
];

/// Which block statements stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Subject,
    Service,
}

const OUTSIDE: [&str; 3] = ["include", "subject", "service"];
const IN_SUBJECT: [&str; 9] = [
    "file", "dir", "program", "library", "connect", "bind", "service", "control", "expires",
];
const IN_SERVICE: [&str; 2] = ["permission", "operation"];
const LASTS: [&str; 2] = ["expires", "uses"];

/// Reads a file's statements; a faulty one is left out and its fault told.
pub(super) fn parse(text: &str) -> (Vec<Line<'_>>, Vec<Fault>) {
    let mut statements = Vec::new();
    let mut faults = Vec::new();
    let (mut block, mut opened) = (Block::None, 0..0);
    for (number, tokens) in lines(text) {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let span = first.span.start..last.span.end;
        let parsed = match span.len() > MAX_LINE {
            true => Err(first.spanned(Problem::LineSize)),
            false => Words::new(&tokens, span.end).and_then(|words| statement(words, block)),
        };
        // a faulty line that was to open a block opens it, lest all that follows is faulty
        let was = block;
        match (block, first.text) {
            (Block::None, "subject") => block = Block::Subject,
            (Block::None, "service") => block = Block::Service,
            (_, "}") => block = Block::None,
            _ => {}
        }
        if was == Block::None {
            opened = span.clone();
        }
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
    if block != Block::None {
        faults.push(Spanned {
            value: Problem::OpenBlock,
            span: opened,
        });
    }
    (statements, faults)
}

fn statement<'s>(mut words: Words<'_, 's>, block: Block) -> Result<Statement<'s>, Fault> {
    let first = words.word("a statement", "a line begins with a word")?;
    let word = first.value;
    match (block, word) {
        (Block::None, "}") => Err(first.with(Problem::NoBlock)),
        (_, "}") => words.finish(Statement::Close),
        (Block::None, "include") => include(words),
        (Block::None, "subject") => {
            let name = name(&mut words, "a subject's name")?;
            open(words, Statement::Subject(name))
        }
        (Block::None, "service") => service(words),
        (Block::Subject, "control") => control(words),
        (Block::Subject, "expires") => {
            let seconds = duration(&mut words)?.value;
            words.finish(Statement::Expires(seconds))
        }
        (Block::Subject, _) if IN_SUBJECT.contains(&word) => capability(words, word),
        (Block::Service, "permission") => permissions(words),
        (Block::Service, "operation") => operation::statement(words).map(Statement::Operation),
        (Block::None, _) if IN_SUBJECT.contains(&word) || IN_SERVICE.contains(&word) => {
            Err(first.with(Problem::Outside(word.to_owned())))
        }
        (_, "include" | "subject" | "service") => Err(first.with(Problem::Nested(word.to_owned()))),
        _ => {
            let known: &[&str] = match block {
                Block::None => &OUTSIDE,
                Block::Subject => &IN_SUBJECT,
                Block::Service => &IN_SERVICE,
            };
            Err(unknown(
                &first,
                "statement",
                "here stand",
                known.iter().copied(),
            ))
        }
    }
}

/// The fault of a word that is none of those known.
pub(super) fn unknown<'k>(
    word: &Spanned<&str>,
    what: &'static str,
    these: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Fault {
    word.with(Problem::Unknown {
        what,
        word: word.value.to_owned(),
        help: did_you_mean(word.value, these, known),
    })
}

fn include<'s>(mut words: Words<'_, 's>) -> Result<Statement<'s>, Fault> {
    let what = match words.next() {
        Some(token) if token.kind == Kind::Word => token.spanned(token.text),
        Some(token) if token.kind == Kind::Quoted => token.spanned(token.text.trim_matches('"')),
        other => return Err(words.expected(other, "a file", "a path, relative to this file")),
    };
    words.finish(Statement::Include(what))
}

/// A name that is defined here.
pub(super) fn name<'s>(
    words: &mut Words<'_, 's>,
    what: &'static str,
) -> Result<Spanned<&'s str>, Fault> {
    let name = words.word(
        what,
        "a lower-case letter, then letters, digits, `-` and `_`",
    )?;
    match is_capability_name(name.value) {
        true => Ok(name),
        false => Err(name.with(Problem::Name(name.value.to_owned()))),
    }
}

fn open<'s>(mut words: Words<'_, 's>, statement: Statement<'s>) -> Result<Statement<'s>, Fault> {
    if words.take("{") {
        return words.finish(statement);
    }
    let next = words.next();
    Err(words.expected(next, "`{`", "a block opens on the line that names it"))
}

fn service<'s>(mut words: Words<'_, 's>) -> Result<Statement<'s>, Fault> {
    const HELP: &str = "write `service NAME on PATTERN {`, or `… type seqpacket {`";
    let name = name(&mut words, "a service's name")?;
    if !words.take("on") {
        let next = words.next();
        return Err(words.expected(next, "`on`", HELP));
    }
    let socket = pattern(&mut words, Names::Sockets, "the path of its socket")?;
    let socket_type = match words.take("type") {
        true => Some(socket_type(&mut words)?),
        false => None,
    };
    let service = Statement::Service {
        name,
        socket,
        socket_type,
    };
    open(words, service)
}

fn socket_type(words: &mut Words<'_, '_>) -> Result<SocketType, Fault> {
    const ALL: [(&str, SocketType); 2] = SocketType::WORDS;
    let word = words.word("`stream` or `seqpacket`", "say of which type the socket is")?;
    let known = ALL.into_iter().find(|(known, _)| *known == word.value);
    let none = || {
        let words = ALL.map(|(known, _)| known);
        unknown(&word, "type", "a service's socket is", words)
    };
    known.map(|(_, known)| known).ok_or_else(none)
}

fn pattern(
    words: &mut Words<'_, '_>,
    names: Names,
    what: &'static str,
) -> Result<Spanned<Pattern>, Fault> {
    let token = words.next();
    match token {
        Some(token) if matches!(token.kind, Kind::Word | Kind::Quoted) => {
            let pattern = Pattern::parse(token.text, names);
            pattern
                .map(|pattern| token.spanned(pattern))
                .map_err(|problem| token.spanned(problem.into()))
        }
        other => Err(words.expected(other, what, "a pattern with blanks goes in quotes")),
    }
}

fn capability<'s>(mut words: Words<'_, 's>, kind: &str) -> Result<Statement<'s>, Fault> {
    let (class, objects) = match kind {
        "connect" | "bind" => address(&mut words, kind)?,
        "service" => {
            let service = words.word(
                "a service's name",
                "write `service NAME PATTERN PERMISSION…`",
            )?;
            let objects = named(&mut words, Names::Objects)?;
            let permissions = spoken(&mut words, "a permission of the service")?;
            (ClassOf::Service(service, permissions), objects)
        }
        _ => {
            let class = Class::of_word(kind).expect("it is one of those that take paths");
            let objects = named(&mut words, Names::Paths)?;
            let permissions = spoken(&mut words, "a permission")?;
            (ClassOf::Known(class, bits(class, &permissions)?), objects)
        }
    };
    let mut statement = CapabilityStatement {
        class,
        objects,
        becomes: None,
        expires: None,
        uses: None,
    };
    let takes_content = matches!(kind, "program" | "library");
    if takes_content && words.take("as") {
        let help = "another subject of these files: what the new content is given";
        statement.becomes = Some(words.word("a subject's name", help)?);
    }
    while let Some(token) = words.peek() {
        let Some(word) = LASTS.into_iter().find(|word| token.is(word)) else {
            break;
        };
        words.next();
        if takes_content {
            return Err(token.spanned(Problem::Unbound(word)));
        }
        let (slot, value) = match word {
            "expires" => (&mut statement.expires, duration(&mut words)?),
            _ => (&mut statement.uses, count(&mut words)?),
        };
        if slot.replace(value).is_some() {
            let word = word.to_owned();
            let what = "the word";
            return Err(token.spanned(Problem::Twice { what, word }));
        }
    }
    words.finish(Statement::Capability(statement))
}

fn named(words: &mut Words<'_, '_>, names: Names) -> Result<Spanned<Objects>, Fault> {
    let pattern = pattern(words, names, "a pattern")?;
    Ok(Spanned {
        span: pattern.span,
        value: Objects::Named(pattern.value),
    })
}

/// Permissions up to a word that ends them; one at least.
fn spoken<'s>(
    words: &mut Words<'_, 's>,
    what: &'static str,
) -> Result<Vec<Spanned<&'s str>>, Fault> {
    let ends = |token: &Token<'_>| ["as", "expires", "uses"].iter().any(|word| token.is(word));
    let mut all = Vec::new();
    while all.is_empty() || words.peek().is_some_and(|token| !ends(token)) {
        if words.peek().is_some_and(ends) {
            let next = words.next();
            return Err(words.expected(next, what, "say what may be done with it"));
        }
        all.push(words.word(what, "say what may be done with it")?);
    }
    Ok(all)
}

/// Permissions of a class by their words.
fn bits(class: Class, words: &[Spanned<&str>]) -> Result<u32, Fault> {
    let mut bits = 0;
    for word in words {
        let known = class.permissions();
        let Some((_, bit)) = known.iter().find(|(known, _)| *known == word.value) else {
            let known = known.iter().map(|(known, _)| *known);
            return Err(unknown(word, "permission", "the class has", known));
        };
        if bits & bit != 0 {
            return Err(twice(word, "the permission"));
        }
        bits |= bit;
    }
    Ok(bits)
}

pub(super) fn twice(word: &Spanned<&str>, what: &'static str) -> Fault {
    word.with(Problem::Twice {
        what,
        word: word.value.to_owned(),
    })
}

/// What `connect` and `bind` are for. A subject that may do either may read and write by what it
/// bound.
fn address<'s>(
    words: &mut Words<'_, 's>,
    kind: &str,
) -> Result<(ClassOf<'s>, Spanned<Objects>), Fault> {
    const FAMILIES: [&str; 3] = ["tcp", "udp", "unix"];
    let bits = permission::READ
        | permission::WRITE
        | match kind {
            "connect" => permission::CONNECT,
            _ => permission::BIND,
        };
    let family = words.word("`tcp`, `udp` or `unix`", "say of which sockets")?;
    let class = match family.value {
        "tcp" => Class::Tcp,
        "udp" => Class::Udp,
        "unix" => {
            return Ok((
                ClassOf::Known(Class::Unix, bits),
                named(words, Names::Sockets)?,
            ));
        }
        _ => return Err(unknown(&family, "family", "the families are", FAMILIES)),
    };
    const HELP: &str =
        "write `any`, `loopback`, an address, or a network as 10.0.0.0/8 or 2001:db8::/32";
    let word = words.word("a network", HELP)?;
    let networks = match word.value {
        "any" => ANY.to_vec(),
        text => network::parse(text).map_err(|problem| word.with(problem.into()))?,
    };
    let mut span = word.span;
    let mut ports = (0, u16::MAX);
    if words.take("port") {
        let word = words.word("a port", "write one as 443, or a range as 8000-8999")?;
        ports = self::ports(&word)?;
        span.end = word.span.end;
    }
    let value = Objects::Network { networks, ports };
    Ok((ClassOf::Known(class, bits), Spanned { value, span }))
}

fn ports(word: &Spanned<&str>) -> Result<(u16, u16), Fault> {
    let (first, last) = word
        .value
        .split_once('-')
        .unwrap_or((word.value, word.value));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(bad_number(
            word,
            "port or range of ports",
            "ports are 0 to 65535; write one as 443, or a range as 8000-8999",
        )),
    }
}

/// A number in decimal digits, without a sign.
pub(super) fn number<N: std::str::FromStr>(word: &str) -> Option<N> {
    let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_digits)
}

pub(super) fn bad_number(word: &Spanned<&str>, what: &'static str, help: &'static str) -> Fault {
    word.with(Problem::Number {
        what,
        word: word.value.to_owned(),
        help,
    })
}

fn duration(words: &mut Words<'_, '_>) -> Result<Spanned<u32>, Fault> {
    const HELP: &str = "write 90s, 10m, 2h or 30d; 366d at most";
    let word = words.word("a duration", HELP)?;
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let count: u32 = number(word.value.strip_suffix(unit)?)?;
        count.checked_mul(seconds)
    });
    match seconds.filter(|seconds| (1..=MAX_EXPIRY).contains(seconds)) {
        Some(seconds) => Ok(word.with(seconds)),
        None => Err(bad_number(&word, "duration", HELP)),
    }
}

fn count(words: &mut Words<'_, '_>) -> Result<Spanned<u32>, Fault> {
    let word = words.word("a number of uses", "write 1 or more")?;
    match number(word.value).filter(|&count: &u32| count > 0) {
        Some(count) => Ok(word.with(count)),
        None => Err(bad_number(&word, "number of uses", "write 1 to 4294967295")),
    }
}

fn control<'s>(mut words: Words<'_, 's>) -> Result<Statement<'s>, Fault> {
    let word = words.word("an object class", "write `control CLASS PERMISSION…`")?;
    let controllable = Class::WORDS
        .into_iter()
        .filter(|(_, class)| class.controllable() != 0);
    let Some(class) = Class::of_word(word.value).filter(|class| class.controllable() != 0) else {
        let known = controllable.map(|(known, _)| known);
        return Err(unknown(&word, "class to control", "the classes are", known));
    };
    let said = spoken(&mut words, "a permission")?;
    let permissions = bits(class, &said)?;
    for word in &said {
        if bits(class, std::slice::from_ref(word))? & !class.controllable() != 0 {
            return Err(word.with(Problem::Controlled(word.value.to_owned())));
        }
    }
    words.finish(Statement::Control { class, permissions })
}

fn permissions<'s>(mut words: Words<'_, 's>) -> Result<Statement<'s>, Fault> {
    let mut all = vec![name(&mut words, "a permission's name")?];
    while words.peek().is_some() {
        all.push(name(&mut words, "a permission's name")?);
    }
    Ok(Statement::Permissions(all))
}
