//! What lets a profile allow what was refused: rules in AppArmor's language, as aa-logprof(8)
//! proposes them.
//!
//! A record tells of a refusal what it tells: not the number of a signal, not the type of a
//! socket, not the source of a mount. Where a rule could ask for such, it asks for nothing, and
//! [`Rule::notes`] says so.
//!
//! An amendment is **checked**: the rules are put where they belong, the profiles are compiled by
//! `apparmor_parser`, and what was refused is decided anew. What would still be refused is not
//! proposed; the `deny` that refuses it is looked for, and never touched.

mod bench;
mod edit;
mod explain;
mod gather;
mod need;
mod plan;
mod rule;
#[cfg(test)]
mod tests;
mod verdict;
mod write;

pub use bench::{Bench, BenchError};
pub use explain::{Amendment, explain, explain_by};
pub use gather::Gathered;
pub use need::{Need, advice};
pub use plan::plan;
pub use write::Proposal;
