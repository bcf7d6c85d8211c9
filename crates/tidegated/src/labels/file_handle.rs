//! Handles of objects (open_by_handle_at(2)): an inode's number and generation, without a path.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes that a handle may have (MAX_HANDLE_SZ of linux/exportfs.h).
const ROOM: usize = 128;

/// `enum fid_type` of linux/exportfs.h: an inode's number and its generation, of 32 bits each,
const INO32_GEN: i32 = 1;
/// and as xfs has it, with a number of 64.
const INO64_GEN: i32 = 0x81;

/// `struct file_handle`.
#[repr(C)]
#[derive(Clone)]
pub struct Handle {
    bytes: u32,
    kind: i32,
    body: [u8; ROOM],
}

impl Handle {
    /// The handle of what a name stands for, of the directory itself if it is empty, and the
    /// number of the mount that it was found on.
    pub fn of(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<(Handle, i32)> {
        let mut handle = Handle {
            bytes: ROOM as u32,
            kind: 0,
            body: [0; ROOM],
        };
        let mut mount = 0;
        // SAFETY: the name is terminated, the handle is as long as it says, and both outlive the call.
        let done = unsafe {
            libc::name_to_handle_at(
                dir.as_raw_fd(),
                name.as_ptr(),
                (&raw mut handle).cast(),
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((handle, mount))
    }

    /// The handle of an inode, on filesystems of a kind that answers by its number and generation.
    pub fn of_inode(kind: &str, ino: u64, generation: u32) -> Option<Handle> {
        let mut body = [0; ROOM];
        let (bytes, kind) = match kind {
            "ext2" | "ext3" | "ext4" | "f2fs" => {
                body[..4].copy_from_slice(&u32::try_from(ino).ok()?.to_ne_bytes());
                (8, INO32_GEN)
            }
            "xfs" => {
                body[..8].copy_from_slice(&ino.to_ne_bytes());
                (12, INO64_GEN)
            }
            _ => return None,
        };
        body[bytes - 4..bytes].copy_from_slice(&generation.to_ne_bytes());
        Some(Handle {
            bytes: bytes as u32,
            kind,
            body,
        })
    }

    /// Opens it; ESTALE if there is no such object any more.
    pub fn open(&self, mount: impl AsFd, flags: i32) -> io::Result<OwnedFd> {
        let mount = mount.as_fd().as_raw_fd();
        let mut handle = self.clone();
        // SAFETY: the handle is as long as it says and outlives the call.
        let fd = unsafe {
            libc::open_by_handle_at(mount, (&raw mut handle).cast(), flags | libc::O_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel made the descriptor for us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The inode's number and generation, if it is of a form that has both: ext4's and f2fs',
    /// xfs', btrfs'.
    pub fn inode(&self) -> Option<(u64, u32)> {
        let word = |at: usize| {
            let b = &self.body[at..at + 4];
            u32::from_ne_bytes([b[0], b[1], b[2], b[3]])
        };
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| self.body[at + i]));
        match self.kind {
            // or with the directory's behind it
            INO32_GEN | 2 => Some((word(0).into(), word(4))),
            INO64_GEN | 0x82 => Some((long(0), word(8))),
            0x4d..=0x4f => Some((long(0), word(16))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read() {
        let mut handle = Handle {
            bytes: 12,
            kind: 1,
            body: [0; ROOM],
        };
        handle.body[..12].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(handle.inode(), Some((1, 2)));
        handle.kind = 0x81;
        assert_eq!(handle.inode(), Some((0x2_0000_0001, 3)));
        handle.kind = 0xff;
        assert_eq!(handle.inode(), None);
    }

    #[test]
    fn handles_are_made() {
        for (kind, ino) in [("ext4", 7), ("f2fs", 8), ("xfs", 1 << 40)] {
            let handle = Handle::of_inode(kind, ino, 9).unwrap();
            assert_eq!(handle.inode(), Some((ino, 9)), "{kind}");
        }
        assert!(Handle::of_inode("ext4", 1 << 40, 9).is_none());
        assert!(Handle::of_inode("btrfs", 7, 9).is_none());
    }
}
