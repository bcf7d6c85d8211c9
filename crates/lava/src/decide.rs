//! The kernel's decisions over an image, in user space: `kernel/caps/rules.h`, compiled for this machine.

use tidegate_bundle::caps::{Class, Object};

use crate::image::Image;
use crate::object::class_number;

/// A question to layers, one after the other: `struct caps_asked`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    session: u32,
    /// What revocations later than this one took is still given.
    pub epoch: u32,
    wanted: u32,
    beside: u32,
    /// Of what was wanted, what all layers so far give;
    pub given: u32,
    /// of what would go beside it, the same.
    pub extra: u32,
    /// The fewest seconds that any capability says by which it was given; 0: none says any.
    pub expires: u32,
    /// The same of uses.
    pub uses: u32,
    /// A later revocation took one of these.
    pub lost: u32,
    /// Of what was wanted, what the newest layer gave before it was taken back.
    pub taken: u32,
}

/// A capability that was taken from the caller, by its place, and by the number of the revocation,
/// from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Taken {
    /// Its place.
    pub capability: u32,
    /// The revocation's number.
    pub by: u32,
}

unsafe extern "C" {
    fn tidegate_caps_image(at: *const u8, end: u32, taken: *const Taken, count: u32);
    fn tidegate_caps_answer(layer: u32, class: u32, name: *const u8, len: u32) -> u32;
    fn tidegate_caps_service_answer(layer: u32, service: u32, name: *const u8, len: u32) -> u32;
    fn tidegate_caps_service_at(image: u32, name: *const u8, len: u32) -> u32;
    fn tidegate_caps_ask(a: *mut Asked, wanted: u32, beside: u32);
    fn tidegate_caps_ask_layer(a: *mut Asked, answer: u32);
    fn tidegate_caps_brings(a: *mut Asked, answer: u32, next: *mut u32) -> u32;
    #[cfg(test)]
    pub(crate) fn tidegate_caps_sizes(sizes: *mut [u32; 8]);
}

/// Asks an image what the kernel would say.
#[derive(Debug, Clone, Copy)]
pub struct Server<'i> {
    image: &'i Image,
    taken: &'i [Taken],
}

impl<'i> Server<'i> {
    /// Of this image, for a subject that has lost some capabilities.
    pub fn of(image: &'i Image, taken: &'i [Taken]) -> Server<'i> {
        Server { image, taken }
    }

    /// Has this thread's questions answered by the image.
    fn ask<T>(self, question: impl FnOnce() -> T) -> T {
        let (bytes, base) = (&self.image.bytes, self.image.places.base);
        let zero = bytes.as_ptr().wrapping_sub(base as usize);
        let (taken, count) = (self.taken.as_ptr(), self.taken.len() as u32);
        // SAFETY: image and list are there while `self` is; of other places than their own nothing is read (decide.c).
        unsafe { tidegate_caps_image(zero, base + bytes.len() as u32, taken, count) };
        question()
    }

    /// What a subject's automaton says of an object: a place; 0: nothing.
    pub fn answer(self, subject: u32, object: &Object) -> u32 {
        let layer = self.image.places.subject(subject);
        let key = object.key();
        let (name, len) = (key.as_ptr(), key.len() as u32);
        self.ask(|| match (object.class(), class_number(object.class())) {
            // SAFETY: `key` has its length.
            (Class::Service(service), _) => unsafe {
                tidegate_caps_service_answer(layer, service.into(), name, len)
            },
            // SAFETY: the same.
            (_, Some(class)) => unsafe { tidegate_caps_answer(layer, class, name, len) },
            _ => 0,
        })
    }

    /// The number of the service at a Unix socket.
    pub fn service_at(self, socket: &[u8]) -> Option<u16> {
        let image = self.image.places.base;
        let (name, len) = (socket.as_ptr(), socket.len() as u32);
        // SAFETY: the name has its length.
        let at = self.ask(|| unsafe { tidegate_caps_service_at(image, name, len) });
        at.checked_sub(1).map(|at| at as u16)
    }

    /// Asks subjects, one after the other, for `wanted`, and what of `beside` goes with it.
    pub fn asked(
        self,
        subjects: &[u32],
        object: &Object,
        epoch: u32,
        wanted: u32,
        beside: u32,
    ) -> Asked {
        let mut asked = Asked {
            epoch,
            ..Asked::default()
        };
        // SAFETY: `asked` is as C has it.
        unsafe { tidegate_caps_ask(&raw mut asked, wanted, beside) };
        for &subject in subjects {
            let answer = self.answer(subject, object);
            // SAFETY: the same.
            self.ask(|| unsafe { tidegate_caps_ask_layer(&raw mut asked, answer) });
        }
        asked
    }

    /// The places of the subjects that content brings where one subject is asked, one for each capability that says so.
    pub fn brings(self, subject: u32, object: &Object, epoch: u32) -> Vec<u32> {
        let answer = self.answer(subject, object);
        let mut asked = Asked {
            epoch,
            ..Asked::default()
        };
        let mut next = 0;
        // SAFETY: `asked` and `next` are as C has them.
        let one = || unsafe { tidegate_caps_brings(&raw mut asked, answer, &raw mut next) };
        self.ask(|| {
            std::iter::repeat_with(one)
                .take_while(|&at| at != 0)
                .collect()
        })
    }
}
