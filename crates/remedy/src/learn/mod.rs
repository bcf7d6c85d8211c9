//! `learn`: from the refusals of a log to statements of a map. Profiles and SELinux policies
//! have modules of their own ([`crate::apparmor`], [`crate::selinux`]).
//!
//! `gather.rs` sorts the refusals into kinds. For each kind `cover.rs` ([`plan`]) has fixes
//! drafted and checked ([`crate::lomac`]), and `choose.rs` chooses the fewest. `write.rs`
//! puts these down as a map.

mod choose;
mod cover;
mod gather;
#[cfg(test)]
mod tests;
mod write;

pub use cover::plan;
pub use gather::Gathered;
pub use write::{Counts, Proposal};
