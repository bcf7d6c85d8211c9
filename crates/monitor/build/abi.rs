//! Reads the enumerations and sizes of `kernel/abi/policy.h` and `record.h`, so that a name or a
//! number stands in one place only.

use std::fmt::Write;
use std::path::Path;

/// Enumerations of `kernel/abi/policy.h` and `record.h` that user space names, and what their constants begin with.
const ENUMS: [(&str, &str, &str); 5] = [
    ("tg_event_kind", "TG_E_", "Kind"),
    ("tg_op", "TG_OP_", "Op"),
    ("tg_reason", "TG_R_", "Reason"),
    ("tg_hook_class", "TG_C_", "Class"),
    ("tg_refusals", "TG_", "Refusals"),
];

/// The same of `kernel/caps/session.h`.
const CAPS_ENUMS: [(&str, &str, &str); 2] = [
    ("caps_taken_kind", "CAPS_TAKEN_", "CapsKind"),
    ("caps_why", "CAPS_", "CapsWhy"),
];

/// The Rust text for what the headers in `kernel` say.
pub fn generate(kernel: &Path) -> String {
    let read =
        |file: &str| std::fs::read_to_string(kernel.join(file)).expect("the kernel's headers");
    let text = read("abi/policy.h") + &read("abi/record.h");
    let mut out = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("#define") {
            continue;
        }
        if let (Some(name), Some(Ok(n))) = (words.next(), words.next().map(str::parse::<u32>)) {
            let _ = writeln!(out, "pub(crate) const {name}: u32 = {n};");
        }
    }
    for (name, prefix, rust) in ENUMS {
        enumeration(&text, name, prefix, rust, &mut out);
    }
    let text = read("caps/session.h");
    for (name, prefix, rust) in CAPS_ENUMS {
        enumeration(&text, name, prefix, rust, &mut out);
    }
    out
}

/// One enumeration: its variants, their numbers and their words.
fn enumeration(text: &str, name: &str, prefix: &str, rust: &str, out: &mut String) {
    let start = format!("enum {name} {{");
    let body = text
        .split_once(&start)
        .and_then(|(_, rest)| rest.split_once('}'))
        .unwrap_or_else(|| panic!("the headers have enum {name}"))
        .0;
    let mut next = 0;
    let mut constants = Vec::new();
    for line in body.lines() {
        let line = line.split("/*").next().unwrap_or_default().trim();
        let Some(line) = line.strip_suffix(',') else {
            continue;
        };
        let (constant, value) = match line.split_once('=') {
            Some((c, v)) => (c.trim(), v.trim().parse().expect("a number")),
            None => (line, next),
        };
        next = value + 1;
        let word = constant
            .strip_prefix(prefix)
            .expect("the enumeration's prefix");
        if word != "COUNT" {
            constants.push((word.to_ascii_lowercase(), value));
        }
    }
    let _ = writeln!(
        out,
        "#[doc = \"`enum {name}` of the kernel's side.\"]\n\
         #[allow(missing_docs)]\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
         #[repr(u8)]\npub enum {rust} {{"
    );
    for (word, value) in &constants {
        let _ = writeln!(out, "{} = {value},", camel(word));
    }
    let _ = writeln!(
        out,
        "}}\nimpl {rust} {{\n\
         /// All of them, in the kernel's order.\n\
         pub const ALL: [{rust}; {}] = [{}];\n\
         /// Its word in records and on the command line.\n\
         pub fn word(self) -> &'static str {{ match self {{",
        constants.len(),
        constants
            .iter()
            .map(|(w, _)| format!("{rust}::{}", camel(w)))
            .collect::<Vec<_>>()
            .join(", "),
    );
    for (word, _) in &constants {
        let _ = writeln!(
            out,
            "{rust}::{} => \"{}\",",
            camel(word),
            word.replace('_', "-")
        );
    }
    let _ = writeln!(
        out,
        "}} }}\n\
         /// What the kernel means by a number; `None` for one it does not use.\n\
         pub fn from_number(n: u8) -> Option<Self> {{ match n {{"
    );
    for (word, value) in &constants {
        let _ = writeln!(out, "{value} => Some({rust}::{}),", camel(word));
    }
    let _ = writeln!(out, "_ => None, }} }}\n}}");
}

/// `open_read` as `OpenRead`.
fn camel(word: &str) -> String {
    word.split('_')
        .map(|part| {
            let (head, tail) = part.split_at(part.len().min(1));
            head.to_ascii_uppercase() + tail
        })
        .collect()
}
