//! The reference model of `lomac`: what `docs/reference/lomac.md` says, as a program.
//!
//! A [`World`] is a small machine: processes, files, channels and memory, each
//! with its level. [`World::step`] tries one [`Op`] in it, says whether the
//! contract allows it, and moves every level that has to move. It follows the
//! bytes as well, apart from the levels: [`World::check`] is the property that
//! the whole model stands for, that no byte which was ever low is in something
//! higher, unless a rule or a program that the policy trusts put it there.
//!
//! The same world draws random sequences ([`draw`]) for the property tests here
//! and for `replay` (tests/suite), which plays them on a real kernel and compares.
//! It is written from the contract alone, and independent of the monitor.
//!
//! A [`Case`] is one subject and a few operations, asked of any policy by canonical
//! paths: what `tidegate learn` and `why` check a proposed statement by.

mod case;
mod channel;
mod decide;
mod draw;
mod fall;
#[cfg(test)]
mod fault;
mod flow;
mod op;
mod shrink;
mod step;
mod tree;
mod world;

pub use case::{Asked, Case, Deed, Ruling, Thing};
pub use draw::{draw, sequence};
pub use flow::Contents;
pub use op::{Access, Act, Address, At, Attribute, Errno, Made, Op, Pid, Program, Slot, Verdict};
pub use shrink::shrink;
pub use tree::{DIRECTORIES, FILES};
pub use world::{FIRST, World};

/// An integrity level, 0 the lowest.
pub type Level = u8;

/// The map under which sequences are played.
pub const POLICY: &str = include_str!("../policy/replay.plm");
