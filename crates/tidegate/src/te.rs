//! The SELinux policy that a policy has beside its map, where the command line names one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use miette::{Report, miette};
use tidegate_audit::printable;
use tidegate_bundle::te::policydb::{NEWEST, OLDEST};
use tidegate_bundle::te::{Te, UnknownBoolean};
use tidegate_flask::{ANY_CLASS, UNMEDIATED};
use tidegate_policy::closest;
use tidegate_policy::te::cil::{Compiler, CompilerError};
use tidegate_policy::te::contexts;

use crate::bundle::read_bundle;
use crate::exit::{Code, Failure, Message, Outcome};
use crate::options;
use crate::output::{tell, waiting};

/// SELinux's own compiler of CIL, unless the command line names another.
const SECILC: &str = "secilc";

/// The heading of these options.
const HEADING: &str = "SELinux policy";

/// The SELinux policy to use.
#[derive(Debug, Clone, Default, Args)]
pub struct SelinuxPolicy {
    /// A SELinux policy: a directory such as /etc/selinux/default, a binary policy, or CIL (a file that
    /// ends in .cil; may be given several times)
    #[arg(long, help_heading = HEADING, value_name = "FILE|DIR")]
    pub te: Vec<PathBuf>,
    /// File contexts, instead of the directory's; with FILE.homedirs, .local, .subs and .subs_dist, where they are
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "te")]
    pub file_contexts: Option<PathBuf>,
    /// Give a boolean of the SELinux policy another value; may be given several times
    #[arg(long, help_heading = HEADING, value_name = "NAME=on|off", value_parser = assignment, requires = "te")]
    pub te_boolean: Vec<(String, bool)>,
    /// Decide also about stat(2) and the search of each directory of a path; each then costs every process a fifth more
    #[arg(long, help_heading = HEADING, requires = "te")]
    pub te_lookups: bool,
    /// SELinux's own compiler of CIL
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "PROGRAM",
        default_value = SECILC,
        requires = "te"
    )]
    pub secilc: PathBuf,
}

/// A SELinux policy that is only asked, and of which a map is no matter.
#[derive(Debug, Clone, Args)]
pub struct Queried {
    /// The SELinux policy, as --te takes it
    #[arg(value_name = "POLICY", conflicts_with_all = ["te", "bundle"])]
    pub of: Option<PathBuf>,
    /// A bundle that `tidegate compile` made: the SELinux policy in it
    #[arg(long, value_name = "FILE", conflicts_with = "te")]
    pub bundle: Option<PathBuf>,
    /// How it is named otherwise
    #[command(flatten)]
    pub te: SelinuxPolicy,
}

impl Queried {
    /// Its rules.
    pub fn load(&self) -> Outcome<Te> {
        if let Some(path) = &self.bundle {
            let policy = read_bundle(path)?;
            return policy.te.ok_or_else(|| {
                let text = format!("{} has no SELinux policy", path.display());
                Failure::new(Code::Usage, text)
            });
        }
        let mut te = self.te.clone();
        te.te.extend(self.of.clone());
        if te.te.is_empty() {
            let text = "no SELinux policy is named: a directory such as /etc/selinux/default, a binary policy, \
                        CIL, or --bundle FILE";
            return Err(Failure::new(Code::Usage, text));
        }
        te.load_rules()
    }
}

/// What the command line names, found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Files of CIL, or one binary policy.
    policy: Vec<PathBuf>,
    /// File contexts.
    contexts: Option<PathBuf>,
    /// Files of booleans' values.
    booleans: Vec<PathBuf>,
}

impl SelinuxPolicy {
    /// Reads it, or compiles it, and sets its booleans.
    pub fn load(&self) -> Outcome<Te> {
        let found = self.find()?;
        let mut te = self.rules(&found)?;
        if let Some(file) = &found.contexts {
            let files = waiting("compiling file contexts", || {
                contexts::compile_files(file).map_err(|e| Failure::policy(Report::new(e)))
            })?;
            te.files = Some(files);
        }
        Ok(te)
    }

    /// The same without its file contexts.
    pub fn load_rules(&self) -> Outcome<Te> {
        self.rules(&self.find()?)
    }

    /// The options that name the same from any directory.
    ///
    /// # Errors
    /// As [`options::of_path`].
    pub fn options(&self) -> Outcome<Vec<String>> {
        if self.te.is_empty() {
            return Ok(Vec::new());
        }
        let policies = self.te.iter();
        let mut words = policies
            .map(|path| options::of_path("te", path))
            .collect::<Outcome<Vec<String>>>()?;
        if let Some(path) = &self.file_contexts {
            words.push(options::of_path("file-contexts", path)?);
        }
        let booleans = self.te_boolean.iter();
        words.extend(booleans.map(|(name, value)| {
            let value = if *value { "on" } else { "off" };
            format!("--te-boolean={name}={value}")
        }));
        if self.te_lookups {
            words.push("--te-lookups".into());
        }
        if self.secilc != Path::new(SECILC) {
            words.push(options::of_program("secilc", &self.secilc)?);
        }
        Ok(words)
    }

    fn rules(&self, found: &Found) -> Outcome<Te> {
        let is_cil = found.policy.iter().any(|path| is_cil(path));
        let binary = match &found.policy[..] {
            files if is_cil => waiting("compiling CIL", || self.compile(files))?,
            [file] => read(file)?,
            _ => return Err(many()),
        };
        let name = printable(&found.policy[0].to_string_lossy());
        let mut te =
            Te::read(binary).map_err(|e| Failure::policy(Report::new(e).wrap_err(name)))?;
        for file in &found.booleans {
            set_from(&mut te, file)?;
        }
        for (name, value) in &self.te_boolean {
            te.set(name, *value)
                .map_err(|e| unknown(e, &te, "--te-boolean"))?;
        }
        te.sight = self.te_lookups;
        Ok(te)
    }

    fn find(&self) -> Outcome<Found> {
        let mut found = match &self.te[..] {
            [dir] if dir.is_dir() => in_directory(dir)?,
            files if files.len() > 1 && !files.iter().all(|file| is_cil(file)) => {
                return Err(many());
            }
            files => Found {
                policy: files.to_vec(),
                ..Found::default()
            },
        };
        if self.file_contexts.is_some() {
            found.contexts.clone_from(&self.file_contexts);
        }
        Ok(found)
    }

    /// Whether CIL that it is made of compiles with more of it; what is a binary policy takes no more.
    ///
    /// # Errors
    /// What the compiler says, or why it could not be asked.
    pub fn compiles_with(&self, cil: &str) -> Result<(), String> {
        let failed = |e: std::io::Error| e.to_string();
        if !self.te.iter().any(|path| is_cil(path)) {
            return Ok(());
        }
        let dir = tempfile::tempdir().map_err(failed)?;
        let added = dir.path().join("learned.cil");
        fs::write(&added, cil).map_err(failed)?;
        let compiler = Compiler {
            program: self.secilc.clone(),
        };
        let files: Vec<PathBuf> = self.te.iter().cloned().chain([added]).collect();
        let compiled = compiler.compile(&files);
        compiled.map(|_| ()).map_err(|e| {
            let said = e.to_string();
            let said = said.replace(&*files[files.len() - 1].to_string_lossy(), "the rule");
            // the first line is the files'
            let lines = said.lines().skip(1).map(str::trim);
            lines
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join("; ")
        })
    }

    fn compile(&self, files: &[PathBuf]) -> Outcome<Vec<u8>> {
        let compiler = Compiler {
            program: self.secilc.clone(),
        };
        let compiled = compiler.compile(files).map_err(|e| Failure {
            code: match &e {
                CompilerError::NoCompiler { source, .. }
                | CompilerError::Unreadable { source, .. } => match source.kind() {
                    ErrorKind::PermissionDenied => Code::NotPermitted,
                    _ => Code::Usage,
                },
                _ => Code::Policy,
            },
            message: Message::Diagnosis(Report::new(e)),
        })?;
        Ok(compiled.policy)
    }
}

/// What a directory of libselinux has: selinux_config(5), selabel_file(5), booleans(5).
fn in_directory(dir: &Path) -> Outcome<Found> {
    let policies = dir.join("policy");
    let listed = fs::read_dir(&policies)
        .map_err(|e| Failure::io(format!("read {}", policies.display()), e))?;
    let version = |path: &PathBuf| -> Option<u32> {
        path.file_name()?
            .to_str()?
            .strip_prefix("policy.")?
            .parse()
            .ok()
    };
    let policy = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| version(path).is_some_and(|it| (OLDEST..=NEWEST).contains(&it)))
        .max_by_key(version);
    let policy = policy.ok_or_else(|| {
        Failure::new(
            Code::Usage,
            format!(
                "{} has no policy.{OLDEST} to policy.{NEWEST}: `semodule -B` builds one",
                policies.display()
            ),
        )
    })?;
    let there = |paths: Vec<PathBuf>| paths.into_iter().filter(|path| path.exists()).collect();
    let contexts = dir.join("contexts/files/file_contexts");
    let booleans = ["booleans", "booleans.local"].map(|name| dir.join(name));
    Ok(Found {
        policy: vec![policy],
        contexts: contexts.exists().then_some(contexts),
        booleans: there(booleans.into()),
    })
}

fn is_cil(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "cil")
}

fn many() -> Failure {
    Failure::new(
        Code::Usage,
        "--te takes one directory, one binary policy, or several files of CIL",
    )
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|e| Failure::io(format!("read {}", path.display()), e))
}

/// Sets booleans from a file of lines `name=value`.
fn set_from(te: &mut Te, file: &Path) -> Outcome {
    let text = read(file)?;
    for (at, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let place = format!("{}:{}", file.display(), at + 1);
        let (name, value) = assignment(line)
            .map_err(|fault| Failure::new(Code::Policy, format!("{place}: {fault}")))?;
        te.set(&name, value).map_err(|e| unknown(e, te, &place))?;
    }
    Ok(())
}

fn unknown(e: UnknownBoolean, te: &Te, place: &str) -> Failure {
    let known = te.db.booleans.iter().map(|boolean| boolean.name.as_str());
    let report = match closest(&e.0, known) {
        Some(known) => miette!(
            code = "te::boolean",
            help = format!("did you mean `{known}`?"),
            "{e}"
        ),
        None => Report::new(e),
    };
    Failure::policy(report.wrap_err(place.to_owned()))
}

/// `name=on`, in the words that setsebool(8) takes.
pub fn assignment(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not NAME=on or NAME=off"))?;
    let value = match value.trim().to_ascii_lowercase().as_str() {
        "on" | "1" | "true" => true,
        "off" | "0" | "false" => false,
        other => return Err(format!("a boolean is on or off, and not `{other}`")),
    };
    Ok((name.trim().to_owned(), value))
}

/// Tells what of a SELinux policy is not so.
pub fn warn(te: &Te) {
    let words: Vec<String> = UNMEDIATED
        .iter()
        .map(
            |(class, permissions)| match (*class, permissions.is_empty()) {
                (class, true) => class.to_owned(),
                (ANY_CLASS, false) => format!("any class's {{ {} }}", permissions.join(" ")),
                (class, false) => format!("{class} {{ {} }}", permissions.join(" ")),
            },
        )
        .collect();
    tell!("warning: nothing mediates {}", words.join(", "));
    if !te.sight {
        tell!(
            "warning: nothing mediates the look-up of files (getattr, dir search, links that are followed): \
             --te-lookups does"
        );
    }
    for statement in &te.db.passed_over {
        tell!("warning: nothing mediates what the SELinux policy says by `{statement}`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(te: &[&Path]) -> SelinuxPolicy {
        SelinuxPolicy {
            te: te.iter().map(|path| (*path).to_owned()).collect(),
            ..SelinuxPolicy::default()
        }
    }

    #[test]
    fn a_directory_has_its_newest_policy_and_its_contexts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        assert!(of(&[dir.path()]).find().is_err());
        let [_, policy, _] = ["policy/policy.31", "policy/policy.33", "policy/policy.99"].map(put);
        let found = of(&[dir.path()]).find().unwrap();
        assert_eq!(found.policy, [policy]);
        assert_eq!(found.contexts, None);
        put("contexts/files/file_contexts.local");
        let base = put("contexts/files/file_contexts");
        let contexts = |of: SelinuxPolicy| of.find().unwrap().contexts;
        assert_eq!(contexts(of(&[dir.path()])), Some(base));
        let mut named = of(&[dir.path()]);
        named.file_contexts = Some("mine".into());
        assert_eq!(contexts(named), Some("mine".into()));
    }

    #[test]
    fn cil_may_be_many_files_and_a_binary_policy_one() {
        let [cil, other, binary] = ["a.cil", "b.cil", "policy.33"].map(Path::new);
        assert!(of(&[cil, other]).find().is_ok());
        assert!(of(&[binary]).find().is_ok());
        assert!(of(&[cil, binary]).find().is_err());
    }

    #[test]
    fn a_boolean_is_on_or_off() {
        assert_eq!(assignment("a=on"), Ok(("a".into(), true)));
        assert_eq!(assignment("a = FALSE"), Ok(("a".into(), false)));
        assert!(assignment("a").is_err());
        assert!(assignment("a=2").is_err());
    }
}
