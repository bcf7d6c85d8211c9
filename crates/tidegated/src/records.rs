//! The kernel's records on their way to the audit log: what waits, what is counted, and what is lost.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_monitor::{Event, Monitor};
use tidegate_protocol::Metrics;

use crate::enforcement::Enforcement;
use crate::error::Outcome;
use crate::metrics::{Counts, metrics};
use crate::queue::Queue;

/// How the records stood when this daemon began.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    /// Those that found no room in the kernel so far.
    pub lost: u64,
    /// Those that no log tells of, and none will but as lost.
    pub untold: u64,
}

impl Left {
    /// Reads how they stand.
    ///
    /// # Errors
    /// As [`Monitor::status`].
    pub fn of(monitor: &Monitor) -> Outcome<Left> {
        Ok(Left {
            lost: monitor.status()?.events_lost,
            untold: monitor.untold_records(),
        })
    }
}

/// What becomes of records.
#[derive(Debug)]
pub struct Records {
    /// Those to be written to the audit log.
    pub queue: Queue,
    /// What is counted.
    pub counts: Counts,
    /// Those that found no room in the queue, or on the disk.
    dropped: AtomicU64,
    /// What the daemon before left behind.
    left: Left,
}

impl Records {
    /// None has come yet.
    pub fn new(queue: Queue, left: Left) -> Records {
        Records {
            queue,
            counts: Counts::new(),
            dropped: AtomicU64::new(0),
            left,
        }
    }

    /// Has a record written to the audit log.
    pub fn log(&self, monitor: &Monitor, event: Event) {
        monitor.took_record();
        if !self.queue.put(event) {
            self.lose(1);
        }
    }

    /// Has one written that this process added to the history.
    pub fn note(&self, monitor: &Monitor, id: u64) {
        if let Ok(Some(event)) = monitor.event(id) {
            self.log(monitor, event);
        }
    }

    /// Counts so many as lost, which found no room.
    pub fn lose(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Records that found no room in the queue, or on the disk.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Records so far that the log has to count as lost.
    pub fn lost(&self, monitor: &Monitor) -> u64 {
        let kernel = monitor.status().map_or(0, |s| s.events_lost);
        let since = kernel.saturating_sub(self.left.lost);
        self.left.untold + since + self.dropped()
    }

    /// Returns every counter.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn metrics(&self, enforcement: &Enforcement) -> Outcome<Metrics> {
        metrics(&self.counts, enforcement, self.dropped())
    }
}
