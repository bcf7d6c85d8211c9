//! Text that comes from others, made fit to be shown.

use std::fmt::Write;

/// A name or a path without what would begin another line or move a terminal's cursor:
/// control characters are escaped as the log has them.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        assert_eq!(printable("a\nb\u{1b}[2J\tü"), "a\\nb\\u001b[2J\\u0009ü");
    }
}
