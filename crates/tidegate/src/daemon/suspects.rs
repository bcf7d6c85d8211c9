//! After a machine went down of a sudden: what may be lower than its rule says, with nobody
//! left who knows.
//!
//! Only where a rule says `creator` can an object be lower than its rule, and to become so
//! it must have been made, renamed or linked: each sets the inode's change time. So what has
//! changed there since the levels were last written down, and has none, gets the lowest one.
//! Clocks are set at the top level only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidegate_policy::{Attrs, Policy};

use super::filesystem::Filesystem;
use super::saved::Table;

/// Clocks that drift, and times that filesystems round, in seconds.
const MARGIN: i64 = 2;

/// Paths that a warning shows.
const SHOWN: usize = 5;

/// Adds what has changed on devices since a time, in seconds of the wall clock; what to tell of it.
pub fn add(
    policy: &Policy,
    mounted: &[Filesystem],
    since: &BTreeMap<u32, i64>,
    table: &mut Table,
) -> Vec<String> {
    let mut search = Search {
        policy,
        dev: 0,
        since: 0,
        table,
        paths: Vec::new(),
        unnamed: 0,
    };
    for fs in mounted.iter().filter(|f| f.on_disk()) {
        if let Some(since) = since.get(&fs.dev) {
            (search.dev, search.since) = (fs.dev, since.saturating_sub(MARGIN));
            search.directory(Path::new(&fs.mount_point));
        }
    }
    let mut warnings = Vec::new();
    if !search.paths.is_empty() {
        let shown: Vec<_> = search
            .paths
            .iter()
            .take(SHOWN)
            .map(|p| p.display().to_string())
            .collect();
        let more = search.paths.len().saturating_sub(SHOWN);
        warnings.push(format!(
            "the machine went down of a sudden, and {} objects changed after their levels were last written down: \
             they have the lowest one now, `tidegate promote` is the way up: {}{}",
            search.paths.len(),
            shown.join(", "),
            if more > 0 { format!(" and {more} more") } else { String::new() },
        ));
    }
    if search.unnamed > 0 {
        warnings.push(format!(
            "{} of the objects that changed before the machine went down are on filesystems that do not number \
             their inodes: they have their rules' levels",
            search.unnamed
        ));
    }
    warnings
}

struct Search<'a> {
    policy: &'a Policy,
    dev: u32,
    since: i64,
    table: &'a mut Table,
    paths: Vec<PathBuf>,
    unnamed: usize,
}

impl Search<'_> {
    /// Looks at what is in a directory, and below where that may be of use. What cannot be
    /// read is on a filesystem that has a fault, or is gone.
    fn directory(&mut self, dir: &Path) {
        let bytes = dir.as_os_str().as_bytes();
        if !self.policy.any_below(bytes, Attrs::CREATOR) {
            return;
        }
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(meta) = fs::symlink_metadata(&path) else {
                continue;
            };
            let dev = rustix::fs::major(meta.dev()) << 20 | rustix::fs::minor(meta.dev());
            if dev != self.dev {
                continue;
            }
            let rule = self.policy.lookup(path.as_os_str().as_bytes());
            if meta.ctime() >= self.since && rule.level > 0 && rule.attrs.contains(Attrs::CREATOR) {
                self.suspect(&path);
            }
            if meta.is_dir() {
                self.directory(&path);
            }
        }
    }

    fn suspect(&mut self, path: &Path) {
        let Some((ino, generation)) = identity(path) else {
            self.unnamed += 1;
            return;
        };
        if let Entry::Vacant(none) = self.table.entry((self.dev, ino, generation)) {
            none.insert(0);
            self.paths.push(path.into());
        }
    }
}

/// Bytes that a handle may have (MAX_HANDLE_SZ of linux/exportfs.h).
const HANDLE: usize = 128;

/// `struct file_handle` (open_by_handle_at(2)).
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    body: [u8; HANDLE],
}

/// An object's inode number and generation, of its handle, if that is of a form that has both
/// (`enum fid_type` of linux/exportfs.h): ext4's and f2fs', xfs', btrfs'.
fn identity(path: &Path) -> Option<(u64, u32)> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut handle = Handle {
        bytes: HANDLE as u32,
        kind: 0,
        body: [0; HANDLE],
    };
    let mut mount = 0;
    // SAFETY: the name is terminated, the handle is as long as it says, and both outlive the call.
    let done = unsafe {
        libc::name_to_handle_at(
            libc::AT_FDCWD,
            name.as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            0,
        )
    };
    (done == 0)
        .then(|| parts(handle.kind, &handle.body))
        .flatten()
}

fn parts(kind: i32, body: &[u8; HANDLE]) -> Option<(u64, u32)> {
    let word = |at: usize| u32::from_ne_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    match kind {
        1 | 2 => Some((word(0).into(), word(4))),
        0x81 | 0x82 => Some((long(0), word(8))),
        0x4d..=0x4f => Some((long(0), word(16))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read() {
        let mut body = [0; HANDLE];
        body[..12].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(parts(1, &body), Some((1, 2)));
        assert_eq!(parts(0x81, &body), Some((0x2_0000_0001, 3)));
        assert_eq!(parts(0xff, &body), None);
    }

    #[test]
    fn what_changed_since_is_the_lowest() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("made/deep")).unwrap();
        fs::create_dir(root.join("own")).unwrap();
        for name in ["made/deep/new", "made/known", "own/new"] {
            fs::write(root.join(name), "x").unwrap();
        }
        let map = format!(
            "levels top > low\ntop /\ntop {}/made creator\n",
            root.display()
        );
        let policy = Policy::compile_str("t.plm", &map).unwrap().policy;
        let dev = fs::metadata(&root).unwrap().dev();
        let dev = rustix::fs::major(dev) << 20 | rustix::fs::minor(dev);
        let disk = Filesystem {
            dev,
            kind: "ext4".into(),
            identity: "uuid=1".into(),
            mount_point: root.display().to_string(),
            ..Filesystem::default()
        };
        let (ino, generation) =
            identity(&root.join("made/known")).expect("this filesystem numbers its inodes");
        let known = Table::from([((dev, ino, generation), 0)]);

        let mut table = known.clone();
        let disks = std::slice::from_ref(&disk);
        let warnings = add(&policy, disks, &BTreeMap::from([(dev, 0)]), &mut table);
        // `made` itself, `deep` and `new`
        assert_eq!((table.len(), warnings.len()), (4, 1), "{warnings:?}");
        assert!(warnings[0].contains("3 objects") && !warnings[0].contains("/own"));

        let mut table = known.clone();
        let later = jiff::Timestamp::now().as_second() + 100;
        let since = BTreeMap::from([(dev, later)]);
        assert!(add(&policy, disks, &since, &mut table).is_empty());
        assert_eq!(table, known);
    }
}
