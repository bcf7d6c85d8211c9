//! Labels of objects: reading them, and giving one that no path rule gives (`promote`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_bundle::Attrs;
use tidegate_flask::Sid;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::skel::types::tg_event;
use crate::tasks::{Held, Process};
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

/// Looks in a row that find no process that has it mapped (mappings.rs).
const CLEAN: u32 = 2;

/// Looks that find somebody before that is believed, and the time between them.
const TRIES: u32 = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

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
    /// writing, which cannot be revoked, [`Error::Blocked`] if one may have; then the object keeps its level.
    pub fn give(&self, fd: BorrowedFd<'_>, level: u8, by: &Process, path: &str) -> Result<u64> {
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
        if let Err(e) = self.try_given(fd, &held, level, path) {
            self.in_turn(|| self.set_given(fd, &held, before))??;
            return Err(e);
        }
        let mut event = tg_event {
            pid: by.pid,
            tid: by.pid,
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
        crate::event::set_comm(&mut event, &by.comm);
        crate::event::set_path(&mut event, path);
        self.record(event)
    }

    /// Gives a level, and looks whether that holds. After an error the level before is to be given again.
    fn try_given(&self, fd: BorrowedFd<'_>, held: &Held, level: u8, path: &str) -> Result<()> {
        // a transaction knows it with one level or the other; from here on nobody below that maps it for writing
        self.in_turn(|| self.set_given(fd, held, Some(level.into())))??;
        self.is_mapped_below(fd, level)?;
        if self.held(fd)?.label.level != level {
            return Err(Error::Fixed(path.into()));
        }
        Ok(())
    }

    /// An error if a subject below the level that an object has been given has it mapped for writing, or may have.
    fn is_mapped_below(&self, fd: BorrowedFd<'_>, level: u8) -> Result<()> {
        let held = self.held(fd)?;
        // nor does anybody come to have it open: that is asked about with its new level
        if !held.written {
            return Ok(());
        }
        let file = (held.key.ino, held.key.dev);
        // the level of a process that falls is lower for as long as its transaction goes on, which
        // is refused by such a mapping
        let (mut clean, mut tries) = (0, 0);
        while clean < CLEAN {
            let mapped = self.mapped_of(file)?;
            let blocked = mapped.blocked.iter().find(|it| it.level < level);
            let found = match (mapped.held.iter().find(|m| m.revoke), blocked) {
                (Some(m), _) => Error::Mapped(m.pid),
                (None, Some(it)) => Error::Blocked(it.pid),
                (None, None) => {
                    clean += 1;
                    continue;
                }
            };
            (clean, tries) = (0, tries + 1);
            if tries == TRIES {
                return Err(found);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
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
