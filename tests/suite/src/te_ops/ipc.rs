//! System V's and POSIX's communication.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::te_ops::op::Ops;
use crate::te_ops::sys::{fd, forked, open, sys};

const KEY: i32 = 0x7465;

/// What is removed when it is over.
pub struct Ipc(i64, fn(i32));

impl Drop for Ipc {
    fn drop(&mut self) {
        self.1(self.0 as i32);
    }
}

fn no_queue(id: i32) {
    let _ = sys!(libc::msgctl(id, libc::IPC_RMID, ptr::null_mut()));
}

fn no_semaphores(id: i32) {
    let _ = sys!(libc::semctl(id, 0, libc::IPC_RMID));
}

fn no_memory(id: i32) {
    let _ = sys!(libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()));
}

fn queue() -> io::Result<(Ipc, i64)> {
    let id = sys!(libc::msgget(KEY, libc::IPC_CREAT | 0o666))?;
    send(id as i32)?;
    Ok((Ipc(id, no_queue), id))
}

/// A queue of another user's, that is nobody else's.
pub fn foreign() -> io::Result<(Ipc, i64)> {
    let id = sys!(libc::msgget(KEY, libc::IPC_CREAT | 0o600))?;
    let made = Ipc(id, no_queue);
    // SAFETY: zeroes are a status.
    let mut status: libc::msqid_ds = unsafe { std::mem::zeroed() };
    sys!(libc::msgctl(id as i32, libc::IPC_STAT, &raw mut status))?;
    // its maker may do with it what it likes, too: one that is another
    no_queue(id as i32);
    drop(made);
    forked(|| {
        sys!(libc::setuid(1000))?;
        sys!(libc::msgget(KEY, libc::IPC_CREAT)).map(drop)
    })?;
    let id = sys!(libc::msgget(KEY, 0))?;
    Ok((Ipc(id, no_queue), id))
}

fn semaphores() -> io::Result<(Ipc, i64)> {
    let id = sys!(libc::semget(KEY, 1, libc::IPC_CREAT | 0o666))?;
    Ok((Ipc(id, no_semaphores), id))
}

fn memory() -> io::Result<(Ipc, i64)> {
    let id = sys!(libc::shmget(KEY, 4096, libc::IPC_CREAT | 0o666))?;
    Ok((Ipc(id, no_memory), id))
}

fn send(id: i32) -> io::Result<()> {
    let message = [1u64, 2];
    sys!(libc::msgsnd(
        id,
        message.as_ptr().cast(),
        8,
        libc::IPC_NOWAIT
    ))
    .map(drop)
}

fn receive(id: i32) -> io::Result<()> {
    let mut message = [0u64; 2];
    sys!(libc::msgrcv(
        id,
        message.as_mut_ptr().cast(),
        8,
        0,
        libc::IPC_NOWAIT
    ))
    .map(drop)
}

fn queue_status(id: i32, what: i32) -> io::Result<()> {
    let mut status = [0u64; 64];
    if what == libc::IPC_SET {
        sys!(libc::msgctl(id, libc::IPC_STAT, status.as_mut_ptr().cast()))?;
    }
    sys!(libc::msgctl(id, what, status.as_mut_ptr().cast())).map(drop)
}

fn memory_status(id: i32, what: i32) -> io::Result<()> {
    let mut status = [0u64; 64];
    sys!(libc::shmctl(id, what, status.as_mut_ptr().cast())).map(drop)
}

fn semaphore_status(id: i32, what: i32) -> io::Result<()> {
    let mut status = [0u64; 64];
    sys!(libc::semctl(id, 0, what, status.as_mut_ptr())).map(drop)
}

fn mq(flags: i32) -> io::Result<OwnedFd> {
    sys!(libc::mq_open(
        c"/ops".as_ptr(),
        flags | libc::O_NONBLOCK,
        0o666,
        ptr::null::<libc::mq_attr>()
    ))
    .map(fd)
}

/// A queue of POSIX's, which goes with this.
struct Mq;

impl Drop for Mq {
    fn drop(&mut self) {
        let _ = sys!(libc::mq_unlink(c"/ops".as_ptr()));
    }
}

fn posix() -> io::Result<Mq> {
    mq(libc::O_RDWR | libc::O_CREAT)?;
    Ok(Mq)
}

pub fn add(ops: &mut Ops) {
    ops.plain("a queue of one's own", || {
        let id = sys!(libc::msgget(libc::IPC_PRIVATE, 0o666))? as i32;
        send(id)?;
        receive(id)?;
        sys!(libc::msgctl(id, libc::IPC_RMID, ptr::null_mut())).map(drop)
    });
    ops.told("a queue: find", queue, |_| {
        sys!(libc::msgget(KEY, 0)).map(drop)
    });
    ops.told("a queue: find to write", queue, |_| {
        sys!(libc::msgget(KEY, 0o200)).map(drop)
    });
    ops.told("a queue: send", queue, |id| send(id as i32));
    ops.told("a queue: receive", queue, |id| receive(id as i32));
    for (name, what) in [
        ("status", libc::IPC_STAT),
        ("change", libc::IPC_SET),
        ("remove", libc::IPC_RMID),
        ("limits", libc::IPC_INFO),
        ("limits of all", libc::MSG_INFO),
    ] {
        ops.told(format!("a queue: {name}"), queue, move |id| {
            queue_status(id as i32, what)
        });
    }
    ops.plain("semaphores of one's own", || {
        let id = sys!(libc::semget(libc::IPC_PRIVATE, 1, 0o666))? as i32;
        semaphore_status(id, libc::IPC_RMID)
    });
    ops.told("semaphores: find", semaphores, |_| {
        sys!(libc::semget(KEY, 1, 0)).map(drop)
    });
    for (name, by) in [("raise", 1), ("wait for none", 0)] {
        ops.told(format!("semaphores: {name}"), semaphores, move |id| {
            let mut does = libc::sembuf {
                sem_num: 0,
                sem_op: by,
                sem_flg: libc::IPC_NOWAIT as _,
            };
            sys!(libc::semop(id as i32, &raw mut does, 1)).map(drop)
        });
    }
    for (name, what) in [
        ("value", libc::GETVAL),
        ("all values", libc::GETALL),
        ("last process", libc::GETPID),
        ("status", libc::IPC_STAT),
        ("remove", libc::IPC_RMID),
        ("limits", libc::IPC_INFO),
    ] {
        ops.told(format!("semaphores: {name}"), semaphores, move |id| {
            semaphore_status(id as i32, what)
        });
    }
    ops.told("semaphores: set all", semaphores, |id| {
        semaphore_status(id as i32, libc::SETALL)
    });
    ops.told("semaphores: change", semaphores, |id| {
        let mut status = [0u64; 64];
        status[1] = 0;
        sys!(libc::semctl(
            id as i32,
            0,
            libc::IPC_SET,
            status.as_mut_ptr()
        ))
        .map(drop)
    });
    ops.plain("memory of one's own", || {
        let id = sys!(libc::shmget(libc::IPC_PRIVATE, 4096, 0o666))? as i32;
        memory_status(id, libc::IPC_RMID)
    });
    ops.told("memory: find", memory, |_| {
        sys!(libc::shmget(KEY, 4096, 0)).map(drop)
    });
    for (name, flags) in [
        ("read", libc::SHM_RDONLY),
        ("write", 0),
        ("execute", libc::SHM_EXEC),
    ] {
        ops.told(format!("memory: attach to {name}"), memory, move |id| {
            let none = ptr::null();
            // SAFETY: an address of the kernel's choice.
            match unsafe { libc::shmat(id as i32, none, flags) } as isize {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        });
    }
    for (name, what) in [
        ("status", libc::IPC_STAT),
        ("change", libc::IPC_SET),
        ("lock", libc::SHM_LOCK),
        ("unlock", libc::SHM_UNLOCK),
        ("remove", libc::IPC_RMID),
        ("limits", libc::IPC_INFO),
    ] {
        ops.told(format!("memory: {name}"), memory, move |id| {
            memory_status(id as i32, what)
        });
    }
    ops.plain("a queue of POSIX's: make", || {
        mq(libc::O_RDWR | libc::O_CREAT)?;
        sys!(libc::mq_unlink(c"/ops".as_ptr())).map(drop)
    });
    ops.with("a queue of POSIX's: open to read", posix, |()| {
        mq(libc::O_RDONLY).map(drop)
    });
    ops.with("a queue of POSIX's: send", posix, |()| {
        let id = mq(libc::O_WRONLY)?;
        sys!(libc::mq_send(id.as_raw_fd(), c"x".as_ptr(), 1, 0)).map(drop)
    });
    ops.with("a queue of POSIX's: remove", posix, |()| {
        sys!(libc::mq_unlink(c"/ops".as_ptr())).map(drop)
    });
    ops.plain("memory of POSIX's", || {
        open("/dev/shm/ops", libc::O_RDWR | libc::O_CREAT)?;
        std::fs::remove_file("/dev/shm/ops")
    });
}
