//! Audit records: how the log, the daemon and the command line have them.
//!
//! What the kernel tells is an event of numbers. A [`Record`] is that event in the words of the policy it was decided under;
//! the numbers' names come from whoever implements [`PolicyNames`].

mod capability;
mod capability_names;
mod chain;
mod event;
mod executable;
mod names;
pub mod permission_names;
mod record;
mod tail;
mod text;
mod words;

pub use capability::{CapsRecord, because as caps_because};
pub use chain::Chain;
pub use event::{level_name, wall_clock};
pub use names::{Placed, PolicyNames};
pub use record::{ManagerRecord, ObjectRecord, Record, RuleRecord, SubjectRecord, UNCONFINED};
pub use tail::Tail;
pub use text::{is_unseen, output, printable};
pub use words::{because, verb};
