//! What a start tells the program that asked for it.

use serde::{Deserialize, Serialize};

/// What came of starting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The exit code, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<u8>,
    /// One line.
    pub message: String,
    /// What is not as it should be.
    #[serde(default)]
    pub warnings: Vec<String>,
}
