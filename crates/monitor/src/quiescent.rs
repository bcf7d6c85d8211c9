//! Lets demotions that wait in the kernel come to a quiescent state.
//!
//! A program is detached from a hook, and one attached where another was just detached,
//! only after an RCU tasks grace period, which ends when every task has blocked or was
//! outside the kernel (Documentation/RCU: "RCU Tasks"). A demotion that waits for the
//! guard does neither: what a BPF program may call gives way, but does not block. So the
//! guard, on its way out, would wait for the demotion, and the demotion for the guard.
//!
//! What waits reads this process's memory over and over (`wait_moment` in kernel/core/wait.h). Here
//! the lock of that memory is taken for writing over and over: a task that comes to read then
//! blocks for a moment.

use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// What usually suffices to attach the guard; nothing is done before.
const PATIENCE: Duration = Duration::from_millis(20);

/// Whose protection changes, and how much one page table maps. Large, so that the lock is
/// held for most of the time, and may be while another task runs on the same processor.
const AREA: usize = 64 << 20;
const TABLE: usize = 2 << 20;

/// While it lives, a task that waits in the kernel blocks now and then.
#[derive(Debug)]
pub(crate) struct Quiescent {
    /// Its end is what is waited for.
    _alive: Sender<()>,
}

impl Quiescent {
    /// Begins, after a while. Without a thread or memory nothing is done: what waits then
    /// does so until its deadline.
    pub fn begin() -> Self {
        let (alive, ends) = channel();
        let name = thread::Builder::new().name("quiescent".into());
        drop(name.spawn(move || block_readers(&ends)));
        Self { _alive: alive }
    }
}

fn block_readers(ends: &Receiver<()>) {
    if ends.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let both = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let Ok(area) = (unsafe { mmap_anonymous(ptr::null_mut(), AREA, both, MapFlags::PRIVATE) })
    else {
        return;
    };
    for table in (0..AREA).step_by(TABLE) {
        // SAFETY: in the mapping, which may be written.
        unsafe { area.cast::<u8>().add(table).write_volatile(1) };
    }
    while ends.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout) {
        for flags in [MprotectFlags::READ, MprotectFlags::empty()] {
            // SAFETY: our own mapping, which nobody else reads or writes.
            let _ = unsafe { mprotect(area, AREA, flags) };
        }
    }
    // SAFETY: as above.
    let _ = unsafe { munmap(area, AREA) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_ends_with_its_handle() {
        let (alive, ends) = channel();
        let thread = thread::spawn(move || block_readers(&ends));
        thread::sleep(PATIENCE * 3);
        assert!(!thread.is_finished());
        drop(alive);
        thread.join().unwrap();
        let start = Instant::now();
        drop(Quiescent::begin());
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
