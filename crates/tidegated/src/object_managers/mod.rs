//! Object managers in user space: what they ask, what decides for them, and what they tell.

pub mod audit;
pub mod decisions;
pub mod query;

use self::audit::Managers;
use self::decisions::Security;

/// What the daemon has for object managers.
#[derive(Debug)]
pub struct ObjectManagers {
    /// What decides for them.
    pub security: Security,
    /// What these decided.
    pub records: Managers,
}

impl ObjectManagers {
    /// Nobody has asked yet, and the thread that decides does not run.
    pub fn new() -> ObjectManagers {
        ObjectManagers {
            security: Security::new(),
            records: Managers::default(),
        }
    }
}
