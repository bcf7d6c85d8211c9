//! Local numbers of contexts: Flask's SIDs, as this process has them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use crate::error::AvcError;

/// Contexts that one cache may number.
const ROOM: usize = 1 << 20;

/// A number for a context. It is the same context's for as long as the cache lives, under any policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid(pub(crate) u32);

impl Sid {
    /// As a number, for where a handle has to be one.
    pub fn number(self) -> u32 {
        self.0
    }
}

#[derive(Debug, Default)]
struct Inner {
    contexts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// All of them, from 1.
#[derive(Debug, Default)]
pub struct Sids {
    inner: RwLock<Inner>,
    /// How many there are, to be asked without a lock.
    count: AtomicU32,
}

impl Sids {
    /// The number of a context, a new one if it has none.
    pub fn number(&self, context: &str) -> Result<Sid, AvcError> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        if let Some(&number) = inner.numbers.get(context) {
            return Ok(Sid(number));
        }
        drop(inner);
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        if let Some(&number) = inner.numbers.get(context) {
            return Ok(Sid(number));
        }
        if inner.contexts.len() >= ROOM {
            return Err(AvcError::Full(ROOM, "contexts"));
        }
        let context: Arc<str> = context.into();
        inner.contexts.push(Arc::clone(&context));
        let number = inner.contexts.len() as u32;
        inner.numbers.insert(context, number);
        self.count.store(number, Ordering::Release);
        Ok(Sid(number))
    }

    /// Whether a number is one of these.
    pub fn has(&self, sid: Sid) -> bool {
        (1..=self.count.load(Ordering::Acquire)).contains(&sid.0)
    }

    /// The context of a number; `None`: it has none, as of a number made up.
    pub fn context(&self, sid: Sid) -> Option<Arc<str>> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let at = (sid.0 as usize).checked_sub(1)?;
        inner.contexts.get(at).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_one_number() {
        let sids = Sids::default();
        let one = sids.number("a:b:c").unwrap();
        let two = sids.number("a:b:d").unwrap();
        assert_ne!(one, two);
        assert_eq!(sids.number("a:b:c").unwrap(), one);
        assert_eq!(sids.context(two).as_deref(), Some("a:b:d"));
        assert!(sids.has(one) && sids.has(two) && !sids.has(Sid(0)) && !sids.has(Sid(3)));
        assert_eq!(sids.context(Sid(0)), None);
        assert_eq!(sids.context(Sid(3)), None);
    }
}
