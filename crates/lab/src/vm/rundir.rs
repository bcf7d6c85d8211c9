//! A directory for each boot: the console log stays, the rest goes with the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::artefact::remove_tree;

/// How many console logs are kept.
const KEPT: usize = 60;

/// One boot's files.
#[derive(Debug)]
pub(super) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes a directory under `cache`/runs and drops the oldest ones.
    pub(super) fn new(cache: &Path, what: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let runs = cache.join("runs");
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = runs.join(format!("{now}-{}-{count}-{what}", process::id()));
        fs::create_dir_all(&path)?;
        prune(&runs)?;
        Ok(Self { path })
    }

    pub(super) fn console(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// QEMU's own standard error.
    pub(super) fn errors(&self) -> PathBuf {
        self.path.join("qemu.log")
    }

    pub(super) fn initramfs(&self) -> PathBuf {
        self.path.join("initramfs.cpio")
    }

    pub(super) fn payload(&self) -> PathBuf {
        self.path.join("payload.ext4")
    }

    /// Removes what only QEMU's start needs; a mapped or loaded file lives on.
    pub(super) fn discard_inputs(&self) {
        for file in [self.initramfs(), self.payload()] {
            // Not every boot has them.
            let _ = fs::remove_file(file);
        }
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        self.discard_inputs();
    }
}

/// Names begin with the time, so that their order is their age. A directory
/// that another process removes meanwhile is no error.
fn prune(runs: &Path) -> Result<()> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(runs)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    dirs.sort();
    for old in dirs.iter().take(dirs.len().saturating_sub(KEPT)) {
        remove_tree(old)?;
    }
    Ok(())
}
