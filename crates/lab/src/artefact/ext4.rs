//! ext4 images, made without root and the same bytes every time.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Tools;

/// An emulated NVDIMM's size must be a multiple of this.
const ALIGN: u64 = 16 << 20;

/// Fixed identifiers and time give the same bytes for the same content; lazy
/// initialisation would run in the kernel beside what is measured.
const FLAGS: [&str; 12] = [
    "-q",
    "-F",
    "-t",
    "ext4",
    "-b",
    "4096",
    "-m",
    "0",
    "-U",
    "74696465-6761-4745-8000-000000000001",
    "-E",
    "lazy_itable_init=0,lazy_journal_init=0,hash_seed=74696465-6761-4745-8000-000000000002",
];
pub(super) const FAKE_TIME: &str = "1767225600";

/// The images' part of an artefact's recipe.
pub(super) fn recipe() -> String {
    format!("{} {FAKE_TIME}", FLAGS.join(" "))
}

/// What goes into an image.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    /// A tar file, owners and modes as in it.
    Tar(&'a Path),
    /// A directory; everything in it will belong to root.
    Directory(&'a Path),
}

/// Makes an image with `spare` bytes of free space. The guest finds it by `label`.
pub(crate) fn make(
    tools: &Tools,
    label: &str,
    content: Content<'_>,
    spare: u64,
    image: &Path,
) -> Result<()> {
    let used = match content {
        Content::Tar(tar) => fs::metadata(tar)?.len(),
        Content::Directory(dir) => tree_size(dir)?,
    };
    // Inodes, bitmaps and the journal take a tenth and some.
    let size = (used + used / 8 + (48 << 20) + spare).next_multiple_of(ALIGN);
    File::create(image)?.set_len(size)?;

    let mut mke2fs = tools.command("usr/sbin/mke2fs", "mke2fs");
    mke2fs
        .args(FLAGS)
        .args(["-L", label, "-d", "-"])
        .env("E2FSPROGS_FAKE_TIME", FAKE_TIME)
        .arg(image)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut packer = match content {
        Content::Tar(tar) => {
            mke2fs.stdin(File::open(tar)?);
            None
        }
        Content::Directory(dir) => {
            let mut child = Command::new("tar")
                .args([
                    "-c",
                    "--owner=0",
                    "--group=0",
                    "--numeric-owner",
                    "--sort=name",
                    "-C",
                ])
                .arg(dir)
                .arg(".")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .context("tar")?;
            mke2fs.stdin(child.stdout.take().expect("piped above"));
            Some(child)
        }
    };
    let output = mke2fs.spawn().context("mke2fs")?.wait_with_output()?;
    drop(mke2fs);
    let packed = packer
        .as_mut()
        .map_or(Ok(true), |child| child.wait().map(|s| s.success()))?;
    if !output.status.success() || !packed {
        bail!(
            "mke2fs of {}: {}",
            image.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn tree_size(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() {
            4096 + tree_size(&entry.path())?
        } else {
            meta.len() + 4096
        };
    }
    Ok(sum)
}
