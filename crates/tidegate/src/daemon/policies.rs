//! The policies that were in force since boot: a record names its rule by the
//! policy's sequence number and an index.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tidegate_policy::Policy;

use super::instance::{directory, write_whole};
use crate::exit::Outcome;
use crate::places;

/// The bundles in `/run/tidegate/policy`, each read once.
#[derive(Debug, Default)]
pub struct Policies {
    read: Mutex<HashMap<u32, Option<Arc<Policy>>>>,
}

impl Policies {
    /// None read yet.
    pub fn new() -> Policies {
        Policies::default()
    }

    fn path(seqno: u32) -> PathBuf {
        PathBuf::from(places::BUNDLES).join(format!("{seqno}.bundle"))
    }

    /// The policy of a number; `None` if its bundle is gone or damaged.
    pub fn get(&self, seqno: u32) -> Option<Arc<Policy>> {
        let mut read = self.read.lock().ok()?;
        read.entry(seqno)
            .or_insert_with(|| {
                let bytes = fs::read(Self::path(seqno)).ok()?;
                Policy::from_bundle(&bytes).ok().map(Arc::new)
            })
            .clone()
    }

    /// Keeps a policy that is in force, for its records and for the next boot.
    pub fn keep(&self, seqno: u32, policy: Policy) -> Outcome {
        let bundle = policy.to_bundle();
        write_whole(&Self::path(seqno).to_string_lossy(), &bundle, 0o600)?;
        directory(places::STATE, 0o700)?;
        // a full disk is no reason to go without a policy now
        let _ = write_whole(places::LAST, &bundle, 0o600);
        if let Ok(mut read) = self.read.lock() {
            read.insert(seqno, Some(Arc::new(policy)));
        }
        Ok(())
    }
}
