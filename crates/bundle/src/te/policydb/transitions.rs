//! Transitions of roles, ranges, and by names: `role_trans_read()`, `filename_trans_read()` and `range_read()` of the
//! kernel's policydb.c.

use std::collections::{HashMap, HashSet};

use super::{PolicyDbError, Reader, version};
use crate::te::db::{Bitmap, NameTransition, RangeTransition, RoleTransition};

const ROLES: &str = "a transition of roles";
const NAMES: &str = "a transition by name";
const RANGES: &str = "a transition of ranges";

impl Reader<'_> {
    pub fn role_transitions(&mut self) -> Result<(), PolicyDbError> {
        let count = self.stream.count(ROLES, 12)?;
        let roles = self.db.roles.len();
        let process = self.db.process_class().ok_or(PolicyDbError::Process)?;
        let mut seen = HashSet::new();
        for _ in 0..count {
            let role = self.stream.number(roles, ROLES)?;
            let kind = self.stream.number(self.db.types.len(), ROLES)?;
            let becomes = self.stream.number(roles, ROLES)?;
            let class = match self.db.version >= version::ROLETRANS {
                true => self.stream.number(self.db.classes.len(), ROLES)?,
                false => process,
            };
            if !seen.insert((role, kind, class)) {
                return Err(self.stream.error(ROLES));
            }
            self.db.role_transitions.push(RoleTransition {
                role,
                kind,
                class,
                becomes,
            });
        }
        Ok(())
    }

    pub fn role_allows(&mut self) -> Result<(), PolicyDbError> {
        let what = "a role that another may change to";
        let roles = self.db.roles.len();
        for _ in 0..self.stream.count(what, 8)? {
            let pair = (
                self.stream.number(roles, what)?,
                self.stream.number(roles, what)?,
            );
            self.db.role_allows.push(pair);
        }
        Ok(())
    }

    pub fn name_transitions(&mut self) -> Result<(), PolicyDbError> {
        if self.db.version >= version::COMP_FTRANS {
            self.compressed_name_transitions()
        } else if self.db.version >= version::FILENAME_TRANS {
            self.plain_name_transitions()
        } else {
            Ok(())
        }
    }

    /// One for each source. A source that has one already keeps it, as some compilers wrote it twice.
    fn plain_name_transitions(&mut self) -> Result<(), PolicyDbError> {
        let count = self.stream.count(NAMES, 20)?;
        let mut sources = HashSet::new();
        let mut results = HashMap::new();
        for _ in 0..count {
            let name = self.stream.counted_text(NAMES)?;
            let types = self.db.types.len();
            let source = self.stream.number(types, NAMES)? as usize - 1;
            let target = self.stream.number(types, NAMES)?;
            let class = self.stream.number(self.db.classes.len(), NAMES)?;
            let becomes = self.real_type(NAMES)?;
            if !sources.insert((source, target, class, name.clone())) {
                continue;
            }
            self.stream.room_for(source)?;
            let all = &mut self.db.name_transitions;
            let at = *results
                .entry((target, class, name.clone(), becomes))
                .or_insert(all.len());
            if at == all.len() {
                all.push(NameTransition {
                    sources: Bitmap::new(),
                    target,
                    class,
                    name,
                    becomes,
                });
            }
            all[at].sources.grow(source + 1);
            all[at].sources.insert(source);
        }
        Ok(())
    }

    /// For each target, class and name a list of what it becomes for which sources.
    fn compressed_name_transitions(&mut self) -> Result<(), PolicyDbError> {
        let count = self.stream.count(NAMES, 16)?;
        let mut keys = HashSet::new();
        for _ in 0..count {
            let name = self.stream.counted_text(NAMES)?;
            let target = self.stream.number(self.db.types.len(), NAMES)?;
            let class = self.stream.number(self.db.classes.len(), NAMES)?;
            let results = self.stream.count(NAMES, 16)?;
            if results == 0 || !keys.insert((target, class, name.clone())) {
                return Err(self.stream.error(NAMES));
            }
            let mut before = Bitmap::new();
            for _ in 0..results {
                let sources = self.stream.bitmap(NAMES)?;
                let becomes = self.real_type(NAMES)?;
                if sources.len() > self.db.types.len() || !before.is_disjoint(&sources) {
                    return Err(self.stream.error(NAMES));
                }
                before.union_with(&sources);
                self.db.name_transitions.push(NameTransition {
                    sources,
                    target,
                    class,
                    name: name.clone(),
                    becomes,
                });
            }
        }
        Ok(())
    }

    pub fn range_transitions(&mut self) -> Result<(), PolicyDbError> {
        let mut seen = HashSet::new();
        for _ in 0..self.stream.count(RANGES, 32)? {
            let types = self.db.types.len();
            let source = self.stream.number(types, RANGES)?;
            let target = self.stream.number(types, RANGES)?;
            let class = self.stream.number(self.db.classes.len(), RANGES)?;
            let range = self.range()?;
            let is_valid = !self.db.mls || self.db.is_range(&range);
            if !is_valid || !seen.insert((source, target, class)) {
                return Err(self.stream.error(RANGES));
            }
            self.db.range_transitions.push(RangeTransition {
                source,
                target,
                class,
                range,
            });
        }
        Ok(())
    }

    /// By which types and attributes rules name each type.
    pub fn memberships(&mut self) -> Result<(), PolicyDbError> {
        let what = "attributes of a type";
        for at in 0..self.db.types.len() {
            let mut names = self.stream.bitmap(what)?;
            if names.len() > self.db.types.len() {
                return Err(self.stream.error(what));
            }
            self.stream.room_for(at)?;
            names.grow(at + 1);
            names.insert(at);
            self.db.memberships.push(names);
        }
        Ok(())
    }
}
