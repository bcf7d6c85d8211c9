//! Records that wait for the disk. A flood of refusals keeps neither demotions out nor the
//! refusals of other levels and users.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use tidegate_bundle::limits;
use tidegate_monitor::{Event, Kind};

/// Records that may wait.
const ROOM: usize = 16384;

/// Denials that may.
const DENIALS: usize = ROOM / 4 * 3;

/// Of subjects at one level.
const DENIALS_OF_ONE: usize = DENIALS / 2;

/// Of one user's at one level.
const DENIALS_OF_USER: usize = DENIALS_OF_ONE / 4;

/// Accounts of users at each level: users whose numbers are alike modulo this have one.
const USERS: usize = 1024;

/// The end where records are put in.
#[derive(Debug)]
pub struct Queue {
    records: SyncSender<Event>,
    /// How many wait.
    all: AtomicUsize,
    /// How many of them are denials, by their subject's level.
    denials: [AtomicUsize; limits::MAX_LEVELS],
    /// And by its user besides: [`USERS`] a level.
    users: Box<[AtomicUsize]>,
    /// Nothing is put in any more.
    closed: AtomicBool,
}

impl Queue {
    /// An empty one, and where it is emptied.
    pub fn new() -> (Queue, Receiver<Event>) {
        let (records, receive) = sync_channel(ROOM);
        let queue = Queue {
            records,
            all: AtomicUsize::new(0),
            denials: Default::default(),
            users: (0..limits::MAX_LEVELS * USERS)
                .map(|_| AtomicUsize::new(0))
                .collect(),
            closed: AtomicBool::new(false),
        };
        (queue, receive)
    }

    /// The counts of what an event is one of, of its level and of its user, if that is bounded apart.
    fn denials(&self, event: &Event) -> Option<(&AtomicUsize, &AtomicUsize)> {
        let level = usize::from(event.to);
        let user = level * USERS + event.payer as usize % USERS;
        match event.kind {
            Kind::Denied | Kind::Would => Some((self.denials.get(level)?, self.users.get(user)?)),
            _ => None,
        }
    }

    /// Puts nothing in any more: the thread that empties it comes to an end.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether nothing more comes.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Puts one in; `false`: there is no room for such.
    pub fn put(&self, event: Event) -> bool {
        if self.is_closed() {
            return false;
        }
        let all = self.all.fetch_add(1, Ordering::Relaxed);
        let room = match self.denials(&event) {
            Some((level, user)) => {
                let of_level = level.fetch_add(1, Ordering::Relaxed);
                let of_user = user.fetch_add(1, Ordering::Relaxed);
                of_user < DENIALS_OF_USER && of_level < DENIALS_OF_ONE && all < DENIALS
            }
            None => all < ROOM,
        };
        if !room {
            self.took(&event);
            return false;
        }
        match self.records.try_send(event) {
            Ok(()) => true,
            Err(e) => {
                let (TrySendError::Full(event) | TrySendError::Disconnected(event)) = e;
                self.took(&event);
                false
            }
        }
    }

    /// Counts one that was taken out.
    pub fn took(&self, event: &Event) {
        self.all.fetch_sub(1, Ordering::Relaxed);
        if let Some((level, user)) = self.denials(event) {
            level.fetch_sub(1, Ordering::Relaxed);
            user.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, to: u8) -> Event {
        Event {
            to,
            ..Event::example(kind)
        }
    }

    fn denied_to(to: u8, payer: u32) -> Event {
        Event {
            payer,
            ..of(Kind::Denied, to)
        }
    }

    #[test]
    fn a_flood_leaves_room_for_other_levels_and_for_demotions() {
        let (queue, receive) = Queue::new();
        let flood = |to| {
            (0..ROOM)
                .filter(|&n| queue.put(denied_to(to, n as u32 % 8)))
                .count()
        };
        assert_eq!(flood(0), DENIALS_OF_ONE);
        assert_eq!(flood(1), DENIALS - DENIALS_OF_ONE);
        assert_eq!(flood(2), 0);
        let fallen = (0..ROOM)
            .filter(|_| queue.put(of(Kind::Demoted, 0)))
            .count();
        assert_eq!(fallen, ROOM - DENIALS);
        // what was refused room has left nothing behind
        while let Ok(event) = receive.try_recv() {
            queue.took(&event);
        }
        assert_eq!(flood(2), DENIALS_OF_ONE);
    }

    #[test]
    fn one_users_flood_leaves_room_for_others_at_its_level() {
        let (queue, receive) = Queue::new();
        let flood = |payer| (0..ROOM).filter(|_| queue.put(denied_to(0, payer))).count();
        assert_eq!(flood(1000), DENIALS_OF_USER);
        assert_eq!(flood(1001), DENIALS_OF_USER);
        while let Ok(event) = receive.try_recv() {
            queue.took(&event);
        }
        assert_eq!(flood(1000), DENIALS_OF_USER, "all was given back");
    }

    #[test]
    fn what_was_put_in_before_it_was_closed_can_be_taken_out() {
        let (queue, receive) = Queue::new();
        assert!(queue.put(of(Kind::Demoted, 0)) && !queue.is_closed());
        queue.close();
        assert!(!queue.put(of(Kind::Demoted, 0)) && queue.is_closed());
        assert!(receive.try_recv().is_ok() && receive.try_recv().is_err());
    }
}
