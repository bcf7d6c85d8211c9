//! Memory that is not swapped out.

use std::sync::Mutex;

use rustix::mm::{MlockAllFlags, mlockall};

/// Whether it is, in this process.
static LOCKED: Mutex<bool> = Mutex::new(false);

/// Keeps this process's memory from being swapped out, once it is used.
pub fn lock_memory() {
    let mut locked = LOCKED.lock().unwrap_or_else(|e| e.into_inner());
    // where it is not permitted the process is only slower
    *locked =
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).is_ok();
}

/// Maps something that is not locked.
///
/// What is mapped while memory is locked is filled at once, in spite of MCL_ONFAULT, if it cannot grow, as
/// no map of BPF can: the kernel forgets the flag of such a mapping before it looks at it. An arena would get all of its pages, and keep them.
pub(crate) fn unlocked<T>(map: impl FnOnce() -> T) -> T {
    let locked = LOCKED.lock().unwrap_or_else(|e| e.into_inner());
    if !*locked {
        return map();
    }
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT);
    let mapped = map();
    // without MCL_CURRENT, which would fill what has just been mapped
    let _ = mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    mapped
}
