//! One boot: the payload, the machine, the figures.

use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::figures::Figures;
use super::{Options, Program};
use crate::artefact::{Image, Kernel, Lab, remove_tree};
use crate::vm::{Capture, Machine};

const SCRIPT: &str = include_str!("../../items/cost.sh");
const HEADER: &str = include_str!("../../items/count.h");
const PROGRAMS: [(&str, &str); 2] = [
    ("items", include_str!("../../items/items.c")),
    ("sight", include_str!("../../items/sight.c")),
];
const GCC: [&str; 3] = ["-static", "-O2", "-s"];
/// Rules of the maps whose look-up is measured.
pub(super) const RULES: [usize; 3] = [10, 1_000, 100_000];
const RTC: &str = "2026-01-01T00:00:00";
const RTC_DISTURBED: &str = "2026-01-01T00:01:30";
/// A start alone executes 70,000,000,000 instructions.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// What runs in a machine besides the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The kernel without BPF LSM.
    Bare,
    /// BPF LSM is in the list of security modules, with nothing attached.
    Listed,
    /// Tidegate enforces `workstation`.
    Enforcing,
}

impl Mode {
    fn lsm(self) -> &'static str {
        match self {
            Self::Bare => "capability",
            Self::Listed | Self::Enforcing => "capability,bpf",
        }
    }

    /// Makes the command lines of all modes equally long; a disturbed one longer.
    fn padding(self, disturbed: bool) -> String {
        let longest = Self::Enforcing.lsm().len();
        let more = if disturbed { 16 } else { 0 };
        let length = longest - self.lsm().len() + more;
        format!("tidegate.padding={}", "x".repeat(length))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "without Tidegate",
            Self::Listed => "bpf in the list",
            Self::Enforcing => "with Tidegate",
        })
    }
}

/// What the guest sees as /payload; gone when dropped.
#[derive(Debug)]
pub(super) struct Payload {
    dir: PathBuf,
    brief: bool,
}

impl Payload {
    pub(super) fn new(lab: &Lab, tidegate: &Path, brief: bool) -> Result<Self> {
        let name = format!("payload-{}", std::process::id());
        let dir = lab.cache().root().join(name);
        remove_tree(&dir)?;
        fs::create_dir(&dir)?;
        let payload = Self { dir, brief };
        payload.fill(tidegate)?;
        Ok(payload)
    }

    fn fill(&self, tidegate: &Path) -> Result<()> {
        fs::copy(tidegate, self.dir.join("tidegate")).with_context(|| missing(tidegate))?;
        fs::write(self.dir.join("cost.sh"), SCRIPT)?;
        fs::write(self.dir.join("count.h"), HEADER)?;
        for (name, source) in PROGRAMS {
            fs::write(self.dir.join(format!("{name}.c")), source)?;
            let status = Command::new("gcc")
                .args(GCC)
                .args(["-o", name])
                .arg(format!("{name}.c"))
                .current_dir(&self.dir)
                .status()
                .context("running gcc")?;
            ensure!(status.success(), "{name}.c does not compile");
        }
        if !self.brief {
            for rules in RULES {
                fs::write(self.dir.join(format!("rules-{rules}.plm")), map(rules))?;
            }
        }
        Ok(())
    }

    /// What is measured.
    pub(super) fn program(&self, commit: Option<String>) -> Result<Program> {
        let file = self.dir.join("tidegate");
        let output = Command::new(&file)
            .arg("--version")
            .output()
            .context("asking the program for its version")?;
        ensure!(output.status.success(), "the program tells no version");
        Ok(Program {
            version: String::from_utf8(output.stdout)?.trim().to_owned(),
            sha256: digest(&file)?,
            commit,
        })
    }

    /// Each file's name and digest; the programs are as the host's compiler made them.
    fn digests(&self) -> Result<Vec<String>> {
        let mut digests = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            digests.push(format!("{} {}", name.display(), digest(&entry.path())?));
        }
        digests.sort();
        Ok(digests)
    }

    /// Boots, measures and reads the figures. Where `disturbed` is the same, boots are
    /// alike but for their mode.
    pub(super) fn boot(
        &self,
        lab: &Lab,
        kernel: &Kernel,
        mode: Mode,
        disturbed: bool,
    ) -> Result<Figures> {
        let enforcing = if mode == Mode::Enforcing { "yes" } else { "no" };
        let extent = if self.brief { "brief" } else { "full" };
        let mut output = Capture::default();
        let outcome = Machine::new(kernel.clone())
            .icount(true)
            .kaslr(disturbed)
            .lsm(mode.lsm())
            .append(mode.padding(disturbed))
            .rtc(if disturbed { RTC_DISTURBED } else { RTC })
            .payload(&self.dir)
            .timeout(TIMEOUT)
            .run(
                lab,
                &["sh", "/payload/cost.sh", enforcing, extent],
                &mut output,
            )?;
        ensure!(
            outcome.success(),
            "{mode}: {}\n{}",
            outcome.explain(),
            output.err_text()
        );
        Figures::parse(&output.out_text()).with_context(|| format!("what was counted {mode}"))
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let _ = remove_tree(&self.dir);
    }
}

/// Everything that decides what is counted.
pub(super) fn recipe(lab: &Lab, options: &Options, payload: &Payload) -> Result<Vec<String>> {
    let paths = [
        lab.tools()?.path().to_owned(),
        lab.kernel(&options.kernel)?.vmlinux(),
        lab.image(Image::Root)?,
        lab.guest_init()?,
    ];
    let mut recipe: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    recipe.extend(payload.digests()?);
    for mode in [Mode::Bare, Mode::Listed, Mode::Enforcing] {
        recipe.extend([
            mode.lsm().to_owned(),
            mode.padding(false),
            mode.padding(true),
        ]);
    }
    recipe.extend([RTC, RTC_DISTURBED].map(String::from));
    recipe.push(format!("brief: {}", options.brief));
    Ok(recipe)
}

fn digest(file: &Path) -> Result<String> {
    Ok(format!("{:x}", Sha256::digest(fs::read(file)?)))
}

fn missing(tidegate: &Path) -> String {
    format!(
        "{}: build it first (make static), or name another with --tidegate",
        tidegate.display()
    )
}

/// A map of so many rules, four components deep and with 20 to 100 siblings at
/// each level; a wildcard stands beside every tenth.
fn map(rules: usize) -> String {
    let mut map = String::from("levels system > user > untrusted\nsystem /\n");
    for rule in 0..rules - 1 {
        let (a, b, c) = (rule % 20, rule / 20 % 50, rule / 1_000);
        let dir = if rule % 10 == 9 {
            "*".to_owned()
        } else {
            format!("package-{b}")
        };
        let _ = writeln!(map, "user /srv/area-{a}/{dir}/file-{b}-{c} lowwrite");
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_equally_long() {
        let length = |mode: Mode| mode.lsm().len() + mode.padding(true).len();
        assert_eq!(length(Mode::Bare), length(Mode::Enforcing));
        assert_eq!(length(Mode::Bare), length(Mode::Listed));
    }

    #[test]
    fn a_map_has_as_many_rules_as_asked_for() {
        assert_eq!(map(1_000).lines().count(), 1_001);
    }
}
