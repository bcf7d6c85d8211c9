//! Systems and workloads, as their files define them.
//!
//! Each is a TOML file: `systems/NAME.toml`, `workloads/NAME.toml`. A further one is a
//! file to add there, or to name by its path on the command line.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};

static SYSTEMS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/systems");
static WORKLOADS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/workloads");

/// What a kernel is booted with and a subject runs under: one column of the tables.
///
/// The shell of its parts runs in the guest, as root, in /payload, by `sh -eu`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// The column's heading.
    pub title: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The kernel's `lsm=`; what always remains (lockdown, ima, evm) is not named.
    pub lsm: String,
    /// More words for the kernel's command line.
    #[serde(default)]
    pub append: String,
    /// Its place among the systems; lower ones come first.
    pub order: u32,
    /// Part of the core run.
    #[serde(default)]
    pub core: bool,
    /// Run before anything else. Exit status 77: this kernel or image has no such
    /// system, and standard error says what is missing.
    #[serde(default)]
    pub setup: String,
    /// Becomes the command in its arguments, as the subject that is measured; it has to
    /// end in `exec … "$@"`.
    #[serde(default = "plain")]
    pub enter: String,
    /// Run before each item, not entered: waits until what the system does in the
    /// background is over.
    #[serde(default)]
    pub settle: String,
    /// Run entered: prints what the subject is; has to print [`Self::is`].
    #[serde(default)]
    pub context: String,
    /// What [`Self::context`] prints.
    #[serde(default)]
    pub is: String,
    /// Run before `setup`, not entered, where it has to succeed, and entered after it,
    /// where it has to fail for want of permission. Empty where nothing is enforced.
    #[serde(default)]
    pub deny: String,
    /// Run at the end, not entered: prints counts of decisions as `object manager<TAB>
    /// queries<TAB>hint<TAB>cache<TAB>server` lines (Flask's Table 6). Run before and
    /// after each workload; the difference is that workload's.
    #[serde(default)]
    pub decisions: String,
    /// Makes the policy in force one of `$LAB_RULES` rules, for a workload that asks for
    /// it, and the system's own again where that is 0; not entered. Empty where a policy has no size.
    #[serde(default)]
    pub rules: String,
    /// Whether it needs the program that is measured: /payload/bin/tidegate.
    #[serde(default)]
    pub tidegate: bool,
    /// Whether it needs this program: /payload/bin/tidegate-lab.
    #[serde(default)]
    pub lab: bool,
    /// The only workloads that it is measured by; empty: all.
    #[serde(default)]
    pub only: Vec<String>,
    /// C files of `workloads/programs` that it needs, as [`Workload::programs`].
    #[serde(default)]
    pub programs: Vec<String>,
    /// Whether it checks the subject on files, sockets, processes and signals alike, as
    /// Tidegate does; reports list where Tidegate is dearer than it.
    #[serde(default)]
    pub mediates_all: bool,
    /// Boots of it, at most.
    #[serde(default = "every")]
    pub boots: u32,
    /// Seconds that its setup takes under instruction counting on a slow machine.
    #[serde(default)]
    pub seconds: u32,
    /// Files for /payload/system, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The lab's systems whose files it has, too, by comma.
    #[serde(default)]
    pub files_of: String,
}

fn plain() -> String {
    "exec \"$@\"".to_owned()
}

fn every() -> u32 {
    u32::MAX
}

/// A program, or a few, that do a fixed amount of work and print what it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// The heading over its items.
    pub title: String,
    /// What it does, in a sentence, and whose definition it follows.
    pub about: String,
    /// Its place among the workloads; lower ones come first.
    pub order: u32,
    /// Part of the core run.
    #[serde(default)]
    pub core: bool,
    /// Boots of a system that it is measured in, at most; long ones want fewer.
    #[serde(default = "every")]
    pub boots: u32,
    /// Why its figures mean nothing where instructions are counted; empty if they do.
    #[serde(default)]
    pub only_time: String,
    /// C files of `workloads/programs` that it needs, without `.c`; each becomes a
    /// static program of that name in /payload/bin.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Seconds that it takes under instruction counting on a slow machine: a first guess
    /// for the time left.
    pub seconds: u32,
    /// Sizes of policy, in rules, that it is run with one after the other, where the
    /// system's policy has a size; `$LAB_RULES` is the size.
    #[serde(default)]
    pub rules: Vec<u32>,
    /// Run before it, not entered and not counted.
    #[serde(default)]
    pub prepare: String,
    /// Run entered, in an empty directory of its own. Prints a line an item: `ITEM<TAB>
    /// FIGURE<TAB>PER`, the figure in units of the clock (nanoseconds; instructions
    /// where they are counted) for one PER, such as `operation`. Any exit status but 0
    /// is a failure, and none of its figures counts.
    pub run: String,
    /// Run after it, not entered.
    #[serde(default)]
    pub finish: String,
}

trait Named {
    const KIND: &'static str;
    fn name(&mut self, name: String);
    fn order(&self) -> u32;
}

impl Named for System {
    const KIND: &'static str = "system";
    fn name(&mut self, name: String) {
        self.name = name;
    }
    fn order(&self) -> u32 {
        self.order
    }
}

impl Named for Workload {
    const KIND: &'static str = "workload";
    fn name(&mut self, name: String) {
        self.name = name;
    }
    fn order(&self) -> u32 {
        self.order
    }
}

fn parse<T: Named + for<'de> Deserialize<'de>>(path: &Path, text: &str) -> Result<T> {
    let mut one: T = toml::from_str(text).with_context(|| path.display().to_string())?;
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let name = name.context("a file's name that is not UTF-8")?;
    ensure!(
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
        "{}: a {} is named by lower-case letters, digits and `-`",
        path.display(),
        T::KIND
    );
    one.name(name.to_owned());
    Ok(one)
}

fn all<T: Named + for<'de> Deserialize<'de>>(dir: &Dir<'_>) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for file in dir.files() {
        if file.path().extension().is_some_and(|e| e == "toml") {
            let text = file.contents_utf8().context("not UTF-8")?;
            found.push(parse::<T>(file.path(), text)?);
        }
    }
    found.sort_by_key(Named::order);
    Ok(found)
}

fn pick<T: Named + Clone + PartialEq + for<'de> Deserialize<'de>>(
    known: &[T],
    wanted: &str,
    name: impl Fn(&T) -> &str,
    core: impl Fn(&T) -> bool,
) -> Result<Vec<T>> {
    let mut picked: Vec<T> = Vec::new();
    for word in wanted.split(',').filter(|w| !w.is_empty()) {
        let more: Vec<T> = match word {
            "all" => known.to_vec(),
            "core" => known.iter().filter(|one| core(one)).cloned().collect(),
            file if file.ends_with(".toml") => {
                let path = Path::new(file);
                let text = fs::read_to_string(path).with_context(|| format!("reading {file}"))?;
                vec![parse(path, &text)?]
            }
            word => match known.iter().find(|one| name(one) == word) {
                Some(one) => vec![one.clone()],
                None => bail!(
                    "there is no {} {word}; there are {} (`tidegate lab list`)",
                    T::KIND,
                    known.iter().map(&name).collect::<Vec<_>>().join(", ")
                ),
            },
        };
        for one in more {
            match picked.iter().find(|p| name(p) == name(&one)) {
                Some(same) => ensure!(
                    *same == one,
                    "{word}: there is another {} {}: give the file another name",
                    T::KIND,
                    name(&one)
                ),
                None => picked.push(one),
            }
        }
    }
    ensure!(!picked.is_empty(), "no {} is named", T::KIND);
    picked.sort_by_key(Named::order);
    Ok(picked)
}

impl System {
    /// What is measured on this machine itself, where nothing is booted.
    pub(crate) fn of_this_machine(name: &str, title: &str, about: &str, order: u32) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            about: about.into(),
            lsm: String::new(),
            append: String::new(),
            order,
            core: true,
            setup: String::new(),
            enter: plain(),
            settle: String::new(),
            context: String::new(),
            is: String::new(),
            deny: String::new(),
            decisions: String::new(),
            rules: String::new(),
            tidegate: false,
            lab: false,
            only: Vec::new(),
            boots: every(),
            programs: Vec::new(),
            mediates_all: false,
            seconds: 0,
            files: BTreeMap::new(),
            files_of: String::new(),
        }
    }

    /// Its files, and those of the system that it has them of.
    ///
    /// # Errors
    /// Where there is no such system.
    pub(crate) fn all_files(&self) -> Result<BTreeMap<String, String>> {
        let mut files = BTreeMap::new();
        if !self.files_of.is_empty() {
            for other in Self::pick(&self.files_of)? {
                files.extend(other.files);
            }
        }
        files.extend(self.files.clone());
        Ok(files)
    }

    /// Whether it is measured by the workload of this name.
    pub(crate) fn is_measured_by(&self, workload: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == workload)
    }

    /// Those that come with the lab, in order.
    ///
    /// # Errors
    /// When one of their files is wrong.
    pub fn all() -> Result<Vec<Self>> {
        all(&SYSTEMS)
    }

    /// Those that a list names: names, `core`, `all`, or files (`./mine.toml`), by comma.
    ///
    /// # Errors
    /// For a name that is none, and a file that is wrong: with its line.
    pub fn pick(wanted: &str) -> Result<Vec<Self>> {
        pick(&Self::all()?, wanted, |s| &s.name, |s| s.core)
    }
}

impl Workload {
    /// Those that come with the lab, in order.
    ///
    /// # Errors
    /// When one of their files is wrong.
    pub fn all() -> Result<Vec<Self>> {
        all(&WORKLOADS)
    }

    /// As [`System::pick`].
    ///
    /// # Errors
    /// As [`System::pick`].
    pub fn pick(wanted: &str) -> Result<Vec<Self>> {
        pick(&Self::all()?, wanted, |w| &w.name, |w| w.core)
    }

    /// A user's own command.
    #[must_use]
    pub fn command(command: &str) -> Self {
        Self {
            name: "command".into(),
            title: "Your command".into(),
            about: format!("`{command}`, by sh, from start to end."),
            order: u32::MAX,
            core: true,
            boots: every(),
            only_time: String::new(),
            programs: vec!["count".into()],
            seconds: 30,
            rules: Vec::new(),
            prepare: String::new(),
            run: format!("exec count command 5 sh -c {}", quoted(command)),
            finish: String::new(),
        }
    }

    /// The C source of a program, and the headers beside it.
    pub fn sources() -> impl Iterator<Item = (String, &'static str)> {
        let programs = WORKLOADS.get_dir("programs").expect("workloads/programs");
        programs.files().filter_map(|file| {
            let name = file.path().file_name()?.to_str()?;
            Some((name.to_owned(), file.contents_utf8()?))
        })
    }
}

/// What systems' and workloads' scripts share, for /payload/files: `systems/files`,
/// `workloads/files`.
pub fn files() -> impl Iterator<Item = (String, &'static [u8])> {
    let dirs = [&SYSTEMS, &WORKLOADS].into_iter();
    let files = dirs.flat_map(|dir| dir.get_dir("files").into_iter().flat_map(Dir::files));
    files.filter_map(|file| {
        let name = file.path().file_name()?.to_str()?;
        Some((name.to_owned(), file.contents()))
    })
}

/// A word for sh that stands for this text.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_comes_along_is_right() {
        assert!(System::all().unwrap().iter().any(|s| s.name == "none"));
        assert!(!Workload::all().unwrap().is_empty());
        let sources: Vec<String> = Workload::sources().map(|(name, _)| name).collect();
        let systems = System::all().unwrap().into_iter().map(|s| s.programs);
        let workloads = Workload::all().unwrap().into_iter().map(|w| w.programs);
        for program in systems.chain(workloads).flatten() {
            assert!(sources.contains(&format!("{program}.c")), "{program}");
        }
    }

    #[test]
    fn te_is_measured_in_selinux_s_domains_and_denied_the_same() {
        let all = System::all().unwrap();
        for (theirs, ours) in [
            ("selinux", "tidegate-te"),
            ("selinux-confined", "tidegate-te-confined"),
        ] {
            let one = |name: &str| all.iter().find(|s| s.name == name).unwrap();
            let (theirs, ours) = (one(theirs), one(ours));
            let context = theirs.enter.split_whitespace().nth(2).unwrap();
            assert_eq!(theirs.enter, format!("exec runcon {context} \"$@\""));
            assert_eq!(
                ours.enter,
                format!("exec tidegate run --context {context} -- \"$@\"")
            );
            assert_eq!(ours.deny, theirs.deny);
            assert!(ours.all_files().unwrap().contains_key("flat.plm"));
        }
    }

    #[test]
    fn a_wrong_file_is_told_by_its_line() {
        let wrong = parse::<System>(Path::new("x.toml"), "title = \"x\"\nlms = \"\"\n");
        assert!(format!("{:#}", wrong.unwrap_err()).contains("x.toml"));
        assert!(
            System::pick("none,non")
                .unwrap_err()
                .to_string()
                .contains("none")
        );
    }

    #[test]
    fn a_file_does_not_hide_behind_a_name_that_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("none.toml");
        let mine = "title = \"mine\"\nabout = \"\"\nlsm = \"bpf\"\norder = 1\n";
        fs::write(&file, mine).unwrap();
        let file = file.display();
        let error = System::pick(&format!("none,{file}")).unwrap_err();
        assert!(error.to_string().contains("another name"), "{error}");
        assert_eq!(System::pick(&format!("{file},{file}")).unwrap().len(), 1);
    }

    #[test]
    fn a_word_keeps_what_is_in_it() {
        assert_eq!(quoted("a 'b' $c"), r"'a '\''b'\'' $c'");
    }
}
