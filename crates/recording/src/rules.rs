//! The rules of `lomac`, from the kernel's own source: `kernel/lomac/rules.h`, compiled
//! for this machine. What the monitor would decide is asked, not written down again.

use tidegate_bundle::Attrs;

/// A subject as a decision sees it: `struct lomac_subject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Subject {
    /// Its level.
    pub level: u8,
    /// What its program is trusted with: the bits of [`Attrs`] that programs have.
    pub attrs: u8,
}

/// An object: `struct lomac_object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Object {
    /// Its level.
    pub level: u8,
    /// The bits of [`Attrs`], and [`KERNEL`].
    pub attrs: u16,
    /// Whether a label could be found.
    pub known: bool,
}

/// Made by the kernel: reading it is neutral. `TG_KERNEL`, which no rule has.
pub const KERNEL: u16 = 256;

/// `LOMAC_REFUSED`.
const REFUSED: u8 = 0xff;

impl Object {
    /// One whose label cannot be known: opened from the top alone, the lowest to read, the highest to write.
    pub const UNKNOWN: Object = Object {
        level: 0,
        attrs: 0,
        known: false,
    };

    /// An object of this level.
    pub fn of(level: u8, attrs: u16) -> Object {
        Object {
            level,
            attrs,
            known: true,
        }
    }

    /// Whether it has an attribute.
    pub fn has(&self, attrs: Attrs) -> bool {
        self.attrs & attrs.bits() != 0
    }
}

unsafe extern "C" {
    // SAFETY: src/rules.c, whose functions are pure and take their arguments by value.
    safe fn tidegate_observe(s: Subject, o: Object) -> u8;
    safe fn tidegate_observe_net(s: Subject, net: u8) -> u8;
    safe fn tidegate_modify(s: Subject, o: Object, top: u8) -> bool;
    safe fn tidegate_open(s: Subject, o: Object, top: u8) -> bool;
    safe fn tidegate_names(s: Subject, dir: Object, top: u8) -> bool;
    safe fn tidegate_create(s: Subject, place: Object) -> u8;
    safe fn tidegate_rename(o: Object, place: Object) -> u8;
    safe fn tidegate_act(s: Subject, target: u8) -> bool;
    safe fn tidegate_controls(s: Subject, attrs: u8, top: u8) -> bool;
}

/// The level a subject has after observing an object.
pub fn observe(s: Subject, o: Object) -> u8 {
    tidegate_observe(s, o)
}

/// The same of what a network says.
pub fn observe_net(s: Subject, net: u8) -> u8 {
    tidegate_observe_net(s, net)
}

/// May the subject change the object?
pub fn modify(s: Subject, o: Object, top: u8) -> bool {
    tidegate_modify(s, o, top)
}

/// May it open the object at all?
pub fn open(s: Subject, o: Object, top: u8) -> bool {
    tidegate_open(s, o, top)
}

/// May it change the names in a directory?
pub fn names(s: Subject, dir: Object, top: u8) -> bool {
    tidegate_names(s, dir, top)
}

/// The level of a new object at a place, `None`: it may not make one there.
pub fn create(s: Subject, place: Object) -> Option<u8> {
    Some(tidegate_create(s, place)).filter(|&level| level != REFUSED)
}

/// The level of an object after it got a name at a place, `None`: that would launder it.
pub fn rename(o: Object, place: Object) -> Option<u8> {
    Some(tidegate_rename(o, place)).filter(|&level| level != REFUSED)
}

/// May it act on a subject of this level?
pub fn act(s: Subject, target: u8) -> bool {
    tidegate_act(s, target)
}

/// May it act in the place of a subject whose program has these attributes?
pub fn controls(s: Subject, attrs: u8, top: u8) -> bool {
    tidegate_controls(s, attrs, top)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Subject = Subject { level: 0, attrs: 0 };

    #[test]
    fn arguments_arrive_as_the_kernel_lays_them_out() {
        let high = Object::of(2, 0);
        assert!(!modify(LOW, high, 2));
        assert!(modify(LOW, Object::of(2, Attrs::LOWWRITE.bits()), 2));
        assert!(
            !modify(LOW, Object::UNKNOWN, 2)
                && modify(Subject { level: 2, attrs: 0 }, Object::UNKNOWN, 2)
        );
        assert_eq!(observe(Subject { level: 2, attrs: 0 }, Object::of(1, 0)), 1);
        assert_eq!(
            observe(Subject { level: 2, attrs: 0 }, Object::of(1, KERNEL)),
            2
        );
        let trusted = Subject {
            level: 2,
            attrs: Attrs::NONETDEMOTE.bits() as u8,
        };
        assert_eq!(
            (observe_net(trusted, 0), observe(trusted, Object::of(0, 0))),
            (2, 0)
        );
        assert_eq!(create(LOW, high), None);
        assert_eq!(create(LOW, Object::of(2, Attrs::CREATOR.bits())), Some(0));
        assert_eq!(rename(Object::of(0, 0), high), None);
        assert_eq!(rename(high, Object::of(1, 0)), Some(1));
        assert!(!open(LOW, Object::of(1, Attrs::LOWNOOPEN.bits()), 2));
        assert!(
            !open(LOW, Object::UNKNOWN, 2)
                && open(Subject { level: 2, attrs: 0 }, Object::UNKNOWN, 2)
        );
        assert!(names(LOW, Object::of(1, Attrs::CREATOR.bits()), 2) && !names(LOW, high, 2));
        assert!(!act(LOW, 1) && act(LOW, 0));
        let below = Subject {
            level: 1,
            ..trusted
        };
        assert!(!controls(LOW, trusted.attrs, 2) && controls(below, trusted.attrs, 2));
    }
}
