//! Names: creation, removal, renames and links (docs/reference/lomac.md, Names), as kernel/lomac/names.h
//! asks them. A check that fails is noted, and what follows goes on as in permissive mode.

use tidegate_bundle::Attrs;

use crate::event::Reason;
use crate::label::Source;
use crate::line::{Act, Flags, Inode, Line, path_bytes};
use crate::rules::{self, KERNEL, Object};
use crate::side::Side;

const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Sockets, FIFOs, and devices.
const SPECIAL: [u32; 4] = [0o140_000, 0o010_000, 0o020_000, 0o060_000];

/// What takes a name from an object, or gives it a further one, is asked of this: `lowwrite` opens the content of what is no
/// file to all, and not its name.
fn of_name(kind: u32, label: Object) -> Object {
    if SPECIAL.contains(&kind) {
        Object {
            attrs: label.attrs & !Attrs::LOWWRITE.bits(),
            ..label
        }
    } else {
        label
    }
}

impl Side<'_> {
    /// modify(directory), unless its rule says `creator`.
    fn names(&mut self, line: &Line<'_>, act: Act, dir: Inode, path: &str) -> bool {
        let (label, source) = self.label_of_dir(line, dir, path);
        if rules::names(self.who(line.pid), label, self.top) {
            return true;
        }
        self.refuse(line, act, reason_of(label), path, label, source);
        false
    }

    pub(crate) fn create(&mut self, line: &Line<'_>) {
        let pid = line.pid;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.created = None;
        }
        let who = self.who(pid);
        if line.flags.contains(Flags::DEVICE) && who.level < self.top {
            let top = Object::of(self.top, 0);
            self.refuse(line, Act::Create, Reason::TopOnly, &line.path, top, None);
            return;
        }
        let may = self.names(line, Act::Create, line.dir, &line.path);
        let (place, source) = self.place(line, &line.path);
        let made = match may {
            true => rules::create(who, place),
            false => Some(place.level),
        };
        let Some(level) = made else {
            self.refuse(
                line,
                Act::Create,
                Reason::NoCreator,
                &line.path,
                place,
                source,
            );
            return;
        };
        if line.refused != 0 || place.has(Attrs::NEUTRAL) {
            return;
        }
        if level != place.level {
            self.given.insert(line.inode, level);
        } else {
            self.given.remove(&line.inode);
        }
        if line.kind == REGULAR
            && let Some(process) = self.processes.get_mut(&pid)
        {
            // let through where its directory refuses it, it is opened at whatever level
            process.created = Some((line.inode, if may { level } else { 0 }));
        }
    }

    pub(crate) fn unlink(&mut self, line: &Line<'_>) {
        self.names(line, Act::Unlink, line.dir, &line.path);
        let (label, source) = self.label(line);
        let by_name = of_name(line.kind, label);
        self.modify(line, Act::Unlink, &line.path, by_name, source);
        if line.refused == 0 && (line.links <= 1 || line.kind == DIRECTORY) {
            self.given.remove(&line.inode);
        }
    }

    pub(crate) fn rename(&mut self, line: &Line<'_>) {
        let (label, source) = self.label(line);
        if line.act == Act::Rename {
            self.names(line, line.act, line.dir, &line.path);
        }
        let by_name = of_name(line.kind, label);
        self.modify(line, line.act, &line.path, by_name, source);
        let named = self.names(line, line.act, line.other_dir, &line.other);
        if line.flags.contains(Flags::REPLACED) {
            let (over, source) = self.label_at(line, line.over, &line.other, line.flags);
            self.modify(line, line.act, &line.other, over, source);
        }
        if named {
            self.name_again(line, label);
        }
        if line.refused == 0 && line.flags.contains(Flags::REPLACED | Flags::LAST) {
            self.given.remove(&line.over);
        }
    }

    /// An object gets a further name: at a higher place refused, at a lower one it falls, if it
    /// keeps no other.
    fn name_again(&mut self, line: &Line<'_>, label: Object) {
        let (place, source) = self.place(line, &line.other);
        let is_given = self.given.contains_key(&line.inode);
        let Some(level) = rules::rename(label, place) else {
            let reason = if label.known && place.known {
                Reason::Launder
            } else {
                Reason::NoLabel
            };
            self.refuse(line, line.act, reason, &line.other, label, source);
            return;
        };
        if label.has(Attrs::NEUTRAL) || same_label(line, label, level, place, is_given) {
            return;
        }
        if line.kind == DIRECTORY && !self.same_tree(line) {
            self.refuse(line, line.act, Reason::Tree, &line.other, label, source);
            return;
        }
        let admits =
            label.has(Attrs::LOWWRITE) && (!place.has(Attrs::LOWWRITE) || level != place.level);
        if (level < label.level || admits) && line.flags.contains(Flags::OPEN) {
            self.refuse(line, line.act, Reason::Busy, &line.other, label, source);
            return;
        }
        let keeps = line.act == Act::Link || line.links > 1;
        if level < label.level && (is_given || keeps && line.kind != DIRECTORY) {
            self.refuse(line, line.act, Reason::Names, &line.other, label, source);
            return;
        }
        let gives = level != place.level && !is_given;
        if gives && line.refused == 0 {
            self.given.insert(line.inode, level);
        }
    }

    /// May a directory move with all that is below it?
    fn same_tree(&self, line: &Line<'_>) -> bool {
        let (from, whole_from) = self.policy.below(&path_bytes(&line.path));
        let (to, whole_to) = self.policy.below(&path_bytes(&line.other));
        let attrs = |a: Attrs| a - Attrs::EXPLICIT;
        from.level == to.level && attrs(from.attrs) == attrs(to.attrs) && whole_from && whole_to
    }

    /// modify(s, o), of a line's object or one it names.
    pub(crate) fn modify(
        &mut self,
        line: &Line<'_>,
        act: Act,
        path: &str,
        label: Object,
        source: Source,
    ) -> bool {
        let who = self.who(line.pid);
        if rules::modify(who, label, self.top) {
            return true;
        }
        let reason = if rules::open(who, label, self.top) {
            reason_of(label)
        } else {
            unopened(label)
        };
        self.refuse(line, act, reason, path, label, source);
        false
    }
}

/// Why an object may not be opened at all.
pub(crate) fn unopened(label: Object) -> Reason {
    if label.known {
        Reason::Noopen
    } else {
        Reason::NoLabel
    }
}

/// Why an object's rule could not decide.
pub(crate) fn reason_of(label: Object) -> Reason {
    if label.known {
        Reason::Rule
    } else {
        Reason::NoLabel
    }
}

/// Does the place's rule say of the object what it already says?
fn same_label(line: &Line<'_>, label: Object, level: u8, place: Object, is_given: bool) -> bool {
    let mut differs = label.attrs ^ place.attrs;
    differs &= !(Attrs::EXPLICIT.bits() | KERNEL);
    if is_given {
        differs &= !Attrs::LOWWRITE.bits();
    }
    line.kind != DIRECTORY
        && differs == 0
        && level == label.level
        && (is_given || level == place.level)
}
