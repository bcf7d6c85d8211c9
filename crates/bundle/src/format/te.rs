//! The `te` section's content: the binary policy as it was read, how its booleans are set, and its file contexts.
//!
//! The policy stands in it in SELinux's own form, so that there is one reader for what comes from others and for what
//! comes from a bundle, and it checks both.

use super::section::{Reader, Writer};
use super::{BundleError, te_contexts};
use crate::limits::{MAX_TE_BOOLEANS, MAX_TE_POLICY};
use crate::te::Te;

/// The content of the `te` section.
pub(super) fn write(te: &Te) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.value(&te.policy.len());
    out.0.extend_from_slice(&te.policy);
    out.list(&te.booleans);
    out.value(&te.sight);
    out.value(&te.files.is_some());
    if let Some(files) = &te.files {
        out.0.extend(te_contexts::write(files));
    }
    out.0
}

impl Reader<'_> {
    /// Reads the `te` section.
    pub fn te(mut self) -> Result<Te, BundleError> {
        let length = self.count("bytes of a SELinux policy", MAX_TE_POLICY)?;
        let policy = self.bytes("policy", length)?;
        let booleans: Vec<(String, bool)> = self.list("booleans", MAX_TE_BOOLEANS)?;
        let sight = self.value("look-ups")?;
        let files = match self.value("file contexts")? {
            true => Some(self.file_contexts()?),
            false => None,
        };
        self.finish()?;
        let mut te = Te::read(policy.to_vec()).map_err(BundleError::Te)?;
        for (name, value) in booleans {
            // set twice it is as good as set once, but no compiler writes that
            if te.booleans.iter().any(|(other, _)| *other == name) || te.set(&name, value).is_err()
            {
                return Err(BundleError::TeBoolean(name));
            }
        }
        Ok(Te { files, sight, ..te })
    }
}
