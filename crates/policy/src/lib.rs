//! Tidegate's policy compilers.
//!
//! A policy of the `lomac` model is a *path-level map* (PLM), a text file that
//! gives integrity levels to paths and networks; `docs/reference/map-language.md` is its
//! reference and `docs/reference/lomac.md` says what the levels mean. [`map`] turns one
//! into a [`Policy`](tidegate_bundle::Policy), a trie that the kernel walks without
//! backtracking. [`profile`] makes a policy of what `apparmor_parser` writes, [`te`] runs
//! SELinux's compiler of CIL and compiles file contexts, and [`caps`] compiles capability
//! files. What they make is the crate `tidegate-bundle`'s, which reads it again and says
//! what it means.
//!
//! ```
//! use tidegate_bundle::Policy;
//! use tidegate_policy::map;
//!
//! let text = "levels system > user\nsystem /\nuser /home/*\n";
//! let policy = map::compile_str("example", text)?.policy;
//! assert_eq!(policy.lookup(b"/home/ann/notes").level, policy.level("user").unwrap());
//! assert_eq!(Policy::from_bundle(&policy.to_bundle()).unwrap(), policy);
//! # Ok::<(), tidegate_policy::map::MapErrors>(())
//! ```
#![forbid(unsafe_code)]

mod alias;
mod automaton;
pub mod caps;
mod effects;
mod finding;
mod lexer;
pub mod map;
mod network;
mod presets;
pub mod profile;
mod similar;
pub mod te;
mod text;
mod words;

pub use effects::Effects;
pub use network::NetworkProblem;
pub use presets::{FRAGMENTS, PRESETS, Preset};
pub use similar::closest;
