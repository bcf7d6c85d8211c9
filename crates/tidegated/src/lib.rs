//! The daemon: it answers the kernel's calls for the guard, writes the audit log, and answers its clients.
//! Enforcement does not depend on it.
//!
//! It puts bundles in force and compiles nothing. What the command line does as root where no daemon runs, it does by this
//! library.

mod ask;
mod boot;
mod bundles;
mod capability_files;
mod chain;
mod closing;
mod daemon;
mod end;
mod error;
mod events;
mod handlers;
mod instance;
mod journal;
mod labels;
mod left_programs;
mod lock;
mod log;
mod maintenance;
mod messages;
mod metrics;
mod object_managers;
mod options;
pub mod paths;
mod peer;
mod policy_history;
mod queue;
mod rate;
mod report;
mod server;
mod sessions;
mod settle;
mod start;
mod status;
mod status_page;
mod te_system_start;
mod threads;
mod watchdog;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tidegate_monitor::{Event, Guard, Monitor};

use crate::messages::complain;
use crate::object_managers::{audit, decisions};

pub use self::chain::explain;
pub use self::end::take_down;
pub use self::error::{DaemonError, Outcome};
pub use self::instance::Instance;
pub use self::labels::store::Disks;
pub use self::metrics::managers;
pub use self::options::{DEFAULTS, Options};
pub use self::policy_history::Policies;
pub use self::report::Report;
pub use self::settle::fall;
pub use self::start::run_program;
pub use self::status::status;
pub use self::te_system_start::can_govern;

/// What the daemon's threads share.
#[derive(Debug)]
pub struct Shared {
    /// The kernel's side.
    pub monitor: Monitor,
    /// The policies put in force since boot.
    pub policies: Policies,
    /// What is known of disks beside the given levels.
    pub disks: Disks,
    /// What is known of sessions besides what the kernel knows.
    pub sessions: sessions::Known,
    /// Bundles of capability files that are being looked at.
    pub bundles: bundles::Bundles,
    /// What revokes descriptors.
    pub guard: Guard,
    /// Set when the daemon is to end.
    pub ending: AtomicBool,
    /// When its threads looked up last.
    pub pulse: watchdog::Pulse,
    /// Records to be written to the audit log.
    pub queue: queue::Queue,
    /// Records that found no room there, or on the disk.
    pub dropped: AtomicU64,
    /// What the daemon before left behind.
    pub left: Left,
    /// What is counted.
    pub counts: metrics::Counts,
    /// What decides for object managers in user space.
    pub security: decisions::Security,
    /// What these decided.
    pub managers: audit::Managers,
}

/// How the records stood when this daemon began.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    /// Those that found no room in the kernel so far.
    pub lost: u64,
    /// Those that no log tells of, and none will but as lost.
    pub untold: u64,
}

impl Shared {
    /// Whether the daemon is to end.
    pub fn ends(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Records so far that the log has to count as lost.
    pub fn lost(&self) -> u64 {
        let kernel = self.monitor.status().map_or(0, |s| s.events_lost);
        let since = kernel.saturating_sub(self.left.lost);
        self.left.untold + since + self.dropped.load(Ordering::Relaxed)
    }

    /// Has a record written to the audit log.
    pub fn log(&self, event: Event) {
        self.monitor.took_record();
        if !self.queue.put(event) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same for one that this process added to the history.
    pub fn note(&self, id: u64) {
        if let Ok(Some(event)) = self.monitor.event(id) {
            self.log(event);
        }
    }

    /// Tells the administrator of something that went wrong.
    pub fn complain(&self, what: &str) {
        complain(what);
    }
}

#[cfg(test)]
mod tests;
