//! The table of SIDs that no path gives back, for those who keep it over a reboot.

use std::sync::atomic::Ordering;

use tidegate_flask::Sid;

use crate::error::{Error, Result, Trying};
use crate::image;
use crate::load::Monitor;
use crate::parts::Te;
use crate::skel::types::tg_given_key;

/// What a context is called that no policy knows any more.
const UNLABELED: &str = "unlabeled";

/// An object's context, which no path rule gives back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labelled {
    /// The filesystem's device, as the kernel numbers it.
    pub dev: u32,
    /// The inode.
    pub ino: u64,
    /// Its generation: a number used again is another object.
    pub generation: u32,
    /// The context's text, or a word that is none: each policy takes that for `unlabeled`.
    pub context: String,
}

impl Labelled {
    /// It has been given two contexts, of which nobody can tell which counts: neither does.
    pub fn confuse(&mut self, other: &str) {
        if self.context != other {
            self.context = UNLABELED.into();
        }
    }

    fn key(&self) -> tg_given_key {
        tg_given_key {
            ino: self.ino,
            dev: self.dev,
            generation: self.generation,
        }
    }
}

impl Monitor {
    /// All contexts that were given.
    ///
    /// # Errors
    /// [`Error::Io`] if the table cannot be read, or the names of contexts.
    pub fn labelled(&self) -> Result<Vec<Labelled>> {
        let Some(te) = self.part::<Te>()? else {
            return Ok(Vec::new());
        };
        let entries = te.given.entries();
        let entries = entries.trying(|| "read the given labels".into())?;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let numbering = self.numbering()?;
        let labelled = |(key, sid): (tg_given_key, u64)| Labelled {
            dev: key.dev,
            ino: key.ino,
            generation: key.generation,
            context: numbering
                .context(Sid(sid))
                .unwrap_or_else(|| UNLABELED.into()),
        };
        Ok(entries.into_iter().map(labelled).collect())
    }

    /// Gives names the numbers that SIDs are made of, before the first policy is in force. Where there are any, the `te` model is
    /// loaded: objects have such labels, whether the policy asks for them or not.
    ///
    /// # Errors
    /// [`Error::Io`] if the arena has no room for them; [`Error::Load`].
    pub fn name_contexts<'c>(&self, contexts: impl Iterator<Item = &'c str>) -> Result<()> {
        let mut contexts = contexts.peekable();
        if contexts.peek().is_none() {
            return Ok(());
        }
        self.needed::<Te>()?;
        let Some(arena) = self.arena()? else {
            return Ok(());
        };
        let mut numbering = self.numbering()?;
        for context in contexts {
            numbering.take(context);
        }
        let seqno = self.globals.policy().seqno;
        image::write_names(arena, &numbering, seqno)
            .trying(|| "write down the names of contexts".into())
    }

    /// Puts contexts back that were given before, whose names have numbers; of one whose have none it is `unlabeled`.
    ///
    /// # Errors
    /// [`Error::Full`] if there are more than the table holds; [`Error::Load`].
    pub fn restore_labelled(&self, labelled: &[Labelled]) -> Result<()> {
        if labelled.is_empty() {
            return Ok(());
        }
        let te = self.needed::<Te>()?;
        if labelled.len() > te.given.max_entries as usize {
            return Err(Error::Full("given labels"));
        }
        let numbering = self.numbering()?;
        let sid = |l: &Labelled| numbering.sid(&l.context).unwrap_or(Sid::NAMELESS).0;
        let keys: Vec<tg_given_key> = labelled.iter().map(Labelled::key).collect();
        let values: Vec<u64> = labelled.iter().map(sid).collect();
        let put = te.given.put_all(&keys, &values);
        // those that found room count, too
        let used = te.given.entries();
        let used = used.trying(|| "read the given labels".into())?.len() as u64;
        te.globals.given_used().store(used, Ordering::Relaxed);
        put.trying(|| "restore the given labels".into())
    }

    /// Forgets contexts whose objects are gone.
    ///
    /// # Errors
    /// [`Error::Io`] if the table cannot be changed.
    pub fn forget_labelled(&self, gone: &[Labelled]) -> Result<()> {
        let Some(te) = self.part::<Te>()? else {
            return Ok(());
        };
        for labelled in gone {
            let deleted = te.given.delete(&labelled.key());
            if deleted.trying(|| "forget a given label".into())? {
                let used = te.globals.given_used();
                used.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
