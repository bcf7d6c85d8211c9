//! What the daemon and the kernel count.

use serde::{Deserialize, Serialize};

use crate::Status;

/// Every counter. Those of the kernel begin where the monitor was loaded, those of the
/// daemon where it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// What is in force.
    pub status: Status,
    /// Flask's table, a line an object manager.
    pub managers: Vec<Manager>,
    /// Records that reached the daemon, those left out of the log with them.
    pub records: Vec<RecordCount>,
    /// Of these, denials that were left out of the log, beyond `--log-rate`.
    pub dropped: u64,
    /// Records that reached the daemon and found its queue full.
    pub queue_lost: u64,
    /// Processes at each level, the lowest first; kernel threads are not counted.
    pub processes: Vec<u64>,
    /// When the daemon started, in seconds since 1970.
    pub started: u64,
    /// Bytes of memory the daemon has resident.
    pub resident: u64,
}

/// How one object manager's queries were resolved: a line of Flask's Table 6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Its name, as records have it in `class`.
    pub object_manager: String,
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

/// Records of one sort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCount {
    /// As records have it.
    pub kind: String,
    /// The object manager, if it was one's.
    pub class: Option<String>,
    /// The operation, if it was a subject's own.
    pub op: Option<String>,
    /// How many.
    pub count: u64,
}
