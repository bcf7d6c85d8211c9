//! Runs `apparmor_parser`, which compiles profiles as they were written.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::profile::{LeftOut, Mode};

use super::overlay::Without;
use super::unusable::unusable;
use super::{Profile, Statement, UnpackError, loss, source, unpack};

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
    /// A file that has profiles, of which the parser makes none: it exits without an error then.
    #[error("no profile comes of {file}: {why}")]
    #[diagnostic(
        code(profile::skipped),
        help("remove what has it skipped, or name only files that are to be used")
    )]
    Skipped {
        /// The file.
        file: PathBuf,
        /// What is the matter.
        why: String,
        /// The administrator has disabled it.
        disabled: bool,
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

impl ParserError {
    /// Whether nothing is wrong with the file, and the administrator has disabled it.
    pub fn is_disabled(&self) -> bool {
        matches!(self, ParserError::Skipped { disabled: true, .. })
    }

    /// The file of profiles that it is about, if it is about one of several.
    fn file(&self) -> Option<&Path> {
        match self {
            ParserError::NoParser { .. } | ParserError::Unreadable { .. } => None,
            ParserError::Fault { file, .. }
            | ParserError::Skipped { file, .. }
            | ParserError::Output { file, .. } => Some(file),
        }
    }

    /// What is wrong, in one line without the file's name.
    fn why(&self) -> String {
        match self {
            ParserError::Fault { message, .. } => {
                let lines = message.lines().map(str::trim);
                let told = lines.filter(|line| !line.is_empty() && !line.starts_with("Warning"));
                told.collect::<Vec<_>>().join("; ")
            }
            ParserError::Skipped { why, .. } => why.clone(),
            ParserError::Output { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }
}

impl Parser {
    /// Compiles a file of profiles, or each file of a directory, and not of those below it. A rule that would allow more
    /// than it says is left out of what is made.
    ///
    /// # Errors
    ///
    /// The first file that does not compile.
    pub fn parse(&self, path: &Path) -> Result<Vec<Parsed>, ParserError> {
        self.parse_each(path)?.into_iter().collect()
    }

    /// Compiles as [`parse`](Self::parse) does, and goes on behind a file that does not compile.
    ///
    /// # Errors
    ///
    /// If no file can be compiled, as there is no parser, or as there are no files.
    pub fn parse_each(&self, path: &Path) -> Result<Vec<Result<Parsed, ParserError>>, ParserError> {
        let features = self.features(path)?;
        let mut each = Vec::new();
        for file in files(path)? {
            match self.parse_file(file, features.path()) {
                Err(e) if e.file().is_none() => return Err(e),
                one => each.push(one),
            }
        }
        Ok(each)
    }

    /// What to tell of a file that is left out, for what is wrong with it or as it is disabled.
    pub fn left_out(&self, fault: &ParserError) -> LeftOut {
        let why = fault.why();
        let file = fault.file().unwrap_or(Path::new(""));
        let blocks = source(file, &self.base).map_or_else(|_| Vec::new(), |source| source.blocks);
        let of_block = blocks.iter().map(|block| block.line).min();
        // the parser's own place, or else that of the first profile
        let line = line_in(&why).or(of_block).unwrap_or(0);
        let names = blocks.into_iter().map(|block| block.profile);
        LeftOut {
            disabled: fault.is_disabled(),
            ..unusable(names, file, line, &why)
        }
    }

    /// What has the parser put a file's profiles into complain mode, which they do not say themselves: its name in `force-complain`
    /// below the base.
    pub fn forced(&self, parsed: &Parsed) -> Option<PathBuf> {
        let forces = self.beside("force-complain", &parsed.file)?;
        let mut profiles = parsed.profiles.iter();
        let is_forced = profiles.any(|profile| profile.mode == Mode::Complain)
            && source(&parsed.file, &self.base)
                .is_ok_and(|source| source.heads.iter().any(|head| !says_complain(&head.text)));
        is_forced.then_some(forces)
    }

    /// What has a file's name in a directory below the base: the parser looks there (`test_for_dir_mode()`), wherever the file is.
    fn beside(&self, dir: &str, file: &Path) -> Option<PathBuf> {
        let path = self.base.join(dir).join(file.file_name()?);
        path.exists().then_some(path)
    }

    fn features(&self, path: &Path) -> Result<tempfile::NamedTempFile, ParserError> {
        let unreadable = |source| unreadable(path, source);
        let mut features = tempfile::NamedTempFile::new().map_err(unreadable)?;
        features
            .write_all(self.features.as_bytes())
            .map_err(unreadable)?;
        Ok(features)
    }

    fn parse_file(&self, file: PathBuf, features: &Path) -> Result<Parsed, ParserError> {
        let mut parsed = self.compile(&file, &self.base, features)?;
        let fault = |e: io::Error| ParserError::Fault {
            file: file.clone(),
            message: e.to_string(),
        };
        // without knowing what is written, one cannot tell what of it is enforced
        let source = source(&file, &self.base).map_err(fault)?;
        if parsed.profiles.is_empty() && !source.blocks.is_empty() {
            let disables = self.beside("disable", &file);
            let disabled = disables.is_some();
            let why = match disables {
                Some(disables) => format!("{} has the parser skip it", disables.display()),
                None => "the parser makes nothing of its profiles".into(),
            };
            return Err(ParserError::Skipped {
                file,
                why,
                disabled,
            });
        }
        let is_left_out = |rule: &&Statement| loss::of(rule).iter().any(|loss| loss.is_left_out);
        let rules: Vec<_> = source.statements.iter().filter(is_left_out).collect();
        if !rules.is_empty() {
            let copy = Without::rules(&file, &self.base, &source, &rules).map_err(fault)?;
            let again = self.compile(&copy.file, &copy.base, features);
            // nobody but this knows the copy
            parsed.profiles = again
                .map_err(|e| e.named(&copy, &file, &self.base))?
                .profiles;
        }
        Ok(parsed)
    }

    fn compile(&self, file: &Path, base: &Path, features: &Path) -> Result<Parsed, ParserError> {
        let output = Command::new(&self.program)
            // neither this machine's kernel nor its configuration has a say
            .args(["--skip-kernel-load", "--skip-cache", "--stdout"])
            .args(["--config-file", "/dev/null", "--warn", "rule-not-enforced"])
            .args(["--warn", "rule-downgraded"])
            .arg("--base")
            .arg(base)
            .arg("--policy-features")
            .arg(features)
            .arg("--kernel-features")
            .arg(features)
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ParserError::NoParser {
                program: self.program.clone(),
                source,
            })?;
        let file = file.to_owned();
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

impl ParserError {
    /// What is said of a copy, of the file that it is of.
    fn named(self, copy: &Without, file: &Path, base: &Path) -> ParserError {
        let name = |text: String, of: &Path, is: &Path| {
            text.replace(&*of.to_string_lossy(), &is.to_string_lossy())
        };
        let file = file.to_owned();
        match self {
            ParserError::Fault { message, .. } => {
                let message = name(message, &copy.file, &file);
                let message = name(message, &copy.base, base);
                ParserError::Fault { file, message }
            }
            ParserError::Output {
                program, source, ..
            } => ParserError::Output {
                program,
                file,
                source,
            },
            other => other,
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> ParserError {
    ParserError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// The files that are meant by a path.
fn files(path: &Path) -> Result<Vec<PathBuf>, ParserError> {
    let unreadable = |source| unreadable(path, source);
    match fs::metadata(path).map_err(unreadable)?.is_dir() {
        true => profiles_in(path).map_err(unreadable),
        false => Ok(vec![path.to_owned()]),
    }
}

/// Whether a profile's head has the flag.
fn says_complain(head: &str) -> bool {
    let flags = head.rsplit_once('(').map_or("", |(_, flags)| flags);
    let mut words = flags.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "complain")
}

/// The line that the parser names.
fn line_in(message: &str) -> Option<u32> {
    let (_, rest) = message.split_once("at line ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
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
    fn a_head_says_complain_by_its_flags_alone() {
        for head in [
            "profile a flags=(complain)",
            "/a (audit, complain)",
            "/a flags=( complain )",
        ] {
            assert!(says_complain(head), "{head}");
        }
        for head in [
            "profile complain /complain",
            "/a flags=(enforce)",
            "/a flags=(x_complain)",
        ] {
            assert!(!says_complain(head), "{head}");
        }
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
