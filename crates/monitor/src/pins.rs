//! Where the monitor lives in the BPF filesystem.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

use crate::abi::BUILD;
use crate::attach::Set;
use crate::error::{Error, Result, Trying};
use crate::sys;

/// The directory everything is pinned in; mode 0700.
pub const PIN_DIR: &str = "/sys/fs/bpf/tidegate";

const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// What is pinned, a directory a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pinned {
    /// Maps under their names, the globals as `bss`, those of a model as `MODEL_bss`.
    Maps,
    /// Programs under their names.
    Programs,
    /// Links under their programs' names: what is here is attached.
    Links,
}

impl Pinned {
    /// Its directory.
    pub fn dir(self) -> PathBuf {
        Path::new(PIN_DIR).join(match self {
            Pinned::Maps => "maps",
            Pinned::Programs => "programs",
            Pinned::Links => "links",
        })
    }

    /// One entry of it.
    pub fn path(self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Pins something there.
    pub fn pin(self, what: impl AsFd, name: &str) -> Result<()> {
        let path = self.path(name);
        sys::pin(what.as_fd(), &path).map_err(|source| Error::Pin { path, source })
    }

    /// Whether something is pinned there.
    pub fn has(self, name: &str) -> Result<bool> {
        let path = self.path(name);
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::io(format!("look for {}", path.display()), e)),
        }
    }

    /// The names in it, sorted; none if there is no such directory.
    pub fn names(self) -> Result<Vec<String>> {
        let dir = self.dir();
        let entries = match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.trying(|| format!("list {}", dir.display()))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.trying(|| format!("list {}", dir.display()))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }
}

/// Whether a monitor is in the kernel: its globals are pinned.
pub(crate) fn exist() -> Result<bool> {
    Pinned::Maps.has("bss")
}

/// The globals' other name: which build the monitor is of.
pub(crate) fn build() -> String {
    format!("build-{BUILD}")
}

/// Which build the monitor in the kernel is of, by that name.
pub(crate) fn found_build() -> Result<Option<String>> {
    let maps = Pinned::Maps.names()?;
    Ok(maps.into_iter().find(|name| name.starts_with("build-")))
}

/// Whether the monitor in the kernel is this build's; else which one it is.
pub(crate) fn is_ours() -> Result<()> {
    match found_build()? {
        Some(theirs) if theirs == build() => Ok(()),
        theirs => Err(Error::Foreign(theirs.unwrap_or("no build is named".into()))),
    }
}

/// Makes the pin directory, mounting the BPF filesystem where it is missing.
pub(crate) fn create() -> Result<()> {
    let pinned = |path: &Path| {
        let path = path.to_path_buf();
        move |source: io::Error| Error::Pin { path, source }
    };
    let root = Path::new(BPFFS);
    let stat = statfs(root)
        .map_err(|e| Error::Unsupported(format!("there is no {BPFFS} ({e}): is sysfs mounted?")))?;
    if stat.f_type != BPF_FS_MAGIC {
        mount(
            "bpf",
            root,
            "bpf",
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
            None,
        )
        .map_err(|e| pinned(root)(e.into()))?;
    }
    let top = Path::new(PIN_DIR);
    match fs::DirBuilder::new().mode(0o700).create(top) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let mode = fs::Permissions::from_mode(0o700);
            fs::set_permissions(top, mode).map_err(pinned(top))?;
        }
        made => made.map_err(pinned(top))?,
    }
    for kind in [Pinned::Maps, Pinned::Programs, Pinned::Links] {
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(kind.dir())
            .map_err(pinned(&kind.dir()))?;
    }
    Ok(())
}

/// Takes every link away, so that nothing is attached: the guards first, and what keeps others
/// from the monitor last.
pub(crate) fn remove_links() -> Result<()> {
    let mut links = Pinned::Links.names()?;
    links.sort_by_key(|name| detach_rank(name));
    unpin(links.iter().map(|n| Pinned::Links.path(n)))
}

/// Takes these pins away.
pub(crate) fn unpin(paths: impl Iterator<Item = PathBuf>) -> Result<()> {
    for path in paths {
        fs::remove_file(&path).trying(|| format!("unpin {}", path.display()))?;
    }
    Ok(())
}

/// Takes every pin away that there is: links first, then programs, maps and the directory.
pub(crate) fn remove() -> Result<()> {
    remove_links()?;
    let programs = Pinned::Programs.names()?;
    let programs = programs.iter().map(|n| Pinned::Programs.path(n));
    // `bss` last: while it is there a monitor counts as running, and as this build's
    let mut maps = Pinned::Maps.names()?;
    maps.sort_by_key(|n| (n == "bss", *n == build()));
    let maps = maps.iter().map(|n| Pinned::Maps.path(n));
    unpin(programs.chain(maps))?;
    let dirs = [
        Pinned::Links.dir(),
        Pinned::Programs.dir(),
        Pinned::Maps.dir(),
        PIN_DIR.into(),
    ];
    for dir in dirs {
        match fs::remove_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done.trying(|| format!("remove {}", dir.display()))?,
        }
    }
    Ok(())
}

/// The order in which links go.
fn detach_rank(link: &str) -> u8 {
    if Set::of(link) == Some(Set::Guard) {
        0
    } else if link.contains("bpf") {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_go_first_and_self_protection_last() {
        let mut links = vec![
            "lomac_bpf_map",
            "lomac_file_open",
            "lomac_guard_file_permission",
        ];
        links.sort_by_key(|l| detach_rank(l));
        assert_eq!(
            links,
            [
                "lomac_guard_file_permission",
                "lomac_file_open",
                "lomac_bpf_map"
            ]
        );
    }
}
