//! Records of decisions, sent to the daemon: SELinux's `USER_AVC`.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tidegate_protocol::{Question, Told};

use crate::server::SecurityServer;

/// Records of one cache in a second; what is beyond is counted with the next one.
const LIMIT: u32 = 10;

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);

/// Bytes of what an object manager says that it was about.
pub(crate) const ABOUT: usize = 512;

#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u32,
    missed: u64,
}

/// What limits them.
#[derive(Debug)]
pub(crate) struct Audit(Mutex<Window>);

impl Audit {
    pub fn new() -> Audit {
        Audit(Mutex::new(Window {
            since: Instant::now(),
            passed: 0,
            missed: 0,
        }))
    }

    /// Whether one may be sent; then how many were not since the last one.
    fn passes(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if now.duration_since(window.since) >= WINDOW {
            (window.since, window.passed) = (now, 0);
        }
        if window.passed >= LIMIT {
            window.missed += 1;
            return None;
        }
        window.passed += 1;
        Some(std::mem::take(&mut window.missed))
    }

    /// Sends a record, made only if it is sent. One that does not arrive is counted with the next.
    pub fn tell(&self, server: &dyn SecurityServer, told: impl FnOnce() -> Told) {
        let Some(missed) = self.passes(Instant::now()) else {
            return;
        };
        let record = Told { missed, ..told() };
        if server.ask(Question::Record(record), None).is_err() {
            let mut window = self.0.lock().unwrap_or_else(|e| e.into_inner());
            window.missed += missed + 1;
        }
    }
}

/// The beginning of a text, so many bytes at most.
pub(crate) fn short(mut text: String) -> String {
    if text.len() > ABOUT {
        let end = (0..=ABOUT).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted() {
        let audit = Audit::new();
        let now = Instant::now();
        let passed = (0..100).filter(|_| audit.passes(now).is_some()).count();
        assert_eq!(passed, LIMIT as usize);
        let later = now + 2 * WINDOW;
        assert_eq!(audit.passes(later), Some(100 - u64::from(LIMIT)));
        assert_eq!(audit.passes(later), Some(0));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(short("plans".into()), "plans");
        assert_eq!(short("é".repeat(1000)).len(), ABOUT);
        assert_eq!(short(format!("x{}", "é".repeat(1000))).len(), ABOUT - 1);
    }
}
