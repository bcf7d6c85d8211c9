//! The daemon's locks, and the order in which a thread takes several.
//!
//! A thread that holds a lock takes only locks below it. Then no two threads wait for each other. Debug builds check it: a lock
//! that is taken out of order ends the daemon, as each panic does.
//!
//! | lock | guards | held over |
//! |---|---|---|
//! | [`METRICS`] | the last answer with all counters | reading the counters |
//! | [`DISKS`] | what is known of disks | writing the given levels down; giving a disk that has come its levels |
//! | [`MOUNTS`] | what is mounted | reading the table of mounts |
//! | [`CHANGE`] | putting a policy in force | laying it out, the store of its number, writing its bundle |
//! | [`PLACING`] | the place that an image of capability files is laid out for | laying it out, and what `Monitor::capabilities` is held over |
//! | `Monitor::capabilities` | sessions of capability files | loading the model, writing an image into the kernel, entering what is taken back |
//! | [`MANAGERS`] | records of object managers | reading the policy in force |
//! | [`CAPS_FILES`] | names of capability files | nothing |
//! | [`TAKEN_BACK`] | names of objects that were taken back | nothing |
//! | [`CONTEXTS`] | names of contexts in memory | reading their file |
//! | [`POLICIES`] | policies in memory | nothing |
//! | [`PAGE`] | the status page | writing it |
//! | [`FILES`] | the one file that is being written whole | writing it to the disk |
//!
//! No lock is held while a client, or a process that is governed, is waited for: it would choose how long others wait. A process is
//! waited for by what gives it a layer, and by a revocation: both have let go of `Monitor::capabilities` by then. [`DISKS`] is held for
//! as long as a disk that came is searched, as what is found there is not to be written over; an administrator's question waits for
//! that. The kernel's table of mounts, and a disk's name, are read under [`MOUNTS`].
//!
//! The monitor's own locks (`Monitor::capabilities` and the guard's among them) belong to another crate, and this check does not
//! know them. Nothing of the daemon's is locked by what holds the guard's.
//!
//! All other locks of the daemon are plain mutexes: the threads' pulse, clients' places, bundles' room, connections to be closed,
//! the receiver of questions, counts of records. Nothing is locked while one of them is held.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

/// The last answer with all counters.
pub const METRICS: u8 = 0;
/// What is known of disks.
pub const DISKS: u8 = 1;
/// What is mounted.
pub const MOUNTS: u8 = 2;
/// Putting a policy in force.
pub const CHANGE: u8 = 3;
/// The place that an image of capability files is laid out for.
pub const PLACING: u8 = 4;
/// Records of object managers.
pub const MANAGERS: u8 = 5;
/// Names of capability files.
pub const CAPS_FILES: u8 = 6;
/// Names of objects that were taken back.
pub const TAKEN_BACK: u8 = 7;
/// Names of contexts in memory.
pub const CONTEXTS: u8 = 8;
/// Policies in memory.
pub const POLICIES: u8 = 9;
/// The status page.
pub const PAGE: u8 = 10;
/// The one file that is being written whole.
pub const FILES: u8 = 11;

/// A lock with its place in the order.
#[derive(Debug, Default)]
pub struct Ordered<const PLACE: u8, T>(Mutex<T>);

/// While it lives, its lock is held.
#[derive(Debug)]
pub struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    _taken: Taken,
}

impl<const PLACE: u8, T> Ordered<PLACE, T> {
    /// Nobody holds it.
    pub const fn new(value: T) -> Ordered<PLACE, T> {
        Ordered(Mutex::new(value))
    }

    /// Takes it, once nobody else holds it. A thread that panicked with it ended the daemon, or is a test's.
    pub fn lock(&self) -> Held<'_, T> {
        let taken = Taken::at(PLACE);
        Held {
            value: self.0.lock().unwrap_or_else(|e| e.into_inner()),
            _taken: taken,
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

thread_local! {
    /// The places of the locks that this thread holds.
    static PLACES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A place of this thread's, until this is dropped.
#[derive(Debug)]
struct Taken(u8);

impl Taken {
    /// Notes that a thread takes a lock, before it waits for it.
    fn at(place: u8) -> Taken {
        if cfg!(debug_assertions) {
            PLACES.with_borrow_mut(|places| {
                let before = places.iter().all(|&held| held < place);
                assert!(
                    before,
                    "lock {place} is taken while {places:?} are held: see locks.rs"
                );
                places.push(place);
            });
        }
        Taken(place)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            PLACES.with_borrow_mut(|places| places.retain(|&held| held != self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn locks_are_taken_in_their_order_and_again() {
        let (outer, inner) = (
            Ordered::<DISKS, u32>::new(1),
            Ordered::<FILES, u32>::default(),
        );
        for _ in 0..2 {
            let mut held = outer.lock();
            *held += *inner.lock() + 1;
        }
        // let go in another order
        let (first, second) = (outer.lock(), inner.lock());
        drop(first);
        drop(second);
        assert_eq!(*outer.lock(), 3);
    }

    #[test]
    fn each_thread_has_an_order_of_its_own() {
        let (outer, inner) = (
            Ordered::<DISKS, ()>::default(),
            Ordered::<FILES, ()>::default(),
        );
        let _held = inner.lock();
        thread::scope(|s| {
            s.spawn(|| drop(outer.lock()));
        });
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "lock 1 is taken while [11] are held")]
    fn a_lock_out_of_order_is_refused() {
        let (outer, inner) = (
            Ordered::<DISKS, ()>::default(),
            Ordered::<FILES, ()>::default(),
        );
        let _inner = inner.lock();
        let _outer = outer.lock();
    }
}
