//! The daemon's course: it brings enforcement up, starts its threads, answers, and ends.

use std::sync::Arc;
use std::time::Duration;

use tidegate_bundle::Policy;
use tidegate_monitor::Monitor;

use crate::end::keep_given;
use crate::error::Outcome;
use crate::messages::complain;
use crate::object_managers::decisions;
use crate::options::Options;
use crate::report::Report;
use crate::{boot, events, instance, maintenance, queue, server, threads, watchdog};

/// How long the records that wait may take to the disk when the daemon ends.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Runs the daemon until a signal or a client ends it. Calls `ready` once enforcement is up.
pub fn run(policy: Option<Policy>, how: &Options, ready: impl FnOnce(Report)) -> Outcome {
    threads::abort_on_panic();
    // else the stack of each client's thread takes 2 MiB, and the time to clear them
    let _ = nix::sys::prctl::set_thp_disable(true);
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
    let record_threads = events::start(&shared, how, receive)?;
    maintenance::start(&shared.enforcement, &shared.threads)?;
    let security = &shared.object_managers.security;
    decisions::start(security, &shared.enforcement, &shared.threads)?;
    shared.enforcement.monitor.set_daemon(true);
    instance::notify("READY=1");
    ready(report);
    let served = server.run(&shared, &watchdog::Watchdog::of_environment());
    instance::notify("STOPPING=1");
    shared.threads.end();
    if Monitor::is_loaded().unwrap_or(false)
        && let Err(failure) = keep_given(&shared.enforcement)
    {
        complain(&failure.to_string());
    }
    if !record_threads.end(&shared, WRITTEN_WITHIN) {
        // the next daemon counts them
        complain("records wait for the disk, and are lost");
    }
    shared.enforcement.monitor.set_daemon(false);
    drop(instance);
    served
}
