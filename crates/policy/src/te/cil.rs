//! Runs `secilc`, SELinux's own compiler of CIL.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use miette::Diagnostic;
use thiserror::Error;

/// The compiler.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// The program.
    pub program: PathBuf,
}

/// What it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The binary policy.
    pub policy: Vec<u8>,
    /// What `filecon` statements say, as a file of file contexts.
    pub file_contexts: Vec<u8>,
}

/// Why CIL could not be compiled.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum CompilerError {
    /// No compiler.
    #[error("cannot run {program}")]
    #[diagnostic(
        code(te::no_compiler),
        help(
            "install SELinux's compiler of CIL (Debian: apt install secilc), or name it with --secilc; it is \
             needed to compile CIL, not to enforce a policy"
        )
    )]
    NoCompiler {
        /// What was to be run.
        program: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// A file that cannot be read, or none where its result goes.
    #[error("cannot read {path}")]
    #[diagnostic(code(te::unreadable))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A fault in the policy. The message is the compiler's, with its file and line.
    #[error("{files} does not compile\n{message}")]
    #[diagnostic(code(te::cil))]
    Fault {
        /// The files that were compiled together.
        files: String,
        /// What the compiler said.
        message: String,
    },
}

impl Compiler {
    /// Compiles files to one policy.
    ///
    /// # Errors
    ///
    /// If one cannot be read, or what they say does not compile.
    pub fn compile(&self, files: &[PathBuf]) -> Result<Compiled, CompilerError> {
        for file in files {
            // the compiler would only say that it could not
            fs::File::open(file).map_err(|source| unreadable(file, source))?;
        }
        let dir =
            tempfile::tempdir().map_err(|source| unreadable(&std::env::temp_dir(), source))?;
        let (policy, contexts) = (dir.path().join("policy"), dir.path().join("file_contexts"));
        let output = Command::new(&self.program)
            .arg("--output")
            .arg(&policy)
            .arg("--filecontext")
            .arg(&contexts)
            .arg("--")
            .args(files)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| CompilerError::NoCompiler {
                program: self.program.clone(),
                source,
            })?;
        if !output.status.success() {
            return Err(CompilerError::Fault {
                files: names(files),
                message: self.said(&output),
            });
        }
        Ok(Compiled {
            policy: fs::read(&policy).map_err(|source| unreadable(&policy, source))?,
            file_contexts: fs::read(&contexts).map_err(|source| unreadable(&contexts, source))?,
        })
    }

    /// What it had to say, or how it ended.
    fn said(&self, output: &Output) -> String {
        let said = String::from_utf8_lossy(&output.stderr);
        match said.trim() {
            "" => format!("{} ended with {}", self.program.display(), output.status),
            said => said.to_owned(),
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> CompilerError {
    CompilerError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

fn names(files: &[PathBuf]) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(program: &str, files: &[PathBuf]) -> CompilerError {
        let program = program.into();
        Compiler { program }.compile(files).unwrap_err()
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.cil");
        let error = compile("/bin/true", std::slice::from_ref(&file));
        assert!(matches!(error, CompilerError::Unreadable { path, .. } if path == file));
        fs::write(&file, "").unwrap();
        let error = compile("/nowhere/secilc", &[file]);
        assert_eq!(error.to_string(), "cannot run /nowhere/secilc");
    }

    #[test]
    fn a_compiler_that_fails_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.cil");
        fs::write(&file, "").unwrap();
        for program in ["/bin/false", "/bin/ls"] {
            let error = compile(program, std::slice::from_ref(&file));
            assert!(matches!(error, CompilerError::Fault { .. }), "{error:?}");
        }
        // says nothing, and writes nothing
        let error = compile("/bin/true", &[file]);
        assert!(
            matches!(error, CompilerError::Unreadable { .. }),
            "{error:?}"
        );
    }
}
