//! What the daemon's threads share, by what it is for. Each part of the daemon is given what it needs of this; the whole is for
//! those who answer questions, and for those who take records.

use std::sync::Arc;

use crate::enforcement::Enforcement;
use crate::object_managers::ObjectManagers;
use crate::records::Records;
use crate::sessions::Sessions;
use crate::threads::Threads;

/// What the daemon's threads share.
#[derive(Debug)]
pub struct Shared {
    /// What is enforced.
    pub enforcement: Arc<Enforcement>,
    /// The kernel's records on their way to the audit log.
    pub records: Records,
    /// What is known of sessions besides what the kernel knows.
    pub sessions: Sessions,
    /// Object managers in user space.
    pub object_managers: ObjectManagers,
    /// What the threads know of one another.
    pub threads: Arc<Threads>,
}
