//! What is enforced: the kernel's side, and what the daemon keeps of it.

use tidegate_monitor::{Guard, Monitor};
use tidegate_policy::Policy;

use crate::error::Outcome;
use crate::labels::store::Disks;
use crate::policy_history::{Policies, refusals};

/// The monitor, and what the daemon keeps of it.
#[derive(Debug)]
pub struct Enforcement {
    /// The kernel's side.
    pub monitor: Monitor,
    /// The policies put in force since boot.
    pub policies: Policies,
    /// What is known of disks beside the given levels.
    pub disks: Disks,
    /// What revokes descriptors.
    pub guard: Guard,
}

impl Enforcement {
    /// Puts another policy in force; what to tell of it, and warnings.
    pub fn reload(&self, policy: Policy, permissive: bool) -> Outcome<(String, Vec<String>)> {
        let before = self.policies.get(self.monitor.status()?.seqno);
        if let Some(before) = before.filter(|b| b.levels != policy.levels) {
            let list = |p: &Policy| {
                let names: Vec<_> = p.levels.iter().rev().map(String::as_str).collect();
                names.join(" > ")
            };
            return Err(tidegate_monitor::Error::LevelsDiffer {
                running: list(&before),
                wanted: list(&policy),
            }
            .into());
        }
        // what was open for writing may be above its holder now
        let _raising = self.guard.raise(&self.monitor)?;
        let put = self
            .policies
            .put(&self.monitor, &policy, refusals(permissive))?;
        let permissive = self.monitor.status()?.permissive;
        let mode = if permissive { " (permissive)" } else { "" };
        let message = format!("{} is in force{mode}, number {}", policy.name, put.seqno);
        Ok((message, put.warnings))
    }
}
