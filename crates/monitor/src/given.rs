//! The table of given levels, for those who keep it over a reboot.

use std::fs;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::skel::types::tg_given_key;

/// A level that no path rule gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Given {
    /// The filesystem's device, as the kernel numbers it (major << 20 | minor).
    pub dev: u32,
    /// The inode.
    pub ino: u64,
    /// Its generation: a number used again is another object.
    pub generation: u32,
    /// The level.
    pub level: u8,
}

impl Given {
    fn key(&self) -> tg_given_key {
        tg_given_key {
            ino: self.ino,
            dev: self.dev,
            generation: self.generation,
        }
    }
}

impl Monitor {
    /// All given levels.
    ///
    /// # Errors
    /// [`Error::Io`] if the table cannot be read.
    pub fn given(&self) -> Result<Vec<Given>> {
        let entries = self
            .given
            .entries()
            .trying(|| "read the given levels".into())?;
        Ok(entries
            .into_iter()
            .map(|(key, level)| Given {
                dev: key.dev,
                ino: key.ino,
                generation: key.generation,
                level: level as u8,
            })
            .collect())
    }

    /// Puts levels back that were given before.
    ///
    /// # Errors
    /// [`Error::Full`] if there are more than the table holds.
    pub fn restore_given(&self, given: &[Given]) -> Result<()> {
        if given.len() > self.given.max_entries as usize {
            return Err(Error::Full("given levels"));
        }
        let keys: Vec<tg_given_key> = given.iter().map(Given::key).collect();
        let values: Vec<u32> = given.iter().map(|g| g.level.into()).collect();
        let put = self.given.put_all(&keys, &values);
        // those that found room count, too
        let used = self.given_used()?;
        self.globals.given_used().store(used, Ordering::Relaxed);
        put.trying(|| "restore the given levels".into())
    }

    /// Has no more levels given, or has them given again. What would need one is refused meanwhile;
    /// a creation that began before may still come to its end.
    pub fn close_given(&self, closed: bool) {
        self.globals
            .given_closed()
            .store(closed.into(), Ordering::SeqCst);
    }

    /// Forgets levels whose objects are gone; how many there were.
    ///
    /// # Errors
    /// [`Error::Io`] if the table cannot be changed.
    pub fn forget_given(&self, gone: &[Given]) -> Result<usize> {
        let mut count = 0;
        for given in gone {
            if self.delete_given(&given.key())? {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Takes an entry out of the table, and gives its account back what it had (kernel/lomac/budget.h); whether there was one.
    pub(crate) fn delete_given(&self, key: &tg_given_key) -> Result<bool> {
        let what = || "forget a given level".to_string();
        let entry = self.given.get(key).trying(what)?;
        let gone = self.given.delete(key).trying(what)?;
        if gone {
            self.globals.given_used().fetch_sub(1, Ordering::Relaxed);
            if let Some(entry) = entry {
                self.globals.give_back_given(entry);
            }
        }
        Ok(gone)
    }
}

/// Tells one boot from another.
///
/// # Errors
/// [`Error::Io`] without procfs.
pub fn boot_id() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path)
        .trying(|| format!("read {path}"))?
        .trim()
        .into())
}
