//! What can go wrong between user space and the kernel's monitor.

use std::io;
use std::path::PathBuf;

/// An error of the monitor's loader, maps or programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The monitor is in the kernel already.
    #[error("Tidegate is enforcing here already")]
    Running,
    /// No monitor is in the kernel.
    #[error("Tidegate is not running here: `tidegate start` starts it")]
    NotRunning,
    /// The kernel or the policy in force refuses it to this process.
    #[error("not permitted to {0}: it takes root at the top level")]
    NotPermitted(String),
    /// This kernel cannot enforce.
    #[error("this machine cannot enforce: {0}; `tidegate doctor` tells more")]
    Unsupported(String),
    /// The verifier or libbpf refused the monitor.
    #[error("this kernel does not take the monitor: {source}\n{log}")]
    Load {
        /// The last lines that libbpf said.
        log: String,
        /// The errno.
        source: io::Error,
    },
    /// One program could not be attached; everything was undone.
    #[error("this kernel refused to attach {program}: {source}; nothing stays attached")]
    Hook {
        /// The program, named after its hook.
        program: String,
        /// The errno.
        source: io::Error,
    },
    /// The pin directory cannot be made or written.
    #[error("cannot pin to {path}: {source}")]
    Pin {
        /// The file or directory.
        path: PathBuf,
        /// The errno.
        source: io::Error,
    },
    /// What is in the kernel was put there by another build.
    #[error("the monitor in the kernel is another version's ({0}): restart the machine")]
    Foreign(String),
    /// A policy with other levels cannot replace the one in force.
    #[error(
        "the policy in force has the levels {running}, this one {wanted}: \
         levels cannot change under running programs; stop and start instead"
    )]
    LevelsDiffer {
        /// Lowest first.
        running: String,
        /// Lowest first.
        wanted: String,
    },
    /// A table has no room left.
    #[error("the table of {0} is full")]
    Full(&'static str),
    /// A process that may not change an object has it mapped for writing.
    #[error("process {0} has it mapped for writing, which cannot be taken back: end it first")]
    Mapped(u32),
    /// A process that may not change an object cannot be looked at: somebody keeps its memory locked.
    #[error(
        "process {0} may have it mapped for writing: it cannot be looked at, as its memory is locked: end it first"
    )]
    Blocked(u32),
    /// What the kernel makes, and what neither demotes nor refuses.
    #[error("{0} cannot be given a level: what it is decides")]
    Fixed(String),
    /// Capabilities that a process cannot be given, or have taken from it.
    #[error("{0}")]
    Capabilities(String),
    /// A process that is not root's could still get new privileges by an execution.
    #[error(
        "a caller that is not root gives up new privileges first, in each thread (prctl(2), PR_SET_NO_NEW_PRIVS): \
         `tidegate run` does"
    )]
    NewPrivileges,
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The errno.
        source: io::Error,
    },
}

/// The monitor's results.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a system call; `what` reads on after `cannot`.
    pub fn io(what: impl Into<String>, source: impl Into<io::Error>) -> Error {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NotPermitted(what),
            _ => Error::Io { what, source },
        }
    }

    /// The errno, where there was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Io { source, .. }
            | Error::Load { source, .. }
            | Error::Hook { source, .. }
            | Error::Pin { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Adds to a result what was tried.
pub(crate) trait Trying<T> {
    /// Turns a failure into [`Error::Io`]; `what` reads on after `cannot`.
    fn trying(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Trying<T> for std::result::Result<T, io::Error> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::io(what(), e))
    }
}

impl<T> Trying<T> for std::result::Result<T, rustix::io::Errno> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::io(what(), e))
    }
}

impl<T> Trying<T> for std::result::Result<T, libbpf_rs::Error> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::io(what(), io_of(e)))
    }
}

/// libbpf-rs hides the errno; its kind tells the two that matter apart.
pub(crate) fn io_of(e: libbpf_rs::Error) -> io::Error {
    match e.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            io::Error::new(io::ErrorKind::PermissionDenied, e.to_string())
        }
        _ => io::Error::other(e.to_string()),
    }
}
