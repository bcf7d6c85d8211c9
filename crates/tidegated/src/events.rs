//! Two threads: one answers the kernel's calls for the guard and takes the records
//! off the ring buffer, in real time as far as that goes (priority.rs); the other writes them down.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidegate_audit::Record;
use tidegate_monitor::{Class, Event, Events, Kind};

use crate::enforcement::Enforcement;
use crate::error::Outcome;
use crate::log::Log;
use crate::messages::complain;
use crate::options::Options;
use crate::paths;
use crate::priority::Priority;
use crate::rate::Rate;
use crate::shared::Shared;
use crate::threads::{ended_within, fatal, spawn};
use crate::watchdog::Who;

/// How often the threads look whether they are to end.
const BEAT: Duration = Duration::from_millis(500);

/// How long all must have gone well before the log counts as written again.
const QUIET: Duration = Duration::from_secs(10);

/// Both threads.
#[derive(Debug)]
pub struct RecordThreads {
    watch: JoinHandle<()>,
    log: JoinHandle<()>,
}

impl RecordThreads {
    /// Waits so long until all that has come is written down, once the daemon is to end; whether it is.
    pub fn end(&self, shared: &Shared, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let all_came = ended_within(&self.watch, patience);
        shared.records.queue.close();
        let left = until.saturating_duration_since(Instant::now());
        ended_within(&self.log, left) && all_came
    }
}

/// Starts both threads.
pub fn start(
    shared: &Arc<Shared>,
    how: &Options,
    records: Receiver<Event>,
) -> Outcome<RecordThreads> {
    let log = Log::open(Path::new(paths::LOG), how.log_size, how.log_keep)?;
    let rate = Rate::new(how.log_rate);
    let with = Arc::clone(shared);
    let log = spawn("log", &shared.threads, move || {
        write(&with, log, rate, &records);
    })?;
    let with = Arc::clone(shared);
    let watch = spawn("watch", &shared.threads, move || watch(&with))?;
    Ok(RecordThreads { watch, log })
}

fn watch(shared: &Arc<Shared>) {
    let priority = Rc::new(RefCell::new(Priority::real_time()));
    let (ours, own) = (Arc::clone(shared), Rc::clone(&priority));
    let each = move |event: Event| {
        if own.borrow_mut().took() {
            ours.threads.beat(Who::Watch);
        }
        let Enforcement { monitor, guard, .. } = &*ours.enforcement;
        if event.kind == Kind::Guard {
            // for the daemon alone
            monitor.took_record();
            monitor.told_records(1);
            let armed = own.borrow_mut().urgent(|| match event.class {
                Some(Class::Te) => guard.arm_te(monitor),
                Some(Class::Caps) => monitor.arm_capabilities(),
                _ => guard.arm(monitor),
            });
            if let Err(e) = armed {
                complain(&format!("the guard cannot be attached: {e}"));
            }
        } else {
            ours.records.log(monitor, event);
        }
    };
    let events = match Events::open(each) {
        Ok(events) => events,
        Err(e) => fatal(&e.to_string()),
    };
    while !shared.threads.ends() {
        shared.threads.beat(Who::Watch);
        priority.borrow_mut().look();
        if let Err(e) = events.wait(BEAT) {
            complain(&e.to_string());
            thread::sleep(BEAT);
        }
    }
    // what came until now; what comes from now on waits in the kernel for the next daemon
    if let Err(e) = events.wait(Duration::ZERO) {
        complain(&e.to_string());
    }
}

fn write(shared: &Shared, log: Log, mut rate: Rate, waiting: &Receiver<Event>) {
    let Enforcement {
        monitor, policies, ..
    } = &*shared.enforcement;
    let records = &shared.records;
    let mut writer = Writer {
        shared,
        log,
        lost: 0,
        failed: None,
    };
    loop {
        shared.threads.beat(Who::Log);
        let closed = records.queue.is_closed();
        let beat = if closed { Duration::ZERO } else { BEAT };
        match waiting.recv_timeout(beat) {
            Ok(event) => {
                records.queue.took(&event);
                records.counts.record(&event);
                if rate.passes(&event, Instant::now()) {
                    let record = Record::written(&event, monitor, policies);
                    writer.put(&record, 1);
                }
            }
            // it was closed before it was found empty
            Err(_) if closed => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        writer.tell_dropped(rate.end(Instant::now()));
        writer.tell_managers();
        writer.tell_lost();
    }
    writer.tell_dropped(rate.close());
    writer.tell_managers();
    writer.tell_lost();
}

/// The log's end, where nothing goes missing without being counted.
struct Writer<'a> {
    shared: &'a Shared,
    log: Log,
    /// Of those that are [lost](crate::records::Records::lost), those that the log tells of.
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
                self.shared.records.lose(stands_for);
                if self.failed.is_none() {
                    complain(&format!(
                        "the audit log cannot be written: {e}; what is not is counted, and refused all the same"
                    ));
                }
                self.failed = Some(Instant::now());
            }
        }
    }

    /// Tells of each kind how many were left out, and what the last of them was.
    fn tell_dropped(&mut self, dropped: Vec<(u64, Event)>) {
        for (count, last) in dropped {
            // there may be so many that they take longer than the watchdog waits
            self.shared.threads.beat(Who::Log);
            self.shared.records.counts.dropped(count);
            let last = Record::of(&last, &self.shared.enforcement.policies);
            let record = Record {
                kind: "dropped".into(),
                count: Some(count),
                ..last
            };
            self.put(&record, count);
        }
    }

    /// Tells how many were lost since the last time; where that cannot be written, later.
    fn tell_lost(&mut self) {
        let lost = self.shared.records.lost(&self.shared.enforcement.monitor);
        let new = lost.saturating_sub(self.lost);
        if new > 0 && self.log.write(&Record::own("lost", new)).is_ok() {
            self.lost += new;
            self.wrote(new);
        }
    }

    /// Writes what object managers sent: of the kernel's records it is none.
    fn tell_managers(&mut self) {
        let log = &mut self.log;
        let managers = &self.shared.object_managers.records;
        managers.drain(|record| log.write(record).is_ok());
    }

    fn wrote(&mut self, records: u64) {
        self.shared.enforcement.monitor.told_records(records);
        // on a full disk a short line finds room now and then
        if self.failed.is_some_and(|at| at.elapsed() > QUIET) {
            self.failed = None;
            complain("the audit log is written again");
        }
    }
}
