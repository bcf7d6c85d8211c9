//! Escapes in paths: `\` and a character that has a meaning otherwise, or `\xHH`.

/// A byte of a path, and whether an escape took its meaning away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Byte {
    /// A byte as it stands there, which may have a meaning.
    Plain(u8),
    /// A byte that an escape stands for.
    Literal(u8),
}

impl Byte {
    /// Returns the byte itself.
    pub fn value(self) -> u8 {
        match self {
            Byte::Plain(byte) | Byte::Literal(byte) => byte,
        }
    }
}

/// Returns the bytes of a text in which `\` may stand before those of `known`.
///
/// # Errors
///
/// The first escape that is none.
pub fn unescape(text: &str, known: &[u8]) -> Result<Vec<Byte>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c != '\\' {
            out.extend(rest[..c.len_utf8()].bytes().map(Byte::Plain));
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let escape: String = match rest[1..].chars().next() {
            Some('x') => rest.chars().take(4).collect(),
            _ => rest.chars().take(2).collect(),
        };
        out.push(Byte::Literal(match escape.as_bytes() {
            [_, byte] if known.contains(byte) => *byte,
            [_, b'x', hex @ ..] if hex.len() == 2 && hex.iter().all(u8::is_ascii_hexdigit) => {
                u8::from_str_radix(&escape[2..], 16).map_err(|_| escape.clone())?
            }
            _ => return Err(escape),
        }));
        rest = &rest[escape.len()..];
    }
    Ok(out)
}
