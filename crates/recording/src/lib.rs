//! Recordings of what subjects bound and changed, and their replay against a policy:
//! what it would have refused, and which subjects would have fallen.
//!
//! A recording is made by the kernel's recorder (`kernel/recorder.bpf.c`) and read a line at a
//! time. [`Side`] is one policy's view of it; it decides by the kernel's own rules ([`rules`]),
//! finds labels by the policy's look-up, and keeps of subjects and objects what the monitor would,
//! which profile confines each and the domain that it is in among it. [`Comparison`] holds two of
//! them against each other.

mod channel;
mod compare;
mod confined;
#[cfg(test)]
mod confined_tests;
mod decide;
mod domain;
#[cfg(test)]
mod domain_tests;
mod event;
mod file;
mod head;
mod label;
mod line;
mod names;
mod process;
mod report;
pub mod rules;
mod side;
#[cfg(test)]
mod side_tests;
mod socket;

pub use compare::Comparison;
pub use domain::{Domains, TeRefusal};
pub use event::{Cause, Event, Reason, Refusal};
pub use file::{Error, Reader, Writer};
pub use head::{Filesystem, Head, InForce, VERSION, hex};
pub use line::{Act, End, Flags, Inode, Line, path_bytes, path_text};
pub use report::{Denied, Fall, Group, Link, Report};
pub use side::Side;
