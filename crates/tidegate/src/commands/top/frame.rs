//! What `top` shows at one moment, and where it comes from.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use tidegate_audit::{Record, Tail, level_name};
use tidegate_monitor::{Kind, Monitor};
use tidegated::{Policies, paths};

use crate::commands::check::attributes;
use crate::commands::status::in_force;
use crate::commands::why::parts;
use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Manager, Status, Why, WhyOf};

/// Records that are kept to be shown.
const RECORDS: usize = 200;

/// Bytes of the log that are read for those before the start.
const BEFORE: u64 = 64 << 10;

/// One moment.
#[derive(Debug, Clone, Serialize)]
pub struct Frame {
    /// What is in force.
    pub status: Status,
    /// Records a second, since the frame before.
    pub records_rate: f64,
    /// Decisions a second by object manager.
    pub managers: Vec<Rate>,
    /// Processes at each level, the lowest first.
    pub levels: Vec<usize>,
    /// Processes below the top.
    pub processes: Vec<Process>,
    /// The newest demotions and refusals, and what was lost, the newest last.
    pub records: VecDeque<Record>,
}

/// How busy an object manager is.
#[derive(Debug, Clone, Serialize)]
pub struct Rate {
    /// Its name.
    pub object_manager: String,
    /// Decisions a second.
    pub queries: f64,
    /// Refusals a second.
    pub denied: f64,
}

/// A process below the top.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its real user id.
    pub uid: u32,
    /// The name of its level.
    pub level: String,
    /// The number of its level.
    pub number: u8,
    /// Its program's name.
    pub comm: String,
    /// What its program is trusted with.
    pub attributes: Vec<String>,
    /// What brought it where it is; `None`: the history has it no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fall: Option<Record>,
}

/// Where frames come from.
pub struct Source {
    monitor: Monitor,
    policies: Policies,
    log: Option<Tail>,
    records: VecDeque<Record>,
    falls: HashMap<u64, Option<Record>>,
    before: Option<(Instant, u64, Vec<Manager>)>,
}

impl Source {
    /// Finds the monitor; it takes root at the top level.
    pub fn open() -> Outcome<Source> {
        let monitor = Monitor::open()?;
        Ok(Source {
            policies: Policies::of(&monitor)?,
            monitor,
            log: Tail::open_near_end(Path::new(paths::LOG), BEFORE).ok(),
            records: VecDeque::new(),
            falls: HashMap::new(),
            before: None,
        })
    }

    /// What there is now.
    pub fn take(&mut self) -> Outcome<Frame> {
        if !Monitor::is_loaded()? {
            let message = "nothing is enforced any more";
            return Err(Failure::new(Code::NotRunning, message));
        }
        let status = in_force()?;
        let managers = tidegated::managers(&self.monitor)?;
        let (records_rate, rates) = self.rates(&status, managers);
        let (levels, processes) = self.processes(&status)?;
        self.read_log()?;
        Ok(Frame {
            status,
            records_rate,
            managers: rates,
            levels,
            processes,
            records: self.records.clone(),
        })
    }

    /// The chain that led to a process's level, or why there is none.
    pub fn why(&self, pid: u32) -> Vec<String> {
        let of = WhyOf::Process(pid);
        match tidegated::explain(&self.monitor, &self.policies, of, None) {
            Ok(chain) => parts(&Why::from(chain)),
            Err(error) => vec![error.to_string()],
        }
    }

    fn rates(&mut self, status: &Status, now: Vec<Manager>) -> (f64, Vec<Rate>) {
        let at = Instant::now();
        let (seconds, records, before) = match self.before.take() {
            Some((then, records, before)) => {
                ((at - then).as_secs_f64().max(0.001), records, before)
            }
            None => (1.0, status.records, now.clone()),
        };
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let rates = now.iter().zip(&before).map(|(now, before)| Rate {
            object_manager: now.object_manager.clone(),
            queries: rate(now.queries, before.queries),
            denied: rate(now.denied, before.denied),
        });
        let rates = (rate(status.records, records), rates.collect());
        self.before = Some((at, status.records, now));
        rates
    }

    fn processes(&mut self, status: &Status) -> Outcome<(Vec<usize>, Vec<Process>)> {
        let top = self.monitor.status()?.top;
        let mut levels = vec![0; usize::from(top) + 1];
        let mut below = Vec::new();
        let mut falls = HashMap::new();
        for p in self.monitor.processes()? {
            let (number, cause) = (p.subject.level, p.subject.cause);
            if let Some(count) = levels.get_mut(usize::from(number)) {
                *count += 1;
            }
            if number >= top {
                continue;
            }
            let known = falls.get(&cause).or_else(|| self.falls.get(&cause));
            let fall = match known.cloned() {
                Some(fall) => fall,
                None => self.fall(cause)?,
            };
            falls.insert(cause, fall.clone());
            let policy = self.policies.get(status.seqno);
            below.push(Process {
                pid: p.pid,
                uid: p.uid,
                level: level_name(policy.as_deref(), number),
                number,
                comm: p.comm,
                attributes: attributes(p.subject.attrs),
                fall,
            });
        }
        // those whose processes are gone are forgotten
        self.falls = falls;
        Ok((levels, below))
    }

    /// The newest demotion in a chain.
    fn fall(&self, cause: u64) -> Outcome<Option<Record>> {
        let chain = match cause {
            0 => Vec::new(),
            cause => self.monitor.chain(cause)?,
        };
        let fall = chain.iter().find(|e| e.kind == Kind::Demoted);
        Ok(fall.map(|e| Record::of(e, &self.policies)))
    }

    /// What the daemon has written since.
    fn read_log(&mut self) -> Outcome {
        if self.log.is_none() {
            self.log = Tail::open(Path::new(paths::LOG)).ok();
        }
        let records = &mut self.records;
        let mut keep = |record: Record, _| {
            if record.kind != Kind::Started.word() {
                records.push_back(record);
            }
            if records.len() > RECORDS {
                records.pop_front();
            }
        };
        match &mut self.log {
            Some(log) => log
                .follow(&mut keep)
                .map_err(|e| Failure::io(format!("read {}", paths::LOG), e)),
            None => Ok(()),
        }
    }
}
