//! Bundles that come with questions. They are sealed memory, their length and header are looked at before there is room for the
//! rest, and users have only so many bytes of them in here at once: as they come, and as what they become when they are read.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_bundle::limits::{
    MAX_BUNDLE, MAX_CAPS_BUNDLE, MAX_CAPS_BYTES, MAX_CAPS_GROWTH, MAX_CAPS_REST,
};
use tidegate_bundle::{BUNDLE_HEADER, check_bundle_header};
use tidegate_protocol::{Code, Sealed};

use crate::error::{DaemonError, Outcome};

/// Bytes of one user's that are in here at once: the largest one, or many small ones.
const OF_ONE: usize = 2 * MAX_CAPS_BUNDLE + MAX_READ;

/// Bytes that a bundle becomes at most, but for texts that are counted once they are read, or by their longest line afterwards: these are
/// in the bundle as they are, so all of them are as long as it at most.
const MAX_READ: usize = MAX_CAPS_BYTES + MAX_CAPS_REST;

/// Bytes of all users who are not root.
const OF_USERS: usize = 2 * OF_ONE;

/// Bytes that a bundle of this length takes while it is here.
fn taken(len: usize) -> usize {
    len + (len + MAX_READ).min(len.saturating_mul(MAX_CAPS_GROWTH))
}

/// How long a bundle waits for others to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// The bundles that are in here, and those that wait for room.
#[derive(Debug, Default)]
pub struct Bundles {
    queue: Mutex<Queue>,
    freed: Condvar,
}

/// A bundle of capability files, whose room is its user's as long as it is here.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// What it is.
    pub bytes: Vec<u8>,
    _room: Room<'a>,
}

#[derive(Debug)]
struct Room<'a> {
    of: &'a Bundles,
    uid: u32,
    bytes: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut queue = self.of.queue();
        if let Some(bytes) = queue.held.get_mut(&self.uid) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                queue.held.remove(&self.uid);
            }
        }
        self.of.freed.notify_all();
    }
}

/// How many bytes users have, and which come next.
#[derive(Debug, Default)]
struct Queue {
    held: BTreeMap<u32, usize>,
    /// In their order.
    waiting: Vec<Waiting>,
    /// How many have come so far.
    came: u64,
}

/// A bundle that waits for room.
#[derive(Debug)]
struct Waiting {
    number: u64,
    uid: u32,
    bytes: usize,
}

impl Queue {
    /// One more waits; its number.
    fn wait(&mut self, uid: u32, bytes: usize) -> u64 {
        let number = self.came;
        self.came += 1;
        self.waiting.push(Waiting { number, uid, bytes });
        number
    }

    /// Whether there is room for it, and it is the first of those that wait for others than their own user's to go. Root's and users'
    /// do not wait for each other.
    fn is_turn_of(&self, number: u64) -> bool {
        let Some(it) = self.waiting.iter().find(|it| it.number == number) else {
            return false;
        };
        let is_root = |uid: u32| uid == 0;
        let alike = |other: &&Waiting| is_root(other.uid) == is_root(it.uid);
        let mut due = self.waiting.iter().filter(alike).filter(|other| {
            let own = self.held.get(&other.uid).copied().unwrap_or(0);
            own + other.bytes <= OF_ONE
        });
        let users = self.held.iter().filter(|(uid, _)| !is_root(**uid));
        let all: usize = users.map(|(_, bytes)| bytes).sum();
        let fits = is_root(it.uid) || all + it.bytes <= OF_USERS;
        fits && due.next().is_some_and(|first| first.number == number)
    }

    /// It waits no more. If it was its turn it is in, and others of its user's come after all that wait by now.
    fn end_wait(&mut self, number: u64) -> bool {
        let is_in = self.is_turn_of(number);
        let at = self.waiting.iter().position(|it| it.number == number);
        if let Some(it) = at.map(|at| self.waiting.remove(at))
            && is_in
        {
            *self.held.entry(it.uid).or_default() += it.bytes;
            self.waiting.sort_by_key(|other| other.uid == it.uid);
        }
        is_in
    }
}

impl Bundles {
    /// Reads the capability files that came with a user's question.
    pub fn take(&self, descriptor: Option<OwnedFd>, uid: u32) -> Outcome<Bundle<'_>> {
        let sealed = sealed(descriptor, MAX_CAPS_BUNDLE)?;
        let room = self.room(uid, taken(sealed.len()), PATIENCE)?;
        Ok(Bundle {
            bytes: read(&sealed)?,
            _room: room,
        })
    }

    fn room(&self, uid: u32, bytes: usize, patience: Duration) -> Outcome<Room<'_>> {
        let mut queue = self.queue();
        let number = queue.wait(uid, bytes);
        let waited = self
            .freed
            .wait_timeout_while(queue, patience, |queue| !queue.is_turn_of(number));
        let (mut queue, _) = waited.unwrap_or_else(|e| e.into_inner());
        let is_in = queue.end_wait(number);
        drop(queue);
        // it may be the next one's turn
        self.freed.notify_all();
        if !is_in {
            let message = "too many large bundles come at once: ask again";
            return Err(DaemonError::new(Code::Internal, message));
        }
        Ok(Room {
            of: self,
            uid,
            bytes,
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Reads the policy that came with the question of a client that may put it in force.
pub fn policy(descriptor: Option<OwnedFd>) -> Outcome<Vec<u8>> {
    read(&sealed(descriptor, MAX_BUNDLE)?)
}

/// What came, if it may be a bundle of so many bytes at most.
fn sealed(descriptor: Option<OwnedFd>, most: usize) -> Outcome<Sealed> {
    let none = || DaemonError::new(Code::Usage, "no bundle came along");
    let open = || {
        let message = "the bundle is not sealed memory (memfd_create(2) with F_SEAL_WRITE, F_SEAL_GROW and F_SEAL_SHRINK)";
        DaemonError::new(Code::Usage, message)
    };
    let sealed = Sealed::of(descriptor.ok_or_else(none)?).ok_or_else(open)?;
    let mut header = [0; BUNDLE_HEADER];
    let first = sealed
        .first(&mut header)
        .map_err(|e| DaemonError::io("read the bundle", e))?;
    check_bundle_header(first, sealed.len(), most)
        .map_err(|e| DaemonError::new(Code::Policy, e))?;
    Ok(sealed)
}

fn read(sealed: &Sealed) -> Outcome<Vec<u8>> {
    sealed
        .read()
        .map_err(|e| DaemonError::io("read the bundle", e))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use tidegate_policy::caps;
    use tidegate_protocol::seal;

    use super::*;

    fn bundle() -> Vec<u8> {
        let compiled = caps::compile_str("t.caps", "subject a {\n file /a read\n}\n");
        compiled.unwrap().capabilities.to_bundle()
    }

    #[test]
    fn a_sealed_bundle_is_read_and_its_room_is_given_back() {
        let bundles = Bundles::default();
        let bytes = bundle();
        let taken = bundles
            .take(Some(seal("b", &bytes).unwrap()), 1000)
            .unwrap();
        assert_eq!(taken.bytes, bytes);
        assert_eq!(
            bundles.queue().held[&1000],
            bytes.len() * (1 + MAX_CAPS_GROWTH),
            "also what it becomes"
        );
        drop(taken);
        assert!(bundles.queue().held.is_empty());
    }

    #[test]
    fn what_is_no_sealed_memory_or_no_bundle_is_refused_unread() {
        let bundles = Bundles::default();
        let code = |descriptor| bundles.take(descriptor, 1000).unwrap_err().code();
        assert_eq!(code(None), Code::Usage);
        let device = File::open("/dev/zero").unwrap();
        assert_eq!(code(Some(device.into())), Code::Usage);
        assert_eq!(code(Some(seal("b", b"no bundle").unwrap())), Code::Policy);
        // a header that promises more than is there
        assert_eq!(
            code(Some(seal("b", &bundle()[..60]).unwrap())),
            Code::Policy
        );
        assert!(bundles.queue().held.is_empty());
    }

    #[test]
    fn a_file_that_is_too_long_has_no_room_made_for_it() {
        let bytes = bundle();
        let sealed = |most| sealed(Some(seal("b", &bytes).unwrap()), most).map(|it| it.len());
        assert_eq!(sealed(bytes.len()).unwrap(), bytes.len());
        assert_eq!(sealed(bytes.len() - 1).unwrap_err().code(), Code::Policy);
    }

    #[test]
    fn the_largest_one_has_all_room_of_its_user() {
        assert_eq!(taken(MAX_CAPS_BUNDLE), OF_ONE);
        assert!(taken(MAX_CAPS_BUNDLE - 1) < OF_ONE);
    }

    #[test]
    fn one_user_does_not_take_the_room_of_others() {
        let bundles = Bundles::default();
        let room = |uid, bytes| bundles.room(uid, bytes, Duration::ZERO);
        let first = room(1000, OF_ONE).unwrap();
        assert!(room(1000, 1).is_err());
        let second = room(1001, OF_ONE).unwrap();
        assert!(room(1002, 1).is_err());
        let root = room(0, OF_ONE).unwrap();
        assert!(room(0, 1).is_err());
        drop(first);
        assert!(room(1002, OF_ONE).is_ok());
        drop((second, root));
        assert!(bundles.queue().held.is_empty());
    }

    #[test]
    fn users_come_in_by_turns() {
        let mut queue = Queue {
            held: BTreeMap::from([(1000, OF_ONE), (1001, OF_ONE)]),
            ..Queue::default()
        };
        let [first, second] = [OF_ONE, 1].map(|bytes| queue.wait(1000, bytes));
        let [other, small] = [(1002, OF_ONE), (1003, 1)].map(|(uid, bytes)| queue.wait(uid, bytes));
        let root = queue.wait(0, OF_ONE);
        let turns = |queue: &Queue| [first, second, other, small].map(|it| queue.is_turn_of(it));
        assert_eq!(turns(&queue), [false; 4]);
        assert!(queue.end_wait(root));
        queue.held.remove(&1000);
        assert_eq!(turns(&queue), [true, false, false, false]);
        assert!(queue.end_wait(first));
        // a user's next one does not come before others'; the one that is held up by its own user holds up nobody
        queue.held.remove(&1001);
        assert_eq!(turns(&queue), [false, false, true, false]);
        assert!(queue.end_wait(other));
        queue.held.remove(&1000);
        assert_eq!(turns(&queue), [false, false, false, true]);
        // one that gives up is not waited for
        assert!(!queue.end_wait(second));
        assert!(queue.end_wait(small));
        assert!(queue.waiting.is_empty());
    }
}
