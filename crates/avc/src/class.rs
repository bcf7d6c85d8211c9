//! Classes, as an object manager names them: its own order of permissions, whatever order a policy has
//! (selinux_set_mapping(3)).

use std::sync::{Arc, RwLock};

use tidegate_protocol::Access;

use crate::avc::Decision;
use crate::error::AvcError;

/// Classes that one cache may have: what fits into a key.
const ROOM: usize = 1 << 12;

/// A class of objects and its permissions, a bit each, in the order in which they were declared.
#[derive(Debug, Clone)]
pub struct Class(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    number: u16,
    name: String,
    permissions: Vec<String>,
}

impl Class {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// A permission's bit; `None`: none of that name was declared.
    pub fn permission(&self, name: &str) -> Option<u32> {
        let bit = self.0.permissions.iter().position(|p| p == name)?;
        Some(1 << bit)
    }

    /// The names of the permissions in a mask; a bit that is none's is called by its number.
    pub fn names(&self, mask: u32) -> String {
        let name = |bit: usize| match self.0.permissions.get(bit) {
            Some(name) => name.clone(),
            None => format!("{:#x}", 1u32 << bit),
        };
        let bits = (0..32).filter(|bit| mask & 1 << bit != 0);
        bits.map(name).collect::<Vec<_>>().join(" ")
    }

    /// All permissions that were declared.
    pub fn all(&self) -> u32 {
        let count = self.0.permissions.len() as u32;
        u32::MAX.checked_shr(32 - count).unwrap_or(0)
    }

    /// Whether it is the same declaration as another.
    pub fn is_same(&self, other: &Class) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn number(&self) -> u16 {
        self.0.number
    }

    /// What the security server says, in the bits of this process. What the policy does not know it allows or not
    /// (`handle_unknown`), and is recorded where it is refused; what was never declared is allowed to nobody.
    pub(crate) fn decision(&self, access: &Access) -> Decision {
        let mut decision = Decision {
            allowed: 0,
            auditallow: 0,
            auditdeny: 0,
            permissive: access.permissive,
        };
        for (bit, name) in self.0.permissions.iter().enumerate() {
            let ours = 1 << bit;
            let theirs = access.permissions.iter().take(32).position(|p| p == name);
            let has = |mask: u32| theirs.is_some_and(|bit| mask & 1 << bit != 0);
            let allowed = match theirs {
                Some(_) => has(access.allowed),
                None => !access.deny_unknown,
            };
            let auditdeny = theirs.is_none() || has(access.auditdeny);
            for (mask, set) in [
                (&mut decision.allowed, allowed),
                (&mut decision.auditallow, has(access.auditallow)),
                (&mut decision.auditdeny, auditdeny),
            ] {
                *mask |= if set { ours } else { 0 };
            }
        }
        decision.auditdeny |= !self.all();
        decision
    }
}

/// The classes of a cache.
#[derive(Debug, Default)]
pub(crate) struct Classes(RwLock<Vec<Class>>);

impl Classes {
    /// The class of this name and with these permissions, numbered if it is new.
    pub fn declare(&self, name: &str, permissions: &[&str]) -> Result<Class, AvcError> {
        if permissions.len() > 32 {
            return Err(AvcError::Full(32, "permissions of a class"));
        }
        let mut all = self.0.write().unwrap_or_else(|e| e.into_inner());
        let is_it = |class: &&Class| class.0.name == name && class.0.permissions == permissions;
        if let Some(known) = all.iter().find(is_it) {
            return Ok(known.clone());
        }
        if all.len() >= ROOM {
            return Err(AvcError::Full(ROOM, "classes"));
        }
        let class = Class(Arc::new(Inner {
            number: all.len() as u16,
            name: name.to_owned(),
            permissions: permissions.iter().map(|&p| p.to_owned()).collect(),
        }));
        all.push(class.clone());
        Ok(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policys_bits_become_the_object_managers() {
        let classes = Classes::default();
        let class = classes
            .declare("document", &["read", "write", "burn"])
            .unwrap();
        let access = |allowed, deny_unknown| Access {
            allowed,
            auditallow: 0b10,
            auditdeny: 0b01,
            permissions: vec!["write".into(), "read".into()],
            deny_unknown,
            ..Access::default()
        };
        let decision = class.decision(&access(0b01, true));
        assert_eq!(class.names(decision.allowed), "write");
        assert_eq!(class.names(decision.auditallow), "read");
        assert_eq!(decision.auditdeny & 0b111, 0b110);
        // what the policy does not know
        let decision = class.decision(&access(0b01, false));
        assert_eq!(class.names(decision.allowed), "write burn");
        let unknown = Access::default();
        assert_eq!(
            class.names(class.decision(&unknown).allowed),
            "read write burn"
        );
        assert_eq!(class.names(1 << 9), "0x200");
        assert_eq!(class.permission("fly"), None);
    }

    #[test]
    fn a_class_is_declared_once() {
        let classes = Classes::default();
        let one = classes.declare("document", &["read"]).unwrap();
        assert_eq!(
            classes.declare("document", &["read"]).unwrap().number(),
            one.number()
        );
        assert_ne!(
            classes.declare("document", &["write"]).unwrap().number(),
            one.number()
        );
        let many: Vec<String> = (0..33).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(classes.declare("many", &many).is_err());
        let most = classes.declare("most", &many[..32]).unwrap();
        assert_eq!(
            (most.all(), classes.declare("none", &[]).unwrap().all()),
            (u32::MAX, 0)
        );
    }
}
