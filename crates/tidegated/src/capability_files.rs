//! What the capability files whose images are in the kernel call their subjects and lines. The names are in memory as long as their
//! image is, so that no record waits for a file; their room is counted with the image's. For the next daemon there is a file of
//! them, which is called by the place of the image and its number, which no other has.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use tidegate_audit::Placed;
use tidegate_bundle::caps::NameTable;
use tidegate_lava::{Place, Places};
use tidegate_monitor::HeldImage;

use crate::error::Outcome;
use crate::instance::{directory, write_whole};
use crate::locks::{CAPS_FILES, Ordered};
use crate::messages::complain;
use crate::paths;

/// The names, by the places of their images.
#[derive(Debug, Default)]
pub struct CapsFiles {
    known: Ordered<CAPS_FILES, BTreeMap<u32, Arc<Placed>>>,
}

impl CapsFiles {
    /// Keeps the names of an image, unless they are kept.
    pub fn keep(&self, image: &HeldImage, names: NameTable) -> Outcome {
        if self.known.lock().contains_key(&image.at) {
            return Ok(());
        }
        directory(paths::CAPS, 0o700)?;
        write_whole(&path(image), &names.to_bytes(), 0o600)?;
        self.know(image.at, names);
        Ok(())
    }

    /// Reads the names that the daemon before kept of these images.
    pub fn take_over(&self, images: &[HeldImage]) {
        for image in images {
            let bytes = fs::read(path(image)).ok();
            match bytes.and_then(|bytes| NameTable::from_bytes(&bytes)) {
                Some(names) => self.know(image.at, names),
                None => complain(&format!(
                    "{} cannot be read: what it names is not taken back by name",
                    path(image)
                )),
            }
        }
    }

    fn know(&self, at: u32, names: NameTable) {
        let places = Places::named(&names, at);
        let placed = Arc::new(Placed { names, places });
        self.known.lock().insert(at, placed);
    }

    /// Forgets all: their images are gone.
    pub fn forget_all(&self) {
        let _ = fs::remove_dir_all(paths::CAPS);
        self.known.lock().clear();
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Placed>> {
        self.known.lock().values().cloned().collect()
    }

    /// The files that a place is of, and what is there.
    pub fn at(&self, place: u32) -> Option<(Arc<Placed>, Place)> {
        let known = self.known.lock();
        let (_, placed) = known.range(..=place).next_back()?;
        let what = placed.places.at(place)?;
        Some((Arc::clone(placed), what))
    }

    /// What a subject is called: its name and its file's.
    pub fn subject_name(&self, place: u32) -> String {
        let subject = |(placed, what): (Arc<Placed>, Place)| match what {
            Place::Subject(number) => {
                let (name, source) = placed.names.subject(number)?;
                Some(format!("{name} ({})", source.file))
            }
            Place::Capability(_) => None,
        };
        let name = self.at(place).and_then(subject);
        name.unwrap_or_else(|| format!("subject at {place:#x}"))
    }

    /// What a capability is called: its line's place and text.
    pub fn capability_name(&self, place: u32) -> String {
        let capability = |(placed, what): (Arc<Placed>, Place)| match what {
            Place::Capability(number) => {
                let source = placed.names.capability(number)?;
                Some(format!("{source}: {}", source.text))
            }
            Place::Subject(_) => None,
        };
        let name = self.at(place).and_then(capability);
        name.unwrap_or_else(|| format!("capability at {place:#x}"))
    }
}

fn path(image: &HeldImage) -> String {
    format!("{}/{}-{}.names", paths::CAPS, image.at, image.number)
}

#[cfg(test)]
mod tests {
    use tidegate_policy::caps::compile_str;

    use super::*;

    const IMAGES: u32 = 1024;
    const APART: u32 = 1 << 16;

    #[test]
    fn however_many_there_are_a_name_takes_no_file() {
        let files = CapsFiles::default();
        for number in 0..IMAGES {
            let text = format!("subject s{number} {{\n file /a read\n}}\n");
            let caps = compile_str("t.caps", &text).unwrap().capabilities;
            files.know(number * APART, NameTable::of(&caps));
        }
        // there is no directory of them here
        for number in (0..IMAGES).chain((0..IMAGES).rev()) {
            let (placed, what) = files.at(number * APART + 32).unwrap();
            assert_eq!(what, Place::Subject(0));
            assert_eq!(placed.places.base, number * APART);
            let of_subject = format!("s{number} (t.caps)");
            assert_eq!(files.subject_name(placed.places.subject(0)), of_subject);
            let line = files.capability_name(placed.places.capability(0));
            assert_eq!(line, "t.caps:2: file /a read");
        }
        assert_eq!(files.all().len(), IMAGES as usize);
        assert_eq!(files.subject_name(3), "subject at 0x3");
    }
}
