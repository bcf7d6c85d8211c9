//! Checks what symbols say of each other, once all are there: `policydb_index()` and
//! `policydb_bounds_sanity_check()` of the kernel's policydb.c.

use super::rules::is_real;
use super::{PolicyDbError, Reader};
use crate::te::db::{Bitmap, Level, Number, PolicyDb, Symbol, Term};

/// How many bound each other in a row, at most (`POLICYDB_BOUNDS_MAXDEPTH`).
const MAX_BOUNDS: usize = 4;

impl Reader<'_> {
    /// Checks every number in the tables of symbols.
    pub fn symbols_are_there(&self) -> Result<(), PolicyDbError> {
        let db = &self.db;
        let (types, roles) = (db.types.len(), db.roles.len());
        let categories = db.categories.len();
        are_there("the permissive types", &db.permissive, "type", types)?;
        are_there("the types never audited", &db.never_audited, "type", types)?;
        for class in &db.classes {
            let of = || format!("a constraint of the class `{}`", class.name);
            let constraints = class.constraints.iter().chain(&class.validations);
            for term in constraints.flat_map(|constraint| &constraint.expression) {
                match term {
                    Term::Among(part, _, names, _) => {
                        let (what, count) = match part.what {
                            Symbol::User => ("user", db.users.len()),
                            Symbol::Role => ("role", roles),
                            Symbol::Type => ("type", types),
                        };
                        are_there(of(), names, what, count)?;
                    }
                    Term::Not | Term::And | Term::Or | Term::Compare(..) => {}
                }
            }
        }
        for role in &db.roles {
            let of = || format!("the role `{}`", role.name);
            are_there(of(), &role.dominates, "role", roles)?;
            are_there(of(), &role.types, "type", types)?;
            is_there(of(), role.bounds, "role", roles)?;
        }
        for symbol in &db.types {
            is_there(
                format!("the type `{}`", symbol.name),
                symbol.bounds,
                "type",
                types,
            )?;
        }
        for (alias, number) in &db.type_aliases {
            let of = || format!("the alias `{alias}`");
            is_there(of(), Some(*number), "type", types)?;
            if !is_real(&db.types[*number as usize - 1]) {
                let fault = "it is not of a type";
                return Err(PolicyDbError::Fault { of: of(), fault });
            }
        }
        for level in &db.sensitivities {
            let of = format!("the sensitivity `{}`", level.name);
            are_there(of, &level.categories, "category", categories)?;
        }
        for user in &db.users {
            let of = || format!("the user `{}`", user.name);
            are_there(of(), &user.roles, "role", roles)?;
            is_there(of(), user.bounds, "user", db.users.len())?;
            for level in [&user.range.low, &user.range.high, &user.level] {
                level_is_there(of(), level, db)?;
            }
        }
        Ok(())
    }

    /// Checks that what bounds something is not bounded by it, and, of users and roles, has all that it has.
    pub fn bounds_hold(&self) -> Result<(), PolicyDbError> {
        let db = &self.db;
        for (at, symbol) in db.types.iter().enumerate() {
            for upper in uppers(at, |at| db.types[at].bounds) {
                let fault = match upper {
                    None => "it is bounded in a circle, or too deep",
                    Some(upper) if !is_real(&db.types[upper]) => "it is bounded by an attribute",
                    Some(_) => continue,
                };
                let of = format!("the type `{}`", symbol.name);
                return Err(PolicyDbError::Fault { of, fault });
            }
        }
        for (at, role) in db.roles.iter().enumerate() {
            for upper in uppers(at, |at| db.roles[at].bounds) {
                let fault = match upper {
                    None => "it is bounded in a circle, or too deep",
                    Some(upper) if !role.types.is_subset(&db.roles[upper].types) => {
                        "it has a type that what bounds it has not"
                    }
                    Some(_) => continue,
                };
                let of = format!("the role `{}`", role.name);
                return Err(PolicyDbError::Fault { of, fault });
            }
        }
        for (at, user) in db.users.iter().enumerate() {
            for upper in uppers(at, |at| db.users[at].bounds) {
                let fault = match upper {
                    None => "it is bounded in a circle, or too deep",
                    Some(upper) if !user.roles.is_subset(&db.users[upper].roles) => {
                        "it has a role that what bounds it has not"
                    }
                    Some(_) => continue,
                };
                let of = format!("the user `{}`", user.name);
                return Err(PolicyDbError::Fault { of, fault });
            }
        }
        Ok(())
    }
}

/// What bounds a symbol, what bounds that, and so on; `None` where it goes on too long.
fn uppers(
    at: usize,
    bounds: impl Fn(usize) -> Option<Number>,
) -> impl Iterator<Item = Option<usize>> {
    let mut at = at;
    let mut depth = 0;
    std::iter::from_fn(move || {
        at = bounds(at)? as usize - 1;
        depth += 1;
        match depth {
            ..MAX_BOUNDS => Some(Some(at)),
            MAX_BOUNDS => Some(None),
            _ => None,
        }
    })
}

fn are_there(
    of: impl Into<String>,
    set: &Bitmap,
    what: &'static str,
    count: usize,
) -> Result<(), PolicyDbError> {
    match set.len() > count {
        true => Err(PolicyDbError::Number {
            of: of.into(),
            what,
            number: set.len(),
        }),
        false => Ok(()),
    }
}

fn is_there(
    of: String,
    number: Option<Number>,
    what: &'static str,
    count: usize,
) -> Result<(), PolicyDbError> {
    match number {
        Some(number) if number == 0 || number as usize > count => Err(PolicyDbError::Number {
            of,
            what,
            number: number as usize,
        }),
        _ => Ok(()),
    }
}

fn level_is_there(of: String, level: &Level, db: &PolicyDb) -> Result<(), PolicyDbError> {
    if !db.mls {
        return Ok(());
    }
    let categories = db.categories.len();
    are_there(of.as_str(), &level.categories, "category", categories)?;
    let sensitivity = Some(level.sensitivity);
    is_there(of, sensitivity, "sensitivity", db.sensitivities.len())
}
