//! The mechanism's floor: empty programs on the hooks that the monitor attaches to. What
//! they cost no policy can undercut.

use std::os::fd::OwnedFd;

use crate::attach::Set;
use crate::error::{Error, Result, Trying, io_of};
use crate::object;
use crate::probe::KernelTypes;

/// Empty programs on hooks, until it is dropped.
#[derive(Debug)]
pub struct Floor(Vec<OwnedFd>);

impl Floor {
    /// Attaches one to each hook that [`Monitor::attach`](crate::Monitor::attach) would.
    ///
    /// # Errors
    /// [`Error::Hook`] for the first that this kernel refuses.
    pub fn attach() -> Result<Self> {
        let open = object::open().map_err(|e| Error::Load {
            log: String::new(),
            source: io_of(e),
        })?;
        let kernel = KernelTypes::read().trying(object::kernel_types)?;
        let mut links = Vec::new();
        for program in open.progs() {
            let name = program.name().to_string_lossy().into_owned();
            if Set::of(&name) != Some(Set::Base) {
                continue;
            }
            let section = program.section().to_string_lossy().into_owned();
            let Some((kind, hook)) = section.split_once('/') else {
                continue;
            };
            if !object::is_possible(&program, &kernel) {
                continue;
            }
            let link = kernel.attach_empty(hook, kind.ends_with(".s"));
            links.push(link.map_err(|source| Error::Hook {
                program: name,
                source,
            })?);
        }
        Ok(Self(links))
    }

    /// How many hooks have one.
    #[must_use]
    pub fn hooks(&self) -> usize {
        self.0.len()
    }
}
