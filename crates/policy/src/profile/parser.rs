//! Runs `apparmor_parser`, which compiles profiles as they were written.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use miette::Diagnostic;
use thiserror::Error;

use super::{Profile, UnpackError, unpack};

/// How names end that no profile has: what package managers and editors leave beside it.
/// `is_blacklisted()` of the parser.
const LEFT_BEHIND: [&str; 13] = [
    ".dpkg-new",
    ".dpkg-old",
    ".dpkg-dist",
    ".dpkg-bak",
    ".dpkg-remove",
    ".pacsave",
    ".pacnew",
    ".rpmnew",
    ".rpmsave",
    ".orig",
    ".rej",
    ".swp",
    "~",
];

/// The compiler, and where it looks.
#[derive(Debug, Clone)]
pub struct Parser {
    /// The program.
    pub program: PathBuf,
    /// Where profiles lie, and what they include: `/etc/apparmor.d`.
    pub base: PathBuf,
    /// What the kernel can mediate, in the form of `/sys/kernel/security/apparmor/features` in one
    /// file: rules of other classes are left out by the parser.
    pub features: String,
}

/// What became of a file of profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The file.
    pub file: PathBuf,
    /// Its profiles, in the order in which they stand there.
    pub profiles: Vec<Profile>,
    /// What the parser had to say, a line each.
    pub warnings: Vec<String>,
}

/// Why profiles could not be compiled.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ParserError {
    /// No parser.
    #[error("cannot run {program}")]
    #[diagnostic(
        code(profile::no_parser),
        help(
            "install AppArmor's parser (Debian: apt install apparmor); it is needed to compile profiles, \
             not to enforce them"
        )
    )]
    NoParser {
        /// What was to be run.
        program: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// A file or directory that cannot be read.
    #[error("cannot read {path}")]
    #[diagnostic(code(profile::unreadable))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A fault in a profile. The message is the parser's, with its file and line.
    #[error("{file} does not compile\n{message}")]
    #[diagnostic(code(profile::fault))]
    Fault {
        /// The file that was compiled; the fault may be in one that it includes.
        file: PathBuf,
        /// What the parser said.
        message: String,
    },
    /// Something that no parser writes.
    #[error("what {program} made of {file} cannot be read")]
    #[diagnostic(code(profile::output))]
    Output {
        /// The parser.
        program: PathBuf,
        /// What it compiled.
        file: PathBuf,
        /// Why.
        #[diagnostic_source]
        source: UnpackError,
    },
}

impl Parser {
    /// Compiles a file of profiles, or each file of a directory, and not of those below it.
    ///
    /// # Errors
    ///
    /// The first file that does not compile.
    pub fn parse(&self, path: &Path) -> Result<Vec<Parsed>, ParserError> {
        let unreadable = |source| ParserError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut features = tempfile::NamedTempFile::new().map_err(unreadable)?;
        features
            .write_all(self.features.as_bytes())
            .map_err(unreadable)?;
        let files = match fs::metadata(path).map_err(unreadable)?.is_dir() {
            true => profiles_in(path).map_err(unreadable)?,
            false => vec![path.to_owned()],
        };
        files
            .into_iter()
            .map(|file| self.parse_file(file, features.path()))
            .collect()
    }

    fn parse_file(&self, file: PathBuf, features: &Path) -> Result<Parsed, ParserError> {
        let output = Command::new(&self.program)
            // neither this machine's kernel nor its configuration has a say
            .args(["--skip-kernel-load", "--skip-cache", "--stdout"])
            .args(["--config-file", "/dev/null", "--warn", "rule-not-enforced"])
            .arg("--base")
            .arg(&self.base)
            .arg("--policy-features")
            .arg(features)
            .arg("--kernel-features")
            .arg(features)
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ParserError::NoParser {
                program: self.program.clone(),
                source,
            })?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            let message = match said.is_empty() {
                true => format!("{} ended with {}", self.program.display(), output.status),
                false => said,
            };
            return Err(ParserError::Fault { file, message });
        }
        match unpack(&output.stdout) {
            Ok(profiles) => Ok(Parsed {
                file,
                profiles,
                warnings: said.lines().map(str::to_owned).collect(),
            }),
            Err(source) => Err(ParserError::Output {
                program: self.program.clone(),
                file,
                source,
            }),
        }
    }
}

/// The files of a directory that the parser would compile, by name.
pub(super) fn profiles_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_left = name.starts_with('.')
            || name == "README"
            || LEFT_BEHIND.iter().any(|end| name.ends_with(end));
        if !is_left && fs::metadata(&path)?.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parser(program: &str) -> Parser {
        Parser {
            program: program.into(),
            base: "/etc/apparmor.d".into(),
            features: String::new(),
        }
    }

    #[test]
    fn what_others_leave_beside_profiles_is_none() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b", "a.dpkg-old", ".hidden", "README", "a", "a~", "c.orig"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("abstractions")).unwrap();
        let names = ["a", "b"].map(|name| dir.path().join(name));
        assert_eq!(profiles_in(dir.path()).unwrap(), names);
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("profile");
        let error = parser("/bin/true").parse(&file).unwrap_err();
        assert!(matches!(error, ParserError::Unreadable { path, .. } if path == file));
        fs::write(&file, "profile x {}").unwrap();
        let error = parser("/nowhere/apparmor_parser").parse(&file).unwrap_err();
        assert_eq!(error.to_string(), "cannot run /nowhere/apparmor_parser");
    }

    #[test]
    fn a_parser_that_fails_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("profile");
        fs::write(&file, "profile x {}").unwrap();
        // `false` says nothing, `ls` complains of its options, `echo` writes no profiles
        for program in ["/bin/false", "/bin/ls"] {
            let error = parser(program).parse(&file).unwrap_err();
            let ParserError::Fault { message, .. } = error else {
                panic!("{error:?}")
            };
            assert!(!message.is_empty());
        }
        let error = parser("/bin/echo").parse(&file).unwrap_err();
        assert!(matches!(error, ParserError::Output { .. }), "{error:?}");
    }
}
