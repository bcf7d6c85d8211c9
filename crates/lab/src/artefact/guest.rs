//! The guest's init, compiled here: static, so that it runs in an initramfs
//! that holds nothing else.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::cache::Cache;
use super::debian::run;
use crate::progress::Progress;

const SOURCES: [(&str, &str); 5] = [
    ("guest.h", include_str!("../../guest/guest.h")),
    ("init.c", include_str!("../../guest/init.c")),
    ("report.c", include_str!("../../guest/report.c")),
    ("run.c", include_str!("../../guest/run.c")),
    ("systemd.c", include_str!("../../guest/systemd.c")),
];
const FLAGS: [&str; 5] = ["-static", "-O2", "-s", "-Wall", "-Wextra"];

/// Returns the path of the program.
pub(super) fn ensure(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let mut recipe = FLAGS.to_vec();
    recipe.extend(SOURCES.iter().map(|(_, text)| *text));
    let dir = cache.ensure("init", &recipe, |dir| {
        let step = progress.step("the guest's init");
        for (name, text) in SOURCES {
            fs::write(dir.join(name), text)?;
        }
        let units = SOURCES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| name.ends_with(".c"));
        run(Command::new("gcc")
            .current_dir(dir)
            .args(FLAGS)
            .args(["-o", "init"])
            .args(units))?;
        step.done();
        Ok(())
    })?;
    Ok(dir.join("init"))
}
