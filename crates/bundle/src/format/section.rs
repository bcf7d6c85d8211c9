//! Sections and the `lomac` section's content, in postcard's encoding.
//!
//! Lists are read an element at a time, their counts checked first, so that no
//! count can make the loader allocate more than a small multiple of the bytes
//! that are really there.

use serde::{Deserialize, Serialize};

use super::{BundleError, MAX_SECTIONS};
use crate::limits::{MAX_LEVELS, MAX_NETWORKS, MAX_NODES, MAX_OPTIONS, MAX_RULES};
use crate::policy::Policy;
use crate::profile::ProfileSet;

/// A bundle's body.
pub(super) fn write_all(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(sections);
    out.0
}

/// The sections of a body, by name.
pub(super) fn read_all(body: &[u8]) -> Result<Vec<(&str, &[u8])>, BundleError> {
    let mut reader = Reader::new(body, "(all)");
    let sections = reader.list("sections", MAX_SECTIONS)?;
    reader.finish()?;
    Ok(sections)
}

/// The content of the `lomac` section.
pub(super) fn write_lomac(policy: &Policy) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.value(&policy.name);
    out.value(&policy.mode);
    out.list(&policy.levels);
    out.list(&policy.nodes);
    out.list(&policy.edges);
    out.list(&policy.networks);
    out.list(&policy.rules);
    out.0
}

/// The content of the section of options.
pub(super) fn write_options(policy: &Policy) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(&policy.options);
    out.0
}

/// What is written of a section.
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        let bytes = postcard::to_allocvec(value);
        self.0
            .extend(bytes.expect("what a policy holds is serialisable into memory"));
    }

    pub fn list(&mut self, list: &[impl Serialize]) {
        self.value(&list.len());
        for item in list {
            self.value(item);
        }
    }
}

/// How much of something there is so far, and may be at most.
pub(super) struct Room {
    what: &'static str,
    taken: usize,
    max: usize,
}

impl Room {
    pub fn new(what: &'static str, max: usize) -> Room {
        let taken = 0;
        Room { what, taken, max }
    }

    /// So much of it is taken.
    pub fn take(&mut self, count: usize) -> Result<(), BundleError> {
        self.taken = self.taken.saturating_add(count);
        match self.taken > self.max {
            true => Err(BundleError::Limit {
                what: self.what,
                count: self.taken,
                max: self.max,
            }),
            false => Ok(()),
        }
    }
}

/// What is left to read of a section.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
    section: &'static str,
}

impl<'b> Reader<'b> {
    pub fn new(rest: &'b [u8], section: &'static str) -> Self {
        Self { rest, section }
    }

    /// Reads the `lomac` section, whose indices are still to be checked.
    pub fn lomac(mut self) -> Result<Policy, BundleError> {
        let name = self.value("name")?;
        let mode = self.value("mode")?;
        let levels = self.list("levels", MAX_LEVELS)?;
        let nodes = self.list("nodes", MAX_NODES)?;
        let edges = self.list("edges", MAX_NODES)?;
        let networks = self.list("networks", MAX_NETWORKS)?;
        let rules = self.list("rules", MAX_RULES)?;
        self.finish()?;
        Ok(Policy {
            name,
            mode,
            levels,
            nodes,
            edges,
            networks,
            rules,
            profiles: ProfileSet::default(),
            te: None,
            options: Vec::new(),
        })
    }

    /// Reads the section of options.
    pub fn options(mut self) -> Result<Vec<String>, BundleError> {
        let options = self.list("options", MAX_OPTIONS)?;
        self.finish()?;
        Ok(options)
    }

    pub fn value<T: Deserialize<'b>>(&mut self, what: &'static str) -> Result<T, BundleError> {
        let (value, rest) =
            postcard::take_from_bytes(self.rest).map_err(|_| BundleError::Malformed {
                section: self.section,
                what,
            })?;
        self.rest = rest;
        Ok(value)
    }

    pub fn list<T: Deserialize<'b>>(
        &mut self,
        what: &'static str,
        max: usize,
    ) -> Result<Vec<T>, BundleError> {
        let count = self.count(what, max)?;
        (0..count).map(|_| self.value(what)).collect()
    }

    /// Reads such a list of elements that take room in memory, of which each takes as many bytes as `bytes` says.
    pub fn list_within<T: Deserialize<'b>>(
        &mut self,
        what: &'static str,
        max: usize,
        room: &mut Room,
        bytes: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>, BundleError> {
        let count = self.count(what, max)?;
        (0..count)
            .map(|_| {
                let value = self.value(what)?;
                room.take(bytes(&value))?;
                Ok(value)
            })
            .collect()
    }

    /// How many of something follow.
    pub fn count(&mut self, what: &'static str, max: usize) -> Result<usize, BundleError> {
        let count: usize = self.value(what)?;
        match count > max {
            true => Err(BundleError::Limit { what, count, max }),
            false => Ok(count),
        }
    }

    /// So many bytes as they are.
    pub fn bytes(&mut self, what: &'static str, count: usize) -> Result<&'b [u8], BundleError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(BundleError::Malformed {
                section: self.section,
                what,
            })?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn finish(self) -> Result<(), BundleError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(BundleError::SectionTrailing {
                section: self.section,
                bytes,
            }),
        }
    }
}
