//! Classes by their numbers in the kernel, and the numbers of objects.

use tidegate_bundle::caps::{Class, Object};

/// The class's number in the kernel (`enum caps_class`); none for a service, whose objects have automata of their own.
pub fn class_number(class: Class) -> Option<u32> {
    let at = Class::WORDS.iter().position(|(_, known)| *known == class)?;
    Some(at as u32)
}

/// The class of a number in the kernel's records, in which behind all others each service's objects have one
/// (`CAPS_OF_SERVICE`).
pub fn class_of(number: u32) -> Option<Class> {
    match Class::WORDS.get(number as usize) {
        Some((_, class)) => Some(*class),
        None => {
            let service = number as usize - Class::WORDS.len();
            u16::try_from(service).ok().map(Class::Service)
        }
    }
}

/// With which numbers begin a path's, an abstract name's, those of addresses of TCP and UDP, and of services' objects.
const PATH: u64 = 0xcbf2_9ce4_8422_2325;
const ABSTRACT: u64 = PATH + 1;
const TCP: u64 = PATH + 2;
const UDP: u64 = PATH + 3;
const SERVICE: u64 = PATH + 4;

/// By which number an object is revoked (kernel/caps/ask.h, `caps_object_id()`). Whatever is at a path has the same, of any
/// class; a service's object has one for each place of an image that describes the service (kernel/caps/service/authorise.h,
/// `caps_service_given()`), which is `image`.
pub fn object_id(object: &Object, image: u32) -> u64 {
    match object {
        Object::Path(_, path) => of_path(path),
        Object::Unix(name) => match name.split_first() {
            Some((b'@', name)) => mixed(ABSTRACT, name),
            _ => of_path(name),
        },
        Object::Inet(class, ..) => {
            let first = if *class == Class::Tcp { TCP } else { UDP };
            mixed(first, &object.key())
        }
        Object::Of(service, name) => {
            let first = mix(mix(SERVICE, image.into()), (*service).into());
            mixed(first, name)
        }
    }
}

/// Each component's, one after the other.
fn of_path(path: &[u8]) -> u64 {
    let components = path.split(|&byte| byte == b'/').filter(|c| !c.is_empty());
    components.fold(PATH, mixed)
}

/// After a word.
fn mix(id: u64, word: u64) -> u64 {
    let id = (id ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    id ^ id >> 29
}

/// After a component or a key: eight bytes each time, and the length.
fn mixed(id: u64, text: &[u8]) -> u64 {
    let words = text.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    mix(words.fold(id, mix), text.len() as u64)
}
