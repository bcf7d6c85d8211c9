//! Holds what different deciders say by one SELinux policy against each other: libsepol ([`Oracle`]), the reference
//! in `tidegate_bundle::te::decide` ([`Reference`]), the kernel's tables ([`Tables`]), and any other that implements [`Decides`].
#![forbid(unsafe_code)]

mod compare;
mod generate;
mod oracle;
mod program;
mod reference;
mod samples;
mod tables;

use anyhow::Result;
use tidegate_bundle::te::db::Context;

pub use compare::compare;
pub use generate::generate;
pub use oracle::Oracle;
pub use program::main;
pub use reference::Reference;
pub use samples::{Sample, Samples};
pub use tables::Tables;

/// What is allowed and recorded, a bit for each permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector {
    /// Allowed.
    pub allowed: u32,
    /// Recorded when used.
    pub auditallow: u32,
    /// Recorded when refused.
    pub auditdeny: u32,
    /// Whether the source is permissive.
    pub permissive: bool,
}

/// Which context is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Of what is made.
    Transition,
    /// Of a member of a polyinstantiated object.
    Member,
    /// Of what is relabelled.
    Change,
}

/// An implementation that decides. What it cannot answer it leaves at `None`, and is not asked
/// again.
pub trait Decides {
    /// Is told the contexts that samples speak of by their places in this list; all are valid.
    ///
    /// # Errors
    ///
    /// If it cannot take one.
    fn know(&mut self, contexts: &[Context]) -> Result<()>;

    /// What the sources may do with the targets.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn access(&mut self, samples: &[Sample]) -> Result<Option<Vec<Vector>>>;

    /// The text of the context of what sources make, and so on; `None` within for one that may not be.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn labels(&mut self, _: Label, _: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        Ok(None)
    }

    /// The type that the sample's name gives to what is made, where a rule says one.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn names(&mut self, _: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        Ok(None)
    }

    /// Whether the third may change the source's context to the target's (`validatetrans`).
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn changes(&mut self, _: &[Sample]) -> Result<Option<Vec<bool>>> {
        Ok(None)
    }
}
