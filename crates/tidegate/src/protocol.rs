//! What is said over the daemon's socket, records with it.

use serde::{Deserialize, Serialize};
pub use tidegate_protocol::{
    Ask, MAX_ASK, Manager, Metrics, RecordCount, Room, Status, WhyOf, You,
};

use crate::mend::Mending;
use crate::record::Record;

/// An answer.
pub type Answer = tidegate_protocol::Answer<Why>;

/// A chain of records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Why {
    /// The process asked about, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<You>,
    /// Newest first.
    pub chain: Vec<Record>,
    /// The chain goes on, but the history does not.
    pub cut: bool,
    /// What would mend it, if it begins with a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mending: Option<Mending>,
}
