//! Rate limiting: a flood of the same denial fills neither the disk nor the reader.
//! What is left out is counted and told.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidegate_monitor::{Event, Kind};

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);

/// Pairs of subject and object watched at once; more are let through.
const PAIRS: usize = 4096;

/// Subject, operation, object: a file, a process, or the number of a capability or a family.
type Pair = (u32, u8, u64, u32, u32, u16);

#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u32,
    dropped: u64,
    last: Option<Event>,
}

/// Lets so many denials of one subject, operation and object through a second.
#[derive(Debug)]
pub struct Rate {
    limit: u32,
    windows: HashMap<Pair, Window>,
}

impl Rate {
    /// `limit` a second; 0: all.
    pub fn new(limit: u32) -> Rate {
        Rate {
            limit,
            windows: HashMap::new(),
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
        if !self.windows.contains_key(&pair) && self.windows.len() >= PAIRS {
            return true;
        }
        let window = self.windows.entry(pair).or_insert(Window {
            since: now,
            passed: 0,
            dropped: 0,
            last: None,
        });
        if window.passed < self.limit {
            window.passed += 1;
            return true;
        }
        window.dropped += 1;
        window.last = Some(event.clone());
        false
    }

    /// Ends the windows that are over: what each left out, and the last of it.
    pub fn end(&mut self, now: Instant) -> Vec<(u64, Event)> {
        let mut told = Vec::new();
        self.windows.retain(|_, w| {
            let on = now.duration_since(w.since) < WINDOW;
            if !on && let Some(last) = w.last.take() {
                told.push((w.dropped, last));
            }
            on
        });
        told
    }

    /// Ends all windows, over or not.
    pub fn close(self) -> Vec<(u64, Event)> {
        let windows = self.windows.into_values();
        windows.filter_map(|w| Some((w.dropped, w.last?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::tests::event;

    #[test]
    fn the_same_denial_is_counted_beyond_the_limit() {
        let mut rate = Rate::new(3);
        let now = Instant::now();
        let passed = (0..10)
            .filter(|_| rate.passes(&event(Kind::Denied), now))
            .count();
        assert_eq!(passed, 3);
        assert!(rate.end(now).is_empty());
        let told = rate.end(now + WINDOW);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, 7);
        assert!(rate.passes(&event(Kind::Denied), now + WINDOW));
        assert!(rate.close().is_empty(), "nothing was left out since");
    }

    #[test]
    fn what_was_left_out_at_the_end_is_told_of() {
        let mut rate = Rate::new(3);
        let now = Instant::now();
        for _ in 0..10 {
            rate.passes(&event(Kind::Denied), now);
        }
        let told = rate.close();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, 7);
    }

    #[test]
    fn another_object_and_a_demotion_are_not_counted_with_it() {
        let mut rate = Rate::new(1);
        let now = Instant::now();
        assert!(rate.passes(&event(Kind::Denied), now));
        assert!(rate.passes(
            &Event {
                ino: 77,
                ..event(Kind::Denied)
            },
            now
        ));
        for _ in 0..5 {
            assert!(rate.passes(&event(Kind::Demoted), now));
        }
    }

    #[test]
    fn another_capability_is_not_counted_with_it() {
        let mut rate = Rate::new(1);
        let now = Instant::now();
        let asked = |number| Event {
            op: Some(tidegate_monitor::Op::Capable),
            capability: Some(number),
            ..event(Kind::Denied)
        };
        assert!(rate.passes(&asked(12), now));
        assert!(rate.passes(&asked(21), now));
        assert!(!rate.passes(&asked(12), now));
    }
}
