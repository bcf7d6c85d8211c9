//! Whether the threads still go round, told to the service manager (sd_watchdog_enabled(3)): a daemon in which one hangs is killed
//! by it, and started anew.

use std::env;
use std::process;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::instance::notify;

/// Threads that look up each second at least, but while they do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Takes records and answers calls for the guard.
    Watch,
    /// Writes records down.
    Log,
    /// Decides for object managers.
    Security,
    /// Lets administrators in.
    Admin,
    /// Lets the guard go, saves given levels, follows processes that no rule governs yet, looks for
    /// disks.
    House,
}

impl Who {
    const ALL: [Who; 5] = [Who::Watch, Who::Log, Who::Security, Who::Admin, Who::House];
}

/// When each looked up last.
#[derive(Debug)]
pub struct Pulse([Mutex<Instant>; Who::ALL.len()]);

impl Pulse {
    /// All of them, now.
    pub fn new() -> Pulse {
        Pulse(Who::ALL.map(|_| Mutex::new(Instant::now())))
    }

    /// One has looked up.
    pub fn beat(&self, who: Who) {
        let mut last = self.0[who as usize]
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        *last = Instant::now();
    }

    /// Whether all have within this time.
    fn all_within(&self, time: Duration) -> bool {
        self.0.iter().all(|last| {
            let last = *last.lock().unwrap_or_else(|e| e.into_inner());
            last.elapsed() <= time
        })
    }
}

/// The service manager's watchdog, if it has one for this process.
#[derive(Debug)]
pub struct Watchdog {
    /// How long it waits for a word.
    patience: Option<Duration>,
}

impl Watchdog {
    /// As the service manager says.
    pub fn of_environment() -> Watchdog {
        let value = |name| env::var(name).ok()?.parse::<u64>().ok();
        Watchdog {
            patience: patience(
                value("WATCHDOG_USEC"),
                value("WATCHDOG_PID"),
                process::id().into(),
            ),
        }
    }

    /// Tells it that all goes well, if it does. A thread may be at one thing for half of the time that it waits.
    pub fn look_after(&self, pulse: &Pulse) {
        if self
            .patience
            .is_some_and(|patience| pulse.all_within(patience / 2))
        {
            notify("WATCHDOG=1");
        }
    }
}

fn patience(microseconds: Option<u64>, meant: Option<u64>, own: u64) -> Option<Duration> {
    let microseconds = microseconds.filter(|&us| us > 0)?;
    (meant.is_none_or(|pid| pid == own)).then(|| Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_that_hangs_is_enough() {
        let pulse = Pulse::new();
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(3600));
        assert!(pulse.all_within(long));
        for who in Who::ALL {
            std::thread::sleep(2 * short);
            for other in Who::ALL.into_iter().filter(|&other| other != who) {
                pulse.beat(other);
            }
            assert!(!pulse.all_within(short), "{who:?}");
            assert!(pulse.all_within(long), "{who:?}");
        }
    }

    #[test]
    fn the_watchdog_of_another_process_is_none_of_ours() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(patience(Some(1_000_000), Some(7), 7), second);
        assert_eq!(patience(Some(1_000_000), None, 7), second);
        assert_eq!(patience(Some(1_000_000), Some(8), 7), None);
        assert_eq!(patience(Some(0), Some(7), 7), None);
        assert_eq!(patience(None, None, 7), None);
    }
}
