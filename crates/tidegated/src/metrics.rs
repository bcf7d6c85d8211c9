//! What the daemon counts, and every counter in one answer.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidegate_monitor::{Class, Event, Kind, Monitor, Op};
use tidegate_protocol::{Manager, Metrics, RecordCount};

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::locks::{METRICS, Ordered};
use crate::status::status;

/// How long an answer holds: counting goes through all processes and all given levels,
/// and anybody may ask.
const HOLDS: Duration = Duration::from_secs(1);

/// A sort of records.
type Sort = (Kind, Option<Class>, Option<Op>);

/// What the daemon counts since it started.
#[derive(Debug)]
pub struct Counts {
    started: SystemTime,
    records: Mutex<BTreeMap<Sort, u64>>,
    dropped: AtomicU64,
    answer: Ordered<METRICS, Option<(Instant, Metrics)>>,
}

impl Counts {
    /// Nothing yet.
    pub fn new() -> Counts {
        Counts {
            started: SystemTime::now(),
            records: Mutex::default(),
            dropped: AtomicU64::new(0),
            answer: Ordered::default(),
        }
    }

    /// A record has come.
    pub fn record(&self, event: &Event) {
        let sort = (event.kind, event.class, event.op);
        let mut records = self.records.lock().unwrap_or_else(|e| e.into_inner());
        *records.entry(sort).or_default() += 1;
    }

    /// So many were left out of the log.
    pub fn dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    fn records(&self) -> Vec<RecordCount> {
        let records = self.records.lock().unwrap_or_else(|e| e.into_inner());
        let told = records
            .iter()
            .map(|(&(kind, class, op), &count)| RecordCount {
                kind: kind.word().into(),
                class: class.map(|c| c.word().into()),
                op: op.map(|o| o.word().into()),
                count,
            });
        told.collect()
    }
}

/// Every counter, at most [`HOLDS`] old. So many records found no room on the daemon's side.
pub fn metrics(counts: &Counts, enforcement: &Enforcement, queue_lost: u64) -> Outcome<Metrics> {
    let Enforcement {
        monitor, policies, ..
    } = enforcement;
    let mut answer = counts.answer.lock();
    if let Some((at, metrics)) = &*answer
        && at.elapsed() < HOLDS
    {
        return Ok(metrics.clone());
    }
    let since = counts.started.duration_since(UNIX_EPOCH);
    let metrics = Metrics {
        status: status(monitor, policies)?,
        managers: managers(monitor)?,
        records: counts.records(),
        dropped: counts.dropped.load(Ordering::Relaxed),
        queue_lost,
        processes: processes(monitor)?,
        started: since.map_or(0, |s| s.as_secs()),
        resident: resident()?,
    };
    *answer = Some((Instant::now(), metrics.clone()));
    Ok(metrics)
}

/// How the object managers' queries were resolved.
pub fn managers(monitor: &Monitor) -> Outcome<Vec<Manager>> {
    let stats = monitor.stats()?.into_iter().map(|s| Manager {
        object_manager: s.class.word().into(),
        queries: s.queries,
        // what neither the cache nor the server was asked for, the object knew
        hint: s.queries.saturating_sub(s.cache + s.server).max(s.hint),
        cache: s.cache,
        server: s.server,
        denied: s.denied,
    });
    Ok(stats.collect())
}

/// Processes at each level.
fn processes(monitor: &Monitor) -> Outcome<Vec<u64>> {
    let mut levels = vec![0; usize::from(monitor.status()?.top) + 1];
    for process in monitor.processes()? {
        if let Some(count) = levels.get_mut(usize::from(process.subject.level)) {
            *count += 1;
        }
    }
    Ok(levels)
}

/// This process's resident memory in bytes (proc_pid_statm(5)).
fn resident() -> Outcome<u64> {
    let statm = fs::read_to_string("/proc/self/statm")
        .map_err(|e| DaemonError::io("read /proc/self/statm", e))?;
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|n| n.parse().ok());
    Ok(pages.unwrap_or(0) * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_their_sort() {
        let counts = Counts::new();
        counts.record(&Event::example(Kind::Denied));
        counts.record(&Event::example(Kind::Denied));
        counts.record(&Event {
            class: Some(Class::File),
            ..Event::example(Kind::Denied)
        });
        counts.record(&Event::example(Kind::Demoted));
        let told: Vec<_> = counts
            .records()
            .into_iter()
            .map(|r| (r.kind, r.class, r.count))
            .collect();
        let file = Some("file".to_string());
        assert_eq!(
            told,
            [
                ("denied".into(), None, 2),
                ("denied".into(), file, 1),
                ("demoted".into(), None, 1)
            ]
        );
    }

    #[test]
    fn a_process_has_memory() {
        assert!(resident().unwrap() > 100_000);
    }
}
