//! `learn`: from the refusals of a log to statements of a map. Those of profiles are amended
//! elsewhere ([`crate::apparmor`]).

mod choose;
mod cover;
mod gather;
#[cfg(test)]
mod tests;
mod write;

pub use cover::plan;
pub use gather::Gathered;
pub use write::{Counts, Proposal};
