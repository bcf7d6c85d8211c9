//! The refusals of profiles that a log tells of, each kind once.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;

use tidegate_audit::Record;
use tidegate_monitor::Op;

use super::need::{Known, Need, Object, Shape, Unlearned};
use super::rule::general;
use crate::sum::Sum;

/// Kinds that are told apart.
const KINDS: usize = 20_000;

/// A kind of refusals.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What would have to be allowed.
    pub need: Need,
    /// Whose refusals these are.
    pub of: Sum,
    /// What was refused, for example.
    pub example: String,
}

/// What a process executes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Its file, if the process was there to be asked for it; of a script, the interpreter's.
    exe: Option<String>,
    /// The name that the kernel gave the process: the file's, or the script's, cut to 15 bytes.
    comm: String,
}

impl Program {
    /// Is it the one in this file?
    pub fn is(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let cut = &name.as_bytes()[..name.len().min(COMM)];
        self.exe.as_deref() == Some(path) || self.comm == String::from_utf8_lossy(cut)
    }
}

/// Bytes of a process's name that the kernel keeps.
const COMM: usize = 15;

/// What a log has told of profiles.
#[derive(Debug, Default)]
pub struct Gathered {
    /// By profile, object and program.
    pub seen: BTreeMap<(String, Object, Program), Seen>,
    /// What no rule follows from, by why, and by the profile.
    pub unlearned: BTreeMap<(Unlearned, String), (Sum, String)>,
    /// Files' names, by number and device.
    names: HashMap<(u64, String), String>,
    /// Processes' profiles.
    profiles: HashMap<u32, String>,
    /// Refusals in all.
    pub refusals: u64,
    /// Refusals for whose kind there was no room.
    pub left_out: u64,
}

impl Gathered {
    /// Takes a profile's record, which stands for so many.
    pub fn take(&mut self, record: &Record, count: u64) {
        self.refusals += count;
        let example = record.deed();
        let known = self.known(record);
        let mut need = match Need::of(record, known) {
            Ok(need) => need,
            Err(why) => {
                let profile = record.subject.as_ref().and_then(|s| s.profile.clone());
                let key = (why, profile.unwrap_or_default());
                let (of, _) = self
                    .unlearned
                    .entry(key)
                    .or_insert_with(|| (Sum::default(), example));
                of.add(record, count);
                return;
            }
        };
        look(&mut need, record);
        let program = record
            .subject
            .as_ref()
            .map_or_else(Program::default, |s| Program {
                exe: s.exe.clone(),
                comm: s.comm.clone(),
            });
        let mut object = need.object.clone();
        if let Object::File(path) = &mut object {
            *path = general(path);
        }
        let key = (need.profile.clone(), object, program);
        if self.seen.len() >= KINDS && !self.seen.contains_key(&key) {
            self.left_out += count;
            return;
        }
        let new = || Seen {
            need: need.clone(),
            of: Sum::default(),
            example,
        };
        let seen = self.seen.entry(key).or_insert_with(new);
        seen.need.add(&need);
        seen.of.add(record, count);
    }
}

impl Gathered {
    /// What the records before this one tell of what it is about.
    fn known(&mut self, record: &Record) -> Known<'_> {
        let object = record.object.as_ref();
        if let Some(subject) = &record.subject
            && let Some(profile) = &subject.profile
            && self.profiles.len() < KINDS
        {
            self.profiles.insert(subject.pid, profile.clone());
        }
        let file = object.and_then(|o| Some((o.ino?, o.dev.clone()?)));
        let is_link = record.op() == Some(Op::Link);
        if let (Some(file), Some(path)) = (&file, object.and_then(|o| o.path.as_ref()))
            && !is_link
            && self.names.len() < KINDS
        {
            self.names.insert(file.clone(), path.clone());
        }
        let peer = object.and_then(|o| self.profiles.get(&o.pid?));
        Known {
            name: file
                .and_then(|file| self.names.get(&file))
                .map(String::as_str),
            peer: peer.map(String::as_str),
        }
    }
}

/// Looks at the file, if it is still the one that the record is about: whether it is a directory,
/// and whose.
pub fn look(need: &mut Need, record: &Record) {
    let (Object::File(path) | Object::Mount(path) | Object::Umount(path) | Object::Pivot(path)) =
        &need.object
    else {
        return;
    };
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    let object = record.object.as_ref();
    let dev = format!(
        "{}:{}",
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev())
    );
    let is_made = need.owned;
    let is_same =
        object.is_some_and(|o| o.ino == Some(found.ino()) && o.dev.as_deref() == Some(&dev));
    // a place is the mount's root by now
    let is_place = !matches!(need.object, Object::File(_));
    if !is_made && !is_same && !is_place {
        return;
    }
    if need.shape == Shape::Any {
        need.shape = if found.is_dir() {
            Shape::Dir
        } else {
            Shape::File
        };
    }
    let uid = record.subject.as_ref().map(|s| s.uid);
    need.owned |= is_same && matches!(need.object, Object::File(_)) && uid == Some(found.uid());
}
