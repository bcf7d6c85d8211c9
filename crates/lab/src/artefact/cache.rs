//! The artefact cache: one directory an artefact, named by the hash of its
//! recipe, complete or absent.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

const HASH_DIGITS: usize = 12;

/// The artefacts besides `kernel-SERIES`. Nothing else in the directory is ever
/// removed: it may be anybody's.
const KINDS: [&str; 9] = [
    "tools", "prover", "parser", "root", "measured", "apparmor", "scratch", "init", "programs",
];

/// The directory that holds everything heavy.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `TIDEGATE_LAB_CACHE`, or `target/lab` of the source tree around the
    /// working directory, or else the user's cache directory (XDG Base Directory).
    ///
    /// # Errors
    /// When there is none of these or the directory cannot be made.
    pub fn open() -> Result<Self> {
        let root = match env::var_os("TIDEGATE_LAB_CACHE") {
            Some(dir) => PathBuf::from(dir),
            None => match source_tree(&env::current_dir()?) {
                Some(tree) => tree.join("target/lab"),
                None => users_cache()
                    .context("no HOME; set TIDEGATE_LAB_CACHE to a directory")?
                    .join("tidegate-lab"),
            },
        };
        fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    /// Where the cache is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the artefact's directory, built by `build` if this recipe has
    /// not been built before. Processes that want the same one wait for the
    /// first.
    pub(crate) fn ensure(
        &self,
        kind: &str,
        recipe: &[&str],
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let name = format!("{kind}-{}", recipe_hash(recipe));
        let path = self.root.join(&name);
        if path.exists() {
            return Ok(path);
        }
        let _lock = self.lock(kind)?;
        if path.exists() {
            return Ok(path);
        }
        let unfinished = self.root.join(format!("{kind}.unfinished"));
        remove_tree(&unfinished)?;
        fs::create_dir(&unfinished)?;
        build(&unfinished).with_context(|| format!("building {kind}"))?;
        fs::rename(&unfinished, &path)?;
        self.remove_stale(kind, &name)?;
        Ok(path)
    }

    /// Removes every artefact, so that the next use builds it anew. What the
    /// directory holds besides stays.
    ///
    /// # Errors
    /// When a directory cannot be removed.
    pub fn clear(&self) -> Result<()> {
        self.remove_where(|_, _| true)
    }

    /// An advisory lock of the cache, held until the file is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let file = File::create(self.root.join(format!("{name}.lock")))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// A running VM may still map a stale image; its pages stay until it ends.
    fn remove_stale(&self, kind: &str, keep: &str) -> Result<()> {
        self.remove_where(|found, name| found == kind && name != keep)
    }

    /// Removes the artefacts that `condition` picks by kind and whole name.
    fn remove_where(&self, condition: impl Fn(&str, &str) -> bool) -> Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if kind_of(name).is_some_and(|kind| condition(kind, name)) {
                remove_tree(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The kind in an artefact's name; none for what is no artefact of ours.
fn kind_of(name: &str) -> Option<&str> {
    let (kind, hash) = name.rsplit_once('-')?;
    let known = KINDS.contains(&kind) || kind.starts_with("kernel-");
    let hashed = hash.len() == HASH_DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (known && hashed).then_some(kind)
}

fn users_cache() -> Option<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let absolute = named.filter(|dir| dir.is_absolute());
    absolute.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cache")))
}

fn source_tree(from: &Path) -> Option<&Path> {
    from.ancestors()
        .find(|dir| dir.join("crates/lab/Cargo.toml").is_file())
}

/// Removes a directory that may not be there.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            bail!("removing {}: {e}", path.display())
        }
        _ => Ok(()),
    }
}

/// The parts are hashed with their lengths, so that moving text from one part
/// to the next gives another hash.
pub(crate) fn recipe_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut text = format!("{:x}", hash.finalize());
    text.truncate(HASH_DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Cache {
        let root = env::temp_dir().join(format!("tidegate-lab-{name}-{}", std::process::id()));
        remove_tree(&root).unwrap();
        fs::create_dir_all(&root).unwrap();
        Cache { root }
    }

    #[test]
    fn recipe_hash_sees_where_parts_end() {
        assert_eq!(recipe_hash(&["ab", "c"]), recipe_hash(&["ab", "c"]));
        assert_ne!(recipe_hash(&["ab", "c"]), recipe_hash(&["a", "bc"]));
        assert_eq!(recipe_hash(&[]).len(), HASH_DIGITS);
    }

    #[test]
    fn an_artefact_is_built_once_and_replaced_with_its_recipe() {
        let cache = cache("once");
        let first = cache
            .ensure("root", &["1"], |d| Ok(fs::write(d.join("f"), "x")?))
            .unwrap();
        let again = cache
            .ensure("root", &["1"], |_| bail!("built twice"))
            .unwrap();
        assert_eq!(first, again);
        assert_eq!(fs::read_to_string(first.join("f")).unwrap(), "x");
        let second = cache.ensure("root", &["2"], |_| Ok(())).unwrap();
        assert!(second.exists() && !first.exists());
        let foreign = cache.root.join("photos-0123456789ab");
        fs::create_dir(&foreign).unwrap();
        cache.clear().unwrap();
        assert!(foreign.exists() && !second.exists());
        remove_tree(&cache.root).unwrap();
    }

    #[test]
    fn a_failed_build_leaves_no_artefact() {
        let cache = cache("failed");
        assert!(cache.ensure("root", &["1"], |_| bail!("no")).is_err());
        assert!(cache.ensure("root", &["1"], |_| Ok(())).is_ok());
        remove_tree(&cache.root).unwrap();
    }
}
