//! QEMU 10, mke2fs, kmod and zstd from Debian trixie, in a tree of their own.
//!
//! Debian 12's QEMU crashes about half of its boots of 6.12, and its mke2fs
//! cannot read a tar file; the tree makes every machine use the same ones. Its
//! programs run through its own dynamic loader, so that nothing is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::cache::Cache;
use super::debian::{Bootstrap, unpack};
use crate::progress::Progress;

const TREE: Bootstrap = Bootstrap {
    suite: "trixie",
    variant: "extract",
    include: &[
        "qemu-system-x86",
        "e2fsprogs",
        "libarchive13t64",
        "kmod",
        "zstd",
    ],
    exclude: &[],
    customize: None,
};

/// The tree of programs.
#[derive(Debug, Clone)]
pub struct Tools {
    tree: PathBuf,
}

pub(super) fn ensure(cache: &Cache, progress: &Progress) -> Result<Tools> {
    let tree = cache.ensure("tools", &[&TREE.recipe()], |dir| {
        let step = progress.step("QEMU 10 from Debian trixie");
        let tar = dir.join("tree.tar");
        TREE.to_tar(&tar)?;
        unpack(&tar, dir, Some("./usr"))?;
        unpack(&tar, dir, Some("./etc"))?;
        std::fs::remove_file(tar)?;
        step.done();
        Ok(())
    })?;
    Ok(Tools { tree })
}

impl Tools {
    /// The tree's directory; its name changes with its content.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// A command for one of the tree's programs, `program` relative to its
    /// root; `name` is what the program sees as its own name.
    #[must_use]
    pub fn command(&self, program: &str, name: &str) -> Command {
        let mut command = Command::new(self.tree.join("usr/lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(self.tree.join("usr/lib/x86_64-linux-gnu"))
            .args(["--argv0", name])
            .arg(self.tree.join(program))
            .env("MKE2FS_CONFIG", self.tree.join("etc/mke2fs.conf"));
        command
    }

    /// `qemu-system-x86_64`, told where its firmware lies.
    #[must_use]
    pub fn qemu(&self) -> Command {
        let mut command = self.command("usr/bin/qemu-system-x86_64", "qemu-system-x86_64");
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.tree.join(firmware));
        }
        command
    }
}
