//! Rate limiting: a flood of the same denial, or of one user's denials of ever other objects, fills neither the
//! disk nor the reader. What is left out is counted and told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use tidegate_monitor::{Event, Kind};

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);

/// Pairs of subject and object of one account that are watched at once; further ones count in their account alone.
const PAIRS: usize = 128;

/// Accounts that are watched at once; further ones have one together, a level.
const ACCOUNTS: usize = 128;

/// Of an account's denials, so many times the limit of a pair pass a second.
const OF_ACCOUNT: u32 = 100;

/// Whose denials: a user's at a level.
type Account = (u8, u32);

/// The one account of a level's users beyond [`ACCOUNTS`].
const OTHERS: u32 = u32::MAX;

/// Subject, operation, object: a file, a process, or the number of a capability or a family.
type Pair = (u32, u8, u64, u32, u32, u16);

#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u32,
    dropped: u64,
    last: Option<Event>,
}

impl Window {
    fn new(since: Instant) -> Window {
        Window {
            since,
            passed: 0,
            dropped: 0,
            last: None,
        }
    }

    /// Whether one more is among the first `limit`; if not, it is counted.
    fn passes(&mut self, event: &Event, limit: u32) -> bool {
        if self.passed < limit {
            self.passed += 1;
            return true;
        }
        self.dropped += 1;
        self.last = Some(event.clone());
        false
    }
}

/// A user's denials at a level: all of them, and by subject, operation and object.
#[derive(Debug)]
struct Watched {
    all: Window,
    pairs: HashMap<Pair, Window>,
}

/// Lets so many denials of one subject, operation and object through a second, and [`OF_ACCOUNT`] times as many
/// of one user at one level.
#[derive(Debug)]
pub struct Rate {
    limit: u32,
    accounts: HashMap<Account, Watched>,
}

impl Rate {
    /// `limit` a second; 0: all.
    pub fn new(limit: u32) -> Rate {
        Rate {
            limit,
            accounts: HashMap::new(),
        }
    }

    /// Whether an event is to be written. Only denials are ever left out.
    pub fn passes(&mut self, event: &Event, now: Instant) -> bool {
        if self.limit == 0 || !matches!(event.kind, Kind::Denied | Kind::Would) {
            return true;
        }
        let op = event.op.map_or(0, |o| o as u8);
        let number = event.request.and_then(|r| r.number);
        let number = event.capability.or(number).unwrap_or(0);
        let peer = event.peer.unwrap_or(0);
        let pair = (event.pid, op, event.ino, event.dev, peer, number);
        let mut account = (event.to, event.payer);
        if !self.accounts.contains_key(&account) && self.accounts.len() >= ACCOUNTS {
            account.1 = OTHERS;
        }
        let watched = self.accounts.entry(account).or_insert_with(|| Watched {
            all: Window::new(now),
            pairs: HashMap::new(),
        });
        let room = watched.pairs.len() < PAIRS;
        let window = match watched.pairs.entry(pair) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) if room => Some(new.insert(Window::new(now))),
            Entry::Vacant(_) => None,
        };
        if window.is_some_and(|w| !w.passes(event, self.limit)) {
            return false;
        }
        watched
            .all
            .passes(event, self.limit.saturating_mul(OF_ACCOUNT))
    }

    /// Ends the windows that are over: what each left out, and the last of it.
    pub fn end(&mut self, now: Instant) -> Vec<(u64, Event)> {
        let mut told = Vec::new();
        let mut goes_on = |w: &mut Window| {
            let on = now.duration_since(w.since) < WINDOW;
            if !on && let Some(last) = w.last.take() {
                told.push((w.dropped, last));
            }
            on
        };
        self.accounts.retain(|_, watched| {
            watched.pairs.retain(|_, w| goes_on(w));
            if !goes_on(&mut watched.all) {
                watched.all = Window::new(now);
            }
            // the account has a window as long as one of its pairs has
            !watched.pairs.is_empty() || watched.all.passed > 0
        });
        told
    }

    /// Ends all windows, over or not.
    pub fn close(self) -> Vec<(u64, Event)> {
        let accounts = self.accounts.into_values();
        accounts
            .flat_map(|watched| watched.pairs.into_values().chain([watched.all]))
            .filter_map(|w| Some((w.dropped, w.last?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_denial_is_counted_beyond_the_limit() {
        let mut rate = Rate::new(3);
        let now = Instant::now();
        let passed = (0..10)
            .filter(|_| rate.passes(&Event::example(Kind::Denied), now))
            .count();
        assert_eq!(passed, 3);
        assert!(rate.end(now).is_empty());
        let told = rate.end(now + WINDOW);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, 7);
        assert!(rate.passes(&Event::example(Kind::Denied), now + WINDOW));
        assert!(rate.close().is_empty(), "nothing was left out since");
    }

    #[test]
    fn ever_other_objects_of_one_user_hide_nobody_elses_denials() {
        let mut rate = Rate::new(3);
        let now = Instant::now();
        let denied = |ino, payer, to| Event {
            ino,
            payer,
            to,
            ..Event::example(Kind::Denied)
        };
        let flood = 100_000u64;
        let passed = (0..flood).filter(|&ino| rate.passes(&denied(ino, 1000, 0), now));
        assert_eq!(passed.count(), 3 * OF_ACCOUNT as usize);
        assert!(rate.passes(&denied(1, 1001, 0), now), "another user");
        assert!(rate.passes(&denied(1, 1000, 1), now), "another level");
        let told: u64 = rate.end(now + WINDOW).iter().map(|(count, _)| count).sum();
        assert_eq!(told, flood - 3 * u64::from(OF_ACCOUNT), "all are counted");
        assert!(rate.passes(&denied(flood, 1000, 0), now + WINDOW));
    }

    #[test]
    fn however_many_users_there_are_each_level_is_heard() {
        let mut rate = Rate::new(1);
        let now = Instant::now();
        for payer in 0..10_000 {
            let denied = Event {
                payer,
                to: 0,
                ..Event::example(Kind::Denied)
            };
            rate.passes(&denied, now);
        }
        assert!(rate.accounts.len() <= ACCOUNTS + 1);
        let higher = Event {
            payer: 20_000,
            to: 2,
            ..Event::example(Kind::Denied)
        };
        assert!(rate.passes(&higher, now));
    }

    #[test]
    fn what_was_left_out_at_the_end_is_told_of() {
        let mut rate = Rate::new(3);
        let now = Instant::now();
        for _ in 0..10 {
            rate.passes(&Event::example(Kind::Denied), now);
        }
        let told = rate.close();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, 7);
    }

    #[test]
    fn another_object_and_a_demotion_are_not_counted_with_it() {
        let mut rate = Rate::new(1);
        let now = Instant::now();
        assert!(rate.passes(&Event::example(Kind::Denied), now));
        assert!(rate.passes(
            &Event {
                ino: 77,
                ..Event::example(Kind::Denied)
            },
            now
        ));
        for _ in 0..5 {
            assert!(rate.passes(&Event::example(Kind::Demoted), now));
        }
    }

    #[test]
    fn another_capability_is_not_counted_with_it() {
        let mut rate = Rate::new(1);
        let now = Instant::now();
        let asked = |number| Event {
            op: Some(tidegate_monitor::Op::Capable),
            capability: Some(number),
            ..Event::example(Kind::Denied)
        };
        assert!(rate.passes(&asked(12), now));
        assert!(rate.passes(&asked(21), now));
        assert!(!rate.passes(&asked(12), now));
    }
}
