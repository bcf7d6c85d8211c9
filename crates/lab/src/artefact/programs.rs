//! The workloads' programs, compiled here: static, so that the same bytes run in every
//! image and on every machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::cache::Cache;
use super::debian::run;
use crate::define::Workload;
use crate::progress::Progress;

const FLAGS: [&str; 6] = ["-static", "-O2", "-s", "-pthread", "-Wall", "-Wextra"];

/// Returns the directory that holds them.
pub(super) fn ensure(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let sources: Vec<(String, &str)> = Workload::sources().collect();
    let mut recipe = FLAGS.to_vec();
    for (name, text) in &sources {
        recipe.extend([name.as_str(), text]);
    }
    cache.ensure("programs", &recipe, |dir| {
        let step = progress.step("the workloads' programs");
        for (name, text) in &sources {
            fs::write(dir.join(name), text)?;
        }
        for program in sources
            .iter()
            .filter_map(|(name, _)| name.strip_suffix(".c"))
        {
            run(Command::new("gcc").current_dir(dir).args(FLAGS).args([
                "-o",
                program,
                &format!("{program}.c"),
                "-lm",
            ]))?;
        }
        step.done();
        Ok(())
    })
}
