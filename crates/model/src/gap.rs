//! Where the monitor does not do what the contract says, or the model does not
//! follow it. Each is an entry of docs/limitations.md; the replay leaves these out.

use crate::world::World;
use crate::{Act, Op};

impl World {
    /// The known gap that an operation would meet, by its name.
    pub fn gap(&self, op: &Op) -> Option<&'static str> {
        match &op.act {
            Act::Remove { path } | Act::Rename { to: path, .. } => {
                let node = &self.nodes[self.find(path)?];
                let last = node.is_file() && node.links == 1;
                (last && self.in_memory() && self.is_open(self.find(path)?))
                    .then_some("unlinked-in-memory")
            }
            _ => None,
        }
    }

    /// Is the sandbox on a filesystem in memory?
    fn in_memory(&self) -> bool {
        self.root.starts_with("/dev/shm/")
    }
}
