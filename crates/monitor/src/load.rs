//! Bringing the monitor into the kernel, and finding it there again.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use crate::Refusals;
use crate::attach;
use crate::caps;
use crate::error::{Error, Result, Trying};
use crate::globals::{Globals, Section};
use crate::object;
use crate::parts::Parts;
use crate::pins::{self, Pinned};
use crate::quiescent::Quiescent;
use crate::skel::types::{self, tg_policy};
use crate::sys::{self, Map};

/// The monitor in the kernel, through its pins.
///
/// Dropping it changes nothing there: the links are pinned.
#[derive(Debug)]
pub struct Monitor {
    pub(crate) globals: Globals,
    pub(crate) subjects: Map<i32, types::tg_subject>,
    pub(crate) inodes: Map<i32, types::tg_inode>,
    pub(crate) given: Map<types::tg_given_key, u32>,
    pub(crate) nodes: Map<u32, u32>,
    pub(crate) edges: Map<u32, u32>,
    pub(crate) nets: Map<u32, u32>,
    pub(crate) history: Map<u32, types::tg_event>,
    pub(crate) stats: Map<u32, types::tg_stats>,
    /// Of the other models.
    pub(crate) parts: Parts,
    /// Held while sessions are changed.
    pub(crate) sessions: Mutex<caps::Quiet>,
    /// Held while mappings are looked at: one look at a time.
    pub(crate) looks: Mutex<()>,
    pub(crate) ps_task: OwnedFd,
    pub(crate) ps_settle: OwnedFd,
    pub(crate) ps_call: OwnedFd,
    pub(crate) ps_file: OwnedFd,
    pub(crate) ps_vma: OwnedFd,
    pub(crate) ps_clear: OwnedFd,
    pub(crate) ps_held: OwnedFd,
    pub(crate) ps_code: OwnedFd,
}

/// What is decided when the monitor is loaded.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Room in the table of given levels, and in that of given labels, in entries.
    pub given_entries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            given_entries: 1 << 18,
        }
    }
}

impl Monitor {
    /// Whether a monitor is in this kernel.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] without the right to look.
    pub fn is_loaded() -> Result<bool> {
        pins::exist()
    }

    /// Whether what is in this kernel is part of a monitor, left by a start or an end that was
    /// cut off. It enforces nothing, and does not know all levels that were given.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] without the right to look.
    pub fn is_unfinished() -> Result<bool> {
        if !pins::exist()? {
            return Ok(false);
        }
        match pins::found_build()? {
            None => Ok(Pinned::Links.names()?.is_empty()),
            Some(build) if build == pins::build() => {
                Ok(!Globals::of(open_globals("bss")?).was_in_force())
            }
            Some(_) => Ok(false),
        }
    }

    /// Takes out of the kernel what [`is_unfinished`](Self::is_unfinished) is about; whether
    /// there was such a thing.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn remove_unfinished() -> Result<bool> {
        let unfinished = Self::is_unfinished()?;
        if unfinished {
            match Self::open() {
                Ok(monitor) => monitor.remove()?,
                Err(_) => pins::remove()?,
            }
        }
        Ok(unfinished)
    }

    /// Loads and pins the monitor; nothing is attached yet, so nothing is enforced.
    ///
    /// # Errors
    /// [`Error::Running`], [`Error::Pin`], [`Error::Load`], [`Error::NotPermitted`];
    /// then nothing stays behind.
    pub fn load(options: Options) -> Result<Monitor> {
        if pins::exist()? {
            return Err(Error::Running);
        }
        // of a start that was cut off even earlier, or of a model that was being loaded at an end
        if pins::are_left()? {
            pins::remove()?;
        }
        pins::create()?;
        let loaded = object::load(options).and_then(|()| Self::open());
        let loaded = loaded.and_then(|monitor| {
            sys::run(&open_pin(Pinned::Programs, "ps_symbols")?, &mut 0u64)
                .and_then(|()| monitor.globals.has_symbols())
                .trying(symbols)?;
            monitor
                .globals
                .make_secrets()
                .trying(|| "read random bytes".into())?;
            Ok(monitor)
        });
        if loaded.is_err() {
            let _ = pins::remove();
        }
        loaded
    }

    /// Opens the monitor that is in the kernel.
    ///
    /// # Errors
    /// [`Error::NotRunning`], [`Error::NotPermitted`], or [`Error::Foreign`] if
    /// another build's monitor is there.
    pub fn open() -> Result<Monitor> {
        if !pins::exist()? {
            return Err(Error::NotRunning);
        }
        pins::is_ours()?;
        Ok(Monitor {
            globals: Globals::of(open_globals("bss")?),
            subjects: open_map("subjects")?,
            inodes: open_map("inodes")?,
            given: open_map("given")?,
            nodes: open_map("nodes")?,
            edges: open_map("edges")?,
            nets: open_map("nets")?,
            history: open_map("history")?,
            stats: open_map("stats")?,
            parts: Parts::default(),
            sessions: Mutex::default(),
            looks: Mutex::default(),
            ps_task: open_pin(Pinned::Programs, "ps_task")?,
            ps_settle: open_pin(Pinned::Programs, "ps_settle")?,
            ps_call: open_pin(Pinned::Programs, "ps_call")?,
            ps_file: open_pin(Pinned::Programs, "ps_file")?,
            ps_vma: open_pin(Pinned::Programs, "ps_vma")?,
            ps_clear: open_pin(Pinned::Programs, "ps_clear")?,
            ps_held: open_pin(Pinned::Programs, "ps_held")?,
            ps_code: open_pin(Pinned::Programs, "ps_code")?,
        })
    }

    /// Takes the monitor out of the kernel: nothing is enforced afterwards.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] where the policy in force forbids it; an I/O error if the
    /// kernel does not let go of the hooks.
    pub fn remove(&self) -> Result<()> {
        let attached = attach::attached()?;
        let _quiescent = Quiescent::begin();
        {
            // a task that takes the turn meanwhile falls under a monitor that goes
            let _turn = self.hold_transactions()?;
            pins::remove_links()?;
            // whoever finds the rest does not take it for a monitor
            self.globals.change_policy(|now| tg_policy {
                permissive: Refusals::LetThrough as u8,
                ..now
            });
            pins::remove()?;
        }
        attach::wait_until_gone(&attached)
    }
}

/// What an error is about if the kernel's variables were not found.
pub(crate) fn symbols() -> String {
    "look up the kernel's variables (CAP_SYSLOG; sysctl kernel.kptr_restrict below 2)".into()
}

pub(crate) fn open_pin(kind: Pinned, name: &str) -> Result<OwnedFd> {
    let path = kind.path(name);
    sys::open_pin(&path).trying(|| format!("open {}", path.display()))
}

pub(crate) fn open_globals<T>(name: &str) -> Result<Section<T>> {
    let section = open_pin(Pinned::Maps, name)?;
    Section::map(section.as_fd()).map_err(|e| foreign(name, e))
}

pub(crate) fn open_map<K: sys::Pod, V: sys::Pod>(name: &str) -> Result<Map<K, V>> {
    Map::new(open_pin(Pinned::Maps, name)?).map_err(|e| foreign(name, e))
}

fn foreign(name: &str, e: std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::InvalidData => Error::Foreign(format!("{name} has {e}")),
        _ => Error::io(format!("use the map {name}"), e),
    }
}
