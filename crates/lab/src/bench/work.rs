//! Workloads on this machine itself.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::interrupt::Interrupt;
use crate::artefact::{Lab, remove_tree};
use crate::define::{self, Workload};
use crate::results::Outcome;
use crate::run::figures;

/// The directory where it all happens; gone when dropped.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    kit: PathBuf,
}

impl Place {
    /// Makes it, with what these workloads need beside it.
    pub(super) fn new(lab: &Lab, dir: &Path, workloads: &[Workload]) -> Result<Self> {
        fs::create_dir(dir).with_context(|| format!("making {}", dir.display()))?;
        let place = Self {
            dir: dir.canonicalize()?,
            kit: dir.canonicalize()?.with_extension("kit"),
        };
        let (bin, files) = (place.kit.join("bin"), place.kit.join("files"));
        fs::create_dir_all(&bin)?;
        fs::create_dir_all(&files)?;
        let programs = lab.programs()?;
        for name in workloads.iter().flat_map(|w| &w.programs) {
            fs::copy(programs.join(name), bin.join(name))
                .with_context(|| format!("copying {name}, one of the lab's programs"))?;
        }
        for (name, content) in define::files() {
            fs::write(files.join(name), content)?;
        }
        Ok(place)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs one, as the subject that `enter`, the beginning of a script, makes. What it
    /// prints stays where it is: to read it is to fall to the subject's level.
    pub(super) fn measure(
        &self,
        workload: &Workload,
        enter: &str,
        interrupt: &Interrupt,
    ) -> Result<Done> {
        let dir = self.dir.join(&workload.name);
        fs::create_dir(&dir)?;
        let step = |what, script: &str| -> Result<Option<String>> {
            let status = interrupt.run(&mut self.shell(workload, script)?)?;
            Ok((!status.success()).then(|| format!("{what}{status}")))
        };
        let mut failed = step("its preparation: ", &workload.prepare)?;
        if failed.is_none() {
            failed = step("", &format!("{enter}\n{}", workload.run))?;
        }
        let finished = step("what it does afterwards: ", &workload.finish)?;
        Ok(Done {
            dir,
            failed: failed.or(finished),
        })
    }

    /// A script whose output goes to files beside the workload's directory.
    fn shell(&self, workload: &Workload, script: &str) -> Result<Command> {
        let path = std::env::var("PATH").unwrap_or_default();
        let dir = self.dir.join(&workload.name);
        let mut command = Command::new("sh");
        command
            .args(["-euc", script])
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(
                File::options()
                    .create(true)
                    .append(true)
                    .open(dir.with_extension("out"))?,
            )
            .stderr(
                File::options()
                    .create(true)
                    .append(true)
                    .open(dir.with_extension("err"))?,
            )
            .env("PATH", format!("{}:{path}", self.kit.join("bin").display()))
            .env("LAB_FILES", self.kit.join("files"))
            .env("LC_ALL", "C");
        Ok(command)
    }
}

/// A workload that was run.
#[derive(Debug)]
pub(super) struct Done {
    dir: PathBuf,
    failed: Option<String>,
}

impl Done {
    /// What it gave. Only where nothing is enforced any more.
    pub(super) fn collect(self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let out = self.dir.with_extension("out");
        let err = self.dir.with_extension("err");
        match self.failed {
            Some(why) => {
                let said = fs::read_to_string(&err).context("reading what it said")?;
                let last = said.trim().lines().last().unwrap_or("no message");
                outcome.failed = format!("{why}: {last}");
            }
            None => match figures(&fs::read_to_string(&out)?) {
                Ok(figures) => outcome.figures = figures,
                Err(why) => outcome.failed = why.to_string(),
            },
        }
        remove_tree(&self.dir)?;
        fs::remove_file(out)?;
        fs::remove_file(err)?;
        Ok(outcome)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_tree(&self.dir);
        let _ = remove_tree(&self.kit);
    }
}
