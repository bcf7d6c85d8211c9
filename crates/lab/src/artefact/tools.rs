//! Programs from Debian trixie, in trees of their own: QEMU 10, mke2fs, kmod and
//! zstd for the machines, cbmc for the proofs, AppArmor's parser beside its sources, Debian's profiles.
//!
//! Debian 12's QEMU crashes about half of its boots of 6.12, its mke2fs cannot
//! read a tar file, and it has no cbmc; the trees make every machine use the same
//! ones. Their programs run through their own dynamic loader, so that nothing is
//! installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::cache::Cache;
use super::debian::{Bootstrap, unpack};
use crate::progress::Progress;

/// A tree to be made.
pub(super) struct Toolbox {
    kind: &'static str,
    about: &'static str,
    include: &'static [&'static str],
    /// Shell run at the end; `$1` is the tree.
    customize: Option<&'static str>,
}

/// What machines are made and run by.
pub(super) const MACHINES: Toolbox = Toolbox {
    kind: "tools",
    about: "QEMU 10 from Debian trixie",
    include: &[
        "qemu-system-x86",
        "e2fsprogs",
        "libarchive13t64",
        "kmod",
        "zstd",
    ],
    customize: None,
};

/// The model checker.
pub(super) const PROVER: Toolbox = Toolbox {
    kind: "prover",
    about: "cbmc from Debian trixie",
    include: &["cbmc"],
    customize: None,
};

/// AppArmor's parser, and the sources that it was made from: `usr/src/apparmor`.
pub(super) const PARSER: Toolbox = Toolbox {
    kind: "parser",
    about: "AppArmor's parser and its sources from Debian trixie",
    include: &["apparmor"],
    customize: Some(APPARMOR_SOURCE),
};

/// The profiles that Debian ships: `etc/apparmor.d`, `usr/share/apparmor/extra-profiles`.
pub(super) const PROFILES: Toolbox = Toolbox {
    kind: "profiles",
    about: "the AppArmor profiles of Debian trixie",
    include: &["apparmor", "apparmor-profiles", "apparmor-profiles-extra"],
    customize: Some(include_str!("../../guest/apparmor-profiles.sh")),
};

/// Fetches AppArmor's source package to `usr/src/apparmor` of a tree.
pub(super) const APPARMOR_SOURCE: &str = include_str!("../../guest/apparmor-source.sh");

/// A tree of programs.
#[derive(Debug, Clone)]
pub struct Tools {
    tree: PathBuf,
}

impl Toolbox {
    pub(super) fn ensure(&self, cache: &Cache, progress: &Progress) -> Result<Tools> {
        let bootstrap = Bootstrap {
            suite: "trixie",
            variant: "extract",
            include: self.include,
            customize: self.customize,
            ..Default::default()
        };
        let tree = cache.ensure(self.kind, &[&bootstrap.recipe()], |dir| {
            let step = progress.step(self.about);
            let tar = dir.join("tree.tar");
            bootstrap.to_tar(&tar)?;
            unpack(&tar, dir, Some("./usr"))?;
            unpack(&tar, dir, Some("./etc"))?;
            std::fs::remove_file(tar)?;
            step.done();
            Ok(())
        })?;
        Ok(Tools { tree })
    }
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
        let mut libraries = self.tree.join("usr/lib/x86_64-linux-gnu").into_os_string();
        libraries.push(":");
        libraries.push(self.tree.join("usr/lib"));
        let mut command = Command::new(self.tree.join("usr/lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(libraries)
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

    /// `cbmc`, of the prover's tree. It calls this machine's `gcc` to preprocess.
    #[must_use]
    pub fn cbmc(&self) -> Command {
        self.command("usr/bin/cbmc", "cbmc")
    }

    /// `apparmor_parser`, of the parser's tree.
    #[must_use]
    pub fn apparmor_parser(&self) -> Command {
        self.command("usr/sbin/apparmor_parser", "apparmor_parser")
    }

    /// AppArmor's sources, in the parser's tree.
    #[must_use]
    pub fn apparmor_source(&self) -> PathBuf {
        self.tree.join("usr/src/apparmor")
    }
}
