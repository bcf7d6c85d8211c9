//! What a guest sees as /payload, and the digest of all that decides a boot's figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::plan::Plan;
use crate::artefact::{Lab, remove_tree};
use crate::define::{self, System, Workload};

const GUEST: &str = include_str!("guest.sh");
/// What guest.sh itself runs.
const CROWD: &str = "crowd";
/// What the names of such directories begin with; their process comes next.
const PREFIX: &str = "payload-";

/// The directory of one boot; gone when dropped.
#[derive(Debug)]
pub(super) struct Payload {
    dir: PathBuf,
}

impl Payload {
    /// Puts it together for a system and these workloads.
    pub(super) fn new(
        lab: &Lab,
        plan: &Plan,
        system: &System,
        workloads: &[&Workload],
    ) -> Result<Self> {
        // Two boots of one system may be under way at once.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{count}", std::process::id());
        let dir = lab.cache().root().join(name);
        remove_tree(&dir)?;
        fs::create_dir(&dir)?;
        let payload = Self { dir };
        payload.fill(lab, plan, system, workloads)?;
        Ok(payload)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn fill(&self, lab: &Lab, plan: &Plan, system: &System, workloads: &[&Workload]) -> Result<()> {
        fs::write(self.dir.join("guest.sh"), GUEST)?;
        let place = self.subdir("system")?;
        for (name, text) in [
            ("setup.sh", &system.setup),
            ("enter.sh", &system.enter),
            ("settle.sh", &system.settle),
            ("context.sh", &system.context),
            ("deny.sh", &system.deny),
            ("decisions.sh", &system.decisions),
            ("rules.sh", &system.rules),
        ] {
            fs::write(place.join(name), text)?;
        }
        fs::write(place.join("is"), format!("{}\n", system.is))?;
        for (name, text) in system.all_files()? {
            ensure!(
                Path::new(&name).components().count() == 1,
                "{}: a file's name may have no directory: {name}",
                system.name
            );
            fs::write(place.join(name), text)?;
        }
        for workload in workloads {
            let place = self.subdir(&format!("work/{}", workload.name))?;
            fs::write(place.join("prepare.sh"), &workload.prepare)?;
            fs::write(place.join("run.sh"), &workload.run)?;
            fs::write(place.join("finish.sh"), &workload.finish)?;
            let sizes = if workload.rules.is_empty() {
                &[0][..]
            } else {
                &workload.rules
            };
            let lines: String = sizes.iter().map(|n| format!("{n}\n")).collect();
            fs::write(place.join("rules"), lines)?;
        }
        let files = self.subdir("files")?;
        for (name, content) in define::files() {
            fs::write(files.join(name), content)?;
        }
        let bin = self.subdir("bin")?;
        let programs = lab.programs()?;
        let wanted = workloads.iter().flat_map(|w| &w.programs);
        for name in wanted
            .chain(&system.programs)
            .map(String::as_str)
            .chain([CROWD])
        {
            fs::copy(programs.join(name), bin.join(name))
                .with_context(|| format!("copying {name}, one of the lab's programs"))?;
        }
        if system.tidegate {
            let file = &plan.tidegate;
            // the daemon's program lies beside the command line's
            for (file, name) in [
                (file.clone(), "tidegate"),
                (file.with_file_name("tidegated"), "tidegated"),
            ] {
                fs::copy(&file, bin.join(name)).with_context(|| {
                    format!(
                        "no {}: `make static` builds it, --tidegate names another",
                        file.display()
                    )
                })?;
            }
        }
        if system.lab {
            fs::copy(&plan.lab, bin.join("tidegate-lab"))
                .with_context(|| format!("copying {}", plan.lab.display()))?;
        }
        if let Some(own) = &plan.payload {
            copy_tree(own, &self.subdir("own")?)?;
        }
        Ok(())
    }

    fn subdir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Everything in it, for the recipe.
    pub(super) fn digest(&self) -> Result<String> {
        let mut files = Vec::new();
        list(&self.dir, &mut files)?;
        files.sort();
        let mut hash = Sha256::new();
        for file in files {
            let name = file.strip_prefix(&self.dir)?.display().to_string();
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(digest(&file)?.as_bytes());
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let _ = remove_tree(&self.dir);
    }
}

/// Removes the directories of runs that were killed, such as by Ctrl-C.
pub(super) fn remove_orphans(cache: &Path) -> Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|n| n.split('-').next());
        let Some(process) = process.and_then(|p| p.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{process}")).exists() {
            remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

/// A file's SHA-256.
pub(super) fn digest(file: &Path) -> Result<String> {
    let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(format!("{:x}", Sha256::digest(content)))
}

fn list(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let mut files = Vec::new();
    list(from, &mut files)?;
    for file in files {
        let target = to.join(file.strip_prefix(from)?);
        fs::create_dir_all(target.parent().context("a file in no directory")?)?;
        fs::copy(&file, &target).with_context(|| format!("copying {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        let cache = tempfile::tempdir().unwrap();
        // no process has so high a number
        let names = [
            "payload-4294967295-0".to_owned(),
            format!("payload-{}-0", std::process::id()),
            "payload-notes".to_owned(),
        ];
        for name in &names {
            fs::create_dir(cache.path().join(name)).unwrap();
        }
        remove_orphans(cache.path()).unwrap();
        let left = names.map(|name| cache.path().join(name).exists());
        assert_eq!(left, [false, true, true]);
    }
}
