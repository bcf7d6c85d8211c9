//! The root filesystem: Debian trixie with what tests and the story need.

use std::path::PathBuf;

use anyhow::Result;

use super::cache::Cache;
use super::debian::Bootstrap;
use super::{Content, Tools, ext4};
use crate::progress::Progress;

const TREE: Bootstrap = Bootstrap {
    suite: "trixie",
    variant: "minbase",
    include: &[
        "acl",
        "attr",
        "bpftool",
        "e2fsprogs",
        "file",
        "fuse3",
        "gcc",
        "git",
        "iproute2",
        "keyutils",
        "kmod",
        "less",
        "libc6-dev",
        "libfuse3-dev",
        "liburing-dev",
        "make",
        "nano",
        "ncat",
        "netbase",
        "passwd",
        "pkgconf",
        "procps",
        "python3-minimal",
        "strace",
        "sudo",
        "util-linux",
    ],
    exclude: &[
        "/usr/share/doc/*",
        "/usr/share/man/*",
        "/usr/share/info/*",
        "/usr/share/locale/*",
    ],
    customize: Some(include_str!("../../guest/customize.sh")),
};

/// Free space for what a test writes; it costs nothing until used.
const SPARE: u64 = 512 << 20;

/// Returns the path of the image.
pub(super) fn ensure(
    cache: &Cache,
    progress: &Progress,
    tools: impl FnOnce() -> Result<Tools>,
) -> Result<PathBuf> {
    let dir = cache.ensure(
        "root",
        &[&TREE.recipe(), &ext4::recipe(), &SPARE.to_string()],
        |dir| {
            let step = progress.step("root image, Debian trixie");
            let tar = dir.join("root.tar");
            TREE.to_tar(&tar)?;
            ext4::make(
                &tools()?,
                "root",
                Content::Tar(&tar),
                SPARE,
                &dir.join("root.ext4"),
            )?;
            std::fs::remove_file(tar)?;
            step.done();
            Ok(())
        },
    )?;
    Ok(dir.join("root.ext4"))
}
