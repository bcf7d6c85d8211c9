//! File contexts made at random: patterns that overlap, of all forms.

use std::fmt::Write;

use fastrand::Rng;
use tidegate_policy::te::contexts::{Text, Texts};

const NAMES: [&str; 8] = ["a", "b", "ab", "usr", "lib", "lib64", "c", "x.y"];

/// The texts of all files; some are empty.
pub fn texts(rng: &mut Rng) -> Texts {
    let lines = rng.usize(1..40);
    let mut context = 0;
    let mut contexts = |rng: &mut Rng, lines| {
        let mut text = String::new();
        for _ in 0..lines {
            line(rng, &mut text, &mut context);
        }
        Text {
            name: "file_contexts".into(),
            text,
        }
    };
    let few = |rng: &mut Rng| if rng.bool() { 0 } else { rng.usize(..6) };
    Texts {
        policy: contexts(rng, lines),
        homedirs: {
            let lines = few(rng);
            contexts(rng, lines)
        },
        local: {
            let lines = few(rng);
            contexts(rng, lines)
        },
        subs_dist: aliases(rng),
        subs: aliases(rng),
    }
}

fn line(rng: &mut Rng, text: &mut String, context: &mut u32) {
    if rng.usize(..20) == 0 {
        text.push_str("# a comment\n\n");
    }
    text.push_str(&pattern(rng));
    if rng.usize(..3) == 0 {
        let kinds = ["--", "-d", "-c", "-b", "-p", "-l", "-s"];
        write!(text, "\t{}", kinds[rng.usize(..7)]).expect("memory");
    }
    *context += 1;
    match rng.usize(..6) {
        0 => text.push_str(" <<none>>\n"),
        _ => writeln!(text, "  u:object_r:t{context}:s0").expect("memory"),
    }
}

/// A pattern.
pub fn pattern(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.usize(..12) == 0 {
        text.push_str(&atom(rng, 2));
    }
    for _ in 0..rng.usize(1..5) {
        text.push('/');
        match rng.usize(..5) {
            0 => {
                for _ in 0..rng.usize(1..4) {
                    let piece = quantified(rng, 2);
                    text.push_str(&piece);
                }
            }
            1 => {
                text.push_str(NAMES[rng.usize(..NAMES.len())].replace('.', "\\.").as_str());
                let piece = quantified(rng, 2);
                text.push_str(&piece);
            }
            _ => text.push_str(NAMES[rng.usize(..NAMES.len())].replace('.', "\\.").as_str()),
        }
    }
    match rng.usize(..10) {
        0..=3 => text.push_str("(/.*)?"),
        4 => text.push_str("/.*"),
        5 => text.push_str("/[^/]*"),
        6 => text.push_str(&format!("|{}", pattern(rng))),
        _ => {}
    }
    text
}

fn quantified(rng: &mut Rng, depth: usize) -> String {
    let mut text = atom(rng, depth);
    let quantifiers = [
        "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{,2}", "{1,}", "*?", "??",
    ];
    let is_anchor = matches!(text.as_str(), "^" | "$");
    // repetitions of repetitions take PCRE2 so many steps that it gives up, and then libselinux says that nothing matches
    let repeats = text.starts_with('(') && text.contains(['*', '+', '{', '?']);
    if !is_anchor && rng.usize(..3) == 0 {
        text.push_str(match repeats {
            true => "?",
            false => quantifiers[rng.usize(..quantifiers.len())],
        });
    }
    text
}

fn atom(rng: &mut Rng, depth: usize) -> String {
    let simple = [
        "a",
        "b",
        "c",
        "l",
        "/",
        ".",
        "\\.",
        "\\-",
        "_",
        "\\+",
        "[ab]",
        "[^/]",
        "[^a/]",
        "[a-c]",
        "[0-9]",
        "[]a]",
        "[a-]",
        "[[:alpha:]]",
        "[\\d_]",
        "[[b]",
        "\\d",
        "\\w",
        "\\S",
        "\\/",
        "\\x61",
        "\\@",
        "{",
        "}",
        "]",
        ",",
        "&&",
        "[a&&b]",
        "~",
    ];
    if depth > 0 && rng.usize(..3) == 0 {
        let mut inside = String::new();
        for branch in 0..rng.usize(1..4) {
            if branch > 0 {
                inside.push('|');
            }
            for _ in 0..rng.usize(..3) {
                inside.push_str(&quantified(rng, depth - 1));
            }
        }
        return match rng.usize(..4) {
            0 => format!("(?:{inside})"),
            1 => format!("({inside}|$)"),
            _ => format!("({inside})"),
        };
    }
    match rng.usize(..30) {
        0 => "$".into(),
        1 => "^".into(),
        _ => simple[rng.usize(..simple.len())].into(),
    }
}

fn aliases(rng: &mut Rng) -> Text {
    let mut text = String::new();
    if rng.bool() {
        for _ in 0..rng.usize(..5) {
            let path = |rng: &mut Rng| match rng.usize(..8) {
                0 => "/".to_owned(),
                _ => {
                    let names = (0..rng.usize(1..4)).map(|_| NAMES[rng.usize(..NAMES.len())]);
                    names.fold(String::new(), |path, name| path + "/" + name)
                }
            };
            writeln!(text, "{} {}", path(rng), path(rng)).expect("memory");
        }
    }
    Text {
        name: "file_contexts.subs".into(),
        text,
    }
}

/// A path of the names that patterns are made of.
pub fn path(rng: &mut Rng) -> Vec<u8> {
    let mut path = Vec::new();
    for _ in 0..rng.usize(1..6) {
        path.push(b'/');
        path.extend(NAMES[rng.usize(..NAMES.len())].bytes());
        if rng.usize(..4) == 0 {
            path.push(b"ab/.c1\n{"[rng.usize(..8)]);
        }
    }
    path
}
