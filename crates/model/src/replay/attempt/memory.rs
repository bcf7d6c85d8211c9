//! Mappings, System V IPC, another process's memory.

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use tidegate_model::{Act, At};

use super::{PAGE_SIZE, Result, check, done, keep, slot};

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

pub fn attempt(act: &Act, number: i64) -> Result {
    match act {
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
            let message: [i64; 1] = [1];
            // SAFETY: a message is its type and no text here.
            check(
                unsafe { libc::msgsnd(id(number)?, message.as_ptr().cast(), 0, libc::IPC_NOWAIT) }
                    .into(),
            )
        }
        Act::Dequeue { .. } => {
            let mut message: [i64; 1] = [0];
            // SAFETY: room for a message's type and no text.
            check(unsafe {
                libc::msgrcv(
                    id(number)?,
                    message.as_mut_ptr().cast(),
                    0,
                    0,
                    libc::IPC_NOWAIT,
                )
            } as i64)
        }
        _ => Err(Errno::NOSYS),
    }
}

fn id(number: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| Errno::INVAL)
}

/// Reads or writes a byte of another process's memory.
pub fn other(pid: i64, at: usize, write: bool) -> Result {
    let mut byte = [0u8; 1];
    let own = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let their = libc::iovec {
        iov_base: at as *mut _,
        iov_len: 1,
    };
    let pid = id(pid)?;
    // SAFETY: our vector names a byte of ours; the other is the other process's.
    check(unsafe {
        if write {
            libc::process_vm_writev(pid, &own, 1, &their, 1, 0)
        } else {
            libc::process_vm_readv(pid, &own, 1, &their, 1, 0)
        }
    } as i64)
}
