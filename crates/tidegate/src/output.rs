//! Printing: colours on terminals only, nothing that others wrote but as text, and no panic when nobody can be told.

use std::fmt;
use std::io::{self, Write};
use std::process;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_audit::output;
use tidegate_protocol::Code;

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
    let line = output(&line.to_string());
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
    let line = output(&line.to_string());
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
