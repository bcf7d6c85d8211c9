//! The compiler of capability files. `docs/reference/capability-files.md` is the language's reference.
//!
//! [`decide`] says slowly what the automata say that it makes, and [`model`] what becomes of active capabilities.
//!
//! ```
//! use tidegate_bundle::caps::{Class, Object, permission};
//! use tidegate_policy::caps::compile_str;
//!
//! let text = "subject tool {\n    file /srv/** read\n    file /srv/out/* read write create\n}\n";
//! let caps = compile_str("tool.caps", text)?.capabilities;
//! let file = |path: &str| Object::Path(Class::File, path.into());
//! let said = caps.lookup(0, &file("/srv/out/a"));
//! assert_eq!(said.rights, permission::READ | permission::WRITE | permission::CREATE);
//! assert_eq!(said.by, [0, 1]);
//! assert_eq!(caps.lookup(0, &file("/srv/in/a")).rights, permission::READ);
//! assert_eq!(caps.lookup(0, &file("/etc/passwd")).rights, 0);
//! # Ok::<(), tidegate_policy::caps::CapsErrors>(())
//! ```

#[cfg(test)]
mod apparmor_tests;
mod compile;
pub mod decide;
mod expression;
mod gather;
#[cfg(test)]
mod gather_tests;
mod lint;
pub mod model;
#[cfg(test)]
mod model_tests;
mod operation;
mod problem;
mod read;
mod syntax;

use std::path::Path;

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::caps::Capabilities;

pub use self::problem::CapsProblem;
use crate::finding;

/// A problem in a capability file, with its place.
pub type CapsFinding = finding::Finding<CapsProblem>;
type Note = finding::Note<CapsProblem>;

/// Why a capability file did not compile: every error found, and the warnings beside them.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{}", finding::summary("the capability file", .findings))]
pub struct CapsErrors {
    /// What was found, by file and place.
    #[related]
    pub findings: Vec<CapsFinding>,
}

/// A capability file that compiled.
#[derive(Debug, Clone)]
pub struct CompiledCaps {
    /// What it says.
    pub capabilities: Capabilities,
    /// What it says that cannot mean what it seems to.
    pub warnings: Vec<CapsFinding>,
}

/// Compiles a capability file and what it includes.
///
/// # Errors
///
/// Everything wrong in them.
pub fn compile_file(path: &Path) -> Result<CompiledCaps, CapsErrors> {
    compile::compile(read::Units::of_file(path))
}

/// Compiles a capability file given as text, which includes nothing.
///
/// # Errors
///
/// Everything wrong in it.
pub fn compile_str(name: &str, text: &str) -> Result<CompiledCaps, CapsErrors> {
    compile::compile(read::Units::of_text(name, text))
}
