//! The capability files whose images are in the kernel: what their subjects and lines are called. A file's name in the directory is
//! the place of its image and the image's number, which no other has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tidegate_audit::Placed;
use tidegate_bundle::caps::Capabilities;
use tidegate_lava::{Place, Places};

use crate::error::Outcome;
use crate::instance::{directory, write_whole};
use crate::locks::{CAPS_FILES, Ordered};
use crate::paths;

/// Files held in memory; others are read again when they are asked for.
const HELD: usize = 8;

/// The place of an image and its number.
type Key = (u32, u32);

/// The files in `/run/tidegate/policy/caps`.
#[derive(Debug, Default)]
pub struct CapsFiles {
    read: Ordered<CAPS_FILES, BTreeMap<Key, Arc<Placed>>>,
}

impl CapsFiles {
    /// Keeps the bundle of an image.
    pub fn keep(&self, at: u32, number: u32, bundle: &[u8]) -> Outcome {
        directory(paths::CAPS, 0o700)?;
        let path = path((at, number));
        if Path::new(&path).exists() {
            return Ok(());
        }
        write_whole(&path, bundle, 0o600)
    }

    /// Forgets all: their images are gone.
    pub fn forget_all(&self) {
        let _ = fs::remove_dir_all(paths::CAPS);
        self.read.lock().clear();
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Placed>> {
        keys().into_iter().filter_map(|key| self.get(key)).collect()
    }

    /// The file that a place is of, and what is there.
    pub fn at(&self, place: u32) -> Option<(Arc<Placed>, Place)> {
        let keys = keys();
        let key = keys.range(..=(place, u32::MAX)).next_back()?;
        let placed = self.get(*key)?;
        let what = placed.places.at(place)?;
        Some((placed, what))
    }

    /// What a subject is called: its name and its file's.
    pub fn subject_name(&self, place: u32) -> String {
        match self.at(place) {
            Some((placed, Place::Subject(number))) => {
                let subject = &placed.caps.subjects[number as usize];
                format!("{} ({})", subject.name, subject.source.file)
            }
            _ => format!("subject at {place:#x}"),
        }
    }

    /// What a capability is called: its line's place and text.
    pub fn capability_name(&self, place: u32) -> String {
        match self.at(place) {
            Some((placed, Place::Capability(number))) => {
                let source = &placed.caps.capabilities[number as usize].source;
                format!("{source}: {}", source.text)
            }
            _ => format!("capability at {place:#x}"),
        }
    }

    fn get(&self, key: Key) -> Option<Arc<Placed>> {
        let mut read = self.read.lock();
        if let Some(known) = read.get(&key) {
            return Some(Arc::clone(known));
        }
        let bytes = fs::read(path(key)).ok()?;
        let caps = Capabilities::from_bundle(&bytes).ok()?;
        let places = Places::of(&caps, key.0);
        let placed = Arc::new(Placed { caps, places });
        while read.len() >= HELD {
            read.pop_first();
        }
        read.insert(key, Arc::clone(&placed));
        Some(placed)
    }
}

fn path((at, number): Key) -> String {
    format!("{}/{at}-{number}.bundle", paths::CAPS)
}

/// The images that there are bundles of.
fn keys() -> std::collections::BTreeSet<Key> {
    let entries = fs::read_dir(paths::CAPS).into_iter().flatten().flatten();
    let key = |name: &str| {
        let (at, number) = name.strip_suffix(".bundle")?.split_once('-')?;
        Some((at.parse().ok()?, number.parse().ok()?))
    };
    entries
        .filter_map(|entry| key(entry.file_name().to_str()?))
        .collect()
}
