//! For how long the thread that takes records is above every other process.
//!
//! A demotion waits at most 10 s for the guard, and asks for it among the records. So the thread runs in real time, whatever else the
//! machine is busy with. But whoever has one refusal follow another paces its work: in each period that gets a part of one processor
//! in real time, and for the rest of it the thread is one of many, the first among them. A request for the guard ends that.

use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};

/// A period.
const PERIOD: Duration = Duration::from_secs(1);

/// What records may take of it in real time.
const SHARE: Duration = Duration::from_millis(200);

/// Records between two looks at the clock.
const LOOKS: u32 = 32;

/// How the calling thread is scheduled.
#[derive(Debug)]
pub struct Priority {
    share: Share,
    /// In real time.
    above: bool,
    /// This is permitted.
    permitted: bool,
    /// Records since the last look.
    records: u32,
}

impl Priority {
    /// Puts the calling thread above every other process, until its records take too much. What it starts is not.
    pub fn real_time() -> Priority {
        let mut priority = Priority {
            share: Share {
                begun: Instant::now(),
                before: used(),
            },
            above: false,
            permitted: true,
            records: 0,
        };
        // while it is not in real time: before all but those
        let _ = setpriority_process(None, -20);
        priority.set(true);
        priority
    }

    /// A record was taken; now and then true: look up, as there may be no end of records.
    pub fn took(&mut self) -> bool {
        self.records += 1;
        let looks = self.records >= LOOKS;
        if looks {
            self.look();
        }
        looks
    }

    /// Looks whether records have taken too much, or a new period has begun.
    pub fn look(&mut self) {
        self.records = 0;
        let above = self.share.lasts(Instant::now(), used());
        self.set(above);
    }

    /// Does what somebody waits for. It takes none of the records' part.
    pub fn urgent<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.set(true);
        let before = used();
        let done = work();
        self.share.before += used().saturating_sub(before);
        done
    }

    /// Where it is not permitted the daemon is only slower, and does not ask again.
    fn set(&mut self, above: bool) {
        if above == self.above || !self.permitted {
            return;
        }
        let policy = if above {
            libc::SCHED_FIFO
        } else {
            libc::SCHED_OTHER
        };
        // SAFETY: a plain structure of integers; no pointers are kept. Of SCHED_OTHER the only priority is 0.
        let done = unsafe {
            let param = libc::sched_param {
                sched_priority: libc::sched_get_priority_max(policy),
            };
            libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &param)
        };
        self.permitted = done == 0;
        self.above = above && self.permitted;
    }
}

/// How much of a period was used.
#[derive(Debug)]
struct Share {
    begun: Instant,
    /// Of the processor's time, until then.
    before: Duration,
}

impl Share {
    /// Whether there is something left of it, now that so much of a processor's time was used in all.
    fn lasts(&mut self, now: Instant, used: Duration) -> bool {
        if now.duration_since(self.begun) >= PERIOD {
            *self = Share {
                begun: now,
                before: used,
            };
        }
        used.saturating_sub(self.before) < SHARE
    }
}

/// What the calling thread has had of processors.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_a_part_of_each_period_and_no_more() {
        let begun = Instant::now();
        let mut share = Share {
            begun,
            before: Duration::from_secs(7),
        };
        let at = |ms| begun + Duration::from_millis(ms);
        let used = |ms: u64| Duration::from_millis(7000 + ms);
        assert!(share.lasts(at(10), used(10)));
        assert!(share.lasts(at(199), used(199)));
        assert!(!share.lasts(at(200), used(200)));
        assert!(!share.lasts(at(999), used(600)));
        // the next period
        assert!(share.lasts(at(1000), used(601)));
        assert!(!share.lasts(at(1300), used(801)));
        // without records nothing is used
        assert!(share.lasts(at(2000), used(801)));
        assert!(share.lasts(at(2900), used(810)));
    }
}
