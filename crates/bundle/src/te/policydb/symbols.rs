//! The tables of symbols: `common_read()`, `class_read()` and so on of the kernel's policydb.c, `cond_read_bool()` of
//! conditional.c.

use std::collections::{HashMap, HashSet};

use super::{PolicyDbError, Reader, version};
use crate::limits::MAX_TE_SYMBOLS;
use crate::te::db::{
    Boolean, Category, Class, DefaultRange, From, Level, Number, Range, Role, Sensitivity, Type,
    User,
};

/// The role of objects, and its number (`OBJECT_R`). Whatever a policy says of it, it has no types and dominates
/// nothing: the kernel passes over what it reads of it.
const OBJECT_R: &str = "object_r";
pub(crate) const OBJECT_R_NUMBER: Number = 1;
/// Permissions of a class, at most: a bit of 32 for each.
const MAX_PERMISSIONS: usize = 32;
/// Properties of a type (`TYPEDATUM_PROPERTY_*`).
const PRIMARY: u32 = 1;
const ATTRIBUTE: u32 = 2;

/// Permissions that classes inherit, with their numbers, by the common's name.
type Commons = HashMap<String, Vec<(String, u32)>>;

/// Symbols of a kind by their numbers, as they come, which is in no order.
struct Slots<T> {
    kind: &'static str,
    slots: Vec<Option<T>>,
    names: HashSet<String>,
}

impl<T: Default> Slots<T> {
    fn put(&mut self, number: u32, name: &str, symbol: T) -> Result<(), PolicyDbError> {
        let kind = self.kind;
        let fault = |fault| PolicyDbError::Fault {
            of: format!("{kind} `{name}`"),
            fault,
        };
        let slot = (number as usize).checked_sub(1);
        let slot = slot.and_then(|at| self.slots.get_mut(at));
        let slot = slot.ok_or_else(|| fault("its number is beyond the table"))?;
        if slot.replace(symbol).is_some() {
            return Err(fault("another has its number"));
        }
        self.name(name)
    }

    /// Takes a name.
    fn name(&mut self, name: &str) -> Result<(), PolicyDbError> {
        match self.names.insert(name.to_owned()) {
            true => Ok(()),
            false => Err(PolicyDbError::Fault {
                of: format!("{} `{name}`", self.kind),
                fault: "it stands twice",
            }),
        }
    }

    /// All of them, where each number has one.
    fn all(self) -> Result<Vec<T>, PolicyDbError> {
        let kind = self.kind;
        let missing = |at| PolicyDbError::Number {
            of: "its table".into(),
            what: kind,
            number: at + 1,
        };
        let slots = self.slots.into_iter().enumerate();
        slots
            .map(|(at, slot)| slot.ok_or_else(|| missing(at)))
            .collect()
    }

    fn all_or_none(self) -> Vec<T> {
        self.slots
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect()
    }
}

impl Reader<'_> {
    /// Reads all tables; what they say of each other is still to be checked.
    pub fn symbols(&mut self) -> Result<(), PolicyDbError> {
        let commons = self.commons()?;
        self.db.classes = self.classes(&commons)?;
        self.db.roles = self.roles()?;
        self.types()?;
        self.db.users = self.users()?;
        self.db.booleans = self.booleans()?;
        self.db.sensitivities = self.sensitivities()?;
        self.db.categories = self.categories()?;
        Ok(())
    }

    /// A table's head: room for its symbols, and how many entries follow.
    fn table<T: Default>(
        &mut self,
        kind: &'static str,
    ) -> Result<(Slots<T>, usize), PolicyDbError> {
        let numbers = self.stream.u32(kind)? as usize;
        if numbers > MAX_TE_SYMBOLS {
            return Err(PolicyDbError::Limit {
                what: kind,
                count: numbers,
                max: MAX_TE_SYMBOLS,
            });
        }
        // a name's length and its number at least
        let entries = self.stream.count(kind, 8)?;
        let slots = Slots {
            kind,
            slots: (0..numbers).map(|_| None).collect(),
            names: HashSet::new(),
        };
        Ok((slots, entries))
    }

    fn commons(&mut self) -> Result<Commons, PolicyDbError> {
        let kind = "a common";
        let (_, entries) = self.table::<()>(kind)?;
        let mut commons = Commons::new();
        for _ in 0..entries {
            let length = self.stream.u32(kind)?;
            let [_number, _numbers] = [self.stream.u32(kind)?, self.stream.u32(kind)?];
            let count = self.stream.count(kind, 8)?;
            let name = self.stream.text(length, kind)?;
            let permissions = self.permissions(count)?;
            if commons.insert(name, permissions).is_some() {
                return Err(self.stream.error(kind));
            }
        }
        Ok(commons)
    }

    fn permissions(&mut self, count: usize) -> Result<Vec<(String, u32)>, PolicyDbError> {
        let what = "a permission";
        if count > MAX_PERMISSIONS {
            return Err(self.stream.error("permissions of a class"));
        }
        (0..count)
            .map(|_| {
                let [length, number] = [self.stream.u32(what)?, self.stream.u32(what)?];
                Ok((self.stream.text(length, what)?, number))
            })
            .collect()
    }

    fn classes(&mut self, commons: &Commons) -> Result<Vec<Class>, PolicyDbError> {
        let kind = "a class";
        let (mut classes, entries) = self.table(kind)?;
        for _ in 0..entries {
            let mut word = || self.stream.u32(kind);
            let [length, inherits, number] = [word()?, word()?, word()?];
            let [permissions, own, constraints] = [word()?, word()?, word()?];
            let name = self.stream.text(length, kind)?;
            let inherited = match inherits {
                0 => &[][..],
                length => {
                    let common = self.stream.text(length, "the common of a class")?;
                    commons
                        .get(&common)
                        .ok_or_else(|| self.stream.error("the common of a class"))?
                }
            };
            let own = self.permissions(own as usize)?;
            let class = Class {
                permissions: in_order(permissions as usize, inherited.iter().chain(&own))
                    .ok_or_else(|| PolicyDbError::Fault {
                        of: format!("class `{name}`"),
                        fault: "its permissions do not have the numbers from 1 on, each its own",
                    })?,
                name,
                constraints: self.constraints(constraints as usize, false)?,
                validations: {
                    let count = self.stream.u32(kind)?;
                    self.constraints(count as usize, true)?
                },
                ..self.defaults()?
            };
            let name = class.name.clone();
            classes.put(number, &name, class)?;
        }
        classes.all()
    }

    /// Where parts of new contexts come from: a class with nothing else.
    fn defaults(&mut self) -> Result<Class, PolicyDbError> {
        let mut class = Class::default();
        if self.db.version >= version::NEW_OBJECT_DEFAULTS {
            class.default_user = self.default_from()?;
            class.default_role = self.default_from()?;
            let what = "the default range of a class";
            class.default_range = match self.stream.u32(what)? {
                0 => DefaultRange::Unsaid,
                1 => DefaultRange::SourceLow,
                2 => DefaultRange::SourceHigh,
                3 => DefaultRange::SourceLowHigh,
                4 => DefaultRange::TargetLow,
                5 => DefaultRange::TargetHigh,
                6 => DefaultRange::TargetLowHigh,
                7 => DefaultRange::GreatestLowest,
                _ => return Err(self.stream.error(what)),
            };
        }
        if self.db.version >= version::DEFAULT_TYPE {
            class.default_type = self.default_from()?;
        }
        Ok(class)
    }

    fn default_from(&mut self) -> Result<From, PolicyDbError> {
        let what = "the defaults of a class";
        match self.stream.u32(what)? {
            0 => Ok(From::Unsaid),
            1 => Ok(From::Source),
            2 => Ok(From::Target),
            _ => Err(self.stream.error(what)),
        }
    }

    fn roles(&mut self) -> Result<Vec<Role>, PolicyDbError> {
        let kind = "a role";
        let (mut roles, entries) = self.table(kind)?;
        let object_r = Role {
            name: OBJECT_R.into(),
            ..Role::default()
        };
        roles.put(OBJECT_R_NUMBER, OBJECT_R, object_r)?;
        for _ in 0..entries {
            let [length, number] = [self.stream.u32(kind)?, self.stream.u32(kind)?];
            let bounds = self.bounds(kind)?;
            let role = Role {
                name: self.stream.text(length, kind)?,
                dominates: self.stream.bitmap("roles that a role dominates")?,
                types: self.stream.bitmap("types of a role")?,
                bounds,
            };
            if role.name != OBJECT_R || number != OBJECT_R_NUMBER {
                let name = role.name.clone();
                roles.put(number, &name, role)?;
            }
        }
        roles.all()
    }

    fn types(&mut self) -> Result<(), PolicyDbError> {
        let kind = "a type";
        let (mut types, entries) = self.table::<Type>(kind)?;
        for _ in 0..entries {
            let [length, number] = [self.stream.u32(kind)?, self.stream.u32(kind)?];
            let properties = self.stream.u32(kind)?;
            let bounds = self.bounds(kind)?;
            let name = self.stream.text(length, kind)?;
            if properties & PRIMARY == 0 {
                types.name(&name)?;
                self.db.type_aliases.push((name, number));
                continue;
            }
            let symbol = Type {
                name: name.clone(),
                attribute: properties & ATTRIBUTE != 0,
                bounds,
            };
            types.put(number, &name, symbol)?;
        }
        self.db.types = types.all_or_none();
        Ok(())
    }

    /// The number of what bounds it, of none 0.
    fn bounds(&mut self, what: &'static str) -> Result<Option<Number>, PolicyDbError> {
        Ok(Some(self.stream.u32(what)?).filter(|&number| number != 0))
    }

    fn users(&mut self) -> Result<Vec<User>, PolicyDbError> {
        let kind = "a user";
        let (mut users, entries) = self.table(kind)?;
        for _ in 0..entries {
            let [length, number] = [self.stream.u32(kind)?, self.stream.u32(kind)?];
            let bounds = self.bounds(kind)?;
            let user = User {
                name: self.stream.text(length, kind)?,
                roles: self.stream.bitmap("roles of a user")?,
                range: self.range()?,
                level: self.level()?,
                bounds,
            };
            let name = user.name.clone();
            users.put(number, &name, user)?;
        }
        users.all()
    }

    fn booleans(&mut self) -> Result<Vec<Boolean>, PolicyDbError> {
        let kind = "a boolean";
        let (mut booleans, entries) = self.table(kind)?;
        for _ in 0..entries {
            let mut word = || self.stream.u32(kind);
            let [number, value, length] = [word()?, word()?, word()?];
            let name = self.stream.text(length, kind)?;
            if value > 1 {
                return Err(self.stream.error("a boolean's value"));
            }
            let boolean = Boolean {
                name: name.clone(),
                value: value == 1,
            };
            booleans.put(number, &name, boolean)?;
        }
        booleans.all()
    }

    fn sensitivities(&mut self) -> Result<Vec<Sensitivity>, PolicyDbError> {
        let kind = "a sensitivity";
        let (mut levels, entries) = self.table(kind)?;
        let mut aliases = Vec::new();
        for _ in 0..entries {
            let [length, is_alias] = [self.stream.u32(kind)?, self.stream.u32(kind)?];
            let name = self.stream.text(length, kind)?;
            let number = self.stream.u32(kind)?;
            let categories = self.stream.bitmap("categories of a sensitivity")?;
            if is_alias != 0 {
                levels.name(&name)?;
                aliases.push((name, number));
                continue;
            }
            let level = Sensitivity {
                name: name.clone(),
                aliases: Vec::new(),
                categories,
            };
            levels.put(number, &name, level)?;
        }
        let mut levels = levels.all()?;
        attach(aliases, &mut levels, kind, |level| &mut level.aliases)?;
        Ok(levels)
    }

    fn categories(&mut self) -> Result<Vec<Category>, PolicyDbError> {
        let kind = "a category";
        let (mut categories, entries) = self.table(kind)?;
        let mut aliases = Vec::new();
        for _ in 0..entries {
            let mut word = || self.stream.u32(kind);
            let [length, number, is_alias] = [word()?, word()?, word()?];
            let name = self.stream.text(length, kind)?;
            if is_alias != 0 {
                categories.name(&name)?;
                aliases.push((name, number));
                continue;
            }
            let category = Category {
                name: name.clone(),
                aliases: Vec::new(),
            };
            categories.put(number, &name, category)?;
        }
        let mut categories = categories.all()?;
        attach(aliases, &mut categories, kind, |category| {
            &mut category.aliases
        })?;
        Ok(categories)
    }

    /// A range, which a policy without MLS has, too, and which says nothing there.
    pub fn range(&mut self) -> Result<Range, PolicyDbError> {
        let what = "a range";
        let (first, last) = match self.stream.u32(what)? {
            1 => (self.stream.u32(what)?, None),
            2 => (self.stream.u32(what)?, Some(self.stream.u32(what)?)),
            _ => return Err(self.stream.error(what)),
        };
        let low = Level {
            sensitivity: first,
            categories: self.stream.bitmap(what)?,
        };
        let high = match last {
            Some(sensitivity) => Level {
                sensitivity,
                categories: self.stream.bitmap(what)?,
            },
            None => low.clone(),
        };
        match self.db.mls {
            true => Ok(Range { low, high }),
            false => Ok(Range::default()),
        }
    }

    /// A level, the same.
    fn level(&mut self) -> Result<Level, PolicyDbError> {
        let what = "a level";
        let level = Level {
            sensitivity: self.stream.u32(what)?,
            categories: self.stream.bitmap(what)?,
        };
        Ok(if self.db.mls { level } else { Level::default() })
    }
}

/// Names of permissions by their numbers, if there is one for each of so many.
fn in_order<'p>(
    count: usize,
    permissions: impl Iterator<Item = &'p (String, u32)>,
) -> Option<Vec<String>> {
    if count > MAX_PERMISSIONS {
        return None;
    }
    let mut names = vec![None; count];
    for (name, number) in permissions {
        let slot = names.get_mut((*number as usize).checked_sub(1)?)?;
        if slot.replace(name.clone()).is_some() {
            return None;
        }
    }
    names.into_iter().collect()
}

/// Gives aliases to what they are of.
fn attach<T>(
    aliases: Vec<(String, u32)>,
    to: &mut [T],
    what: &'static str,
    list: impl Fn(&mut T) -> &mut Vec<String>,
) -> Result<(), PolicyDbError> {
    for (alias, number) in aliases {
        let slot = (number as usize).checked_sub(1);
        match slot.and_then(|at| to.get_mut(at)) {
            Some(symbol) => list(symbol).push(alias),
            None => {
                return Err(PolicyDbError::Number {
                    of: format!("the alias `{alias}`"),
                    what,
                    number: number as usize,
                });
            }
        }
    }
    Ok(())
}
