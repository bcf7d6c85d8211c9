//! The images of capability files: where they are in the arena, and of what.
//!
//! They lie behind the policies' halves. An image is where the first gap is that it fits in; equal files share one.

use tidegate_lava::Image;

use super::Capabilities;
use crate::abi::{TG_CAPS_AT, TG_CAPS_SIZE};
use crate::error::{Error, Result, Trying};
use crate::event::boottime;
use crate::globals::Section;
use crate::image;
use crate::load::Monitor;
use crate::parts::Caps;
use crate::skel::types::{bss_caps, caps_held_image};

const PAGE: u32 = 4096;
/// Entries of the table: `CAPS_IMAGES`.
const IMAGES: usize = 1024;

/// What one user who is not root may bring, so that nobody keeps others out: images,
const IMAGES_OF_ONE: usize = 128;
/// and bytes of them and of their names.
const BYTES_OF_ONE: u32 = 32 << 20;

/// Of the area, and of the table, what only root gets: an eighth.
const KEPT: u32 = 8;

/// An image that is in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldImage {
    /// Its place in the table.
    pub index: u32,
    /// Where it begins.
    pub at: u32,
    /// Its number, which no other has.
    pub number: u32,
    /// Since when, in nanoseconds of `CLOCK_BOOTTIME`.
    pub since: u64,
    /// The user that brought it.
    pub uid: u32,
    /// Of the files that it was laid out from.
    pub hash: [u8; 32],
    room: Room,
}

impl HeldImage {
    fn of(index: usize, entry: &caps_held_image) -> HeldImage {
        HeldImage {
            index: index as u32,
            at: entry.at,
            number: entry.number,
            since: entry.since,
            uid: entry.uid,
            hash: entry.hash,
            room: Room {
                image: entry.pages,
                names: entry.names,
            },
        }
    }

    /// Whether a place is in it.
    pub fn has(&self, place: u32) -> bool {
        (self.at..self.at + self.room.image * PAGE).contains(&place)
    }
}

impl Section<bss_caps> {
    /// The images of capability files that are in the arena.
    pub(super) fn held_images(&self) -> Vec<HeldImage> {
        let all = (0..IMAGES).map(|index| (index, self.image(index)));
        let there = all.filter(|(_, image)| image.since != 0);
        there
            .map(|(index, image)| HeldImage::of(index, &image))
            .collect()
    }

    /// Forgets all images. Their numbers are not used again.
    pub(super) fn clear_images(&self) {
        for index in 0..IMAGES {
            let free = caps_held_image {
                number: self.image(index).number,
                ..caps_held_image::default()
            };
            self.set_image(index, free);
        }
    }
}

/// The room that capability files take, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of their image.
    image: u32,
    /// Of their names, in user space.
    names: u32,
}

impl Room {
    /// By the bytes of both.
    pub fn of(image: usize, names: usize) -> Room {
        let pages = |bytes: usize| u32::try_from(bytes.div_ceil(PAGE as usize)).unwrap_or(u32::MAX);
        Room {
            image: pages(image),
            names: pages(names),
        }
    }

    fn sum(self) -> u32 {
        self.image.saturating_add(self.names)
    }
}

/// Where the image of capability files is, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// It is there: equal files have brought it.
    Held(HeldImage),
    /// A place in the arena that it fits in.
    Free(u32),
}

impl Monitor {
    /// The images of capability files that are in the arena.
    ///
    /// # Errors
    /// [`Error::Io`] if the model is loaded and what it has cannot be opened.
    pub fn images(&self) -> Result<Vec<HeldImage>> {
        let caps = self.part::<Caps>()?;
        Ok(caps.map_or_else(Vec::new, |caps| caps.globals.held_images()))
    }
}

impl Capabilities<'_> {
    /// Where the image of capability files is, or may be laid out for, by a hash of what they are. The model is loaded for it.
    ///
    /// # Errors
    /// [`Error::Capabilities`] if the user has brought too much, or there is no room; [`Error::Load`] if this kernel does not take
    /// the model.
    pub fn spot(&mut self, hash: [u8; 32], uid: u32, room: Room) -> Result<Spot> {
        // what is there is not to go meanwhile
        *self.quiet = super::Quiet::default();
        let held = self.monitor.needed::<Caps>()?.globals.held_images();
        if let Some(known) = held.iter().find(|image| image.hash == hash) {
            return Ok(Spot::Held(*known));
        }
        let pages = allowed(&held, uid, room).map_err(full)?;
        let first = gap(&mut taken(&held), room.image, pages).ok_or_else(|| full(ALL))?;
        Ok(Spot::Free(TG_CAPS_AT + first * PAGE))
    }

    /// Has an image be in the arena, at the place that it was laid out for.
    ///
    /// # Errors
    /// As [`spot`](Self::spot), which said that place: others may have brought something meanwhile.
    pub fn place(
        &mut self,
        hash: [u8; 32],
        uid: u32,
        image: &Image,
        room: Room,
    ) -> Result<HeldImage> {
        if let Spot::Held(known) = self.spot(hash, uid, room)? {
            return Ok(known);
        }
        let globals = &self.monitor.needed::<Caps>()?.globals;
        let at = image.places.base;
        let first = (at - TG_CAPS_AT) / PAGE;
        let is_free =
            |&(start, count): &(u32, u32)| start >= first + room.image || start + count <= first;
        let free = (0..IMAGES).find(|&index| globals.image(index).since == 0);
        let (Some(index), Some(arena), true) = (
            free,
            self.monitor.arena()?,
            taken(&globals.held_images()).iter().all(is_free),
        ) else {
            return Err(full(ALL));
        };
        image::write_caps(arena, at, &image.bytes).trying(|| "lay out capability files".into())?;
        let number = (0..IMAGES).map(|index| globals.image(index).number);
        let entry = caps_held_image {
            since: boottime(),
            at,
            pages: room.image,
            names: room.names,
            uid,
            number: number.max().unwrap_or(0) + 1,
            hash,
            ..caps_held_image::default()
        };
        globals.set_image(index, entry);
        Ok(HeldImage::of(index, &entry))
    }
}

const OWN: &str = "more capability files of this user's while any session runs";
const ALL: &str = "more capability files while any session runs";

fn full(what: &str) -> Error {
    Error::Capabilities(format!("there is no room for {what}"))
}

/// Of the area, how many pages may be used for so much more; the error is what there is no room for. Nothing has been laid out
/// or written by then.
fn allowed(held: &[HeldImage], uid: u32, room: Room) -> std::result::Result<u32, &'static str> {
    let used = |images: &mut dyn Iterator<Item = &HeldImage>| {
        images.fold((0, 0), |(count, sum), image| {
            (count + 1, image.room.sum() + sum)
        })
    };
    let (mut pages, mut images) = (TG_CAPS_SIZE / PAGE, IMAGES);
    if uid != 0 {
        let (count, sum) = used(&mut held.iter().filter(|image| image.uid == uid));
        if count >= IMAGES_OF_ONE || room.sum() > (BYTES_OF_ONE / PAGE).saturating_sub(sum) {
            return Err(OWN);
        }
        (pages, images) = (pages - pages / KEPT, images - images / KEPT as usize);
    }
    // the daemon's own memory is bounded by what there is of the kernel's
    let (count, sum) = used(&mut held.iter());
    match count >= images || room.sum() > pages.saturating_sub(sum) {
        true => Err(ALL),
        false => Ok(pages),
    }
}

/// What is taken of the area: the first page of each image, and how many.
fn taken(held: &[HeldImage]) -> Vec<(u32, u32)> {
    let pages = |image: &HeldImage| ((image.at - TG_CAPS_AT) / PAGE, image.room.image);
    held.iter().map(pages).collect()
}

/// The first page of the first gap of so many pages between those that are taken, each by its first and their count.
fn gap(taken: &mut [(u32, u32)], pages: u32, room: u32) -> Option<u32> {
    taken.sort_unstable();
    let mut first = 0;
    for &mut (start, count) in taken {
        if start >= first + pages {
            break;
        }
        first = start + count;
    }
    (first + pages <= room).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many images of a user's, each of which takes this room.
    fn held(count: u32, uid: u32, room: Room) -> Vec<HeldImage> {
        let image = |index| HeldImage {
            index,
            at: TG_CAPS_AT + index * room.image * PAGE,
            number: index + 1,
            since: 1,
            uid,
            hash: [0; 32],
            room,
        };
        (0..count).map(image).collect()
    }

    #[test]
    fn names_count_as_images_do() {
        let mib = |image: usize, names: usize| Room::of(image << 20, names << 20);
        assert_eq!(Room::of(1, 1), Room { image: 1, names: 1 });
        assert!(allowed(&[], 1000, mib(16, 16)).is_ok());
        assert_eq!(allowed(&[], 1000, mib(1, 32)), Err(OWN));
        assert_eq!(allowed(&[], 1000, Room::of(1 << 20, usize::MAX)), Err(OWN));
        // nine of nearly all names that there can be, with the smallest images
        let one = mib(0, 3);
        assert!(allowed(&held(9, 1000, one), 1000, one).is_ok());
        assert_eq!(allowed(&held(10, 1000, one), 1000, one), Err(OWN));
        assert!(allowed(&held(10, 1000, one), 1001, one).is_ok());
        let small = Room::of(1, 1);
        assert_eq!(allowed(&held(128, 1000, small), 1000, small), Err(OWN));
    }

    #[test]
    fn all_users_leave_an_eighth_to_root_and_root_has_an_end() {
        let mib = |names: usize| Room::of(PAGE as usize, names << 20);
        let users: Vec<_> = (0..8).flat_map(|n| held(1, 1000 + n, mib(27))).collect();
        assert_eq!(allowed(&users, 2000, mib(8)), Err(ALL));
        assert!(allowed(&users, 0, mib(8)).is_ok());
        assert_eq!(allowed(&users, 0, mib(40)), Err(ALL));
        let small = Room::of(1, 1);
        assert_eq!(allowed(&held(896, 3, small), 2000, small), Err(ALL));
        assert!(allowed(&held(896, 3, small), 0, small).is_ok());
        assert_eq!(allowed(&held(1024, 0, small), 0, small), Err(ALL));
    }

    #[test]
    fn the_first_gap_that_is_wide_enough_is_taken() {
        assert_eq!(gap(&mut [], 4, 4), Some(0));
        assert_eq!(gap(&mut [], 5, 4), None);
        let mut taken = [(6, 2), (0, 2), (3, 1)];
        assert_eq!(gap(&mut taken, 1, 10), Some(2));
        assert_eq!(gap(&mut taken, 2, 10), Some(4));
        assert_eq!(gap(&mut taken, 3, 11), Some(8));
        assert_eq!(gap(&mut taken, 3, 10), None);
    }
}
