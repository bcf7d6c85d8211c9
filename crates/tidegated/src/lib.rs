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
mod metrics;
mod object_managers;
mod options;
pub mod paths;
mod policy_history;
mod queue;
mod rate;
mod server;
mod sessions;
mod settle;
mod start;
mod status_page;
mod te_system_start;
mod threads;
mod watchdog;

use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_monitor::{Event, Guard, Monitor};
use tidegate_policy::Policy;

use crate::labels::store;
use crate::object_managers::{audit, decisions};

pub use self::chain::explain;
pub use self::error::{DaemonError, Outcome};
pub use self::handlers::status;
pub use self::instance::Instance;
pub use self::labels::store::Disks;
pub use self::metrics::managers;
pub use self::options::{DEFAULTS, Options};
pub use self::policy_history::Policies;
pub use self::settle::fall;
pub use self::start::{Report, run_program};
pub use self::te_system_start::can_govern;

/// An answer, which has a chain of records for `why`.
type Answer = tidegate_protocol::Answer<tidegate_audit::Chain>;

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

/// Tells the administrator of something that went wrong: by standard error,
/// which a service manager keeps, and by the kernel's log, which everybody has.
fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "tidegate: {what}");
    if let Ok(mut log) = std::fs::OpenOptions::new().write(true).open("/dev/kmsg") {
        // each write is a message of its own
        let _ = log.write_all(format!("<4>tidegate: {what}\n").as_bytes());
    }
}

/// Ends enforcement: saves what is to outlive it, takes the monitor out.
pub fn take_down(monitor: &Monitor, policies: &Policies, disks: &Disks) -> Outcome {
    // a governed process is given no file from the last writing on, this one not even for that
    if monitor.governs_everyone()? {
        monitor.exempt_myself()?;
    }
    store::save_clean(monitor, policies, disks)?;
    let page = status_page::Page::open()?;
    if let Err(e) = monitor.remove() {
        store::reopen(monitor)?;
        return Err(e.into());
    }
    page.end();
    instance::clean_up();
    Ok(())
}

/// How long the records that wait may take to the disk when the daemon ends.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Runs until it is told to end; `ready` hears once enforcement is up.
fn run(policy: Option<Policy>, how: &Options, ready: impl FnOnce(Report)) -> Outcome {
    threads::abort_on_panic();
    let instance = instance::Instance::claim()?;
    let (queue, receive) = queue::Queue::new();
    let (shared, report) = boot::boot(policy, how, queue).inspect_err(|_| {
        // nothing of a start that failed stays; what was in force before does
        if !Monitor::is_loaded().unwrap_or(true) {
            instance::clean_up();
        }
    })?;
    let shared = Arc::new(shared);
    let server = server::Server::listen()?;
    let records = events::start(&shared, how, receive)?;
    maintenance::start(&shared)?;
    decisions::start(&shared)?;
    shared.monitor.set_daemon(true);
    instance::notify("READY=1");
    ready(report);
    let served = server.run(&shared, &watchdog::Watchdog::of_environment());
    instance::notify("STOPPING=1");
    shared.ending.store(true, Ordering::SeqCst);
    if Monitor::is_loaded().unwrap_or(false)
        && let Err(failure) = keep_given(&shared)
    {
        shared.complain(&failure.to_string());
    }
    if !records.end(&shared, WRITTEN_WITHIN) {
        // the next daemon counts them
        shared.complain("records wait for the disk, and are lost");
    }
    shared.monitor.set_daemon(false);
    drop(instance);
    served
}

/// Writes the given levels down: for the last time if the machine is going down, when nothing
/// but the service manager is left (tidegate.service). Else levels go on being given.
fn keep_given(shared: &Shared) -> Outcome {
    let state = Command::new("systemctl").arg("is-system-running").output();
    if state.is_ok_and(|s| s.stdout.trim_ascii() == b"stopping") {
        store::save_clean(&shared.monitor, &shared.policies, &shared.disks)
    } else {
        store::save(&shared.monitor, &shared.policies, &shared.disks)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tidegate_monitor::{Event, Kind, Op, Reason};

    /// A record to test with.
    pub fn event(kind: Kind) -> Event {
        Event {
            id: 1,
            time: 0,
            prev: None,
            start: 0,
            kind,
            op: Some(Op::OpenWrite),
            reason: Reason::Rule,
            class: None,
            seqno: 1,
            pid: 412,
            tid: 412,
            uid: 1000,
            comm: "sh".into(),
            from: 0,
            to: 0,
            object: 1,
            source: None,
            peer: None,
            address: None,
            path: None,
            dev: 1,
            ino: 2,
            capability: None,
            request: None,
            asked: None,
            caps: None,
        }
    }
}
