//! Mappings, System V IPC, another process's memory.

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use tidegate_model::{Act, At, Level};

use super::{PAGE, PAGE_SIZE, Result, bytes, check, done, keep, slot};
use crate::replay::worker::Task;

/// Where mappings of a sequence are.
const PLACES: usize = 0x20_0000_0000;
const FIXED: MapFlags = MapFlags::FIXED_NOREPLACE;
const PRIVATE_MODE: i32 = 0o600;

fn place(at: At) -> *mut std::ffi::c_void {
    (PLACES + (usize::from(at) << 20)) as *mut _
}

/// Maps a page of our own at an address.
pub fn map_page(at: usize) -> Result<()> {
    let (rights, flags) = (
        ProtFlags::READ | ProtFlags::WRITE,
        MapFlags::PRIVATE | FIXED,
    );
    // SAFETY: refused where something is mapped already.
    unsafe { mmap_anonymous(at as *mut _, PAGE_SIZE, rights, flags) }.map(drop)
}

pub fn attempt(task: &Task) -> Result {
    let number = task.number;
    match &task.op.act {
        Act::Memfd { to } => keep(
            rustix::fs::memfd_create("replay", MemfdFlags::empty())?,
            *to,
        ),
        Act::Map {
            slot: of,
            shared,
            at,
        } => {
            let flags = if *shared {
                MapFlags::SHARED
            } else {
                MapFlags::PRIVATE
            } | FIXED;
            // SAFETY: refused where something is mapped already; never looked at.
            done(unsafe { mmap(place(*at), PAGE_SIZE, ProtFlags::READ, flags, slot(*of), 0) })
        }
        Act::MapFresh { at } => {
            let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | FIXED);
            // SAFETY: refused where something is mapped already.
            done(unsafe { mmap_anonymous(place(*at), PAGE_SIZE, rights, flags) })
        }
        // SAFETY: nothing in this process refers to what is mapped there.
        Act::Unmap { at } => done(unsafe { munmap(place(*at), PAGE_SIZE) }),
        Act::Segment { .. } => {
            // SAFETY: no pointers.
            check(unsafe { libc::shmget(libc::IPC_PRIVATE, PAGE_SIZE, PRIVATE_MODE) }.into())
        }
        Act::Attach { write, at, .. } => {
            let flags = if *write { 0 } else { libc::SHM_RDONLY };
            // SAFETY: refused where something is mapped already; never looked at.
            match unsafe { libc::shmat(id(number)?, place(*at), flags) } as isize {
                -1 => Err(super::last_error()),
                _ => Ok(0),
            }
        }
        Act::Drop { .. } => {
            // SAFETY: this command takes no buffer.
            check(unsafe { libc::shmctl(id(number)?, libc::IPC_RMID, std::ptr::null_mut()) }.into())
        }
        // SAFETY: no pointers.
        Act::Queue { .. } => check(unsafe { libc::msgget(libc::IPC_PRIVATE, PRIVATE_MODE) }.into()),
        Act::Enqueue { .. } => {
            let message: [i64; 2] = [1, bytes::byte(task.voice).into()];
            // SAFETY: a message is its type and, little-endian, a byte.
            check(
                unsafe { libc::msgsnd(id(number)?, message.as_ptr().cast(), 1, libc::IPC_NOWAIT) }
                    .into(),
            )
        }
        Act::Dequeue { .. } => {
            let mut message: [i64; 2] = [0; 2];
            // SAFETY: room for a message's type and its byte.
            let n = check(unsafe {
                libc::msgrcv(
                    id(number)?,
                    message.as_mut_ptr().cast(),
                    1,
                    0,
                    libc::IPC_NOWAIT,
                )
            } as i64)?;
            bytes::see(&message[1].to_le_bytes()[..n as usize]);
            Ok(0)
        }
        Act::Load { at } => {
            let mut page = [0u8; PAGE_SIZE];
            let me = std::process::id().into();
            match across(me, place(*at) as usize, &mut page, false) {
                Err(Errno::FAULT) => Ok(0), // nothing is behind it yet
                read => read.map(|_| {
                    bytes::see(&page);
                    0
                }),
            }
        }
        Act::Store { at } => {
            let rights = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: what is mapped there is only ever reached by process_vm_*.
            unsafe { mprotect(place(*at), PAGE_SIZE, rights) }?;
            let me = std::process::id().into();
            let byte = &mut [bytes::byte(task.voice)];
            match across(me, place(*at) as usize, byte, true) {
                Err(Errno::FAULT) => Ok(0),
                written => done(written),
            }
        }
        _ => Err(Errno::NOSYS),
    }
}

fn id(number: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| Errno::INVAL)
}

/// Reads another process's marks.
pub fn peek(pid: i64) -> Result {
    let mut marks = [0u8; bytes::LEVELS];
    across(pid, PAGE, &mut marks, false)?;
    bytes::see_marks(&marks);
    Ok(0)
}

/// Has another process see a byte of a level.
pub fn poke(pid: i64, level: Level) -> Result {
    done(across(pid, PAGE + usize::from(level), &mut [1], true))
}

/// Reads or writes a process's memory.
fn across(pid: i64, at: usize, bytes: &mut [u8], write: bool) -> Result {
    let own = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let their = libc::iovec {
        iov_base: at as *mut _,
        iov_len: bytes.len(),
    };
    let pid = id(pid)?;
    // SAFETY: our vector names bytes of ours; the other is that process's.
    check(unsafe {
        if write {
            libc::process_vm_writev(pid, &own, 1, &their, 1, 0)
        } else {
            libc::process_vm_readv(pid, &own, 1, &their, 1, 0)
        }
    } as i64)
}
