//! After a crash of the machine, objects may be lower than the levels on the disk say, and no
//! process is left that knows. This module gives such objects the lowest level.
//!
//! Only where a rule says `creator` can an object be lower than its rule, and to become so
//! it must have been made, renamed or linked: each sets the inode's change time. So what has
//! changed there since the levels were last written down gets the lowest one. So does what has
//! a level of its own, wherever it is: it may have fallen since, and been written to.
//! Clocks are set at the top level only.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, fstat, statat};
use tidegate_bundle::{Attrs, Place, Policy};

use crate::labels::file_handle::Handle;
use crate::labels::filesystem::{Filesystem, device};
use crate::labels::format::Table;

/// Clocks that drift, and times that filesystems round, in seconds.
const MARGIN: i64 = 2;

/// Paths that a warning shows, and how long: what is deeper is shown by a directory above it.
const SHOWN: usize = 5;
const LONGEST: usize = 4096;

/// Adds what has changed on devices since a time, in seconds of the wall clock; what to tell of it. `alive` is called again and
/// again meanwhile.
pub fn add(
    policy: &Policy,
    mounted: &[Filesystem],
    since: &BTreeMap<u32, i64>,
    table: &mut Table,
    alive: &dyn Fn(),
) -> Vec<String> {
    let mut found = Found::default();
    for fs in mounted {
        let Some(since) = since.get(&fs.dev) else {
            continue;
        };
        let place = policy.place(fs.mount_point.as_bytes());
        let root = fs.on_disk().then(|| fs.root());
        let search = root.and_then(|root| {
            let root = root.ok()?;
            let (_, mount) = Handle::of(root.as_fd(), c"").ok()?;
            Some(Search {
                fs,
                since: since.saturating_sub(MARGIN),
                root,
                mount,
                table: &mut *table,
                found: &mut found,
                alive,
            })
        });
        match search {
            Some(mut search) => {
                search.all(place);
                search.known();
            }
            // subvolumes of btrfs, network filesystems
            None => {
                let known = table.iter_mut().filter(|(key, _)| key.0 == fs.dev);
                for (_, level) in known.filter(|(_, level)| **level > 0) {
                    *level = 0;
                    found.count += 1;
                }
                let creator = place.rule().attrs.contains(Attrs::CREATOR);
                if creator || place.any_below(Attrs::CREATOR) {
                    found.closed.push(fs.mount_point.clone());
                }
            }
        }
    }
    found.warnings()
}

/// What was found, on all disks.
#[derive(Default)]
struct Found {
    /// Objects that have the lowest level now.
    count: usize,
    /// The first of them that were found by a path.
    paths: Vec<PathBuf>,
    /// Objects without a number that is theirs.
    unnamed: usize,
    /// Directories that could not be read, or not wholly.
    unread: Vec<PathBuf>,
    /// Filesystems that cannot be searched.
    closed: Vec<String>,
}

impl Found {
    fn warnings(self) -> Vec<String> {
        let mut out = Vec::new();
        if self.count > 0 {
            out.push(format!(
                "the machine went down of a sudden, and {} objects changed after their levels were last written down: \
                 they have the lowest one now, `tidegate promote` is the way up: {}",
                self.count,
                shown(&self.paths, self.count),
            ));
        }
        if self.unnamed > 0 {
            out.push(format!(
                "{} of the objects that changed before the machine went down are on filesystems that do not number \
                 their inodes: they have their rules' levels",
                self.unnamed
            ));
        }
        if !self.unread.is_empty() {
            out.push(format!(
                "directories that cannot be read may hold objects that changed before the machine went down, \
                 which have their rules' levels: {}",
                shown(&self.unread, self.unread.len()),
            ));
        }
        if !self.closed.is_empty() {
            out.push(format!(
                "what changed before the machine went down is not looked for on these filesystems, and has its \
                 rules' levels: {}",
                self.closed.join(", "),
            ));
        }
        out
    }
}

fn shown(paths: &[PathBuf], count: usize) -> String {
    let mut list: Vec<_> = paths
        .iter()
        .take(SHOWN)
        .map(|p| p.display().to_string())
        .collect();
    if count > list.len() {
        list.push(format!("{} more", count - list.len()));
    }
    list.join(", ")
}

/// Of one mounted filesystem: neither what else is mounted on it nor what is bound elsewhere.
struct Search<'a> {
    fs: &'a Filesystem,
    since: i64,
    root: File,
    mount: i32,
    table: &'a mut Table,
    found: &'a mut Found,
    alive: &'a dyn Fn(),
}

/// A directory yet to be read. It is known by its handle, as no path leads to what is deep enough.
struct Pending<'p> {
    place: Place<'p>,
    path: PathBuf,
    handle: Handle,
}

impl Search<'_> {
    /// Looks at all there is, down to where no rule says `creator`.
    fn all(&mut self, place: Place<'_>) {
        let Ok(root) = self.root.try_clone() else {
            self.found.unread.push(self.fs.mount_point.clone().into());
            return;
        };
        let path = PathBuf::from(&self.fs.mount_point);
        let mut pending = Vec::new();
        pending.extend(self.look(root.as_fd(), c"", place, &path));
        while let Some(dir) = pending.pop() {
            (self.alive)();
            if self.directory(&dir, &mut pending).is_err() {
                self.suspect(&dir.handle, &dir.path);
                self.found.unread.push(dir.path);
            }
        }
    }

    fn directory<'p>(
        &mut self,
        dir: &Pending<'p>,
        pending: &mut Vec<Pending<'p>>,
    ) -> std::io::Result<()> {
        let fd = dir
            .handle
            .open(&self.root, libc::O_RDONLY | libc::O_DIRECTORY)?;
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                let place = dir.place.child(name.to_bytes());
                pending.extend(self.look(fd.as_fd(), name, place, &dir.path));
            }
        }
        Ok(())
    }

    /// Looks at an object of a directory; what is to be read next, if it is one itself.
    fn look<'p>(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        place: Place<'p>,
        above: &Path,
    ) -> Option<Pending<'p>> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let path = || below(above, name);
        let stat = match statat(dir, name, flags) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => return None,
            Err(_) => {
                self.found.unread.push(path());
                return None;
            }
        };
        if device(stat.st_dev) != self.fs.dev {
            return None;
        }
        let rule = place.rule();
        let suspect =
            stat.st_ctime >= self.since && rule.level > 0 && rule.attrs.contains(Attrs::CREATOR);
        let further = FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && place.any_below(Attrs::CREATOR);
        if !suspect && !further {
            return None;
        }
        let Ok((handle, mount)) = Handle::of(dir, name) else {
            self.found.unnamed += usize::from(suspect);
            self.found.unread.extend(further.then(path));
            return None;
        };
        if mount != self.mount {
            return None;
        }
        let path = path();
        if suspect {
            self.suspect(&handle, &path);
        }
        further.then_some(Pending {
            place,
            path,
            handle,
        })
    }

    fn suspect(&mut self, handle: &Handle, path: &Path) {
        let Some((ino, generation)) = handle.inode() else {
            self.found.unnamed += 1;
            return;
        };
        if self.table.insert((self.fs.dev, ino, generation), 0) != Some(0) {
            self.found.count += 1;
            if self.found.paths.len() < SHOWN {
                self.found.paths.push(path.into());
            }
        }
    }

    /// What has a level may have been elsewhere when it fell.
    fn known(&mut self) {
        for (&(dev, ino, generation), level) in self.table.iter_mut() {
            (self.alive)();
            if dev != self.fs.dev || *level == 0 {
                continue;
            }
            // what cannot be asked is suspect, what is gone is not
            let changed = match Handle::of_inode(&self.fs.kind, ino, generation) {
                None => true,
                Some(handle) => match handle.open(&self.root, libc::O_PATH) {
                    Ok(fd) => fstat(fd).map_or(true, |stat| stat.st_ctime >= self.since),
                    Err(e) => e.raw_os_error() != Some(libc::ESTALE),
                },
            };
            if changed {
                *level = 0;
                self.found.count += 1;
            }
        }
    }
}

/// The path of what is in a directory, as far as it is shown.
fn below(above: &Path, name: &CStr) -> PathBuf {
    let (dir, name) = (above.as_os_str().as_bytes(), name.to_bytes());
    if name.is_empty() || dir.len() + name.len() >= LONGEST {
        return above.into();
    }
    above.join(std::ffi::OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    use tidegate_policy::map;

    use super::*;

    /// A directory whose `made` is a creator area, and what is searched; `None` for a user that may
    /// not open objects by their handles.
    struct Area {
        dir: tempfile::TempDir,
        policy: Policy,
        disk: Filesystem,
    }

    fn area() -> Option<Area> {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["made", "own"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let map = format!(
            "levels top > low\ntop /\ntop {}/made creator\n",
            root.display()
        );
        let policy = map::compile_str("t.plm", &map).unwrap().policy;
        let disk = Filesystem {
            dev: device(fs::metadata(&root).unwrap().dev()),
            kind: "ext4".into(),
            identity: "uuid=1".into(),
            mount_point: root.display().to_string(),
            ..Filesystem::default()
        };
        let (fd, area) = (File::open(&root).unwrap(), Area { dir, policy, disk });
        let handle = Handle::of(fd.as_fd(), c"").unwrap().0;
        handle.open(&fd, libc::O_PATH).is_ok().then_some(area)
    }

    impl Area {
        fn key(&self, name: &str) -> (u32, u64, u32) {
            let dir = File::open(self.dir.path()).unwrap();
            let name = std::ffi::CString::new(name).unwrap();
            let handle = Handle::of(dir.as_fd(), &name).unwrap().0;
            let (ino, generation) = handle.inode().expect("this filesystem numbers its inodes");
            (self.disk.dev, ino, generation)
        }

        fn search(&self, since: i64, table: &mut Table) -> Vec<String> {
            let since = BTreeMap::from([(self.disk.dev, since)]);
            add(
                &self.policy,
                std::slice::from_ref(&self.disk),
                &since,
                table,
                &|| (),
            )
        }

        fn write(&self, name: &str) {
            fs::write(self.dir.path().join(name), "x").unwrap();
        }
    }

    fn later() -> i64 {
        jiff::Timestamp::now().as_second() + 100
    }

    #[test]
    fn what_changed_since_is_the_lowest() {
        let Some(area) = area() else { return };
        fs::create_dir(area.dir.path().join("made/deep")).unwrap();
        for name in ["made/deep/new", "made/known", "own/new"] {
            area.write(name);
        }
        let known = Table::from([(area.key("made/known"), 0)]);
        let mut table = known.clone();
        let warnings = area.search(i64::MIN, &mut table);
        // `made` itself, `deep` and `new`
        assert_eq!((table.len(), warnings.len()), (4, 1), "{warnings:?}");
        assert!(warnings[0].contains("3 objects") && !warnings[0].contains("/own"));

        let mut table = known.clone();
        assert!(area.search(later(), &mut table).is_empty());
        assert_eq!(table, known);
    }

    #[test]
    fn a_level_that_was_higher_does_not_count_for_what_changed() {
        let Some(area) = area() else { return };
        area.write("own/promoted");
        area.write("made/promoted");
        let (own, made) = (area.key("own/promoted"), area.key("made/promoted"));
        let gone = (own.0, own.1, own.2 ^ 1);
        let known = Table::from([(own, 1), (made, 1), (gone, 1)]);
        let mut table = known.clone();
        area.search(0, &mut table);
        assert_eq!((table[&own], table[&made], table[&gone]), (0, 0, 1));

        let mut table = known.clone();
        assert!(area.search(later(), &mut table).is_empty());
        assert_eq!(table, known);
    }

    #[test]
    fn nothing_is_too_deep_to_be_found() {
        let Some(area) = area() else { return };
        let name = "x".repeat(250);
        let mut dir = OwnedFd::from(File::open(area.dir.path().join("made")).unwrap());
        // no path that can be named is as long
        for _ in 0..500 {
            mkdirat(&dir, &name, Mode::RWXU).unwrap();
            dir = openat(&dir, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        openat(&dir, "hidden", OFlags::CREATE, Mode::RUSR).unwrap();
        let (handle, _) = Handle::of(dir.as_fd(), c"hidden").unwrap();
        let (ino, generation) = handle.inode().unwrap();
        let mut table = Table::new();
        let warnings = area.search(0, &mut table);
        assert_eq!(table.get(&(area.disk.dev, ino, generation)), Some(&0));
        assert!(warnings[0].contains("502 objects"), "{warnings:?}");
    }

    #[test]
    fn what_is_not_searched_is_told() {
        let Some(mut area) = area() else { return };
        // as a subvolume of btrfs, whose device is its own
        area.disk.dev += 1;
        let warnings = area.search(0, &mut Table::new());
        assert!(warnings[0].contains("not looked for"), "{warnings:?}");
        area.disk.mount_point += "/own";
        assert!(area.search(0, &mut Table::new()).is_empty());
    }
}
