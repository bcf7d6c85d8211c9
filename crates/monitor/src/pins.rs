//! Where the monitor lives in the BPF filesystem.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

use crate::abi::BUILD;
use crate::attach::{SERVERS, Set};
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
        names_in(&self.dir())
    }
}

fn names_in(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
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

/// Whether anything is pinned, be it that no monitor is in the kernel: a start or an end was cut off.
pub(crate) fn are_left() -> Result<bool> {
    for kind in [Pinned::Links, Pinned::Programs, Pinned::Maps] {
        if !kind.names()?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
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
/// from the monitor, and what other programs need, last.
pub(crate) fn remove_links() -> Result<()> {
    let mut links = Pinned::Links.names()?;
    links.sort_by_key(|name| detach_rank(name));
    unpin(links.iter().map(|n| Pinned::Links.path(n)))
}

/// Takes these pins away, as far as nobody else has meanwhile.
pub(crate) fn unpin(paths: impl Iterator<Item = PathBuf>) -> Result<()> {
    for path in paths {
        match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done.trying(|| format!("unpin {}", path.display()))?,
        }
    }
    Ok(())
}

/// Takes every pin away that there is: links first, then programs, maps and the directory. A model may be loaded just now, by
/// another thread: what that has pinned goes, and from then on it pins nothing.
pub(crate) fn remove() -> Result<()> {
    remove_all(&Pinned::Links.dir(), detach_rank)?;
    remove_all(&Pinned::Programs.dir(), |_| 0)?;
    // `bss` last: while it is there a monitor counts as running, and as this build's
    let build = build();
    remove_all(&Pinned::Maps.dir(), |name| match name {
        "bss" => 2,
        name => u8::from(name == build),
    })?;
    remove_dir(Path::new(PIN_DIR)).trying(|| format!("remove {PIN_DIR}"))
}

/// How often a directory is emptied that others put something into meanwhile.
const TRIES: u32 = 100;

/// Takes away what is in a directory, that of the lowest rank first, and the directory: nothing can be put there any more.
fn remove_all(dir: &Path, rank: impl Fn(&str) -> u8) -> Result<()> {
    let mut tries = 0..TRIES;
    loop {
        let mut names = names_in(dir)?;
        names.sort_by_key(|name| rank(name));
        unpin(names.iter().map(|name| dir.join(name)))?;
        match remove_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && tries.next().is_some() => {}
            done => return done.trying(|| format!("remove {}", dir.display())),
        }
    }
}

/// Removes an empty directory, if it is there.
fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// The order in which links go.
fn detach_rank(link: &str) -> u8 {
    if Set::of(link) == Some(Set::Guard) {
        0
    } else if link.contains("bpf") || SERVERS.contains(&link) {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

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

    #[test]
    fn what_others_put_into_a_directory_meanwhile_goes_with_it() {
        let all = tempfile::tempdir().unwrap();
        let dir = all.path().join("maps");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("bss"), "").unwrap();
        let there = dir.clone();
        let (first, begun) = channel();
        let puts = thread::spawn(move || {
            let mut number = 0;
            while fs::write(there.join(format!("te_{number}")), "").is_ok() {
                let _ = first.send(());
                number += 1;
                thread::sleep(Duration::from_millis(1));
            }
        });
        begun.recv().unwrap();
        remove_all(&dir, |name| u8::from(name == "bss")).unwrap();
        puts.join().unwrap();
        assert!(!dir.exists());
        // as one that is not there
        remove_all(&dir, |_| 0).unwrap();
    }
}
