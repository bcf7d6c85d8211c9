//! Of an audit record, what is about capability files.

use serde::{Deserialize, Serialize};
use tidegate_monitor::CapsWhy;

/// What the record of a refusal by capability files has besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapsRecord {
    /// The session's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The subject that did not give it, if it is a single one's matter;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// its place in a capability file,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// and why: `enum caps_why`.
    pub why: String,
    /// Of a request to a service: which, as the subject's file has it;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// its operation, or the number of one that it has not;
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// and the object, if one is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// Why capability files did not give something.
pub fn because(why: &str) -> &'static str {
    match CapsWhy::ALL.into_iter().find(|known| known.word() == why) {
        Some(CapsWhy::Missing) => "no line gives that",
        Some(CapsWhy::NotBound) => "it was not opened for that",
        Some(CapsWhy::Revoked) => "it was taken back",
        Some(CapsWhy::Expired) => "its time is over",
        Some(CapsWhy::UsedUp) => "its uses are used up",
        Some(CapsWhy::TooMany) => "there would be too many layers or domains",
        Some(CapsWhy::NoName) => "it has no name that a line could be for",
        Some(CapsWhy::Nobodys) => "no capability file can give that",
        Some(CapsWhy::Others) => "the other process may do more, or is of another session",
        Some(CapsWhy::Request) => "the service has no such request",
        Some(CapsWhy::SocketType) => "the service's socket is of another type",
        None => "for a reason that this version does not know",
    }
}
