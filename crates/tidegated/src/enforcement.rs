//! What is enforced: the kernel's side, and what the daemon keeps of it.

use tidegate_bundle::Policy;
use tidegate_monitor::{Guard, Monitor};

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
    ///
    /// # Errors
    /// [`tidegate_monitor::Error::LevelsDiffer`], or the policy in force cannot be read, so that its levels are not known.
    pub fn reload(&self, policy: Policy, permissive: bool) -> Outcome<(String, Vec<String>)> {
        // every subject's level is a number: without the policy that says which levels these are, none may take its place
        let before = self.policies.in_force(&self.monitor)?;
        if before.levels != policy.levels {
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
        let put = self
            .policies
            .put(&self.monitor, &self.guard, &policy, refusals(permissive))?;
        let permissive = self.monitor.status()?.permissive;
        let mode = if permissive { " (permissive)" } else { "" };
        let message = format!("{} is in force{mode}, number {}", policy.name, put.seqno);
        Ok((message, put.warnings))
    }
}
