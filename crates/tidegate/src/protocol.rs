//! What is said over the daemon's socket, records with it.

use serde::{Deserialize, Serialize};
pub use tidegate_protocol::{Ask, Manager, Status, WhyOf, You};

use tidegate_audit::{Chain, Record};
use tidegate_remedy::Remedy;

/// An answer.
pub type Answer = tidegate_protocol::Answer<Why>;

/// A chain of records, as the daemon answers, and what this program makes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Why {
    /// The process asked about, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<You>,
    /// Newest first.
    pub chain: Vec<Record>,
    /// The chain goes on, but the history does not.
    pub cut: bool,
    /// What would fix it, if it begins with a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl From<Chain> for Why {
    fn from(of: Chain) -> Why {
        Why {
            process: of.process,
            chain: of.chain,
            cut: of.cut,
            remedy: None,
        }
    }
}
