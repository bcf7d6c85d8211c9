//! A ring of io_uring, one request at a time.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrLike, UnixAddr};

use crate::scenarios::check::PATIENCE;
use crate::scenarios::sys;
use crate::sys::{c, syscall};
use crate::wait;

/// IORING_SETUP_SQPOLL: a kernel thread takes what is submitted.
pub const SQPOLL: u32 = 2;
const OFF_CQ: i64 = 0x800_0000;
const OFF_SQES: i64 = 0x1000_0000;
const SIZE: usize = 16384;
const NEED_WAKEUP: u32 = 1;
const ACCEPT: u8 = 13;
const CONNECT: u8 = 16;
const OPENAT: u8 = 18;
const READ: u8 = 22;
const WRITE: u8 = 23;
const SPLICE: u8 = 30;
const SHUTDOWN: u8 = 34;
const SOCKET: u8 = 45;
const BIND: u8 = 56;
const LISTEN: u8 = 57;
/// IOSQE_FIXED_FILE: the descriptor is an index of registered ones.
const FIXED: u8 = 1;
/// IOSQE_ASYNC: by a worker thread.
const ASYNC: u8 = 16;

#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct SqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user: u64,
}

#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct CqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    reserved: u32,
    user: u64,
}

#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SqOffsets,
    cq: CqOffsets,
}

/// A ring.
#[derive(Debug)]
pub struct Ring {
    /// Its descriptor.
    pub fd: OwnedFd,
    params: Params,
    sq: usize,
    cq: usize,
    sqes: usize,
}

impl Ring {
    /// A ring of four entries.
    pub fn new(flags: u32) -> Result<Ring, Errno> {
        let mut params = Params {
            flags,
            thread_idle: 2000,
            ..Params::default()
        };
        let fd = sys::owned(syscall!(libc::SYS_io_uring_setup, 4, &raw mut params)?)?;
        let map = |offset: i64| {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            syscall!(libc::SYS_mmap, 0, SIZE, prot, flags, fd.as_raw_fd(), offset)
                .map(|a| a as usize)
        };
        let (sq, cq, sqes) = (map(0)?, map(OFF_CQ)?, map(OFF_SQES)?);
        Ok(Ring {
            fd,
            params,
            sq,
            cq,
            sqes,
        })
    }

    /// Registers descriptors: they are kept after they are closed.
    pub fn register(&self, fds: &[RawFd]) -> Result<(), Errno> {
        const FILES: u32 = 2;
        let fd = self.fd.as_raw_fd();
        syscall!(
            libc::SYS_io_uring_register,
            fd,
            FILES,
            fds.as_ptr(),
            fds.len()
        )
        .map(drop)
    }

    /// Writes bytes at a file's beginning, by an index of the registered descriptors.
    pub fn write_fixed(&self, index: i32, bytes: &[u8]) -> Result<i32, Errno> {
        self.one(
            WRITE,
            FIXED,
            index,
            0,
            bytes.as_ptr() as u64,
            bytes.len() as u32,
            0,
        )
    }

    /// Writes bytes by a descriptor.
    pub fn write(&self, fd: RawFd, bytes: &[u8]) -> Result<i32, Errno> {
        self.one(
            WRITE,
            0,
            fd,
            0,
            bytes.as_ptr() as u64,
            bytes.len() as u32,
            0,
        )
    }

    /// Reads by an index of the registered descriptors.
    pub fn read_fixed(&self, index: i32, bytes: &mut [u8]) -> Result<i32, Errno> {
        self.one(
            READ,
            FIXED,
            index,
            u64::MAX,
            bytes.as_mut_ptr() as u64,
            bytes.len() as u32,
            0,
        )
    }

    /// Moves what is there into a pipe, by an index of the registered descriptors.
    pub fn splice_fixed(&self, index: i32, to: RawFd, len: u32) -> Result<i32, Errno> {
        const FD_IN_FIXED: u64 = 1 << 31;
        let mut entry = [0u64; 8];
        entry[0] = u64::from(SPLICE) | (to as u32 as u64) << 32;
        // neither has a position
        (entry[1], entry[2]) = (u64::MAX, u64::MAX);
        (entry[3], entry[4]) = (u64::from(len) | FD_IN_FIXED << 32, 1);
        entry[5] = (index as u32 as u64) << 32;
        self.submit(entry)
    }

    /// Takes a connection that waits for a listener, by an index of the registered descriptors.
    pub fn accept_fixed(&self, index: i32) -> Result<OwnedFd, Errno> {
        sys::owned(self.one(ACCEPT, FIXED, index, 0, 0, 0, 0)?)
    }

    /// Connects a socket by a worker thread, by an index of the registered descriptors.
    pub fn connect_fixed(&self, index: i32, to: &impl SockaddrLike) -> Result<(), Errno> {
        let (address, len) = (to.as_ptr() as u64, u64::from(to.len()));
        self.one(CONNECT, FIXED | ASYNC, index, len, address, 0, 0)
            .map(drop)
    }

    /// Binds a socket, by an index of the registered descriptors.
    pub fn bind_fixed(&self, index: i32, to: &impl SockaddrLike) -> Result<(), Errno> {
        let (address, len) = (to.as_ptr() as u64, u64::from(to.len()));
        self.one(BIND, FIXED, index, len, address, 0, 0).map(drop)
    }

    /// Has a socket neither send nor receive any more, by an index of the registered descriptors.
    pub fn shut_fixed(&self, index: i32) -> Result<(), Errno> {
        let how = libc::SHUT_RDWR as u32;
        self.one(SHUTDOWN, FIXED, index, 0, 0, how, 0).map(drop)
    }

    /// Makes a listener that no table of descriptors ever has, at an index that is registered as empty (-1).
    pub fn listen_fixed(&self, index: i32, name: &UnixAddr) -> Result<(), Errno> {
        let mut entry = [0u64; 8];
        entry[0] = u64::from(SOCKET) | (libc::AF_UNIX as u64) << 32;
        (entry[1], entry[4]) = (libc::SOCK_STREAM as u64, 1);
        // the index and 1; 0 asks for a descriptor
        entry[5] = (index as u64 + 1) << 32;
        self.submit(entry)?;
        self.bind_fixed(index, name)?;
        self.one(LISTEN, FIXED, index, 0, 0, 8, 0)?;
        Ok(())
    }

    /// Opens a file, by a worker thread or not.
    pub fn open(&self, path: &str, flags: i32, worker: bool) -> Result<i32, Errno> {
        let path = c(path);
        let how = if worker { ASYNC } else { 0 };
        self.one(
            OPENAT,
            how,
            libc::AT_FDCWD,
            0,
            path.as_ptr() as u64,
            0,
            flags as u32,
        )
    }

    /// Registers the credentials that this process has; the number that requests name them by.
    pub fn credentials(&self) -> Result<u16, Errno> {
        const PERSONALITY: u32 = 9;
        let fd = self.fd.as_raw_fd();
        let number = syscall!(libc::SYS_io_uring_register, fd, PERSONALITY, 0, 0)?;
        u16::try_from(number).map_err(|_| Errno::ERANGE)
    }

    /// Opens a file for reading, by credentials that were registered.
    pub fn open_as(&self, path: &str, credentials: u16) -> Result<i32, Errno> {
        let path = c(path);
        let mut entry = [0u64; 8];
        entry[0] = u64::from(OPENAT) | (libc::AT_FDCWD as u32 as u64) << 32;
        (entry[2], entry[4]) = (path.as_ptr() as u64, 1);
        entry[5] = u64::from(credentials) << 16;
        self.submit(entry)
    }

    /// Has blocks of a disk discarded, by a descriptor.
    pub fn discard(&self, fd: RawFd, start: u64, len: u64) -> Result<i32, Errno> {
        const COMMAND: u8 = 46;
        /// BLOCK_URING_CMD_DISCARD
        const DISCARD: u64 = 0x1200;
        let mut entry = [0u64; 8];
        entry[0] = u64::from(COMMAND) | (fd as u32 as u64) << 32;
        (entry[1], entry[2]) = (DISCARD, start);
        (entry[4], entry[6]) = (1, len);
        self.submit(entry)
    }

    fn word(&self, ring: usize, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave these offsets for these mappings, which live as long as this.
        unsafe { &*((ring + offset as usize) as *const AtomicU32) }
    }

    /// Submits one request and waits for what becomes of it.
    #[allow(clippy::too_many_arguments)]
    fn one(
        &self,
        op: u8,
        flags: u8,
        fd: i32,
        off: u64,
        addr: u64,
        len: u32,
        rw: u32,
    ) -> Result<i32, Errno> {
        let mut entry = [0u64; 8];
        entry[0] = u64::from(op) | u64::from(flags) << 8 | (fd as u32 as u64) << 32;
        (entry[1], entry[2]) = (off, addr);
        (entry[3], entry[4]) = (u64::from(len) | u64::from(rw) << 32, 1);
        self.submit(entry)
    }

    fn submit(&self, entry: [u64; 8]) -> Result<i32, Errno> {
        let tail = self.word(self.sq, self.params.sq.tail);
        let at = tail.load(Ordering::Relaxed);
        let slot = at
            & self
                .word(self.sq, self.params.sq.mask)
                .load(Ordering::Relaxed);
        // SAFETY: the slot is below the ring's entries, each of 64 bytes, and is free: one request at a time.
        unsafe { ((self.sqes + slot as usize * 64) as *mut [u64; 8]).write_volatile(entry) };
        self.word(self.sq, self.params.sq.array + slot * 4)
            .store(slot, Ordering::Relaxed);
        let head = self.word(self.cq, self.params.cq.head);
        let seen = head.load(Ordering::Relaxed);
        tail.store(at.wrapping_add(1), Ordering::Release);
        self.enter()?;
        let tail = self.word(self.cq, self.params.cq.tail);
        if !wait::until(PATIENCE, || {
            Ok::<_, Errno>(tail.load(Ordering::Acquire) != seen)
        })? {
            return Err(Errno::ETIMEDOUT);
        }
        let slot = seen
            & self
                .word(self.cq, self.params.cq.mask)
                .load(Ordering::Relaxed);
        // user_data, then the result
        let result = self
            .word(self.cq, self.params.cq.cqes + slot * 16 + 8)
            .load(Ordering::Acquire) as i32;
        head.store(seen.wrapping_add(1), Ordering::Release);
        if result < 0 {
            Err(Errno::from_raw(-result))
        } else {
            Ok(result)
        }
    }

    fn enter(&self) -> Result<(), Errno> {
        const WAKEUP: u32 = 2;
        let fd = self.fd.as_raw_fd();
        if self.params.flags & SQPOLL == 0 {
            return syscall!(libc::SYS_io_uring_enter, fd, 1, 0, 0, 0, 0).map(drop);
        }
        if self
            .word(self.sq, self.params.sq.flags)
            .load(Ordering::SeqCst)
            & NEED_WAKEUP
            != 0
        {
            return syscall!(libc::SYS_io_uring_enter, fd, 1, 0, WAKEUP, 0, 0).map(drop);
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for map in [self.sq, self.cq, self.sqes] {
            let _ = syscall!(libc::SYS_munmap, map, SIZE);
        }
    }
}
