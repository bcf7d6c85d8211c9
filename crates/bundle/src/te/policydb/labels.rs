//! Contexts of objects: `ocontext_read()` and `genfs_read()` of the kernel's policydb.c.

use std::collections::{HashMap, HashSet};

use super::{CONTEXTS, CONTEXTS_INFINIBAND, PolicyDbError, Reader, version};
use crate::te::db::{Behavior, Context, FsUse, Genfs, GenfsPath, Port};

/// The last initial SID, with room for more than the kernel's 27 (`SECINITSID_NUM`).
const MAX_INITIAL_SID: u32 = 255;
/// Bytes that a context takes, at least: three numbers and a range of one empty level.
const CONTEXT: usize = 12 + 8 + 12;

impl Reader<'_> {
    /// Reads the lists of contexts, in the order of their kinds (`OCON_*`).
    pub fn labels(&mut self) -> Result<(), PolicyDbError> {
        let kinds = match self.db.version >= version::INFINIBAND {
            true => CONTEXTS_INFINIBAND,
            false => CONTEXTS,
        };
        for kind in 0..kinds {
            let count = self.stream.count("a list of contexts", CONTEXT)?;
            for _ in 0..count {
                match kind {
                    0 => self.initial_sid()?,
                    1 => self.fscon()?,
                    2 => self.port()?,
                    3 => self.interface()?,
                    4 => self.node()?,
                    5 => self.fs_use()?,
                    6 => self.node6()?,
                    7 => self.ibpkeycon()?,
                    _ => self.ibendportcon()?,
                }
            }
        }
        Ok(())
    }

    fn initial_sid(&mut self) -> Result<(), PolicyDbError> {
        let what = "an initial SID";
        let sid = self.stream.u32(what)?;
        let context = self.context(what)?;
        if !(1..=MAX_INITIAL_SID).contains(&sid)
            || self.db.initial_sids.iter().any(|(other, _)| *other == sid)
        {
            return Err(self.stream.error(what));
        }
        self.db.initial_sids.push((sid, context));
        Ok(())
    }

    /// Contexts of a mounted filesystem by its device's name: nothing has ever used them.
    fn fscon(&mut self) -> Result<(), PolicyDbError> {
        let what = "a filesystem's context";
        self.stream.counted_text(what)?;
        self.context(what)?;
        self.context(what)?;
        self.passed_over("fscon");
        Ok(())
    }

    fn port(&mut self) -> Result<(), PolicyDbError> {
        let what = "a port's context";
        let mut word = || self.stream.u32(what);
        let [protocol, low, high] = [word()?, word()?, word()?];
        let context = self.context(what)?;
        let wrong = |_| self.stream.error(what);
        let port = Port {
            protocol: protocol.try_into().map_err(wrong)?,
            low: low.try_into().map_err(wrong)?,
            high: high.try_into().map_err(wrong)?,
            context,
        };
        if port.low > port.high {
            return Err(self.stream.error(what));
        }
        self.db.ports.push(port);
        Ok(())
    }

    fn interface(&mut self) -> Result<(), PolicyDbError> {
        let what = "a network interface's context";
        let name = self.stream.counted_text(what)?;
        let (own, messages) = (self.context(what)?, self.context(what)?);
        self.db.interfaces.push((name, own, messages));
        Ok(())
    }

    fn node(&mut self) -> Result<(), PolicyDbError> {
        let what = "an address's context";
        let (address, mask) = (self.stream.array(what)?, self.stream.array(what)?);
        let context = self.context(what)?;
        self.db.nodes.push((address, mask, context));
        Ok(())
    }

    fn node6(&mut self) -> Result<(), PolicyDbError> {
        let what = "an address's context";
        let (address, mask) = (self.stream.array(what)?, self.stream.array(what)?);
        let context = self.context(what)?;
        self.db.nodes6.push((address, mask, context));
        Ok(())
    }

    fn fs_use(&mut self) -> Result<(), PolicyDbError> {
        let what = "how a filesystem is labelled";
        let behavior = match self.stream.u32(what)? {
            1 => Behavior::Xattr,
            2 => Behavior::Transition,
            3 => Behavior::Task,
            _ => return Err(self.stream.error(what)),
        };
        let filesystem = self.stream.counted_text(what)?;
        let context = self.context(what)?;
        self.db.fs_uses.push(FsUse {
            filesystem,
            behavior,
            context,
        });
        Ok(())
    }

    fn ibpkeycon(&mut self) -> Result<(), PolicyDbError> {
        let what = "an InfiniBand partition's context";
        self.stream.bytes(16, what)?;
        self.context(what)?;
        self.passed_over("ibpkeycon");
        Ok(())
    }

    fn ibendportcon(&mut self) -> Result<(), PolicyDbError> {
        let what = "an InfiniBand port's context";
        let [length, _port] = [self.stream.u32(what)?, self.stream.u32(what)?];
        self.stream.text(length, what)?;
        self.context(what)?;
        self.passed_over("ibendportcon");
        Ok(())
    }

    fn passed_over(&mut self, statement: &'static str) {
        if !self.db.passed_over.contains(&statement) {
            self.db.passed_over.push(statement);
        }
    }

    /// A context that something may have.
    fn context(&mut self, what: &'static str) -> Result<Context, PolicyDbError> {
        let mut word = || self.stream.u32(what);
        let [user, role, kind] = [word()?, word()?, word()?];
        let range = self.range()?;
        let context = Context {
            user,
            role,
            kind,
            range,
        };
        match self.db.is_valid(&context) {
            true => Ok(context),
            false => Err(self.stream.error(what)),
        }
    }

    /// Contexts by path. A longer path is looked at before a shorter one, and among equal ones the one that stands
    /// first in the file.
    pub fn genfs(&mut self) -> Result<(), PolicyDbError> {
        let what = "a path's context";
        let mut filesystems = HashSet::new();
        for _ in 0..self.stream.count(what, 8)? {
            let filesystem = self.stream.counted_text(what)?;
            let count = self.stream.count(what, 8 + CONTEXT)?;
            let mut seen = HashMap::new();
            let mut paths = Vec::new();
            for _ in 0..count {
                let path = self.stream.counted_text(what)?;
                let class = match self.stream.u32(what)? {
                    0 => None,
                    number => Some(self.stream.among(number, self.db.classes.len(), what)?),
                };
                let context = self.context(what)?;
                // one for all classes leaves no room for another
                let classes: &mut HashSet<_> = seen.entry(path.clone()).or_default();
                let is_taken = classes.contains(&None) || (class.is_none() && !classes.is_empty());
                if is_taken || !classes.insert(class) {
                    return Err(self.stream.error(what));
                }
                paths.push(GenfsPath {
                    path,
                    class,
                    context,
                });
            }
            paths.sort_by_key(|path| std::cmp::Reverse(path.path.len()));
            if !filesystems.insert(filesystem.clone()) {
                return Err(self.stream.error(what));
            }
            self.db.genfs.push(Genfs { filesystem, paths });
        }
        Ok(())
    }
}
