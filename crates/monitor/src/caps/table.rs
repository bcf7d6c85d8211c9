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
use crate::parts::Caps;
use crate::skel::types::{bss_caps, caps_held_image};

const PAGE: u32 = 4096;
/// Entries of the table: `CAPS_IMAGES`.
const IMAGES: usize = 1024;

/// What one user who is not root may bring, so that nobody keeps others out: images,
const IMAGES_OF_ONE: usize = 128;
/// and bytes of them.
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
    pages: u32,
}

impl HeldImage {
    /// Whether a place is in it.
    pub fn has(&self, place: u32) -> bool {
        (self.at..self.at + self.pages * PAGE).contains(&place)
    }
}

impl Section<bss_caps> {
    /// The images of capability files that are in the arena.
    pub(super) fn held_images(&self) -> Vec<HeldImage> {
        let all = (0..IMAGES).map(|index| (index, self.image(index)));
        let there = all.filter(|(_, image)| image.since != 0);
        there
            .map(|(index, image)| HeldImage {
                index: index as u32,
                at: image.at,
                number: image.number,
                since: image.since,
                uid: image.uid,
                hash: image.hash,
                pages: image.pages,
            })
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

impl Capabilities<'_> {
    /// Has capability files be in the arena, by a hash of what they are; `lay_out` makes their image for a place.
    ///
    /// # Errors
    /// [`Error::Capabilities`] if the user has brought too much, or there is no room; [`Error::Load`] if this kernel does not take
    /// the model.
    pub fn place(
        &mut self,
        hash: [u8; 32],
        uid: u32,
        lay_out: impl Fn(u32) -> Image,
    ) -> Result<HeldImage> {
        // what is there is not to go meanwhile
        *self.quiet = super::Quiet::default();
        let globals = &self.monitor.needed::<Caps>()?.globals;
        let held = globals.held_images();
        if let Some(known) = held.iter().find(|image| image.hash == hash) {
            return Ok(*known);
        }
        let full = |what: &str| Error::Capabilities(format!("there is no room for {what}"));
        let size = lay_out(TG_CAPS_AT).bytes.len() as u32;
        let pages = size.div_ceil(PAGE);
        let mut room = (TG_CAPS_SIZE / PAGE, IMAGES);
        if uid != 0 {
            let own = held.iter().filter(|image| image.uid == uid);
            let (count, sum) = own.fold((0, 0), |(n, sum), image| (n + 1, sum + image.pages));
            if count >= IMAGES_OF_ONE || (sum + pages) * PAGE > BYTES_OF_ONE {
                return Err(full(
                    "more capability files of this user's while any session runs",
                ));
            }
            room = (room.0 - room.0 / KEPT, room.1 - room.1 / KEPT as usize);
        }
        let mut taken: Vec<(u32, u32)> = held
            .iter()
            .map(|image| ((image.at - TG_CAPS_AT) / PAGE, image.pages))
            .collect();
        let free = (0..room.1).find(|&index| globals.image(index).since == 0);
        let first = gap(&mut taken, pages, room.0);
        let (Some(index), Some(first), Some(arena)) = (free, first, self.monitor.arena()?) else {
            return Err(full("more capability files while any session runs"));
        };
        let at = TG_CAPS_AT + first * PAGE;
        let image = lay_out(at);
        image::write_caps(arena, at, &image.bytes).trying(|| "lay out capability files".into())?;
        let number = (0..IMAGES).map(|index| globals.image(index).number);
        let entry = caps_held_image {
            since: boottime(),
            at,
            pages,
            uid,
            number: number.max().unwrap_or(0) + 1,
            hash,
        };
        globals.set_image(index, entry);
        Ok(HeldImage {
            index: index as u32,
            at,
            number: entry.number,
            since: entry.since,
            uid,
            hash,
            pages,
        })
    }
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
