//! What a SELinux policy refused: why, and what lets it through, as audit2why(8) and audit2allow(1) tell it.

mod explain;
mod gather;
mod need;
mod plan;
#[cfg(test)]
mod plan_tests;
mod write;

pub use explain::{TeRefusal, fixes};
pub use gather::Gathered;
pub use need::Need;
pub use plan::plan;
pub use write::{Proposal, Syntax, cil};
