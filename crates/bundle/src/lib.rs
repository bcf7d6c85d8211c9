//! Tidegate's compiled policies: the bundle that has them, and what they say.
//!
//! A [`Policy`] is what compilers made of a map, of AppArmor's profiles and of a SELinux policy, and
//! [`Capabilities`](caps::Capabilities) what they made of capability files. Each is kept in a [bundle](BundleError), the one
//! checksummed file that the monitor loads. This crate reads bundles, which may be anything, checks all that a policy promises,
//! and answers what it says. It compiles nothing: the compilers are the crate `policy`, on which neither the daemon nor the
//! monitor depends.
#![forbid(unsafe_code)]

mod attrs;
pub mod automaton;
mod bounded;
pub mod builtin;
pub mod caps;
pub mod escape;
mod format;
pub mod layout;
pub mod limits;
mod lookup;
pub mod names;
pub mod network;
mod policy;
pub mod profile;
pub mod te;

pub use attrs::Attrs;
pub use format::{BundleError, HEADER as BUNDLE_HEADER, check_header as check_bundle_header};
pub use lookup::Place;
pub use policy::{Edge, Mode, Network, Node, Policy, Rule, RuleSource};
