//! The daemon's threads: each goes on until the daemon ends. One that panics, or ends before, takes
//! the daemon with it, and its supervisor starts it anew: enforcement goes on meanwhile, and a
//! daemon in which a part is missing would be taken for whole.

use std::panic;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{DaemonError, Outcome};
use crate::messages::complain;
use crate::watchdog::{Pulse, Who};

/// Between two looks whether a thread has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What the daemon's threads know of one another.
#[derive(Debug)]
pub struct Threads {
    /// Set when the daemon is to end.
    ending: AtomicBool,
    /// When they looked up last.
    pulse: Pulse,
}

impl Threads {
    /// None has started, and none is to end.
    pub fn new() -> Threads {
        Threads {
            ending: AtomicBool::new(false),
            pulse: Pulse::new(),
        }
    }

    /// Whether the daemon is to end.
    pub fn ends(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Has the daemon end: each thread finds out as it looks up next.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// One has looked up.
    pub fn beat(&self, who: Who) {
        self.pulse.beat(who);
    }

    /// When each looked up last, for the watchdog.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}

/// From here on a panic ends the process, whichever thread it is in.
pub fn abort_on_panic() {
    panic::set_hook(Box::new(|panic| fatal(&panic.to_string())));
}

/// Tells the administrator why the daemon cannot go on, and ends it as a crash does.
pub fn fatal(why: &str) -> ! {
    // a message of the kernel's log is a line
    let why = why.replace('\n', ": ");
    complain(&format!("the daemon ends, and enforcement goes on: {why}"));
    process::abort();
}

/// Starts a thread that goes on until the daemon ends.
pub fn spawn(
    name: &'static str,
    threads: &Arc<Threads>,
    run: impl FnOnce() + Send + 'static,
) -> Outcome<JoinHandle<()>> {
    let threads = Arc::clone(threads);
    thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            run();
            if !threads.ends() {
                fatal(&format!("its thread `{name}` has ended"));
            }
        })
        .map_err(|e| DaemonError::io("start a thread", e))
}

/// Waits so long for a thread's end; whether it has come.
pub fn ended_within(thread: &JoinHandle<()>, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while !thread.is_finished() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Set in the process that is to panic.
    const PANICS: &str = "TIDEGATE_TEST_PANICS";

    #[test]
    fn a_panic_in_any_thread_ends_the_process_as_a_crash_does() {
        if std::env::var_os(PANICS).is_some() {
            abort_on_panic();
            let _ = thread::spawn(|| panic!("on purpose")).join();
            process::exit(0);
        }
        let this = "a_panic_in_any_thread_ends_the_process_as_a_crash_does";
        let output = Command::new(std::env::current_exe().unwrap())
            .args([this, "--nocapture", "--test-threads=1"])
            .env(PANICS, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
        assert!(said.contains("on purpose"), "{said}");
    }

    #[test]
    fn a_thread_that_does_not_end_is_not_waited_for() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let waits = thread::spawn(move || {
            let _ = held.recv();
        });
        assert!(!ended_within(&waits, Duration::from_millis(20)));
        drop(hold);
        assert!(ended_within(&waits, Duration::from_secs(10)));
    }
}
