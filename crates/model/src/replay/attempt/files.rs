//! Files and their names.

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawDir, Timespec, Timestamps, UTIME_NOW, XattrFlags,
};
use rustix::io::Errno;
use tidegate_model::{Access, Act, Attribute, Made};

use super::{Result, check, done, keep, slot};

const CWD: rustix::fd::BorrowedFd<'static> = fs::CWD;
const TAG: &str = "user.tag";
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

pub fn attempt(act: &Act, root: &str) -> Result {
    let at = |path: &str| format!("{root}/{path}");
    let private = Mode::RUSR | Mode::WUSR;
    match act {
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
            let path = format!("/proc/self/fd/{}", crate::wire::SLOTS + i32::from(*slot));
            keep(fs::open(path, flags(*access), Mode::empty())?, *to)
        }
        Act::Close { slot } => close(*slot),
        Act::Read { slot: from } => read(*from),
        Act::Write { slot: to } => done(rustix::io::write(slot(*to), b"x")),
        Act::Resize { slot: of } => done(fs::ftruncate(slot(*of), 1)),
        Act::Change { path, what } => change(&at(path), *what),
        Act::GetXattr { path } => match fs::getxattr(at(path), TAG, &mut [0u8; 8]) {
            Err(Errno::NODATA) => Ok(0),
            read => done(read),
        },
        Act::Readlink { path } => done(fs::readlink(at(path), Vec::new())),
        Act::Look { path } => look(&at(path)),
        Act::Make { path, what } => make(&at(path), *what),
        Act::Unnamed { dir, to } => {
            let flags = OFlags::TMPFILE | OFlags::RDWR;
            keep(fs::open(at(dir), flags, private)?, *to)
        }
        Act::Name { slot, path } => {
            let from = format!("/proc/self/fd/{}", crate::wire::SLOTS + i32::from(*slot));
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
    check(unsafe { libc::close(crate::wire::SLOTS + i32::from(slot)) }.into())
}

/// From a file's beginning, or what comes next from a pipe.
fn read(from: u8) -> Result {
    let mut byte = [0u8; 1];
    match rustix::io::pread(slot(from), &mut byte, 0) {
        Err(Errno::SPIPE) => match rustix::io::read(slot(from), &mut byte)? {
            0 => Err(Errno::NODATA),
            _ => Ok(0),
        },
        read => done(read),
    }
}

fn change(path: &str, what: Attribute) -> Result {
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
        Attribute::Xattr => done(fs::setxattr(path, TAG, b"x", XattrFlags::empty())),
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

fn make(path: &str, what: Made) -> Result {
    done(match what {
        Made::Directory => fs::mkdir(path, Mode::RWXU),
        Made::Symlink => fs::symlink("nowhere", path),
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
