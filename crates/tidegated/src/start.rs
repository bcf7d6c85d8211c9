//! What the program does: it starts the daemon, or is a process that falls.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use tidegate_audit::{output, printable};
use tidegate_bundle::Policy;
use tidegate_protocol::Code;

use crate::error::{DaemonError, Outcome};
use crate::options::{DEFAULTS, Options};
use crate::report::Report;
use crate::{daemon::run, instance, settle};

/// How this program is called.
const USAGE: &str = "`tidegate start` starts this program, the daemon: tidegated [--foreground] [--json] [OPTION=VALUE…] <BUNDLE";

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    /// The daemon.
    Start {
        how: Options,
        /// Stays a service manager's process, and tells people.
        foreground: bool,
        /// Tells programs.
        json: bool,
    },
    /// A fall to a level.
    Settle(String),
}

/// Does what the program's arguments ask for; `arguments` are those without its name.
pub fn run_program(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let Some(command) = parse(arguments) else {
        let _ = writeln!(io::stderr(), "{USAGE}");
        return Code::Usage.into();
    };
    let ended = match &command {
        Command::Start {
            how,
            foreground: true,
            json,
        } => bundle().and_then(|policy| run(policy, how, |report| tell(&report, *json))),
        Command::Start { how, .. } => {
            detached(how);
            Ok(())
        }
        Command::Settle(level) => settle::settle(level),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tidegate: {}", output(&error.to_string()));
            error.code().into()
        }
    }
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Command> {
    let (mut how, mut foreground, mut json) = (DEFAULTS, false, false);
    for word in arguments {
        match (word.as_str(), word.strip_prefix("--settle=")) {
            ("--foreground", _) => foreground = true,
            ("--json", _) => json = true,
            (_, Some(level)) => return Some(Command::Settle(level.to_owned())),
            _ => how.take(&word)?,
        }
    }
    Some(Command::Start {
        how,
        foreground,
        json,
    })
}

/// The policy whose bundle is on standard input; nothing there: what is in force is taken over.
fn bundle() -> Outcome<Option<Policy>> {
    let mut bundle = Vec::new();
    io::stdin()
        .read_to_end(&mut bundle)
        .map_err(|e| DaemonError::io("read the bundle", e))?;
    instance::leave_input();
    match bundle.as_slice() {
        [] => Ok(None),
        bytes => Policy::from_bundle(bytes)
            .map(Some)
            .map_err(|e| DaemonError::new(Code::Policy, e)),
    }
}

/// The daemon in a session of its own, with the [`Report`] on standard output.
fn detached(how: &Options) {
    let told = |report: &Report| {
        let _ = serde_json::to_writer(io::stdout(), report);
        let _ = io::stdout().flush();
    };
    let ended = bundle().and_then(|policy| {
        let _ = rustix::process::setsid();
        run(policy, how, |report| {
            told(&report);
            instance::silence();
        })
    });
    if let Err(error) = ended {
        told(&Report {
            code: Some(error.code() as u8),
            message: error.to_string(),
            warnings: Vec::new(),
        });
    }
}

/// Tells what came of it, in words or as JSON.
fn tell(report: &Report, json: bool) {
    for warning in &report.warnings {
        let _ = writeln!(io::stderr(), "warning: {}", printable(warning));
    }
    let mut out = io::stdout();
    let _ = match serde_json::to_string(report) {
        Ok(text) if json => writeln!(out, "{}", printable(&text)),
        _ => writeln!(out, "{}", output(&report.message)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Command> {
        parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn words_say_what_to_do() {
        let start = Command::Start {
            how: Options {
                log_keep: 3,
                ..DEFAULTS
            },
            foreground: true,
            json: false,
        };
        assert_eq!(parsed(&["--foreground", "--log-keep=3"]), Some(start));
        let settle = Command::Settle("low".into());
        assert_eq!(parsed(&["--settle=low"]), Some(settle));
        assert_eq!(parsed(&["--help"]), None);
    }
}
