//! Bringing the monitor into the kernel, and finding it there again.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, PrintLevel, ProgramType};

use crate::Refusals;
use crate::attach::{self, is_late};
use crate::error::{Error, Result, Trying, io_of};
use crate::globals::Globals;
use crate::pins::{self, Pinned};
use crate::probe;
use crate::quiescent::Quiescent;
use crate::skel::types::tg_policy;
use crate::skel::{TidegateSkelBuilder, types};
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
    pub(crate) onexec: Map<i32, u64>,
    pub(crate) arena: OwnedFd,
    pub(crate) ps_task: OwnedFd,
    pub(crate) ps_settle: OwnedFd,
    pub(crate) ps_profile: OwnedFd,
    pub(crate) ps_file: OwnedFd,
    pub(crate) ps_vma: OwnedFd,
}

/// Maps that user space opens by name; the globals are pinned as `bss`.
const MAPS: [&str; 11] = [
    "subjects", "inodes", "given", "nodes", "edges", "nets", "history", "stats", "events",
    "onexec", "arena",
];

/// What is decided when the monitor is loaded.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Room in the table of given levels, in entries.
    pub given_entries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            given_entries: 1 << 18,
        }
    }
}

/// What libbpf says while it loads, kept for the error.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Lines of it that an error shows.
const LOG_LINES: usize = 24;

fn keep(_level: PrintLevel, line: String) {
    if let Ok(mut said) = SAID.lock() {
        said.push(line);
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
            Some(build) if build == pins::build() => Ok(!open_globals()?.was_in_force()),
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
        // of a start that was cut off even earlier
        if !Pinned::Maps.names()?.is_empty() {
            pins::remove()?;
        }
        pins::create()?;
        let loaded = Self::load_and_pin(options).and_then(|()| Self::open());
        let loaded = loaded.and_then(|monitor| {
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

    fn load_and_pin(options: Options) -> Result<()> {
        if let Ok(mut said) = SAID.lock() {
            said.clear();
        }
        let before = libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        let result = Self::load_quietly(options);
        libbpf_rs::set_print(before);
        result
    }

    fn load_quietly(options: Options) -> Result<()> {
        let failed = |e: libbpf_rs::Error| {
            let said = SAID.lock().map(|s| s.concat()).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let log = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            Error::Load {
                log,
                source: io_of(e),
            }
        };
        let mut room = MaybeUninit::uninit();
        let mut open = TidegateSkelBuilder::default()
            .open(&mut room)
            .map_err(failed)?;
        open.maps
            .given
            .set_max_entries(options.given_entries)
            .map_err(failed)?;
        for mut program in open.open_object_mut().progs_mut() {
            // hooks that only newer kernels have, and functions that a kernel may not have of its own:
            // SEC("?lsm/…"), SEC("?fentry/…")
            let section = program.section().to_string_lossy().into_owned();
            if let (false, Some((kind, name))) = (program.autoload(), section.split_once('/')) {
                let there = match kind.trim_start_matches('?') {
                    "fentry" => probe::try_function(name),
                    _ => probe::has_hook(name),
                };
                program.set_autoload(there.unwrap_or(false));
            }
        }
        let mut skel = open.load().map_err(failed)?;

        use libbpf_rs::skel::Skel;
        for map in skel.object_mut().maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let name = if name.ends_with(".bss") { "bss" } else { &name };
            if name == "bss" || MAPS.contains(&name) {
                let path = Pinned::Maps.path(name);
                sys::pin(map.as_fd(), &path).map_err(|source| Error::Pin { path, source })?;
            }
        }
        let globals = open_pin(Pinned::Maps, "bss")?;
        let path = Pinned::Maps.path(&pins::build());
        sys::pin(globals.as_fd(), &path).map_err(|source| Error::Pin { path, source })?;
        for program in skel.object().progs() {
            let name = program.name().to_string_lossy();
            // what else there is belongs to libbpf's own probing
            let ours = program.prog_type() == ProgramType::Lsm || is_late(&name);
            if program.autoload() && ours {
                let path = Pinned::Programs.path(&name);
                sys::pin(program.as_fd(), &path).map_err(|source| Error::Pin { path, source })?;
            }
        }
        Ok(())
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
            globals: open_globals()?,
            subjects: open_map("subjects")?,
            inodes: open_map("inodes")?,
            given: open_map("given")?,
            nodes: open_map("nodes")?,
            edges: open_map("edges")?,
            nets: open_map("nets")?,
            history: open_map("history")?,
            stats: open_map("stats")?,
            onexec: open_map("onexec")?,
            arena: open_pin(Pinned::Maps, "arena")?,
            ps_task: open_pin(Pinned::Programs, "ps_task")?,
            ps_settle: open_pin(Pinned::Programs, "ps_settle")?,
            ps_profile: open_pin(Pinned::Programs, "ps_profile")?,
            ps_file: open_pin(Pinned::Programs, "ps_file")?,
            ps_vma: open_pin(Pinned::Programs, "ps_vma")?,
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
            let _held = self.hold_transactions()?;
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

fn open_pin(kind: Pinned, name: &str) -> Result<OwnedFd> {
    let path = kind.path(name);
    sys::open_pin(&path).trying(|| format!("open {}", path.display()))
}

fn open_globals() -> Result<Globals> {
    let bss = open_pin(Pinned::Maps, "bss")?;
    Globals::map(bss.as_fd()).map_err(|e| foreign("bss", e))
}

fn open_map<K: sys::Pod, V: sys::Pod>(name: &str) -> Result<Map<K, V>> {
    Map::new(open_pin(Pinned::Maps, name)?).map_err(|e| foreign(name, e))
}

fn foreign(name: &str, e: std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::InvalidData => Error::Foreign(format!("{name} has {e}")),
        _ => Error::io(format!("use the map {name}"), e),
    }
}
