//! Which filesystems are mounted, and how to know them again after a reboot.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, open, statx};
use tidegate_monitor::Given;

use crate::error::{DaemonError, Outcome};
use crate::labels::file_handle::Handle;

/// A mounted filesystem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filesystem {
    /// Its device, as the kernel numbers it.
    pub dev: u32,
    /// What it is called over reboots: its UUID, or its type and source.
    pub identity: String,
    /// A mount point of it.
    pub mount_point: String,
    /// The mount there, as the kernel numbers it.
    pub mount: u64,
    /// Its type.
    pub kind: String,
    /// Its root is mounted there, and not a directory of it.
    pub whole: bool,
    /// It does not outlive the machine's run.
    pub memory: bool,
}

/// Types whose content is gone after a reboot.
const MEMORY: [&str; 8] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "devpts",
    "mqueue",
    "hugetlbfs",
    "proc",
    "sysfs",
];

/// Whether an identity is that of a filesystem that does not outlive the machine's run.
pub fn is_memory(identity: &str) -> bool {
    let kind = identity.split(' ').next().unwrap_or_default();
    MEMORY.contains(&kind)
}

/// Every filesystem mounted where this process can see it.
pub fn mounted() -> Outcome<Vec<Filesystem>> {
    let text = fs::read(MOUNTS).map_err(|e| DaemonError::io(format!("read {MOUNTS}"), e))?;
    // whoever owns a directory above a mount point names it as he likes
    let text = String::from_utf8_lossy(&text);
    let uuids = uuids();
    let mut seen: HashMap<u32, Filesystem> = HashMap::new();
    for mut fs in text.lines().filter_map(|line| parse(line, &uuids)) {
        // the whole of it, by the shortest mount point, the one least likely to be a bind
        let rank = |fs: &Filesystem| (!fs.whole, fs.mount_point.len());
        match seen.get(&fs.dev) {
            Some(known) if rank(known) <= rank(&fs) => {}
            _ => {
                fs.memory = MEMORY.contains(&fs.kind.as_str());
                seen.insert(fs.dev, fs);
            }
        }
    }
    // asked itself, a filesystem does not depend on what udev has come to by now
    for fs in seen.values_mut().filter(|fs| !fs.memory) {
        if let Some(uuid) = fs.on_disk().then(|| fs.own_uuid()).flatten() {
            fs.identity = format!("uuid={uuid}");
        }
    }
    Ok(seen.into_values().collect())
}

/// Tells of what is mounted, and of each change (proc(5)).
pub const MOUNTS: &str = "/proc/self/mountinfo";

/// What is mounted, read again when that has changed: there may be thousands.
#[derive(Debug, Default)]
pub struct Mounts {
    table: Option<File>,
    known: Arc<Vec<Filesystem>>,
}

impl Mounts {
    /// As [`mounted`].
    pub fn now(&mut self) -> Outcome<Arc<Vec<Filesystem>>> {
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(open_mounts()?),
        };
        // udev may come to a name after the mount
        let unnamed = |fs: &Filesystem| fs.on_disk() && !fs.identity.starts_with("uuid=");
        if changes(table, Duration::ZERO) || self.known.is_empty() || self.known.iter().any(unnamed)
        {
            self.known = Arc::default();
            self.known = Arc::new(mounted()?);
        }
        Ok(Arc::clone(&self.known))
    }
}

/// To be waited on by [`changes`].
pub fn open_mounts() -> Outcome<File> {
    File::open(MOUNTS).map_err(|e| DaemonError::io(format!("open {MOUNTS}"), e))
}

/// Waits so long, or until something has been mounted or unmounted since this was asked of this
/// file; whether it may have been.
pub fn changes(mounts: &File, long: Duration) -> bool {
    let mut changes = [PollFd::new(mounts, PollFlags::PRI)];
    match poll(&mut changes, Timespec::try_from(long).ok().as_ref()) {
        Ok(ready) => ready > 0,
        Err(_) => {
            thread::sleep(long);
            true
        }
    }
}

/// `struct fsuuid2` (linux/fs.h).
#[repr(C)]
struct FsUuid {
    len: u8,
    uuid: [u8; 16],
}

/// FS_IOC_GETFSUUID (linux/fs.h): `_IOR(0x15, 0, struct fsuuid2)`.
const GET_FS_UUID: u32 = 0x8011_1500;

/// As blkid(8) writes it.
fn hyphenated(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|b| format!("{b:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// A line of mountinfo (proc(5)).
fn parse(line: &str, uuids: &HashMap<String, String>) -> Option<Filesystem> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let mount = left.next()?.parse().ok()?;
    let mut left = left.skip(1);
    let (major, minor) = left.next()?.split_once(':')?;
    let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let whole = left.next()? == "/";
    let mount_point = unescaped(left.next()?);
    let mut right = right.split(' ');
    let (kind, source) = (right.next()?, right.next()?);
    let identity = match uuids.get(source) {
        // FUSE's call their source what they like
        Some(uuid) if !kind.starts_with("fuse") => format!("uuid={uuid}"),
        _ => format!("{kind} {source}"),
    };
    Some(Filesystem {
        dev,
        identity,
        mount_point,
        mount,
        kind: kind.into(),
        whole,
        memory: false,
    })
}

/// A path as mountinfo writes it: spaces and the like by their octal numbers.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        match part.split_at_checked(3) {
            Some((octal, rest)) if u8::from_str_radix(octal, 8).is_ok() => {
                out.extend(u8::from_str_radix(octal, 8).map(char::from));
                out += rest;
            }
            _ => {
                out.push('\\');
                out += part;
            }
        }
    }
    out
}

/// UUIDs by device file, as udev knows them.
fn uuids() -> HashMap<String, String> {
    let Ok(links) = fs::read_dir("/dev/disk/by-uuid") else {
        return HashMap::new();
    };
    links
        .flatten()
        .filter_map(|link| {
            let device = fs::canonicalize(link.path()).ok()?;
            Some((
                device.to_string_lossy().into_owned(),
                link.file_name().into_string().ok()?,
            ))
        })
        .collect()
}

impl Filesystem {
    /// Whether it is on a disk of this machine, so that looking at it waits for nobody. FUSE's
    /// may call themselves what they like, and have whoever asks them wait.
    pub fn on_disk(&self) -> bool {
        let device = format!("{} /dev/", self.kind);
        !self.kind.starts_with("fuse")
            && (self.identity.starts_with("uuid=") || self.identity.starts_with(&device))
    }

    /// Whether an object is surely gone. Only ext2, ext3 and ext4 answer by inode
    /// number and generation; of others nothing is known.
    pub fn is_gone(&self, given: &Given) -> bool {
        if !self.kind.starts_with("ext") {
            return false;
        }
        let Some(handle) = Handle::of_inode(&self.kind, given.ino, given.generation) else {
            return false;
        };
        self.root().is_ok_and(|root| {
            let opened = handle.open(&root, libc::O_PATH);
            opened.is_err_and(|e| e.raw_os_error() == Some(libc::ESTALE))
        })
    }

    /// The UUID that it itself says it has: ext4, xfs, btrfs, f2fs and others. None if another
    /// filesystem is mounted over it.
    fn own_uuid(&self) -> Option<String> {
        let root = self.directory().ok()?;
        let there = statx(&root, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        if there.stx_mnt_id != self.mount {
            return None;
        }
        let mut answer = FsUuid {
            len: 0,
            uuid: [0; 16],
        };
        // SAFETY: the request writes a `struct fsuuid2`, which outlives the call.
        let done = unsafe { libc::ioctl(root.as_raw_fd(), GET_FS_UUID.into(), &raw mut answer) };
        (done == 0 && answer.len == 16).then(|| hyphenated(&answer.uuid))
    }

    /// What is at its mount point, if a directory is: to open anything else may take for ever.
    fn directory(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(open(&self.mount_point, flags, Mode::empty())?.into())
    }

    /// Its root, or what is mounted of it.
    pub fn root(&self) -> io::Result<File> {
        let root = self.directory()?;
        if device(root.metadata()?.dev()) != self.dev {
            return Err(io::Error::other("another filesystem is there"));
        }
        Ok(root)
    }
}

/// A device as the kernel numbers it.
pub fn device(dev: u64) -> u32 {
    rustix::fs::major(dev) << 20 | rustix::fs::minor(dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read() {
        let uuids = HashMap::from([("/dev/vda1".to_string(), "12-34".to_string())]);
        let line = "36 35 253:1 / / rw,noatime master:1 - ext4 /dev/vda1 rw,errors=continue";
        let fs = parse(line, &uuids).unwrap();
        assert_eq!(
            (fs.dev, fs.identity.as_str(), fs.mount_point.as_str()),
            (253 << 20 | 1, "uuid=12-34", "/")
        );
        assert_eq!(fs.mount, 36);
        assert!(fs.on_disk());
        let line = "41 35 0:40 / /home/ann/mnt rw - fuse.sshfs /dev/vda1 rw,user_id=1000";
        let served = parse(line, &uuids).unwrap();
        assert_eq!(
            (served.identity.as_str(), served.on_disk()),
            ("fuse.sshfs /dev/vda1", false)
        );
        let line = "23 28 0:21 / /proc rw shared:14 shared:2 - proc proc rw";
        let fs = parse(line, &uuids).unwrap();
        assert_eq!(
            (fs.dev, fs.identity.as_str(), fs.mount_point.as_str()),
            (21, "proc proc", "/proc")
        );
        assert_eq!(parse("nonsense", &uuids), None);
        let line = r"36 35 8:1 /sub /run/media/My\040Disk rw - ext4 /dev/vda1 rw";
        let fs = parse(line, &uuids).unwrap();
        assert_eq!(
            (fs.mount_point.as_str(), fs.whole),
            ("/run/media/My Disk", false)
        );
    }

    #[test]
    fn a_uuid_is_written_as_udev_writes_it() {
        let uuid = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
        assert_eq!(hyphenated(&uuid), "01234567-89ab-cdef-0123-456789abcdef");
    }

    #[test]
    fn only_disks_are_asked() {
        let asked = |kind: &str, identity: &str| {
            Filesystem {
                kind: kind.into(),
                identity: identity.into(),
                ..Filesystem::default()
            }
            .on_disk()
        };
        assert!(asked("ext4", "ext4 /dev/root"));
        assert!(asked("xfs", "uuid=12-34"));
        assert!(!asked("nfs4", "nfs4 server:/export"));
        assert!(!asked("autofs", "autofs systemd-1"));
    }
}
