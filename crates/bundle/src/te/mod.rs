//! The `te` model's policy: SELinux's, as a binary policy has it, and its file contexts.
//!
//! The policy is read from the binary form that SELinux's own compilers write ([`policydb`]). [`decide`] answers
//! what it says, slowly and simply: the kernel's tables are held against it.

pub mod context;
#[cfg(test)]
mod context_tests;
pub mod contexts;
pub mod db;
pub mod decide;
pub mod example;
mod names;
pub mod policydb;
mod said;
mod summary;
pub mod text;

use miette::Diagnostic;
use thiserror::Error;

use self::contexts::FileContexts;
use self::db::PolicyDb;
use self::decide::Decider;
use self::policydb::PolicyDbError;
pub use self::summary::Summary;

/// Initial SIDs by their numbers, from 1 (`SECINITSID_*`), with those that the kernel has given up.
pub const INITIAL_SIDS: [&str; 27] = [
    "kernel",
    "security",
    "unlabeled",
    "fs",
    "file",
    "file_labels",
    "init",
    "any_socket",
    "port",
    "netif",
    "netmsg",
    "node",
    "igmp_packet",
    "icmp_socket",
    "tcp_socket",
    "sysctl_modprobe",
    "sysctl",
    "sysctl_fs",
    "sysctl_kernel",
    "sysctl_net",
    "sysctl_net_unix",
    "sysctl_vm",
    "sysctl_dev",
    "kmod",
    "policy",
    "scmp_packet",
    "devnull",
];

/// A policy and how it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Te {
    /// The binary policy as it was read: what a bundle keeps, so that there is one reader for both.
    pub policy: Vec<u8>,
    /// What it says.
    pub db: PolicyDb,
    /// Booleans that have another value than the policy gives them, by name; the last one counts.
    pub booleans: Vec<(String, bool)>,
    /// What files are labelled as, by their paths; `None`: as their filesystems are.
    pub files: Option<FileContexts>,
    /// Ranges of levels that contexts are to have besides those that the policy and its file contexts name. No bundle
    /// has any: they come as they are asked for.
    pub ranges: Vec<String>,
    /// Whether stat(2) and the look-up of each component of a path are decided about, too.
    pub sight: bool,
}

/// A boolean that the policy does not have, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("the policy has no boolean `{0}`")]
#[diagnostic(code(te::boolean))]
pub struct UnknownBoolean(pub String);

impl Te {
    /// Reads a binary policy, which may be anything.
    ///
    /// # Errors
    ///
    /// The first thing wrong with it.
    pub fn read(policy: Vec<u8>) -> Result<Te, PolicyDbError> {
        Ok(Te {
            db: policydb::read(&policy)?,
            policy,
            booleans: Vec::new(),
            files: None,
            ranges: Vec::new(),
            sight: false,
        })
    }

    /// Gives a boolean a value.
    ///
    /// # Errors
    ///
    /// If the policy has none of this name.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), UnknownBoolean> {
        let mut known = self.db.booleans.iter().map(|boolean| boolean.name.as_str());
        if !known.any(|known| known == name) {
            return Err(UnknownBoolean(name.to_owned()));
        }
        self.booleans.retain(|(other, _)| other != name);
        self.booleans.push((name.to_owned(), value));
        Ok(())
    }

    /// The values that the policy's booleans have, in their order.
    pub fn values(&self) -> Vec<bool> {
        let set = |name: &str| self.booleans.iter().rfind(|(other, _)| other == name);
        let booleans = self.db.booleans.iter();
        booleans
            .map(|boolean| set(&boolean.name).map_or(boolean.value, |(_, value)| *value))
            .collect()
    }

    /// The decider by it, with its booleans as they are set.
    pub fn decider(&self) -> Decider<'_> {
        Decider::new(&self.db, &self.values())
    }
}
