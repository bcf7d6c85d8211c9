//! What a run gave, boot by boot: the file that `run` writes and `report` reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::define::{System, Workload};

/// The version of the file's form.
pub const FORMAT: u32 = 1;

/// Whose units the figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Executed instructions (QEMU's TCG with `-icount shift=0`); never time.
    Instructions,
    /// Nanoseconds in a machine under KVM.
    Vm,
    /// Nanoseconds of this machine itself (`tidegate bench`).
    Machine,
}

impl Clock {
    /// The unit's name, for headings.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Vm | Self::Machine => "ns",
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT`].
    pub format: u32,
    /// Whose units the figures are.
    pub clock: Clock,
    /// The kernel, as `uname -r` says it.
    pub kernel: String,
    /// What was measured with what; name → version, digest.
    pub made_with: BTreeMap<String, String>,
    /// The systems by name, as they were defined; tables keep their `order`.
    pub systems: BTreeMap<String, System>,
    /// The workloads by name, as they were defined.
    pub workloads: BTreeMap<String, Workload>,
    /// The boots, in the order in which they ended.
    pub boots: Vec<Boot>,
}

/// One boot of one system (or, by the machine's own clock, one round).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// [`System::name`].
    pub system: String,
    /// The disturbance, or the round: 0 is the plain boot. Figures are compared between
    /// boots of one number only.
    pub disturbance: u32,
    /// A digest of all that decides the figures; another run with the same one need not
    /// boot again.
    pub recipe: String,
    /// How long it took, in seconds of the machine it ran on.
    pub seconds: f64,
    /// What the system showed of itself.
    pub proof: Vec<String>,
    /// Why the whole boot gave nothing; empty if it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// Whether that is because this kernel or image has no such system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// What each workload gave, by its name.
    pub results: BTreeMap<String, Outcome>,
}

/// What one workload gave in one boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why there are no figures; empty if there are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// The figures, in the order in which they were printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// How decisions were resolved meanwhile, by object manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decisions>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The item.
    pub item: String,
    /// Units of the clock for one [`Self::per`]. Less is better.
    pub value: f64,
    /// What is counted, such as `operation`, `KB`, `connection`.
    pub per: String,
}

/// A line of Flask's Table 6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The object manager.
    pub manager: String,
    /// Decisions asked for.
    pub queries: u64,
    /// Answered by what the object itself remembers.
    pub hint: u64,
    /// Answered by the access vector cache.
    pub cache: u64,
    /// Answered by the policy's tables.
    pub server: u64,
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// When the file is not there, or not of this form.
    pub fn read(file: &Path) -> Result<Self> {
        let told = || format!("reading {}", file.display());
        let text = fs::read_to_string(file).with_context(told)?;
        let mut run: Self = serde_json::from_str(&text).with_context(told)?;
        ensure!(
            run.format == FORMAT,
            "{}: a file of form {}, and this program reads form {FORMAT}: run it anew",
            file.display(),
            run.format
        );
        for (name, system) in &mut run.systems {
            system.name.clone_from(name);
        }
        for (name, workload) in &mut run.workloads {
            workload.name.clone_from(name);
        }
        Ok(run)
    }

    /// Writes it in one step: the file is the old one or the new one, whatever happens.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub fn write(&self, file: &Path) -> Result<()> {
        let told = || format!("writing {}", file.display());
        let mut temporary = temporary(file)?;
        serde_json::to_writer_pretty(&mut temporary, self)?;
        temporary.write_all(b"\n").with_context(told)?;
        temporary.persist(file).with_context(told)?;
        Ok(())
    }

    /// Fails where [`Self::write`] would: before anything takes its time.
    ///
    /// # Errors
    /// When the directory cannot be written to, or this is one.
    pub fn writable(file: &Path) -> Result<()> {
        ensure!(!file.is_dir(), "{} is a directory", file.display());
        temporary(file).map(drop)
    }

    /// Whether all that was to be measured was: no workload failed, and no system but for
    /// not being in this kernel or image.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.boots.iter().all(|boot| {
            let results = boot.results.values().all(|r| r.failed.is_empty());
            (boot.failed.is_empty() || boot.absent) && results
        })
    }

    /// The systems in order.
    #[must_use]
    pub fn ordered_systems(&self) -> Vec<&System> {
        let mut list: Vec<_> = self.systems.values().collect();
        list.sort_by_key(|s| (s.order, s.name.clone()));
        list
    }

    /// The workloads in order.
    #[must_use]
    pub fn ordered_workloads(&self) -> Vec<&Workload> {
        let mut list: Vec<_> = self.workloads.values().collect();
        list.sort_by_key(|w| (w.order, w.name.clone()));
        list
    }
}

/// A file beside this one.
fn temporary(file: &Path) -> Result<tempfile::NamedTempFile> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        // as any file that a program makes: the umask takes from it
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .with_context(|| format!("writing {}", file.display()))
}

impl Outcome {
    /// One item's figure.
    #[must_use]
    pub fn get(&self, item: &str) -> Option<f64> {
        let found = self.figures.iter().find(|f| f.item == item);
        found.map(|f| f.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_survives_its_file() {
        let mut run = Run {
            format: FORMAT,
            clock: Clock::Instructions,
            kernel: "6.12.1".into(),
            made_with: BTreeMap::new(),
            systems: BTreeMap::new(),
            workloads: BTreeMap::new(),
            boots: Vec::new(),
        };
        for system in System::all().unwrap() {
            run.systems.insert(system.name.clone(), system);
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.json");
        run.write(&file).unwrap();
        assert_eq!(Run::read(&file).unwrap(), run);
        assert!(Run::writable(&file).is_ok() && Run::writable(dir.path()).is_err());
        assert!(Run::writable(&dir.path().join("nowhere/run.json")).is_err());
        run.format = 2;
        run.write(&file).unwrap();
        assert!(Run::read(&file).is_err());
    }
}
