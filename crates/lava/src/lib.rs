//! Lava's capabilities: compiled capability files as the images that Tidegate's kernel side decides by.
//!
//! [`Image`] lays them out as `kernel/abi/caps_image.h` has it. The kernel reads that in an arena; [`Server`] asks it with the
//! kernel's own code (`kernel/caps/rules.h`), compiled for user space, so that what is proved of it here is proved of what
//! enforces. [`object_id`] is by which number an object is revoked.

mod decide;
mod image;
mod object;
#[cfg(test)]
mod tests;

pub use decide::{Asked, Server, Taken};
pub use image::{Image, Place, Places};
pub use object::{class_number, class_of, object_id};
