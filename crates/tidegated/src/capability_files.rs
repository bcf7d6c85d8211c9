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
    known: Ordered<CAPS_FILES, BTreeMap<u32, Known>>,
}

/// The names of one image.
#[derive(Debug)]
struct Known {
    placed: Arc<Placed>,
    /// There is a file of them.
    is_kept: bool,
}

impl CapsFiles {
    /// Knows the names of the image at a place, unless they are known.
    pub fn know(&self, at: u32, names: NameTable) {
        if !self.known.lock().contains_key(&at) {
            self.insert(at, names, false);
        }
    }

    /// Keeps the known names of an image for the next daemon, unless they are kept. A disk may delay this: no lock of sessions is to
    /// be held, so that no revocation waits for it.
    pub fn keep(&self, image: &HeldImage) -> Outcome {
        let path = path(image);
        let is_known = self.kept(image.at, |names| {
            directory(paths::CAPS, 0o700)?;
            write_whole(&path, &names.to_bytes(), 0o600)
        })?;
        if !is_known {
            // all images went meanwhile, and the files of their names: this one came too late for that
            let _ = fs::remove_file(&path);
        }
        Ok(())
    }

    /// Has the names at a place be written, unless they are; whether they are known still. Two callers may write them at once, and
    /// write the same then.
    fn kept(&self, at: u32, write: impl FnOnce(&NameTable) -> Outcome) -> Outcome<bool> {
        let placed = match self.known.lock().get(&at) {
            None => return Ok(false),
            Some(known) if known.is_kept => return Ok(true),
            Some(known) => Arc::clone(&known.placed),
        };
        write(&placed.names)?;
        match self.known.lock().get_mut(&at) {
            Some(known) if Arc::ptr_eq(&known.placed, &placed) => {
                known.is_kept = true;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads the names that the daemon before kept of these images.
    pub fn take_over(&self, images: &[HeldImage]) {
        for image in images {
            let bytes = fs::read(path(image)).ok();
            match bytes.and_then(|bytes| NameTable::from_bytes(&bytes)) {
                Some(names) => self.insert(image.at, names, true),
                None => complain(&format!(
                    "{} cannot be read: what it names is not taken back by name",
                    path(image)
                )),
            }
        }
    }

    fn insert(&self, at: u32, names: NameTable, is_kept: bool) {
        let places = Places::named(&names, at);
        let placed = Arc::new(Placed { names, places });
        self.known.lock().insert(at, Known { placed, is_kept });
    }

    /// Forgets all: their images are gone.
    pub fn forget_all(&self) {
        let _ = fs::remove_dir_all(paths::CAPS);
        self.known.lock().clear();
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Placed>> {
        let known = self.known.lock();
        known.values().map(|it| Arc::clone(&it.placed)).collect()
    }

    /// The files that a place is of, and what is there.
    pub fn at(&self, place: u32) -> Option<(Arc<Placed>, Place)> {
        let known = self.known.lock();
        let (_, Known { placed, .. }) = known.range(..=place).next_back()?;
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
    use tidegate_protocol::Code;

    use super::*;
    use crate::error::DaemonError;

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

    fn names() -> NameTable {
        let caps = compile_str("t.caps", "subject a {\n file /a read\n}\n");
        NameTable::of(&caps.unwrap().capabilities)
    }

    #[test]
    fn names_are_written_once_and_nobody_waits_meanwhile() {
        let files = CapsFiles::default();
        files.know(APART, names());
        let fails = |_: &NameTable| Err(DaemonError::new(Code::Internal, "the disk is full"));
        assert!(files.kept(APART, fails).is_err());
        // no lock is held
        let writes = |_: &NameTable| {
            assert_eq!(files.all().len(), 1);
            Ok(())
        };
        assert!(matches!(files.kept(APART, writes), Ok(true)));
        files.know(APART, names());
        assert!(matches!(files.kept(APART, fails), Ok(true)), "unwritten");
        assert!(matches!(files.kept(2 * APART, fails), Ok(false)), "unknown");
    }

    #[test]
    fn names_whose_image_goes_while_they_are_written_are_not_taken_for_those_of_the_next_one() {
        let files = CapsFiles::default();
        files.know(APART, names());
        let goes = |_: &NameTable| {
            files.known.lock().clear();
            files.know(APART, names());
            Ok(())
        };
        assert!(matches!(files.kept(APART, goes), Ok(false)));
        assert!(!files.known.lock()[&APART].is_kept);
    }
}
