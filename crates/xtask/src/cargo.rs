//! What cargo builds: by one selection of packages, one set of features and one profile, whatever is built.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The target's triple, as .cargo/config.toml has it.
pub const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Every call selects all packages, and has the features of what tests need: `--examples` asks for those, and builds
/// nothing, as there are none. So a library that a program is made of is the one that tests are made of.
const SELECTION: &[&str] = &[
    "--workspace",
    "--locked",
    "--message-format=json-render-diagnostics",
];

/// Where cargo builds.
///
/// # Errors
/// When the current directory cannot be told.
pub fn target() -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(std::path::absolute(target)?)
}

/// Where the programs are, below that.
pub fn programs(target: &Path) -> PathBuf {
    target.join(TRIPLE).join("debug")
}

/// `cargo build`, of these binaries; of all if none is named.
pub fn build(binaries: &[&str]) -> Command {
    let mut command = cargo("build");
    command.arg("--examples");
    if binaries.is_empty() {
        command.args(["--lib", "--bins"]);
    }
    for binary in binaries {
        command.args(["--bin", binary]);
    }
    command
}

/// `cargo test`, of everything but what these arguments leave out.
pub fn test(arguments: &[&str]) -> Command {
    let mut command = cargo("test");
    command.arg("--no-fail-fast").args(arguments);
    command
}

/// The workspace's own crates are compiled by clippy, which is the compiler with more to say: what is linted is not
/// compiled once more for that.
fn cargo(verb: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(verb).args(SELECTION);
    if has_clippy() {
        command.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY);
    }
    command
}

/// Clippy's compiler.
const CLIPPY: &str = "clippy-driver";

/// Whether clippy is installed.
pub fn has_clippy() -> bool {
    Command::new(CLIPPY)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A line of what cargo says about a unit that it has compiled, or has found compiled.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    target: Option<Target>,
    profile: Option<Profile>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    #[serde(default)]
    fresh: bool,
    message: Option<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A unit of compilation, however it is compiled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    package: String,
    target: String,
    /// For the tests of it.
    test: bool,
    /// For the target, and not for what runs in a build.
    target_platform: bool,
    /// Only its types were checked.
    checked: bool,
}

/// The units that cargo has named.
#[derive(Debug, Default)]
pub struct Units {
    /// By the unit, its files; several of one unit were compiled with different features or profiles.
    seen: Mutex<BTreeMap<Unit, BTreeSet<PathBuf>>>,
    compiled: Mutex<usize>,
    warnings: Mutex<BTreeSet<String>>,
}

/// What came of all units.
pub struct Verdict {
    /// How many there are.
    pub seen: usize,
    /// How many were compiled, and not found compiled.
    pub compiled: usize,
    /// Those that were compiled with different features or profiles.
    pub twice: Vec<String>,
    /// What the compiler and clippy warn of, in the workspace's own crates.
    pub warnings: Vec<String>,
}

impl Units {
    /// Hears a line; whether it was one about a unit.
    pub fn hear(&self, line: &str) -> bool {
        if !line.starts_with("{\"reason\":") {
            return false;
        }
        if let Ok(message) = serde_json::from_str::<Message>(line) {
            match (message.reason.as_str(), message.message) {
                ("compiler-message", Some(Diagnostic { level, rendered }))
                    if level == "warning" =>
                {
                    lock(&self.warnings).insert(rendered.unwrap_or(level));
                }
                ("compiler-artifact", _) => self.add(Message {
                    message: None,
                    ..message
                }),
                _ => {}
            }
        }
        true
    }

    fn add(&self, message: Message) {
        let (Some(target), Some(profile), Some(file)) = (
            message.target,
            message.profile,
            message.filenames.into_iter().next(),
        ) else {
            return;
        };
        // Build scripts of different features are different programs. What is not among the dependencies is a copy.
        let depended = file.components().any(|part| part.as_os_str() == "deps");
        if target.kind.iter().any(|kind| kind == "custom-build") || !depended {
            return;
        }
        let unit = Unit {
            package: message.package_id,
            target: format!("{} {}", target.kind.join(","), target.name),
            test: profile.test,
            target_platform: file.components().any(|part| part.as_os_str() == TRIPLE),
            checked: file.extension().is_some_and(|e| e == "rmeta"),
        };
        if !message.fresh {
            *lock(&self.compiled) += 1;
        }
        lock(&self.seen).entry(unit).or_default().insert(file);
    }

    /// What came of them.
    pub fn verdict(&self) -> Verdict {
        let seen = lock(&self.seen);
        let twice = seen
            .iter()
            .filter(|(_, files)| files.len() > 1)
            .map(|(unit, files)| {
                let files: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
                format!("{} {}: {}", unit.package, unit.target, files.join(", "))
            });
        Verdict {
            seen: seen.len(),
            compiled: *lock(&self.compiled),
            twice: twice.collect(),
            warnings: lock(&self.warnings).iter().cloned().collect(),
        }
    }
}

/// The mutex, also where a thread has panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies a built program without what only debuggers need: a payload is an image in the machine's memory.
///
/// # Errors
/// When it is not there, or binutils is not.
pub fn install(program: &Path, to: &Path) -> Result<()> {
    ensure!(program.exists(), "{} was not built", program.display());
    let status = Command::new("strip")
        .args([program.as_os_str(), "-o".as_ref(), to.as_os_str()])
        .status()
        .context("cannot run strip: install the package binutils")?;
    ensure!(status.success(), "strip {}: {status}", program.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(file: &str, fresh: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"registry+x#serde@1.0.0","target":{{"kind":["lib"],"name":"serde"}},"profile":{{"test":false}},"features":[],"filenames":["/t/{TRIPLE}/debug/deps/{file}"],"fresh":{fresh}}}"#
        )
    }

    #[test]
    fn a_unit_with_two_files_was_compiled_twice() {
        let units = Units::default();
        assert!(units.hear(&artifact("libserde-1.rlib", false)));
        assert!(units.hear(&artifact("libserde-1.rlib", true)));
        assert!(units.verdict().twice.is_empty());
        units.hear(&artifact("libserde-2.rlib", false));
        let verdict = units.verdict();
        assert_eq!(
            (verdict.seen, verdict.compiled, verdict.twice.len()),
            (1, 2, 1)
        );
        assert!(
            verdict.twice[0].contains("lib serde"),
            "{:?}",
            verdict.twice
        );
    }

    #[test]
    fn a_warning_is_kept() {
        let units = Units::default();
        let message = r#"{"reason":"compiler-message","package_id":"x","message":{"level":"warning","rendered":"unused"}}"#;
        assert!(units.hear(message));
        assert_eq!(units.verdict().warnings, ["unused"]);
    }

    #[test]
    fn checking_types_is_no_compilation_of_the_same() {
        let units = Units::default();
        units.hear(&artifact("libserde-1.rlib", false));
        units.hear(&artifact("libserde-3.rmeta", false));
        assert!(units.verdict().twice.is_empty());
        assert!(!units.hear("   Compiling serde v1.0.0"));
    }
}
