//! Documents: in memory, and a file each, whose first line is the context.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A document as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub context: String,
    pub body: Arc<[u8]>,
    /// Another one each time that it is written.
    pub version: u64,
}

#[derive(Debug, Default)]
struct Inner {
    documents: BTreeMap<String, Document>,
    version: u64,
}

/// All of them.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Whether a name can be a document's: it becomes a file's.
pub fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.')
}

impl Store {
    /// Reads a directory.
    pub fn open(directory: &Path) -> Result<Store> {
        fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
        let mut inner = Inner::default();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let Some(name) = path
                .file_name()
                .and_then(|n| n.to_str())
                .filter(|n| is_name(n))
            else {
                continue;
            };
            let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            let end = bytes.iter().position(|&b| b == b'\n');
            let Some((context, body)) = end.map(|at| (&bytes[..at], &bytes[at + 1..])) else {
                bail!("{}: its first line is to be a context", path.display());
            };
            let document = Document {
                context: std::str::from_utf8(context)?.to_owned(),
                body: body.into(),
                version: 0,
            };
            inner.documents.insert(name.to_owned(), document);
        }
        Ok(Store {
            directory: directory.to_owned(),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A document.
    pub fn get(&self, name: &str) -> Option<Document> {
        self.inner().documents.get(name).cloned()
    }

    /// Writes a document with the context that the caller has decided on: `None` if it has another by now, as when two
    /// make it at once; the caller then has to decide anew.
    pub fn put(&self, name: &str, context: &str, body: &[u8], is_new: bool) -> Result<Option<()>> {
        let mut inner = self.inner();
        let as_decided = match inner.documents.get(name) {
            Some(now) => !is_new && now.context == context,
            None => is_new,
        };
        if !as_decided {
            return Ok(None);
        }
        let mut file = tempfile::NamedTempFile::with_prefix_in(".new", &self.directory)?;
        file.write_all(format!("{context}\n").as_bytes())?;
        file.write_all(body)?;
        file.persist(self.directory.join(name))?;
        inner.version += 1;
        let document = Document {
            context: context.to_owned(),
            body: body.into(),
            version: inner.version,
        };
        inner.documents.insert(name.to_owned(), document);
        self.changed.notify_all();
        Ok(Some(()))
    }

    /// Removes a document with this context; `None` if there is none such any more.
    pub fn delete(&self, name: &str, context: &str) -> Result<Option<()>> {
        let mut inner = self.inner();
        if inner
            .documents
            .get(name)
            .is_none_or(|now| now.context != context)
        {
            return Ok(None);
        }
        fs::remove_file(self.directory.join(name))?;
        inner.documents.remove(name);
        self.changed.notify_all();
        Ok(Some(()))
    }

    /// Wakes all who wait.
    pub fn wake(&self) {
        // a thread that has looked and does not wait yet holds it
        let _inner = self.inner();
        self.changed.notify_all();
    }

    /// Waits for a document's next version, for [`wake`](Self::wake), or for so long, if the caller's look at the world
    /// says that there is nothing to do yet.
    pub fn wait(&self, name: &str, seen: u64, at_most: Duration, nothing: impl Fn() -> bool) {
        let inner = self.inner();
        let is_seen = |inner: &Inner| match inner.documents.get(name) {
            Some(document) => document.version == seen,
            None => false,
        };
        if is_seen(&inner) && nothing() {
            let _ = self.changed.wait_timeout(inner, at_most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_outlive_the_store_with_their_labels() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(
            store.put("plans", "a:b:c", b"one\ntwo", true).unwrap(),
            Some(())
        );
        let again = Store::open(dir.path()).unwrap();
        let found = again.get("plans").unwrap();
        assert_eq!(
            (found.context.as_str(), &*found.body),
            ("a:b:c", &b"one\ntwo"[..])
        );
        assert_eq!(again.delete("plans", "a:b:c").unwrap(), Some(()));
        assert!(Store::open(dir.path()).unwrap().get("plans").is_none());
    }

    #[test]
    fn what_was_decided_for_another_label_is_not_done() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.put("plans", "a:b:c", b"", true).unwrap();
        assert_eq!(store.put("plans", "a:b:c", b"", true).unwrap(), None);
        assert_eq!(store.put("plans", "a:b:d", b"", false).unwrap(), None);
        assert_eq!(store.put("other", "a:b:c", b"", false).unwrap(), None);
        assert_eq!(store.delete("plans", "a:b:d").unwrap(), None);
        assert_eq!(store.put("plans", "a:b:c", b"", false).unwrap(), Some(()));
    }

    #[test]
    fn a_name_does_not_lead_out_of_the_directory() {
        for name in ["plans", "a-b_c.txt", "7"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(65);
        for name in ["", ".", "..", ".new", "a/b", "a\0", "é", "a b", &long] {
            assert!(!is_name(name), "{name}");
        }
    }
}
