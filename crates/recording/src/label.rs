//! Labels of objects: by kind, as given, by the policy's rule (docs/reference/lomac.md, Objects).

use tidegate_bundle::Attrs;

use crate::line::{Flags, Inode, Line, path_bytes};
use crate::rules::{KERNEL, Object};
use crate::side::Side;

/// The rule a label comes from: an index into the policy's rules.
pub(crate) type Source = Option<u32>;

/// A character device, of all objects the only kind that a rule makes neutral.
const CHARACTER: u32 = 0o020_000;

/// What a filesystem says of whatever is on it.
const OF_FILESYSTEM: Flags = Flags::NEUTRAL
    .union(Flags::KERNEL)
    .union(Flags::FOREIGN)
    .union(Flags::MEMORY)
    .union(Flags::UNMOUNTED)
    .union(Flags::UNKNOWN);

/// The directory part of a path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

impl Side<'_> {
    /// The label of a line's object.
    pub(crate) fn label(&self, line: &Line<'_>) -> (Object, Source) {
        self.label_at(line, line.inode, &line.path, line.flags)
    }

    /// The label of the directory of a line's name.
    pub(crate) fn label_of_dir(&self, line: &Line<'_>, dir: Inode, path: &str) -> (Object, Source) {
        self.label_at(line, dir, parent(path), line.flags & OF_FILESYSTEM)
    }

    /// The label of an inode with a path, on the filesystem of a line's object.
    pub(crate) fn label_at(
        &self,
        line: &Line<'_>,
        inode: Inode,
        path: &str,
        flags: Flags,
    ) -> (Object, Source) {
        if flags.contains(Flags::NEUTRAL) {
            return (Object::of(self.top, Attrs::NEUTRAL.bits()), None);
        }
        if flags.contains(Flags::PROC) {
            return (Object::of(self.level_of(line.peer), KERNEL), None);
        }
        let (mut object, source) = self.by_rule(line, path, flags);
        if line.kind != CHARACTER || inode != line.inode {
            object.attrs &= !Attrs::NEUTRAL.bits();
        }
        if let Some(&level) = self.given.get(&inode) {
            object = Object::of(level, object.attrs & !Attrs::LOWWRITE.bits());
        }
        (object, source)
    }

    /// What the map says of a name to be made beside, or in, a line's object's directory.
    pub(crate) fn place(&self, line: &Line<'_>, path: &str) -> (Object, Source) {
        let flags = line.flags & OF_FILESYSTEM;
        if flags.contains(Flags::NEUTRAL) {
            return (Object::of(self.top, Attrs::NEUTRAL.bits()), None);
        }
        let (mut place, source) = self.by_rule(line, path, flags);
        place.attrs &= !Attrs::NEUTRAL.bits();
        (place, source)
    }

    fn by_rule(&self, line: &Line<'_>, path: &str, flags: Flags) -> (Object, Source) {
        if flags.intersects(Flags::UNKNOWN | Flags::CUT) {
            return (Object::UNKNOWN, None);
        }
        if flags.contains(Flags::UNMOUNTED) || path.is_empty() {
            let object = if flags.contains(Flags::KERNEL) {
                Object::of(self.top, KERNEL)
            } else if flags.contains(Flags::MEMORY) {
                Object::of(self.top, Attrs::CREATOR.bits())
            } else if flags.contains(Flags::FOREIGN) {
                Object::of(0, 0)
            } else {
                Object::UNKNOWN
            };
            return (object, None);
        }
        let rule = self.policy.lookup(&path_bytes(path));
        if flags.contains(Flags::FOREIGN) && !self.is_named(&line.other) {
            return (
                Object::of(0, rule.attrs.bits() & Attrs::LOWNOOPEN.bits()),
                None,
            );
        }
        let kernel = if flags.contains(Flags::KERNEL) {
            KERNEL
        } else {
            0
        };
        (
            Object::of(rule.level, rule.attrs.bits() | kernel),
            Some(rule.source),
        )
    }

    /// Does a rule name a mount point exactly?
    fn is_named(&self, mount: &str) -> bool {
        let rule = self.policy.lookup(&path_bytes(mount));
        !mount.is_empty() && rule.attrs.contains(Attrs::EXPLICIT)
    }
}
