//! Where the names of an event's numbers come from.

use std::sync::Arc;

use tidegate_bundle::Policy;
use tidegate_bundle::caps::NameTable;
use tidegate_flask::Sid;
use tidegate_lava::{Place, Places};

/// The policies, contexts and capability files that an event names by numbers.
pub trait PolicyNames {
    /// Returns the policy with this sequence number, or `None` if it is not known any more.
    fn policy(&self, seqno: u32) -> Option<Arc<Policy>>;

    /// Returns the context that a SID stands for, or `None` if it is not known.
    fn context(&self, sid: Sid) -> Option<String>;

    /// Returns the names of the capability files at a place of the kernel's images, or `None` if they are gone.
    fn capability(&self, place: u32) -> Option<(Arc<Placed>, Place)>;
}

/// The names of capability files, and where their image is.
#[derive(Debug)]
pub struct Placed {
    /// What they call their parts.
    pub names: NameTable,
    /// The places of their subjects and capabilities in the arena.
    pub places: Places,
}
