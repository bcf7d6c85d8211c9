//! Files and their names.

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawDir, Timespec, Timestamps, UTIME_NOW, XattrFlags,
};
use rustix::io::Errno;
use tidegate_model::{Access, Act, Attribute, Made};

use super::{Result, bytes, check, done, keep, slot};
use crate::replay::worker::Task;

const CWD: rustix::fd::BorrowedFd<'static> = fs::CWD;
/// The extended attribute that is set.
pub const TAG: &str = "user.tag";
/// What symbolic links say, before a byte.
pub const NOWHERE: &str = "nowhere-";
/// A major device number that no driver has.
const NO_DEVICE: u32 = 240;

fn flags(access: Access) -> OFlags {
    let how = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::Both => OFlags::RDWR,
        Access::Append => OFlags::WRONLY | OFlags::APPEND,
    };
    how | OFlags::NONBLOCK
}

pub fn attempt(task: &Task) -> Result {
    let Task { op, root, .. } = task;
    let byte = bytes::byte(task.voice);
    let at = |path: &str| format!("{root}/{path}");
    let private = Mode::RUSR | Mode::WUSR;
    match &op.act {
        Act::Open {
            path,
            access,
            create,
            truncate,
            to,
        } => {
            let mut flags = flags(*access) | OFlags::NOFOLLOW;
            flags.set(OFlags::CREATE, *create);
            flags.set(OFlags::TRUNC, *truncate);
            keep(fs::open(at(path), flags, private)?, *to)
        }
        Act::Reopen { slot, access, to } => {
            let path = format!(
                "/proc/self/fd/{}",
                crate::replay::wire::SLOTS + i32::from(*slot)
            );
            keep(fs::open(path, flags(*access), Mode::empty())?, *to)
        }
        Act::Close { slot } => close(*slot),
        Act::Read { slot: from } => read(*from),
        Act::Write { slot: to } => done(rustix::io::write(slot(*to), &[byte])),
        Act::Resize { slot: of } => done(fs::ftruncate(slot(*of), 1)),
        Act::Change { path, what } => change(&at(path), *what, byte),
        Act::GetXattr { path } => {
            let mut value = [0u8; 8];
            match fs::getxattr(at(path), TAG, &mut value) {
                Err(Errno::NODATA) => Ok(0),
                read => done(read.map(|n| bytes::see(&value[..n]))),
            }
        }
        Act::Readlink { path } => {
            let target = fs::readlink(at(path), Vec::new())?;
            bytes::see(target.to_bytes().split_at(NOWHERE.len()).1);
            Ok(0)
        }
        Act::Look { path } => look(&at(path)),
        Act::Make { path, what } => make(&at(path), *what, byte),
        Act::Unnamed { dir, to } => {
            let flags = OFlags::TMPFILE | OFlags::RDWR;
            keep(fs::open(at(dir), flags, private)?, *to)
        }
        Act::Name { slot, path } => {
            let from = format!(
                "/proc/self/fd/{}",
                crate::replay::wire::SLOTS + i32::from(*slot)
            );
            done(fs::linkat(
                CWD,
                from,
                CWD,
                at(path),
                AtFlags::SYMLINK_FOLLOW,
            ))
        }
        Act::Remove { path } => match fs::unlink(at(path)) {
            Err(Errno::ISDIR) => done(fs::rmdir(at(path))),
            removed => done(removed),
        },
        Act::Rename { from, to } => done(fs::rename(at(from), at(to))),
        Act::Link { from, to } => done(fs::link(at(from), at(to))),
        _ => Err(Errno::NOSYS),
    }
}

fn close(slot: u8) -> Result {
    // SAFETY: descriptors of the sequence have no owner in this process.
    check(unsafe { libc::close(crate::replay::wire::SLOTS + i32::from(slot)) }.into())
}

/// All of a file, or what comes next from a pipe.
fn read(from: u8) -> Result {
    let mut all = [0u8; super::PAGE_SIZE];
    let n = match rustix::io::pread(slot(from), &mut all, 0) {
        Err(Errno::SPIPE) => match rustix::io::read(slot(from), &mut all[..1])? {
            0 => return Err(Errno::NODATA),
            n => n,
        },
        read => read?,
    };
    bytes::see(&all[..n]);
    Ok(0)
}

fn change(path: &str, what: Attribute, byte: u8) -> Result {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    match what {
        Attribute::Mode => done(fs::chmod(path, Mode::RWXU)),
        Attribute::Owner => done(fs::chown(path, Some(rustix::process::Uid::ROOT), None)),
        Attribute::Times => {
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            done(fs::utimensat(CWD, path, &times, AtFlags::empty()))
        }
        Attribute::Size => {
            let path = std::ffi::CString::new(path).map_err(|_| Errno::INVAL)?;
            // SAFETY: a NUL-terminated path.
            check(unsafe { libc::truncate(path.as_ptr(), 1) }.into())
        }
        Attribute::Xattr => done(fs::setxattr(path, TAG, &[byte], XattrFlags::empty())),
    }
}

fn look(path: &str) -> Result {
    let stat = fs::lstat(path)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let dir = fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut room = [std::mem::MaybeUninit::uninit(); 2048];
        let mut names = RawDir::new(dir, &mut room);
        while let Some(name) = names.next() {
            name?;
        }
    }
    Ok(0)
}

fn make(path: &str, what: Made, byte: u8) -> Result {
    done(match what {
        Made::Directory => fs::mkdir(path, Mode::RWXU),
        Made::Symlink => fs::symlink([NOWHERE.as_bytes(), &[byte]].concat(), path),
        Made::Fifo => fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0),
        Made::Device => fs::mknodat(
            CWD,
            path,
            FileType::CharacterDevice,
            Mode::RWXU,
            fs::makedev(NO_DEVICE, 0),
        ),
    })
}
