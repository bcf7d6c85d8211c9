//! Classes by their numbers in the kernel, and the numbers of objects.

use tidegate_policy::caps::{Class, Object};

/// The class's number in the kernel (`enum caps_class`); none for a service, whose objects have automata of their own.
pub fn class_number(class: Class) -> Option<u32> {
    let at = Class::WORDS.iter().position(|(_, known)| *known == class)?;
    Some(at as u32)
}

/// The class of a number in the kernel.
pub fn class_of(number: u32) -> Option<Class> {
    let known = Class::WORDS.get(number as usize)?;
    Some(known.1)
}

/// By which number an object is revoked (`caps_object_id()` in the kernel): FNV-1a of its class's number in a byte and its key;
/// none for a service's.
pub fn object_id(object: &Object) -> Option<u64> {
    let class = class_number(object.class())?;
    let key = object.key();
    let bytes = [class as u8].into_iter().chain(key.iter().copied());
    Some(bytes.fold(0xcbf2_9ce4_8422_2325, |id, byte| {
        (id ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }))
}
