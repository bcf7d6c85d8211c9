//! The status page: what is in force, for object managers that cache decisions.
//!
//! Revocation reaches them in this order: the kernel decides by the new policy; the page has a new
//! number; the call that asked for the policy returns. A process that looks at the page after that
//! finds a number that no decision of the old policy has.

use std::path::Path;

use tidegate_bundle::Policy;
use tidegate_bundle::te::db::Unknown;
use tidegate_monitor::Monitor;
use tidegate_protocol::{PAGE, PageStatus};

use crate::error::{DaemonError, Outcome};
use crate::locks::{Ordered, PAGE as PLACE};

/// The page, as the one daemon has it.
#[derive(Debug)]
pub struct Page(tidegate_protocol::Page);

/// Held while the page is changed.
static CHANGING: Ordered<PLACE, ()> = Ordered::new(());

impl Page {
    /// Maps it, and makes it if there is none: before anything is changed that it is to tell of.
    pub fn open() -> Outcome<Page> {
        let page = tidegate_protocol::Page::create(Path::new(PAGE));
        page.map(Page)
            .map_err(|e| DaemonError::io(format!("make {PAGE}"), e))
    }

    /// Its number.
    pub fn sequence(&self) -> u32 {
        self.0.sequence()
    }

    /// Tells of a policy that was just put in force: whatever was decided before counts no more.
    pub fn renew(&self, monitor: &Monitor, policy: &Policy) -> Outcome {
        let _one = CHANGING.lock();
        self.0.publish(status(monitor, Some(policy))?);
        Ok(())
    }

    /// Tells what is in force; where that is what the page says already, what was decided counts on. Of a policy that
    /// cannot be read any more nobody can tell what it knows: what is not known is refused.
    pub fn agree(&self, monitor: &Monitor, policy: Option<&Policy>) -> Outcome {
        let _one = CHANGING.lock();
        let now = status(monitor, policy)?;
        let said = self.0.status();
        let said = said.map(|said| PageStatus {
            sequence: 0,
            ..said
        });
        if said != Some(now) {
            self.0.publish(now);
        }
        Ok(())
    }

    /// Tells that nothing is in force any more.
    pub fn end(&self) {
        let _one = CHANGING.lock();
        self.0.publish(PageStatus {
            sequence: 0,
            enforcing: false,
            policyload: 0,
            deny_unknown: false,
            enabled: false,
        });
    }
}

fn status(monitor: &Monitor, policy: Option<&Policy>) -> Outcome<PageStatus> {
    let status = monitor.status()?;
    Ok(PageStatus {
        sequence: 0,
        enforcing: !status.permissive,
        policyload: status.seqno,
        deny_unknown: policy.is_none_or(denies_unknown),
        enabled: policy.is_none_or(|policy| policy.te.is_some()),
    })
}

/// Whether what a policy does not know is refused.
pub fn denies_unknown(policy: &Policy) -> bool {
    let te = policy.te.as_ref();
    te.is_some_and(|te| te.db.unknown != Unknown::Allow)
}
