//! Printing: colours on terminals only, and no panic when nobody can be told.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::process;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Code;

/// A line on standard output.
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::line(format_args!($($arg)*)) };
}

/// A line on standard error.
macro_rules! tell {
    ($($arg:tt)*) => { $crate::output::error_line(format_args!($($arg)*)) };
}

pub(crate) use {say, tell};

/// Writes a line to standard output; a command that cannot ends.
pub fn line(line: fmt::Arguments<'_>) {
    match writeln!(anstream::stdout(), "{line}") {
        Ok(()) => {}
        // the reader has heard enough
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => process::exit(0),
        Err(e) => {
            tell!("tidegate: cannot write to standard output: {e}");
            process::exit(Code::Internal as i32);
        }
    }
}

/// Writes a line to standard error, if anybody can be told.
pub fn error_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Does something that takes its time; a terminal shows that it is under way, and for how long.
pub fn waiting<T>(what: &'static str, long: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new_spinner().with_message(what);
    let style = ProgressStyle::with_template("{spinner} {msg}: {elapsed:.dim}");
    bar.set_style(style.expect("the template is well formed"));
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = long();
    bar.finish_and_clear();
    result
}

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
