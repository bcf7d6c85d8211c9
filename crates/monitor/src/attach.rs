//! Attaching: everything or nothing, and the guard on demand.

use std::fs;
use std::os::fd::AsFd;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::pins::Pinned;
use crate::sys;

/// Programs that are attached only while a descriptor has to be revoked.
pub(crate) const GUARD: &str = "guard_";

/// Programs that user space runs; they belong to no hook.
const ITERATOR: &str = "ps_";

/// Whether a program is not among those that are attached from the start.
pub(crate) fn is_late(program: &str) -> bool {
    program.starts_with(GUARD) || program.starts_with(ITERATOR)
}

/// Attaches a pinned program and pins the link.
fn attach(program: &str) -> Result<()> {
    let path = Pinned::Programs.path(program);
    let fd = sys::open_pin(&path).trying(|| format!("open {}", path.display()))?;
    let link = sys::attach_lsm(fd.as_fd()).map_err(|source| Error::Hook {
        program: program.into(),
        source,
    })?;
    let path = Pinned::Links.path(program);
    sys::pin(link.as_fd(), &path).map_err(|source| Error::Pin { path, source })
}

fn detach(program: &str) -> Result<()> {
    let path = Pinned::Links.path(program);
    fs::remove_file(&path).trying(|| format!("detach {program}"))
}

impl Monitor {
    /// Attaches every program to its hook, but the guards.
    ///
    /// # Errors
    /// [`Error::Hook`] for the first that this kernel refuses; the caller then
    /// takes the monitor out again.
    pub fn attach(&self) -> Result<()> {
        let attached = Pinned::Links.names()?;
        for program in Pinned::Programs.names()? {
            if !is_late(&program) && !attached.contains(&program) {
                attach(&program)?;
            }
        }
        Ok(())
    }

    /// Attaches those guards that are not.
    pub(crate) fn attach_guards(&self) -> Result<()> {
        let attached = Pinned::Links.names()?;
        for program in Pinned::Programs.names()? {
            if program.starts_with(GUARD) && !attached.contains(&program) {
                attach(&program)?;
            }
        }
        Ok(())
    }

    /// Detaches one of the guards; false if none is attached.
    pub(crate) fn detach_one_guard(&self) -> Result<bool> {
        let links = Pinned::Links.names()?;
        match links.iter().find(|l| l.starts_with(GUARD)) {
            Some(link) => detach(link).map(|()| true),
            None => Ok(false),
        }
    }
}
