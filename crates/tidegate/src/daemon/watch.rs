//! Two threads: one answers the kernel's calls for the guard and takes the records
//! off the ring buffer, at real-time priority; the other writes them down.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_monitor::{Class, Event, Events, Kind};

use super::Shared;
use super::log::Log;
use super::rate::Rate;
use crate::cli;
use crate::exit::{Failure, Outcome};
use crate::places;
use crate::record::Record;

/// How often the threads look whether they are to end.
const BEAT: Duration = Duration::from_millis(500);

/// How long all must have gone well before the log counts as written again.
const QUIET: Duration = Duration::from_secs(10);

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
            // for the daemon alone
            ours.monitor.took_record();
            ours.monitor.told_records(1);
            let armed = match event.class {
                Some(Class::Te) => ours.guard.arm_te(&ours.monitor),
                Some(Class::Caps) => ours.monitor.arm_capabilities(),
                _ => ours.guard.arm(&ours.monitor),
            };
            if let Err(e) = armed {
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

fn write(shared: &Shared, log: Log, mut rate: Rate, records: &Receiver<Event>) {
    let mut writer = Writer {
        shared,
        log,
        lost: 0,
        failed: None,
    };
    loop {
        match records.recv_timeout(BEAT) {
            Ok(event) => {
                shared.queue.took(&event);
                shared.counts.record(&event);
                if rate.passes(&event, Instant::now()) {
                    let record = Record::written(&event, &shared.monitor, &shared.policies);
                    writer.put(&record, 1);
                }
            }
            Err(RecvTimeoutError::Timeout) if shared.ends() => {
                writer.tell_managers();
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for (count, last) in rate.end(Instant::now()) {
            shared.counts.dropped(count);
            let last = Record::of(&last, &shared.policies);
            let record = Record {
                kind: "dropped".into(),
                count: Some(count),
                ..last
            };
            writer.put(&record, count);
        }
        writer.tell_managers();
        writer.tell_lost();
    }
}

/// The log's end, where nothing goes missing without being counted.
struct Writer<'a> {
    shared: &'a Shared,
    log: Log,
    /// Of [`Shared::lost`], those that the log tells of.
    lost: u64,
    /// When a line could not be written last, as while the disk is full; `None`: all goes well.
    failed: Option<Instant>,
}

impl Writer<'_> {
    /// Writes a line that stands for so many records; if that fails they are lost.
    fn put(&mut self, record: &Record, stands_for: u64) {
        match self.log.write(record) {
            Ok(()) => self.wrote(stands_for),
            Err(e) => {
                self.shared.dropped.fetch_add(stands_for, Ordering::Relaxed);
                if self.failed.is_none() {
                    self.shared.complain(&format!(
                        "the audit log cannot be written: {e}; what is not is counted, and refused all the same"
                    ));
                }
                self.failed = Some(Instant::now());
            }
        }
    }

    /// Tells how many were lost since the last time; where that cannot be written, later.
    fn tell_lost(&mut self) {
        let new = self.shared.lost().saturating_sub(self.lost);
        if new > 0 && self.log.write(&Record::own("lost", new)).is_ok() {
            self.lost += new;
            self.wrote(new);
        }
    }

    /// Writes what object managers sent: of the kernel's records it is none.
    fn tell_managers(&mut self) {
        let log = &mut self.log;
        let managers = &self.shared.managers;
        managers.drain(|record| log.write(record).is_ok());
    }

    fn wrote(&mut self, records: u64) {
        self.shared.monitor.told_records(records);
        // on a full disk a short line finds room now and then
        if self.failed.is_some_and(|at| at.elapsed() > QUIET) {
            self.failed = None;
            self.shared.complain("the audit log is written again");
        }
    }
}
