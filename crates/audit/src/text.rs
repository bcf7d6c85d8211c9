//! Text that comes from others, made fit to be shown.

use std::fmt::Write;
use std::ops::RangeInclusive;

/// Characters without a shape of their own (Cf, Zl and Zp of Unicode 16, with what it keeps for more of them): they change the order in
/// which others are shown, join them, or part lines.
const FORMATS: [RangeInclusive<char>; 19] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff0}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether a character is not seen where it is shown, and changes how others are: control and format characters.
pub fn is_unseen(c: char) -> bool {
    c.is_control() || (!c.is_ascii() && FORMATS.iter().any(|range| range.contains(&c)))
}

/// A name or a path without what would begin another line, move a terminal's cursor or show it in another order: that is escaped as
/// JSON has it.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        put(&mut out, c);
    }
    out
}

/// A whole output of this program's: with its lines, its tabs and its colours (`ESC [ … m`). What else is in it comes from others.
pub fn output(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match colour(rest) {
            0 => c.len_utf8(),
            len => len,
        };
        let (this, after) = rest.split_at(len);
        match c {
            '\n' | '\t' => out.push(c),
            _ if len > c.len_utf8() => out.push_str(this),
            _ => put(&mut out, c),
        }
        rest = after;
    }
    out
}

/// The length of a sequence that a text begins with and that chooses colours; 0: there is none.
fn colour(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';');
    match end {
        Some(end) if numbers[end..].starts_with('m') => text.len() - numbers.len() + end + 1,
        _ => 0,
    }
}

fn put(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        c if is_unseen(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        assert_eq!(printable("a\nb\u{1b}[2J\tü"), "a\\nb\\u001b[2J\\u0009ü");
        assert_eq!(printable("\u{7f}\u{9b}2J"), "\\u007f\\u009b2J");
        let plain = "naïve 名前 שלום مرحبا 🙂 e\u{301}";
        assert_eq!(printable(plain), plain);
    }

    #[test]
    fn characters_that_show_others_in_another_order_are_escaped_too() {
        assert_eq!(printable("gnp.\u{202e}exe"), "gnp.\\u202eexe");
        assert_eq!(printable("a\u{2028}b\u{2029}c"), "a\\u2028b\\u2029c");
        for c in [
            '\u{200b}', '\u{200f}', '\u{2066}', '\u{2069}', '\u{feff}', '\u{ad}', '\u{61c}',
        ] {
            assert!(is_unseen(c), "{}", u32::from(c));
        }
        assert_eq!(printable("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn what_is_shown_is_shown_again_as_it_is() {
        let once = printable("a\n\u{202e}\u{1b}");
        assert_eq!(printable(&once), once);
        assert_eq!(output(&once), once);
    }

    #[test]
    fn an_output_keeps_its_lines_and_colours_alone() {
        let own = "\u{1b}[1;31mred\u{1b}[0m\tb\nc";
        assert_eq!(output(own), own);
        let others = "\u{1b}[2Ja\u{1b}]0;title\u{7}b\rc\u{202e}d\u{1b}[3";
        assert_eq!(
            output(others),
            "\\u001b[2Ja\\u001b]0;title\\u0007b\\u000dc\\u202ed\\u001b[3"
        );
    }

    #[test]
    fn json_says_the_same_afterwards() {
        let text = "\u{7f}\u{9b}\u{202e}\\\"\u{e0041}\n";
        let json = serde_json::to_string(text).unwrap();
        assert!(!printable(&json).contains(is_unseen));
        assert_eq!(
            serde_json::from_str::<String>(&printable(&json)).unwrap(),
            text
        );
    }
}
