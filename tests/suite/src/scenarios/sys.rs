//! System calls that neither the standard library nor nix has, and shorthands.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;

use crate::sys::{c, syscall};

pub use crate::sys::send_at_once;

/// A descriptor that a system call returned.
pub fn owned(fd: impl TryInto<RawFd>) -> Result<OwnedFd, Errno> {
    let fd = fd.try_into().map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made it for this process, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An epoll instance.
pub fn epoll() -> Result<OwnedFd, Errno> {
    owned(syscall!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC)?)
}

/// Has an epoll instance say a word once the events that are asked for happen at a descriptor.
pub fn epoll_add(epoll: &OwnedFd, fd: &OwnedFd, events: u32, word: u64) -> Result<(), Errno> {
    let event = libc::epoll_event { events, u64: word };
    syscall!(
        libc::SYS_epoll_ctl,
        epoll.as_raw_fd(),
        libc::EPOLL_CTL_ADD,
        fd.as_raw_fd(),
        &raw const event
    )
    .map(drop)
}

/// Opens a file; one that is made gets mode 0666.
pub fn open(path: impl AsRef<Path>, flags: OFlag) -> Result<OwnedFd, Errno> {
    nix::fcntl::open(
        path.as_ref(),
        flags | OFlag::O_CLOEXEC,
        Mode::from_bits_truncate(0o666),
    )
}

/// Opens a file for reading.
pub fn reads(path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_RDONLY)
}

/// Opens a file for writing.
pub fn writes(path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_WRONLY)
}

/// Opens a file for both.
pub fn both(path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_RDWR)
}

/// Opens what a descriptor stands for once more.
pub fn again(fd: &impl AsRawFd, flags: OFlag) -> Result<OwnedFd, Errno> {
    open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags)
}

/// Writes a byte.
pub fn put(fd: &impl AsRawFd) -> Result<(), Errno> {
    put_all(fd, b"x").map(drop)
}

/// Writes bytes.
pub fn put_all(fd: &impl AsRawFd, bytes: &[u8]) -> Result<usize, Errno> {
    let n = syscall!(libc::SYS_write, fd.as_raw_fd(), bytes.as_ptr(), bytes.len())?;
    Ok(n as usize)
}

/// Reads what is there, at most a page.
pub fn get(fd: &impl AsRawFd) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0u8; 4096];
    let n = syscall!(
        libc::SYS_read,
        fd.as_raw_fd(),
        bytes.as_mut_ptr(),
        bytes.len()
    )?;
    bytes.truncate(n as usize);
    Ok(bytes)
}

/// A descriptor of a process.
pub fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    owned(syscall!(libc::SYS_pidfd_open, pid, 0)?)
}

/// Waits, for so long, for a process's end: until all its threads have let go of what they had. Whether it came.
pub fn ends(process: &OwnedFd, patience: Duration) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    Ok(poll(&mut fds, patience)? != 0)
}

/// Takes a descriptor out of another process.
pub fn pidfd_getfd(pidfd: &OwnedFd, fd: RawFd) -> Result<OwnedFd, Errno> {
    owned(syscall!(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0)?)
}

/// Sets an extended attribute.
pub fn setxattr(path: &str, name: &str, value: &[u8]) -> Result<(), Errno> {
    let (path, name) = (c(path), c(name));
    syscall!(
        libc::SYS_setxattr,
        path.as_ptr(),
        name.as_ptr(),
        value.as_ptr(),
        value.len(),
        0
    )
    .map(drop)
}

/// Reads an extended attribute.
pub fn getxattr(path: &str, name: &str) -> Result<usize, Errno> {
    let (path, name) = (c(path), c(name));
    let mut value = [0u8; 256];
    let n = syscall!(
        libc::SYS_getxattr,
        path.as_ptr(),
        name.as_ptr(),
        value.as_mut_ptr(),
        value.len()
    )?;
    Ok(n as usize)
}

/// Removes an extended attribute.
pub fn removexattr(path: &str, name: &str) -> Result<(), Errno> {
    let (path, name) = (c(path), c(name));
    syscall!(libc::SYS_removexattr, path.as_ptr(), name.as_ptr()).map(drop)
}

/// Changes or tells what an open description, or a descriptor, is like.
pub fn fcntl(fd: &impl AsRawFd, command: i32, arg: i64) -> Result<i64, Errno> {
    syscall!(libc::SYS_fcntl, fd.as_raw_fd(), command, arg)
}

/// Moves bytes from one to the other, at least one of which is a pipe.
pub fn splice(from: &impl AsRawFd, to: &impl AsRawFd, len: usize) -> Result<i64, Errno> {
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    syscall!(libc::SYS_splice, from, 0, to, 0, len, 0)
}

/// An ioctl whose argument is a number or a pointer that stays valid.
pub fn ioctl(fd: &impl AsRawFd, request: u64, arg: usize) -> Result<i64, Errno> {
    syscall!(libc::SYS_ioctl, fd.as_raw_fd(), request, arg)
}

/// Sets a file's flags (`FS_XFLAG_*`) by file_setattr(2).
pub fn set_file_flags(file: impl AsRef<Path>, flags: u64) -> Result<(), Errno> {
    const FILE_SETATTR: libc::c_long = 469;
    // struct file_attr: fa_xflags, and four numbers of 32 bits
    let attr = [flags, 0, 0];
    let file = c(file);
    syscall!(
        FILE_SETATTR,
        libc::AT_FDCWD,
        file.as_ptr(),
        attr.as_ptr(),
        size_of_val(&attr),
        0
    )
    .map(drop)
}

/// A file's handle, as name_to_handle_at gives it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    bytes: u32,
    kind: i32,
    data: [u8; 128],
}

impl Handle {
    /// One that nobody was told: an inode's number is enough, as ext4 takes 0 for any generation.
    pub fn guessed(inode: u64) -> Handle {
        /// FILEID_INO32_GEN: four bytes each
        const INODE_AND_GENERATION: i32 = 1;
        let mut data = [0; 128];
        data[..4].copy_from_slice(&(inode as u32).to_ne_bytes());
        Handle {
            bytes: 8,
            kind: INODE_AND_GENERATION,
            data,
        }
    }
}

/// Asks for a file's handle.
pub fn handle_of(path: &str) -> Result<Handle, Errno> {
    let path = c(path);
    let mut handle = Handle {
        bytes: 128,
        kind: 0,
        data: [0; 128],
    };
    let mut mount = 0i32;
    let at = libc::AT_FDCWD;
    syscall!(
        libc::SYS_name_to_handle_at,
        at,
        path.as_ptr(),
        &raw mut handle,
        &raw mut mount,
        0
    )?;
    Ok(handle)
}

/// Opens a file by its handle; `mount` is any file of its filesystem.
pub fn open_handle(mount: &OwnedFd, handle: &Handle, flags: OFlag) -> Result<OwnedFd, Errno> {
    let flags = (flags | OFlag::O_CLOEXEC).bits();
    owned(syscall!(
        libc::SYS_open_by_handle_at,
        mount.as_raw_fd(),
        &raw const *handle,
        flags
    )?)
}

/// Anonymous memory with a descriptor.
pub fn memfd(flags: u32) -> Result<OwnedFd, Errno> {
    owned(syscall!(
        libc::SYS_memfd_create,
        c"scenario".as_ptr(),
        flags
    )?)
}

/// Throws cached inodes and pages away.
pub fn drop_caches() -> std::io::Result<()> {
    // SAFETY: takes nothing.
    unsafe { libc::sync() };
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}

/// A mapping of a page, undone when it is dropped.
#[derive(Debug)]
pub struct Map(pub *mut u8);

/// Bytes of a mapping.
pub const PAGE: usize = 4096;

impl Map {
    /// Maps a descriptor's first page.
    pub fn of(fd: &impl AsRawFd, prot: i32, flags: i32) -> Result<Map, Errno> {
        Self::at(fd.as_raw_fd(), prot, flags)
    }

    /// Maps anonymous memory.
    pub fn anonymous(flags: i32) -> Result<Map, Errno> {
        Self::at(
            -1,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_ANONYMOUS,
        )
    }

    fn at(fd: RawFd, prot: i32, flags: i32) -> Result<Map, Errno> {
        let addr = syscall!(libc::SYS_mmap, 0, PAGE, prot, flags, fd, 0)?;
        Ok(Map(addr as *mut u8))
    }

    /// Writes its first byte.
    pub fn poke(&self, byte: u8) {
        // SAFETY: the page is mapped writable by the caller, as long as this lives.
        unsafe { self.0.write_volatile(byte) };
    }

    /// Reads its first byte.
    pub fn peek(&self) -> u8 {
        // SAFETY: the page is mapped readable by the caller, as long as this lives.
        unsafe { self.0.read_volatile() }
    }

    /// Where it is.
    pub fn address(&self) -> *mut libc::c_void {
        self.0.cast()
    }

    /// Changes its protection.
    pub fn protect(&self, prot: i32) -> Result<(), Errno> {
        syscall!(libc::SYS_mprotect, self.0, PAGE, prot).map(drop)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = syscall!(libc::SYS_munmap, self.0, PAGE);
    }
}

/// Gives a descriptor a number that an executed program knows, and keeps it open there.
pub fn keep_as(fd: &impl AsRawFd, number: RawFd) -> Result<(), Errno> {
    syscall!(libc::SYS_dup2, fd.as_raw_fd(), number).map(drop)
}
