//! Labels of objects: reading them, and giving one that no path rule gives.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;

use tidegate_flask::Sid;
use tidegate_policy::Attrs;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::skel::types::tg_event;
use crate::tasks::Held;
use crate::{Class, Kind, Op};

/// Where a label comes from: `enum tg_origin` of kernel/lomac/label.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Its path's rule.
    Rule,
    /// Given at creation, by a fall or by promotion.
    Given,
    /// Its filesystem or file type has a fixed answer.
    Kind,
    /// There is none; the answer fails closed.
    Unknown,
    /// It could not be looked for now, while mounts or names change.
    Later,
}

/// An object's label, as kernel/lomac/label.h lays its word out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The integrity level.
    pub level: u8,
    /// The attributes of its rule.
    pub attrs: Attrs,
    /// Where it comes from.
    pub origin: Origin,
}

impl Label {
    /// From the kernel's word.
    pub(crate) fn from_word(word: u64) -> Label {
        let origin = match word >> 24 & 7 {
            _ if word & 1 << 29 != 0 => Origin::Later,
            _ if word & 1 << 28 != 0 => Origin::Unknown,
            1 => Origin::Rule,
            2 => Origin::Given,
            3 => Origin::Kind,
            _ => Origin::Unknown,
        };
        Label {
            level: word as u8,
            attrs: Attrs::from_bits_retain((word >> 8) as u16),
            origin,
        }
    }
}

/// `TG_KERNEL`, which no rule has: made by the kernel.
const KERNEL: Attrs = Attrs::from_bits_retain(256);

/// An object and its label.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    /// Its label.
    pub label: Label,
    /// The rule: an index into the policy's rules.
    pub source: Option<u32>,
}

impl Monitor {
    /// The labels of open objects, in their order; an `O_PATH` descriptor is
    /// enough, and does not count as reading.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel's iterator cannot be run.
    pub fn objects(&self, fds: &[BorrowedFd<'_>]) -> Result<Vec<Option<Object>>> {
        let held = self.own_descriptors()?;
        let find = |fd: &BorrowedFd<'_>| {
            let fd = fd.as_raw_fd() as u32;
            held.iter().find(|h| h.fd == Some(fd))
        };
        Ok(fds
            .iter()
            .map(|fd| {
                find(fd).map(|h| Object {
                    label: h.label,
                    source: h.source,
                })
            })
            .collect())
    }

    /// The SIDs of open files under the `te` model, in their order; an `O_PATH` descriptor is enough. `None`: the policy
    /// has no such model, or it is no file.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel's iterator cannot be run.
    pub fn sids(&self, fds: &[BorrowedFd<'_>]) -> Result<Vec<Option<Sid>>> {
        let held = self.own_te_files()?;
        let find = |fd: &BorrowedFd<'_>| {
            let fd = fd.as_raw_fd() as u32;
            let found = held.iter().find(|h| h.fd == fd && h.target != 0);
            found.map(|h| Sid(h.target))
        };
        Ok(fds.iter().map(find).collect())
    }

    /// The lowest level that may have written to a Unix socket of this process; of its
    /// own, where nobody below has.
    ///
    /// # Errors
    /// As [`Monitor::objects`].
    pub fn level_of_connection(&self, fd: BorrowedFd<'_>) -> Result<u8> {
        Ok(self.held(fd)?.to)
    }

    fn held(&self, fd: BorrowedFd<'_>) -> Result<Held> {
        let number = fd.as_raw_fd() as u32;
        let held = self
            .own_descriptors()?
            .into_iter()
            .find(|h| h.fd == Some(number));
        held.ok_or_else(|| {
            Error::io(
                "find the object",
                std::io::Error::from(rustix::io::Errno::BADF),
            )
        })
    }

    /// Gives an object a level, for good; the record of it. The guard must be
    /// armed: whoever has it open for writing below the new level is revoked.
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Fixed`] for what no level can be given to; [`Error::Mapped`] if a lower subject has it mapped for
    /// writing, which cannot be revoked; then the object keeps its level.
    pub fn give(&self, fd: BorrowedFd<'_>, level: u8, by: u32, path: &str) -> Result<u64> {
        let held = self.held(fd)?;
        if held.label.attrs.intersects(KERNEL | Attrs::NEUTRAL) {
            return Err(Error::Fixed(path.into()));
        }
        let before = self
            .given
            .get(&held.key)
            .trying(|| "read the given levels".into())?;
        if before.is_none() && self.given_used()? >= self.given.max_entries.into() {
            return Err(Error::Full("given levels"));
        }
        {
            let _held = self.hold_transactions()?;
            self.set_given(fd, &held, Some(level.into()))?;
            let mapped = self
                .held_mappings()?
                .into_iter()
                .find(|m| m.revoke && (m.key.ino, m.key.dev) == (held.key.ino, held.key.dev));
            if let Some(mapped) = mapped {
                self.set_given(fd, &held, before)?;
                return Err(Error::Mapped(mapped.pid));
            }
        }
        if self.held(fd)?.label.level != level {
            self.set_given(fd, &held, before)?;
            return Err(Error::Fixed(path.into()));
        }
        let mut event = tg_event {
            pid: by,
            tid: by,
            kind: Kind::Promoted as u8,
            op: Op::Setattr as u8,
            class: Class::File as u8,
            from: held.label.level,
            to: level,
            object: level,
            ino: held.key.ino,
            dev: held.key.dev,
            source: u32::MAX,
            ..Default::default()
        };
        let comm = std::fs::read_to_string(format!("/proc/{by}/comm")).unwrap_or_default();
        crate::event::set_comm(&mut event, comm.trim_end());
        crate::event::set_path(&mut event, path);
        self.record(event)
    }

    /// Changes the table, and has the inode forget what it remembers.
    fn set_given(&self, fd: BorrowedFd<'_>, held: &Held, level: Option<u32>) -> Result<()> {
        let what = || "change the table of given levels".to_string();
        match level {
            Some(level) => {
                let before = self.given.get(&held.key).trying(what)?;
                if before.is_none() {
                    self.globals.given_used().fetch_add(1, Ordering::Relaxed);
                }
                // the lowest byte is the level, the rest says in whose account the entry is
                let entry = (before.unwrap_or(0) & !0xff) | (level & 0xff);
                self.given.put(&held.key, &entry).trying(what)?;
            }
            None => {
                self.delete_given(&held.key)?;
            }
        }
        self.inodes
            .delete(&fd.as_fd().as_raw_fd())
            .trying(|| "forget a label".into())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_read_as_the_kernel_writes_it() {
        let word = 7 << 32 | 2 << 24 | u64::from(Attrs::CREATOR.bits()) << 8 | 3;
        let label = Label::from_word(word);
        assert_eq!(
            label,
            Label {
                level: 3,
                attrs: Attrs::CREATOR,
                origin: Origin::Given
            }
        );
        assert_eq!(Label::from_word(1 << 28).origin, Origin::Unknown);
    }
}
