//! Tidegate's policy compiler.
//!
//! A policy of the `lomac` model is a *path-level map* (PLM), a text file that
//! gives integrity levels to paths and networks; `docs/reference/map-language.md` is its
//! reference and `docs/reference/lomac.md` says what the levels mean. This crate turns a
//! map into a [`Policy`], a trie that the kernel walks without backtracking,
//! and a policy into a [bundle](BundleError), the one checksummed file that the
//! monitor loads.
//!
//! ```
//! use tidegate_policy::Policy;
//!
//! let map = "levels system > user\nsystem /\nuser /home/*\n";
//! let policy = Policy::compile_str("example", map)?.policy;
//! assert_eq!(policy.lookup(b"/home/ann/notes").level, policy.level("user").unwrap());
//! assert_eq!(Policy::from_bundle(&policy.to_bundle()).unwrap(), policy);
//! # Ok::<(), tidegate_policy::MapErrors>(())
//! ```
#![forbid(unsafe_code)]

mod alias;
mod attrs;
pub mod automaton;
mod builtin;
mod bundle;
pub mod caps;
mod effects;
mod escape;
mod finding;
pub mod layout;
mod lexer;
pub mod limits;
mod lookup;
mod map;
mod names;
mod network;
mod policy;
mod presets;
pub mod profile;
mod similar;
pub mod te;
mod text;
mod words;

pub use attrs::Attrs;
pub use bundle::{BundleError, HEADER as BUNDLE_HEADER, check_header as check_bundle_header};
pub use effects::Effects;
pub use lookup::Place;
pub use map::{Compiled, Finding, MapErrors, PathProblem, Problem};
pub use network::NetworkProblem;
pub use policy::{Edge, Mode, Network, Node, Policy, Rule, RuleSource};
pub use presets::{FRAGMENTS, PRESETS, Preset};
