//! System V objects and POSIX queues, thinly.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::sys;
use crate::sys::{c, syscall};

const NEW: i32 = libc::IPC_CREAT | libc::IPC_EXCL | 0o666;

/// A shared memory segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment(i64);

/// A segment attached; detached when dropped.
#[derive(Debug)]
pub struct Memory(*mut u8);

impl Segment {
    /// A segment without a key.
    pub fn make(size: usize) -> Result<Segment, Errno> {
        syscall!(libc::SYS_shmget, libc::IPC_PRIVATE, size, NEW).map(Segment)
    }

    /// A new segment with a key.
    pub fn keyed(key: i32, size: usize) -> Result<Segment, Errno> {
        syscall!(libc::SYS_shmget, key, size, NEW).map(Segment)
    }

    /// The segment of a key.
    pub fn find(key: i32) -> Result<Segment, Errno> {
        syscall!(libc::SYS_shmget, key, 0, 0).map(Segment)
    }

    /// Its number, by which whoever knows it finds it.
    pub fn number(self) -> i64 {
        self.0
    }

    /// Attaches it.
    pub fn attach(self, read_only: bool) -> Result<Memory, Errno> {
        let flags = if read_only { libc::SHM_RDONLY } else { 0 };
        syscall!(libc::SYS_shmat, self.0, 0, flags).map(|addr| Memory(addr as *mut u8))
    }

    /// Marks it to be destroyed.
    pub fn remove(self) -> Result<(), Errno> {
        syscall!(libc::SYS_shmctl, self.0, libc::IPC_RMID, 0).map(drop)
    }

    /// Asks for its size.
    pub fn size(self) -> Result<usize, Errno> {
        self.stat().map(|s| s.shm_segsz)
    }

    /// Gives it to uid 1000.
    pub fn give_away(self) -> Result<(), Errno> {
        let mut stat = self.stat()?;
        stat.shm_perm.uid = 1000;
        syscall!(libc::SYS_shmctl, self.0, libc::IPC_SET, &raw const stat).map(drop)
    }

    fn stat(self) -> Result<libc::shmid_ds, Errno> {
        // SAFETY: a structure of integers, for which zeros are valid.
        let mut stat: libc::shmid_ds = unsafe { std::mem::zeroed() };
        syscall!(libc::SYS_shmctl, self.0, libc::IPC_STAT, &raw mut stat)?;
        Ok(stat)
    }
}

impl Memory {
    /// Its first byte.
    pub fn peek(&self) -> u8 {
        // SAFETY: attached, of at least a byte, as long as this lives.
        unsafe { self.0.read_volatile() }
    }

    /// Sets its first byte; attached writable.
    pub fn poke(&self, byte: u8) {
        // SAFETY: attached writable by the caller, of at least a byte, as long as this lives.
        unsafe { self.0.write_volatile(byte) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = syscall!(libc::SYS_shmdt, self.0);
    }
}

/// A message queue.
#[derive(Debug, Clone, Copy)]
pub struct Queue(i64);

impl Queue {
    /// A queue without a key.
    pub fn make() -> Result<Queue, Errno> {
        Self::keyed(libc::IPC_PRIVATE)
    }

    /// A new queue with a key.
    pub fn keyed(key: i32) -> Result<Queue, Errno> {
        syscall!(libc::SYS_msgget, key, NEW).map(Queue)
    }

    /// The queue of a key.
    pub fn find(key: i32) -> Result<Queue, Errno> {
        syscall!(libc::SYS_msgget, key, 0).map(Queue)
    }

    /// Its number, by which whoever knows it finds it.
    pub fn number(self) -> i64 {
        self.0
    }

    /// Sends a message of a byte.
    pub fn send(self) -> Result<(), Errno> {
        let message = [1u64, u64::from(b'q')];
        syscall!(
            libc::SYS_msgsnd,
            self.0,
            message.as_ptr(),
            1,
            libc::IPC_NOWAIT
        )
        .map(drop)
    }

    /// Receives one.
    pub fn receive(self) -> Result<(), Errno> {
        let mut message = [0u64; 2];
        syscall!(
            libc::SYS_msgrcv,
            self.0,
            message.as_mut_ptr(),
            8,
            0,
            libc::IPC_NOWAIT
        )
        .map(drop)
    }

    /// Destroys it.
    pub fn remove(self) -> Result<(), Errno> {
        syscall!(libc::SYS_msgctl, self.0, libc::IPC_RMID, 0).map(drop)
    }
}

/// A set of one semaphore.
#[derive(Debug, Clone, Copy)]
pub struct Semaphores(i64);

impl Semaphores {
    /// A set without a key.
    pub fn make() -> Result<Semaphores, Errno> {
        Self::keyed(libc::IPC_PRIVATE)
    }

    /// A new set with a key.
    pub fn keyed(key: i32) -> Result<Semaphores, Errno> {
        syscall!(libc::SYS_semget, key, 1, NEW).map(Semaphores)
    }

    /// The set of a key.
    pub fn find(key: i32) -> Result<Semaphores, Errno> {
        syscall!(libc::SYS_semget, key, 0, 0).map(Semaphores)
    }

    /// Its number, by which whoever knows it finds it.
    pub fn number(self) -> i64 {
        self.0
    }

    /// Adds to it.
    pub fn add(self, n: i16) -> Result<(), Errno> {
        let step = libc::sembuf {
            sem_num: 0,
            sem_op: n,
            sem_flg: libc::IPC_NOWAIT as i16,
        };
        syscall!(libc::SYS_semop, self.0, &raw const step, 1).map(drop)
    }

    /// Adds to it until this process ends.
    pub fn add_until_end(self, n: i16) -> Result<(), Errno> {
        let step = libc::sembuf {
            sem_num: 0,
            sem_op: n,
            sem_flg: (libc::IPC_NOWAIT | libc::SEM_UNDO) as i16,
        };
        syscall!(libc::SYS_semop, self.0, &raw const step, 1).map(drop)
    }

    /// Sets it.
    pub fn set(self, n: i32) -> Result<(), Errno> {
        syscall!(libc::SYS_semctl, self.0, 0, libc::SETVAL, n).map(drop)
    }

    /// Its value.
    pub fn value(self) -> Result<i64, Errno> {
        syscall!(libc::SYS_semctl, self.0, 0, libc::GETVAL, 0)
    }

    /// Destroys it.
    pub fn remove(self) -> Result<(), Errno> {
        syscall!(libc::SYS_semctl, self.0, 0, libc::IPC_RMID, 0).map(drop)
    }
}

/// Opens a POSIX queue.
pub fn mq_open(name: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let name = c(name);
    sys::owned(syscall!(
        libc::SYS_mq_open,
        name.as_ptr(),
        (flags | OFlag::O_CLOEXEC).bits(),
        0o666,
        0
    )?)
}

/// Sends a message of a byte.
pub fn mq_send(queue: &OwnedFd) -> Result<(), Errno> {
    syscall!(
        libc::SYS_mq_timedsend,
        queue.as_raw_fd(),
        b"q".as_ptr(),
        1,
        0,
        0
    )
    .map(drop)
}

/// Receives one.
pub fn mq_receive(queue: &OwnedFd) -> Result<(), Errno> {
    let mut message = vec![0u8; 16384];
    syscall!(
        libc::SYS_mq_timedreceive,
        queue.as_raw_fd(),
        message.as_mut_ptr(),
        message.len(),
        0,
        0
    )
    .map(drop)
}
