//! Decisions that are kept: a table that threads read without writing to it, so that none waits for another.
//!
//! A place has a version of its own, odd while one writes there. A reader takes it before and
//! after, and what was changed meanwhile is as if it were not there; a writer that would write
//! where another does leaves it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::avc::Decision;

/// Places a key may have.
const WAYS: usize = 4;

/// A decision's place: one line of a processor's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    version: AtomicU32,
    /// The status page's number that it holds for; odd: there is nothing.
    sequence: AtomicU32,
    key: AtomicU64,
    allowed: AtomicU32,
    auditallow: AtomicU32,
    auditdeny: AtomicU32,
    permissive: AtomicU32,
}

/// The table.
#[derive(Debug)]
pub struct Cache {
    places: Box<[Place]>,
}

/// What a decision is about: both contexts and the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// Of SIDs below 2²⁴ and a class below 2¹⁶.
    pub fn of(source: u32, target: u32, class: u16) -> Key {
        Key(u64::from(source) << 40 | u64::from(target) << 16 | u64::from(class))
    }
}

impl Cache {
    /// With so many places, a power of two.
    pub fn new(places: usize) -> Cache {
        let nothing = || Place {
            sequence: AtomicU32::new(1),
            ..Place::default()
        };
        let places = places.next_power_of_two().max(WAYS);
        Cache {
            places: (0..places).map(|_| nothing()).collect(),
        }
    }

    #[inline]
    fn set(&self, key: Key) -> &[Place] {
        // Fibonacci's hash
        let hash = key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = hash as usize & (self.places.len() - 1) & !(WAYS - 1);
        &self.places[at..at + WAYS]
    }

    /// What is kept of a question under this number of the page.
    #[inline]
    pub fn get(&self, key: Key, sequence: u32) -> Option<Decision> {
        self.set(key).iter().find_map(|p| p.read(key, sequence))
    }

    /// Keeps a decision that holds for this number.
    pub fn put(&self, key: Key, sequence: u32, decision: Decision) {
        let set = self.set(key);
        let is = |p: &Place| p.key.load(Ordering::Relaxed) == key.0;
        let is_old = |p: &Place| p.sequence.load(Ordering::Relaxed) != sequence;
        // its own place, one that holds no more, or any: by the number of the page and the key
        let any = (key.0 >> 16 ^ key.0 >> 41) as usize % WAYS;
        let place = (set.iter().find(|p| is(p)))
            .or_else(|| set.iter().find(|p| is_old(p)))
            .unwrap_or(&set[any]);
        place.write(key, sequence, decision);
    }
}

impl Place {
    #[inline]
    fn read(&self, key: Key, sequence: u32) -> Option<Decision> {
        let version = self.version.load(Ordering::Acquire);
        let is_it = self.key.load(Ordering::Relaxed) == key.0
            && self.sequence.load(Ordering::Relaxed) == sequence;
        if !is_it || !version.is_multiple_of(2) {
            return None;
        }
        let decision = Decision {
            allowed: self.allowed.load(Ordering::Relaxed),
            auditallow: self.auditallow.load(Ordering::Relaxed),
            auditdeny: self.auditdeny.load(Ordering::Relaxed),
            permissive: self.permissive.load(Ordering::Relaxed) != 0,
        };
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(decision)
    }

    fn write(&self, key: Key, sequence: u32, decision: Decision) {
        let version = self.version.load(Ordering::Relaxed);
        let (free, taken) = (version & !1, version | 1);
        let order = (Ordering::Acquire, Ordering::Relaxed);
        if self
            .version
            .compare_exchange(free, taken, order.0, order.1)
            .is_err()
        {
            return;
        }
        fence(Ordering::Release);
        self.key.store(key.0, Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
        self.allowed.store(decision.allowed, Ordering::Relaxed);
        self.auditallow
            .store(decision.auditallow, Ordering::Relaxed);
        self.auditdeny.store(decision.auditdeny, Ordering::Relaxed);
        self.permissive
            .store(decision.permissive.into(), Ordering::Relaxed);
        self.version.store(taken.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn decision(n: u32) -> Decision {
        Decision {
            allowed: n,
            auditallow: !n,
            auditdeny: n ^ 0x5555,
            permissive: n.is_multiple_of(2),
        }
    }

    #[test]
    fn what_is_kept_is_found_under_its_number_only() {
        let cache = Cache::new(16);
        let key = Key::of(1, 2, 3);
        assert_eq!(cache.get(key, 2), None);
        cache.put(key, 2, decision(7));
        assert_eq!(cache.get(key, 2), Some(decision(7)));
        assert_eq!(cache.get(key, 4), None);
        assert_eq!(cache.get(Key::of(2, 1, 3), 2), None);
        cache.put(key, 4, decision(8));
        assert_eq!(cache.get(key, 4), Some(decision(8)));
        assert_eq!(cache.get(key, 2), None);
        // nothing is kept of number 0, which a page has that was never written
        assert_eq!(cache.get(Key::of(0, 0, 0), 0), None);
    }

    #[test]
    fn a_full_table_forgets_and_never_mistakes() {
        let cache = Cache::new(16);
        for n in 0..1000u32 {
            cache.put(Key::of(n, n + 1, 1), 2, decision(n));
        }
        let found = (0..1000u32).filter(|&n| match cache.get(Key::of(n, n + 1, 1), 2) {
            Some(kept) => {
                assert_eq!(kept, decision(n));
                true
            }
            None => false,
        });
        assert!((1..=16).contains(&found.count()));
    }

    #[test]
    fn threads_read_whole_decisions_while_others_write() {
        let (cache, over) = (Arc::new(Cache::new(8)), Arc::new(AtomicBool::new(false)));
        let readers: Vec<_> = (0..2u32)
            .map(|seed| {
                let (cache, over) = (Arc::clone(&cache), Arc::clone(&over));
                std::thread::spawn(move || {
                    let mut n = seed;
                    while !over.load(Ordering::Relaxed) {
                        n = n.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                        let key = n % 64;
                        let sequence = 2 * (n >> 8 & 1);
                        if let Some(kept) = cache.get(Key::of(key, 1, 1), sequence) {
                            assert_eq!(kept, decision(key << 8 | sequence));
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..2u32)
            .map(|seed| {
                let cache = Arc::clone(&cache);
                std::thread::spawn(move || {
                    for n in 0..200_000u32 {
                        let (key, sequence) = ((n * 7 + seed) % 64, 2 * (n >> 6 & 1));
                        cache.put(Key::of(key, 1, 1), sequence, decision(key << 8 | sequence));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|r| r.join().unwrap());
    }
}
