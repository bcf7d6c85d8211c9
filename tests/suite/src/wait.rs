//! Waiting for events: nothing waits for a time to pass.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first pause between two looks, and the longest: each is twice the one before.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(32)];

/// Asks again and again, for that long, until it is so; whether it came to be.
pub fn until<E>(patience: Duration, mut so: impl FnMut() -> Result<bool, E>) -> Result<bool, E> {
    let end = Instant::now() + patience;
    let [mut pause, longest] = PAUSES;
    loop {
        let is = so()?;
        if is || Instant::now() > end {
            return Ok(is);
        }
        sleep(pause);
        pause = (2 * pause).min(longest);
    }
}

/// How a task stands, by the letter that proc_pid_stat(5) has for it; `None`: it is gone. `task` is its directory in
/// /proc. Nobody falls by looking.
pub fn state(task: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("{task}/stat")).ok()?;
    // after the name, which may have parentheses itself
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

/// Which system call a task sleeps in; `None`: it is awake, or in none.
pub fn call(task: &str) -> Option<i64> {
    let said = fs::read_to_string(format!("{task}/syscall")).ok()?;
    said.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_waited_for_and_what_does_not_for_so_long() {
        let mut looks = 0;
        let third = || {
            looks += 1;
            Ok::<_, ()>(looks == 3)
        };
        assert_eq!(until(Duration::from_secs(60), third), Ok(true));
        assert_eq!(until(Duration::ZERO, || Ok::<_, ()>(false)), Ok(false));
        assert_eq!(until(Duration::from_secs(60), || Err(1)), Err(1));
    }

    #[test]
    fn who_asks_is_awake() {
        assert_eq!(state("/proc/thread-self"), Some('R'));
        assert_eq!(state("/proc/0"), None);
    }
}
