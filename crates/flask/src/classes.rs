//! A policy's classes and permissions by the kernel's numbers.
//!
//! Linux's own classes come first, numbered as `kernel/te/classmap` has them, so that the kernel asks by constants;
//! classes that only the policy has (those of object managers in user space) follow. A permission that the policy has
//! and Linux does not gets a bit behind Linux's.

use tidegate_bundle::te::db::{PolicyDb, Unknown};

use crate::CLASSES;

/// A class as the image has it.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its permissions by their bits.
    pub permissions: Vec<String>,
    /// Its number in the policy; `None`: the policy does not know it.
    pub number: Option<u32>,
    /// Permissions that the policy does not know and allows.
    pub unknown: u32,
    /// The bit here of each bit in the policy.
    bits: Vec<u8>,
}

/// All classes of a policy.
#[derive(Debug, Clone)]
pub struct Classes {
    /// By their numbers here, less 1.
    pub list: Vec<Class>,
    /// The number here of each number in the policy.
    numbers: Vec<u32>,
}

/// Why a policy's classes do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// The policy says `handle_unknown reject`, and does not know this.
    #[error("the policy does not know {0}, and says to reject what it does not know")]
    Rejected(String),
    /// There is no bit left for a permission.
    #[error("class {0} has too many permissions: with those of Linux there are more than 32")]
    TooMany(String),
}

impl Classes {
    /// The classes of Linux and of this policy.
    ///
    /// # Errors
    /// As [`ClassError`] has it.
    pub fn of(db: &PolicyDb) -> Result<Classes, ClassError> {
        let mut list = Vec::new();
        let mut numbers = vec![0; db.classes.len()];
        for linux in CLASSES {
            let class = Class::of_linux(db, linux)?;
            if let Some(number) = class.number {
                numbers[number as usize - 1] = list.len() as u32 + 1;
            }
            list.push(class);
        }
        for (number, ours) in numbers.iter_mut().enumerate() {
            if *ours == 0 {
                list.push(Class::of_policy(db, number));
                *ours = list.len() as u32;
            }
        }
        Ok(Classes { list, numbers })
    }

    /// The number here of a class of the policy.
    pub fn number(&self, policy: u32) -> u32 {
        self.numbers[policy as usize - 1]
    }

    /// The class of a number here.
    pub fn get(&self, number: u32) -> &Class {
        &self.list[number as usize - 1]
    }

    /// A class by its name; its number here.
    pub fn by_name(&self, name: &str) -> Option<u32> {
        let at = self.list.iter().position(|class| class.name == name)?;
        Some(at as u32 + 1)
    }
}

impl Class {
    /// The class of a number here, alone: what [`Classes::of`] lists under it. `None`: there is no such class.
    pub fn numbered(db: &PolicyDb, number: u32) -> Option<Class> {
        let at = (number as usize).checked_sub(1)?;
        if let Some(linux) = CLASSES.get(at) {
            return Class::of_linux(db, linux).ok();
        }
        let is_own = |&number: &usize| {
            let name = &db.classes[number].name;
            CLASSES.iter().all(|(linux, _)| linux != name)
        };
        let number = (0..db.classes.len())
            .filter(is_own)
            .nth(at - CLASSES.len())?;
        Some(Class::of_policy(db, number))
    }

    /// A class that only the policy has.
    fn of_policy(db: &PolicyDb, number: usize) -> Class {
        let class = &db.classes[number];
        Class {
            name: class.name.clone(),
            permissions: class.permissions.clone(),
            number: Some(number as u32 + 1),
            unknown: 0,
            bits: (0..class.permissions.len() as u8).collect(),
        }
    }

    fn of_linux(db: &PolicyDb, (name, ours): &(&str, &[&str])) -> Result<Class, ClassError> {
        let number = db.classes.iter().position(|c| c.name == *name);
        let theirs: &[String] = number.map_or(&[], |n| &db.classes[n].permissions);
        let mut permissions: Vec<String> = ours.iter().map(|&p| p.to_owned()).collect();
        let mut bits = Vec::new();
        for permission in theirs {
            let bit = match permissions.iter().position(|p| p == permission) {
                Some(bit) => bit,
                None => {
                    permissions.push(permission.clone());
                    permissions.len() - 1
                }
            };
            bits.push(bit as u8);
        }
        if permissions.len() > 32 {
            return Err(ClassError::TooMany((*name).to_owned()));
        }
        let unknown: Vec<usize> = (0..ours.len())
            .filter(|&bit| !bits.contains(&(bit as u8)))
            .collect();
        if let (Unknown::Reject, Some(&bit)) = (db.unknown, unknown.first()) {
            return Err(ClassError::Rejected(match number {
                Some(_) => format!("permission {} of class {name}", ours[bit]),
                None => format!("class {name}"),
            }));
        }
        let allowed = match db.unknown {
            Unknown::Allow => unknown.iter().fold(0, |mask, bit| mask | 1 << bit),
            _ => 0,
        };
        Ok(Class {
            name: (*name).to_owned(),
            permissions,
            number: number.map(|n| n as u32 + 1),
            unknown: allowed,
            bits,
        })
    }

    /// Permissions of the policy's by their bits here.
    pub fn permissions(&self, policy: u32) -> u32 {
        let set = |mask, (at, &bit): (usize, &u8)| mask | (policy >> at & 1) << bit;
        self.bits.iter().enumerate().fold(0, set)
    }

    /// Permissions here by their bits in the policy.
    pub fn in_policy(&self, ours: u32) -> u32 {
        let set = |mask, (at, &bit): (usize, &u8)| mask | (ours >> bit & 1) << at;
        self.bits.iter().enumerate().fold(0, set)
    }

    /// The names of these permissions.
    pub fn names(&self, mask: u32) -> impl Iterator<Item = &str> {
        let bits = self.permissions.iter().enumerate();
        bits.filter(move |(bit, _)| mask >> bit & 1 == 1)
            .map(|(_, name)| name.as_str())
    }
}
