//! A refusal or a process's level, and the records that led to it.

use serde::{Deserialize, Serialize};
use tidegate_protocol::You;

use crate::record::Record;

/// The answer to `why`: a chain of records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chain {
    /// The process asked about, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<You>,
    /// The records, the newest first.
    pub chain: Vec<Record>,
    /// Whether the chain goes on where the history does not.
    pub cut: bool,
}
