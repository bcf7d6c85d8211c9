//! Sessions of capability files, and what is taken back from them.

use serde::{Deserialize, Serialize};

/// What is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Withdraw {
    /// All that a session has.
    Session {
        /// Its number.
        number: u64,
    },
    /// What a subject gives.
    Subject {
        /// Of which file; `None`: of any.
        file: Option<String>,
        /// Its name.
        name: String,
    },
    /// What a line gives.
    Capability {
        /// Of which file,
        file: String,
        /// and which line.
        line: u32,
    },
    /// What anybody gives of an object.
    Object {
        /// The word of its class.
        class: String,
        /// Its name.
        name: String,
    },
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its number.
    pub number: u64,
    /// The user that began it.
    pub uid: u32,
    /// When, in UTC.
    pub since: String,
    /// Tasks in it.
    pub tasks: u32,
    /// By which subjects its tasks are limited: names, each with its file.
    pub subjects: Vec<String>,
    /// What was taken from it.
    pub revoked: Vec<String>,
}

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Its id,
    pub pid: u32,
    /// its program's name,
    pub comm: String,
    /// and why.
    pub why: String,
}
