//! The daemon: it answers the kernel's calls for the guard, writes the audit log, and answers its clients.
//! Enforcement does not depend on it.
//!
//! It puts bundles in force and compiles nothing. What the command line does as root where no daemon runs, it does by this
//! library.

mod ask;
mod boot;
mod bundles;
mod capability_files;
mod chain;
mod closing;
mod daemon;
mod end;
mod enforcement;
mod error;
mod events;
mod handlers;
mod instance;
mod journal;
mod labels;
mod left_programs;
mod lock;
mod locks;
mod log;
mod maintenance;
mod messages;
mod metrics;
mod object_managers;
mod options;
pub mod paths;
mod peer;
mod policy_history;
mod priority;
mod queue;
mod rate;
mod records;
mod report;
mod server;
mod sessions;
mod settle;
mod shared;
mod start;
mod status;
mod status_page;
mod te_system_start;
mod threads;
mod watchdog;

pub use self::chain::explain;
pub use self::end::take_down;
pub use self::error::{DaemonError, Outcome};
pub use self::instance::Instance;
pub use self::labels::store::Disks;
pub use self::metrics::managers;
pub use self::options::{DEFAULTS, Options};
pub use self::policy_history::Policies;
pub use self::report::Report;
pub use self::settle::fall;
pub use self::start::run_program;
pub use self::status::status;
pub use self::te_system_start::can_govern;
