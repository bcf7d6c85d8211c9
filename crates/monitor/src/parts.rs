//! What user space uses of the models beside `lomac`: their globals, maps and iterators. A model has them in the kernel once it
//! is loaded, which may be long after a [`Monitor`] was opened, and by another process.

use std::fmt::Debug;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use crate::attach::Model;
use crate::error::Result;
use crate::globals::Section;
use crate::load::{Monitor, open_globals, open_map, open_pin};
use crate::object::{self, ARENA};
use crate::pins::Pinned;
use crate::skel::types;
use crate::sys::Map;

/// Of the `profile` model.
#[derive(Debug)]
pub(crate) struct Profile {
    pub globals: Section<types::bss_profile>,
    pub onexec: Map<i32, u64>,
    pub ps_id: OwnedFd,
}

/// Of the `te` model.
#[derive(Debug)]
pub(crate) struct Te {
    pub globals: Section<types::bss_te>,
    pub onexec: Map<i32, u64>,
    pub socks: Map<i32, types::te_sock>,
    pub given: Map<types::tg_given_key, u64>,
    pub adopted: Map<types::te_adopted, u64>,
    pub ps_sid: OwnedFd,
    pub ps_task: OwnedFd,
    pub ps_adopt: OwnedFd,
    pub ps_socket: OwnedFd,
    pub ps_file: OwnedFd,
    pub ps_vma: OwnedFd,
}

/// Of the `capability` model.
#[derive(Debug)]
pub(crate) struct Caps {
    pub globals: Section<types::bss_caps>,
    pub taken: Map<types::caps_taken_key, u32>,
    pub ps_domain: OwnedFd,
    pub ps_vma: OwnedFd,
    pub ps_change: OwnedFd,
    pub ps_settle: OwnedFd,
}

/// Those that this process has opened.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    profile: OnceLock<Profile>,
    te: OnceLock<Te>,
    caps: OnceLock<Caps>,
    arena: OnceLock<OwnedFd>,
}

/// What a model has, as user space opens it.
pub(crate) trait Part: Sized + Debug {
    /// The model.
    const MODEL: Model;

    /// Opens its pins.
    fn open() -> Result<Self>;

    /// Where it is once it is open.
    fn of(parts: &Parts) -> &OnceLock<Self>;
}

impl Part for Profile {
    const MODEL: Model = Model::Profile;

    fn open() -> Result<Self> {
        Ok(Profile {
            globals: open_globals("profile_bss")?,
            onexec: open_map("profile_onexec")?,
            ps_id: open_pin(Pinned::Programs, "ps_profile_id")?,
        })
    }

    fn of(parts: &Parts) -> &OnceLock<Self> {
        &parts.profile
    }
}

impl Part for Te {
    const MODEL: Model = Model::Te;

    fn open() -> Result<Self> {
        Ok(Te {
            globals: open_globals("te_bss")?,
            onexec: open_map("te_onexec")?,
            socks: open_map("te_socks")?,
            given: open_map("te_given")?,
            adopted: open_map("te_adopted")?,
            ps_sid: open_pin(Pinned::Programs, "ps_te_sid")?,
            ps_task: open_pin(Pinned::Programs, "ps_te_task")?,
            ps_adopt: open_pin(Pinned::Programs, "ps_te_adopt")?,
            ps_socket: open_pin(Pinned::Programs, "ps_te_socket")?,
            ps_file: open_pin(Pinned::Programs, "ps_te_file")?,
            ps_vma: open_pin(Pinned::Programs, "ps_te_vma")?,
        })
    }

    fn of(parts: &Parts) -> &OnceLock<Self> {
        &parts.te
    }
}

impl Part for Caps {
    const MODEL: Model = Model::Caps;

    fn open() -> Result<Self> {
        Ok(Caps {
            globals: open_globals("caps_bss")?,
            taken: open_map("caps_taken")?,
            ps_domain: open_pin(Pinned::Programs, "ps_caps_domain")?,
            ps_vma: open_pin(Pinned::Programs, "ps_caps_vma")?,
            ps_change: open_pin(Pinned::Programs, "ps_caps_change")?,
            ps_settle: open_pin(Pinned::Programs, "ps_caps_settle")?,
        })
    }

    fn of(parts: &Parts) -> &OnceLock<Self> {
        &parts.caps
    }
}

impl Monitor {
    /// What a model has; `None`: it is not loaded, so nothing and nobody is governed by it.
    pub(crate) fn part<P: Part>(&self) -> Result<Option<&P>> {
        let cell = P::of(&self.parts);
        match cell.get() {
            None if !P::MODEL.is_loaded()? => Ok(None),
            _ => once(cell, P::open).map(Some),
        }
    }

    /// What a model has, which is loaded for it if it is not yet. Nothing is attached by that.
    ///
    /// # Errors
    /// [`crate::Error::Load`], [`crate::Error::Pin`]: there is nothing of the model then.
    pub(crate) fn needed<P: Part>(&self) -> Result<&P> {
        let cell = P::of(&self.parts);
        if cell.get().is_none() {
            object::load_model(P::MODEL, self.given.max_entries)?;
        }
        once(cell, P::open)
    }

    /// The arena; `None`: no model was loaded that lays out an image.
    pub(crate) fn arena(&self) -> Result<Option<BorrowedFd<'_>>> {
        let cell = &self.parts.arena;
        match cell.get() {
            None if !Pinned::Maps.has(ARENA)? => Ok(None),
            _ => once(cell, || open_pin(Pinned::Maps, ARENA)).map(|arena| Some(arena.as_fd())),
        }
    }
}

/// What is in a cell, opened if nothing is.
fn once<T>(cell: &OnceLock<T>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(there) = cell.get() {
        return Ok(there);
    }
    let opened = open()?;
    Ok(cell.get_or_init(|| opened))
}
