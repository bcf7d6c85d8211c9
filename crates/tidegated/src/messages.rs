//! Messages to the administrator, apart from the audit log.

use std::fs::OpenOptions;
use std::io::{self, Write};

use tidegate_audit::printable;

/// Tells the administrator of something that went wrong: by standard error,
/// which a service manager keeps, and by the kernel's log, which everybody has.
/// It is one line, whatever it quotes.
pub fn complain(what: &str) {
    let what = printable(what);
    let _ = writeln!(io::stderr(), "tidegate: {what}");
    if let Ok(mut log) = OpenOptions::new().write(true).open("/dev/kmsg") {
        // each write is a message of its own
        let _ = log.write_all(format!("<4>tidegate: {what}\n").as_bytes());
    }
}
