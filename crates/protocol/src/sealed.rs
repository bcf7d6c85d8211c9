//! Bytes that are handed over with a question: memory that nobody changes any more (memfd_create(2), F_ADD_SEALS).
//!
//! The receiver asks the kernel for the seals before it does anything else with the descriptor. Any other file may be one whose
//! server never answers, or may change while it is looked at.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};

/// With these, neither length nor content changes.
const SEALS: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK);

/// Memory with these bytes, which keeps them.
///
/// # Errors
/// There is no memory, or no descriptor left.
pub fn seal(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut memory = File::from(memfd_create(name, flags)?);
    memory.write_all(bytes)?;
    fcntl_add_seals(&memory, SEALS | SealFlags::SEAL)?;
    Ok(memory.into())
}

/// Memory that was handed over, and keeps its content.
#[derive(Debug)]
pub struct Sealed {
    memory: File,
    len: usize,
}

impl Sealed {
    /// Takes a descriptor, which may be one of anything. `None`: it is not one of memory that is sealed.
    pub fn of(descriptor: OwnedFd) -> Option<Sealed> {
        // only memory answers this, and nobody else is asked
        let seals = fcntl_get_seals(descriptor.as_fd()).ok()?;
        if !seals.contains(SEALS) {
            return None;
        }
        let len = fstat(&descriptor).ok()?.st_size;
        Some(Sealed {
            memory: descriptor.into(),
            len: usize::try_from(len).ok()?,
        })
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its first bytes: as many as the array has, or all.
    ///
    /// # Errors
    /// They cannot be read, as by a descriptor that is for writing only.
    pub fn first<'b>(&self, into: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let few = into.len().min(self.len);
        // whoever sent it may move the position, which is shared
        self.memory.read_exact_at(&mut into[..few], 0)?;
        Ok(&into[..few])
    }

    /// All of them. The caller has looked at their number.
    ///
    /// # Errors
    /// There is no memory for them, or they cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(self.len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(self.len, 0);
        self.memory.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    fn memory(bytes: &[u8], seals: SealFlags) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut memory = File::from(memfd_create("test", flags).unwrap());
        memory.write_all(bytes).unwrap();
        fcntl_add_seals(&memory, seals).unwrap();
        memory
    }

    #[test]
    fn what_is_sealed_is_read_from_its_beginning_and_cannot_be_changed() {
        let fd = seal("test", b"a bundle").unwrap();
        let mut ours = File::from(fd.try_clone().unwrap());
        assert!(ours.write_all(b"another").is_err());
        assert!(ours.set_len(0).is_err());
        ours.seek(io::SeekFrom::End(0)).unwrap();
        let sealed = Sealed::of(fd).unwrap();
        assert_eq!((sealed.len(), sealed.is_empty()), (8, false));
        assert_eq!(sealed.first(&mut [0; 2]).unwrap(), b"a ");
        assert_eq!(sealed.first(&mut [0; 100]).unwrap(), b"a bundle");
        assert_eq!(sealed.read().unwrap(), b"a bundle");
    }

    #[test]
    fn what_could_still_change_is_not_taken() {
        let two = [
            SealFlags::WRITE | SealFlags::GROW,
            SealFlags::WRITE | SealFlags::SHRINK,
            SealFlags::GROW | SealFlags::SHRINK,
            SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK,
            SealFlags::empty(),
        ];
        for seals in two {
            assert!(
                Sealed::of(memory(b"x", seals).into()).is_none(),
                "{seals:?}"
            );
        }
        assert!(Sealed::of(memory(b"x", SEALS).into()).is_some());
    }

    #[test]
    fn files_pipes_and_devices_are_not_taken() {
        let file = tempfile::tempfile().unwrap();
        let (pipe, _end) = io::pipe().unwrap();
        let device = File::open("/dev/zero").unwrap();
        for fd in [file.into(), OwnedFd::from(pipe), device.into()] {
            assert!(Sealed::of(fd).is_none());
        }
    }
}
