//! What the monitor counts.

use std::sync::atomic::Ordering;

use crate::abi::Class;
use crate::attach::Set;
use crate::error::{Result, Trying};
use crate::load::Monitor;
use crate::parts::Te;
use crate::pins::Pinned;

/// How one object manager's queries were resolved: a line of Flask's Table 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassStats {
    /// The object manager.
    pub class: Class,
    /// Decisions asked for.
    pub queries: u64,
    /// Answered by what the object itself remembers.
    pub hint: u64,
    /// Answered by the table of given levels.
    pub cache: u64,
    /// Looked up in the map.
    pub server: u64,
    /// Refused, or recorded as refused where permissive.
    pub denied: u64,
}

/// What is in force, and how it fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Number of the policy in force; 0: none yet.
    pub seqno: u32,
    /// The highest level.
    pub top: u8,
    /// Whether nothing is refused: refusals are only recorded, or no policy was put in force yet.
    pub permissive: bool,
    /// The daemon's process id as it last said, 0: none.
    pub daemon: u32,
    /// Whether descriptors are being revoked.
    pub guard_armed: bool,
    /// Whether the guard's programs are attached.
    pub guard_attached: bool,
    /// Programs attached.
    pub attached: usize,
    /// History records written.
    pub records: u64,
    /// Records that found no room on their way to the daemon.
    pub events_lost: u64,
    /// Objects whose label could not be stored.
    pub labels_failed: u64,
    /// Room in the table of given levels, and in that of given labels.
    pub given_max: u32,
    /// Entries in the table of given labels.
    pub labels_used: u64,
}

impl Monitor {
    /// What is in force.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the pins cannot be listed.
    pub fn status(&self) -> Result<Status> {
        let policy = self.globals.policy();
        let links = Pinned::Links.names()?;
        let te = self.part::<Te>()?;
        Ok(Status {
            seqno: policy.seqno,
            top: policy.top,
            permissive: policy.permissive != 0 || policy.seqno == 0,
            daemon: policy.daemon,
            guard_armed: self.globals.guard_armed().load(Ordering::Relaxed) != 0,
            guard_attached: links.iter().any(|l| Set::of(l) == Some(Set::Guard)),
            attached: links.len(),
            records: self.globals.records().load(Ordering::Relaxed),
            events_lost: self.globals.events_lost(),
            labels_failed: self.globals.labels_failed(),
            given_max: self.given.max_entries,
            labels_used: te.map_or(0, |te| te.globals.given_used().load(Ordering::Relaxed)),
        })
    }

    /// Entries in the table of given levels.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the table cannot be read.
    pub fn given_used(&self) -> Result<u64> {
        Ok(self
            .given
            .entries()
            .trying(|| "read the given levels".into())?
            .len() as u64)
    }

    /// Every object manager's counters, in the kernel's order.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the map cannot be read.
    pub fn stats(&self) -> Result<Vec<ClassStats>> {
        let mut out = Vec::new();
        for class in Class::ALL {
            let cpus = self
                .stats
                .get_percpu(&(class as u32))
                .trying(|| "read the counters".into())?;
            let sum = |f: fn(&crate::skel::types::tg_stats) -> u64| cpus.iter().map(f).sum::<u64>();
            out.push(ClassStats {
                class,
                queries: sum(|s| s.queries),
                hint: sum(|s| s.hint),
                cache: sum(|s| s.cache),
                server: sum(|s| s.server),
                denied: sum(|s| s.denied),
            });
        }
        Ok(out)
    }
}
