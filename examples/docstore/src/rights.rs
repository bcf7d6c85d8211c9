//! What the policy is asked: the one place where the store meets the cache.

use std::os::fd::AsFd;

use anyhow::{Context, Result};
use tidegate_avc::{Avc, AvcError, Class, Denied, Sid};

/// The permissions of a document, as the store declares them.
const PERMISSIONS: [&str; 4] = ["create", "read", "write", "delete"];

/// What is done to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create,
    Read,
    Write,
    Delete,
}

/// The cache, and the class of what the store has.
#[derive(Debug)]
pub struct Rights {
    pub avc: Avc,
    document: Class,
    collection: Sid,
}

impl Rights {
    /// With the context of the collection that documents are made in, this process's own if none is said.
    pub fn open(collection: Option<&str>) -> Result<Rights> {
        let avc = Avc::open()?;
        let document = avc.class("document", &PERMISSIONS)?;
        let collection = match collection {
            Some(context) => avc.check_context(context)?,
            None => {
                avc.own()
                    .context("ask for the store's own context")?
                    .context
            }
        };
        let collection = avc.sid(&collection)?;
        Ok(Rights {
            avc,
            document,
            collection,
        })
    }

    /// The SID of the process that connected.
    pub fn peer(&self, connection: &impl AsFd) -> Result<Sid, AvcError> {
        self.avc.sid(&self.avc.peer(connection)?.context)
    }

    /// May this client do this to a document? What is refused is in Tidegate's audit log.
    pub fn may(&self, client: Sid, act: Act, document: Sid, name: &str) -> Result<(), Denied> {
        let bit = 1 << act as u32;
        self.avc.has_perm(
            client,
            document,
            &self.document,
            bit,
            &format_args!("document={name}"),
        )
    }

    /// The label of a document that this client makes.
    pub fn label(&self, client: Sid, name: &str) -> Result<Sid, AvcError> {
        self.avc
            .compute_create(client, self.collection, &self.document, Some(name))
    }

    /// A label's text.
    pub fn text(&self, label: Sid) -> String {
        self.avc
            .context(label)
            .map(|c| c.to_string())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_the_permissions_in_their_order() {
        for (act, name) in [
            (Act::Create, "create"),
            (Act::Read, "read"),
            (Act::Write, "write"),
            (Act::Delete, "delete"),
        ] {
            assert_eq!(PERMISSIONS[act as usize], name);
        }
    }
}
