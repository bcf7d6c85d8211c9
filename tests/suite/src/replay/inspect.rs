//! What is left in a sandbox: each object's label, and each byte in it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, getxattr, openat};
use rustix::io::Errno;
use tidegate_model::{Contents, World};
use tidegate_monitor::Monitor;

use crate::replay::attempt::bytes::lowest;
use crate::replay::attempt::files::{NOWHERE, TAG};

/// The first object that is not as the model has it, or holds what it must not.
pub fn wrong(monitor: &Monitor, root: &str, world: &World) -> Result<Option<String>> {
    let contents = world.contents();
    let open = |c: &Contents| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(CWD, format!("{root}/{}", c.path), flags, Mode::empty())
            .with_context(|| format!("look at {}", c.path))
    };
    let fds: Vec<OwnedFd> = contents.iter().map(open).collect::<Result<_>>()?;
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    for (expected, object) in contents.iter().zip(monitor.objects(&fds)?) {
        let (path, name) = (&expected.path, |level| world.level_name(level));
        let level = object.context("an object without a label")?.label.level;
        if level != expected.level {
            let names = (name(expected.level), name(level));
            return Ok(Some(format!(
                "the model has {path} at {}, the kernel at {}",
                names.0, names.1
            )));
        }
        let Some(byte) = lowest(&bytes(&format!("{root}/{path}"))?) else {
            continue;
        };
        if byte < level && !expected.open_to_all {
            let names = (name(level), name(byte));
            return Ok(Some(format!(
                "{path} at {} holds a byte of {}",
                names.0, names.1
            )));
        }
        if byte < expected.lowest {
            let byte = name(byte);
            return Ok(Some(format!(
                "how a byte of {byte} came to {path} the model cannot tell"
            )));
        }
    }
    Ok(None)
}

/// All bytes of an object that the processes of a sequence may have written.
fn bytes(path: &str) -> Result<Vec<u8>> {
    let kind = fs::symlink_metadata(path)
        .context("look at an object")?
        .file_type();
    if kind.is_symlink() {
        let target = fs::read_link(Path::new(path)).context("read a link")?;
        return Ok(target
            .into_os_string()
            .into_encoded_bytes()
            .split_off(NOWHERE.len()));
    }
    if !kind.is_file() && !kind.is_dir() {
        return Ok(Vec::new());
    }
    let mut bytes = if kind.is_file() {
        fs::read(path).context("read a file")?
    } else {
        Vec::new()
    };
    let mut tag = [0u8; 8];
    match getxattr(path, TAG, &mut tag) {
        Ok(n) => bytes.extend(&tag[..n]),
        Err(Errno::NODATA) => {}
        Err(e) => return Err(e).context("read an attribute"),
    }
    Ok(bytes)
}
