//! Two threads: one answers the kernel's calls for the guard and takes the records
//! off the ring buffer, at real-time priority; the other writes them down.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_monitor::{Event, Events, Kind};

use super::Shared;
use super::log::Log;
use super::rate::Rate;
use crate::cli;
use crate::exit::{Failure, Outcome};
use crate::places;
use crate::record::Record;

/// How often the threads look whether they are to end.
const BEAT: Duration = Duration::from_millis(500);

/// Starts both threads.
pub fn start(shared: &Arc<Shared>, how: &cli::Daemon, records: Receiver<Event>) -> Outcome {
    let failed = |e| Failure::io("start a thread", e);
    let log = Log::open(Path::new(places::LOG), how.log_size, how.log_keep)?;
    let rate = Rate::new(how.log_rate);
    let ours = Arc::clone(shared);
    thread::Builder::new()
        .name("log".into())
        .spawn(move || write(&ours, log, rate, &records))
        .map_err(failed)?;
    let ours = Arc::clone(shared);
    thread::Builder::new()
        .name("watch".into())
        .spawn(move || watch(&ours))
        .map_err(failed)?;
    Ok(())
}

/// Above every other process: a demotion waits at most 10 s for the guard. What
/// it starts is not.
fn real_time() {
    // SAFETY: a plain structure of integers; no pointers are kept.
    unsafe {
        let param = libc::sched_param {
            sched_priority: libc::sched_get_priority_max(libc::SCHED_FIFO),
        };
        // where it is not permitted the daemon is only slower
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param);
    }
}

fn watch(shared: &Arc<Shared>) {
    real_time();
    let ours = Arc::clone(shared);
    let each = move |event: Event| {
        if event.kind == Kind::Guard {
            if let Err(e) = ours.guard.arm(&ours.monitor) {
                ours.complain(&format!("the guard cannot be attached: {e}"));
            }
        } else {
            ours.log(event);
        }
    };
    let events = match Events::open(each) {
        Ok(events) => events,
        Err(e) => return shared.complain(&e.to_string()),
    };
    while !shared.ends() {
        if let Err(e) = events.wait(BEAT) {
            shared.complain(&e.to_string());
            thread::sleep(BEAT);
        }
    }
}

fn write(shared: &Shared, mut log: Log, mut rate: Rate, records: &Receiver<Event>) {
    let lost = || {
        let kernel = shared.monitor.status().map_or(0, |s| s.events_lost);
        kernel + shared.dropped.load(Ordering::Relaxed)
    };
    let mut lost_before = lost();
    let mut put = |record: &Record| {
        if let Err(e) = log.write(record) {
            shared.complain(&format!("the audit log cannot be written: {e}"));
        }
    };
    loop {
        match records.recv_timeout(BEAT) {
            Ok(event) => {
                shared.queued.fetch_sub(1, Ordering::Relaxed);
                shared.counts.record(&event);
                if rate.passes(&event, Instant::now()) {
                    put(&Record::written(&event, &shared.monitor, &shared.policies));
                }
            }
            Err(RecvTimeoutError::Timeout) if shared.ends() => return,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for (count, last) in rate.end(Instant::now()) {
            shared.counts.dropped(count);
            let last = Record::of(&last, &shared.policies);
            put(&Record {
                kind: "dropped".into(),
                count: Some(count),
                ..last
            });
        }
        let lost_now = lost().max(lost_before);
        if lost_now > lost_before {
            put(&Record::own("lost", lost_now - lost_before));
        }
        lost_before = lost_now;
    }
}
