//! A program limits itself, as by Landlock: from then on it may do what a subject of a capability file gives, and nothing else.
//! What it is limited by already goes on to limit it, so nothing is ever gained by it: `docs/reference/capability.md`.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_restrict::{Layer, Rules};
//!
//! let input = std::fs::File::open("/srv/in/today")?;
//! let rules = Rules::new().file("/srv/out/*", "write create");
//! Layer::of_rules("worker", &rules)?.restrict_self()?;
//! // `input` can still be read, and nothing else be opened but what is below /srv/out
//! # Ok(()) }
//! ```
//!
//! Of a file that an administrator wrote: `Layer::of_file("tools.caps", Some("tool"))?.restrict_self()?`.
//!
//! - **What is open** stays as it is, and so does what is mapped; a service is asked for each request anew.
//! - **Threads** are all limited when the call returns, and whatever the process starts from then on.
//! - **No way back**: 16 layers limit a process at most, and none goes.
//! - A caller that is not root gives up new privileges by it (`no_new_privs`, prctl(2)), in the
//!   calling thread; the others must have done so themselves, or been started by one that had.
//! - It takes no line in the file: everybody may reach the daemon.
#![forbid(unsafe_code)]

mod error;
mod rules;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use tidegate_policy::caps::{self, CompiledCaps};
use tidegate_protocol::Ask;

/// A path as a pattern that matches it and nothing else.
pub use tidegate_bundle::caps::literal;
/// What is wrong with a capability file.
pub use tidegate_policy::caps::CapsErrors;

pub use self::error::RestrictError;
pub use self::rules::Rules;

/// The daemon's answers, by the exit codes of its command (`docs/reference/exit-codes.md`).
const NO: u8 = 1;
const NOT_PERMITTED: u8 = 7;

/// A subject, ready to limit whoever asks for it.
#[derive(Debug, Clone)]
pub struct Layer {
    bundle: Vec<u8>,
    subject: Option<String>,
}

impl Layer {
    /// A subject of a capability file, and of what that includes; the file's first, if it is not named.
    ///
    /// # Errors
    /// [`RestrictError::Read`], [`RestrictError::File`], [`RestrictError::Subject`].
    pub fn of_file(path: impl AsRef<Path>, subject: Option<&str>) -> Result<Layer, RestrictError> {
        let path = path.as_ref();
        fs::metadata(path).map_err(|source| RestrictError::Read {
            path: path.to_owned(),
            source,
        })?;
        Layer::of(caps::compile_file(path)?, subject)
    }

    /// A subject of a capability file that is given as text, and includes nothing; `name` is what the file is called in records.
    ///
    /// # Errors
    /// [`RestrictError::File`], [`RestrictError::Subject`].
    pub fn of_text(name: &str, text: &str, subject: Option<&str>) -> Result<Layer, RestrictError> {
        Layer::of(caps::compile_str(name, text)?, subject)
    }

    /// A subject of this name with these rules.
    ///
    /// # Errors
    /// [`RestrictError::File`], if the rules are none.
    pub fn of_rules(subject: &str, rules: &Rules) -> Result<Layer, RestrictError> {
        Layer::of_text(subject, &rules.text(subject), None)
    }

    fn of(compiled: CompiledCaps, subject: Option<&str>) -> Result<Layer, RestrictError> {
        let caps = compiled.capabilities;
        if let Some(name) = subject
            && caps.subject(name).is_none()
        {
            let known: Vec<&str> = caps.subjects.iter().map(|it| &*it.name).collect();
            return Err(RestrictError::Subject {
                name: name.to_owned(),
                known: known.join(", "),
            });
        }
        Ok(Layer {
            bundle: caps.to_bundle(),
            subject: subject.map(str::to_owned),
        })
    }

    /// Limits this process at once, all its threads, and whatever it starts. What came of it, in words: the session that began,
    /// or that it is narrowed further.
    ///
    /// # Errors
    /// [`RestrictError`] says what to fix. If it is [`RestrictError::Limits`] or [`RestrictError::Failed`], some threads may be
    /// limited already, and others not: a program that goes on then does so at its own risk.
    pub fn restrict_self(&self) -> Result<String, RestrictError> {
        self.restrict(true)
    }

    /// Limits what this process executes next, and whatever that starts, as `tidegate run --caps` does. The process may have one
    /// thread.
    ///
    /// # Errors
    /// As of [`restrict_self`](Layer::restrict_self).
    pub fn restrict_next(&self) -> Result<String, RestrictError> {
        self.restrict(false)
    }

    fn restrict(&self, now: bool) -> Result<String, RestrictError> {
        if !rustix::process::geteuid().is_root() {
            rustix::thread::set_no_new_privs(true)
                .map_err(|e| RestrictError::Memory("give up new privileges", e.into()))?;
        }
        let bundle = tidegate_protocol::seal("tidegate-caps", &self.bundle)
            .map_err(|e| RestrictError::Memory("keep the compiled file", e))?;
        let question = Ask::Capabilities {
            subject: self.subject.clone(),
            now,
        };
        error::answered(tidegate_protocol::ask(
            &question,
            Some(bundle.as_fd()),
            question.patience(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::caps::Capabilities;

    use super::*;

    const TEXT: &str = "subject host {\n file /srv/** read\n}\nsubject tool {\n}\n";

    #[test]
    fn a_subject_that_is_not_there_is_told_before_anybody_is_asked() {
        assert!(Layer::of_text("t.caps", TEXT, Some("tool")).is_ok());
        let wrong = Layer::of_text("t.caps", TEXT, Some("toll")).unwrap_err();
        let said = wrong.to_string();
        assert_eq!(said, "the file has no subject `toll`: it has host, tool");
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let wrong = Layer::of_text("t.caps", "subject a {\n file srv read\n}\n", None);
        let said = wrong.unwrap_err().to_string();
        assert!(said.contains("t.caps:2:7: "), "{said}");
        let none = Layer::of_file("/nowhere/t.caps", None).unwrap_err();
        assert!(matches!(none, RestrictError::Read { .. }), "{none}");
    }

    #[test]
    fn the_daemon_gets_what_was_compiled() {
        let layer = Layer::of_text("t.caps", TEXT, None).unwrap();
        let caps = Capabilities::from_bundle(&layer.bundle).unwrap();
        assert_eq!(caps.subjects[0].name, "host");
    }
}
