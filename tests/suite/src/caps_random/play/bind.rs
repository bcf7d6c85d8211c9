//! What actors open, connect, use and close.

use anyhow::{Context, Result};
use tidegate_bundle::caps::permission::{APPEND, CONNECT, CREATE, LOCK, READ, WRITE};
use tidegate_bundle::caps::{Class, Object};
use tidegate_policy::caps::model::{Fd, Pid, Refusal};

use super::{Description, Play, Slot, path_of};
use crate::caps_random::file::{FILES, NEW, PORTS, ROOT, SOCKETS};
use crate::caps_random::stage::{Answer, remove};

/// How files are opened, and what that asks for.
pub(super) const MODES: [(&str, u32); 4] = [
    ("r", READ),
    ("w", WRITE),
    ("rw", READ | WRITE),
    ("a", APPEND),
];

pub(super) fn file_object(name: &str) -> Object {
    Object::Path(Class::File, path_of(name).into())
}

/// How a descriptor may be used: the operation, its operands, and the right that it takes.
fn ways(slot: &Slot) -> Vec<(&'static str, &'static str, u32)> {
    if slot.object.class() != Class::File {
        return vec![
            ("send", "", WRITE),
            ("recv", "", READ),
            ("splice", "", READ),
        ];
    }
    let mut ways = vec![("lock", "", LOCK)];
    if slot.mode & READ != 0 {
        ways.extend([("read", "", READ), ("map", " r", READ)]);
    }
    if slot.mode & (WRITE | APPEND) != 0 {
        ways.push(("write", "", slot.mode & (WRITE | APPEND)));
    }
    if slot.mode == READ | WRITE {
        ways.push(("map", " rw", READ | WRITE));
    }
    ways
}

impl Play {
    pub(super) fn open(&mut self, at: usize) -> Result<Option<Slot>> {
        match self.rng.usize(..MODES.len() + 1) {
            0 => {
                let name = NEW[self.rng.usize(..NEW.len())];
                self.open_as(at, name, "c", WRITE)
            }
            way => {
                let mut choice = (FILES[self.rng.usize(..FILES.len())], MODES[way - 1]);
                // most of what is drawn would be refused, which needs not be seen so often
                let mut world = self.world.clone();
                let pid = self.actors[&at].pid;
                let all = FILES
                    .iter()
                    .flat_map(|name| MODES.map(|mode| (*name, mode)));
                let given: Vec<_> = all
                    .filter(|(name, (_, wanted))| {
                        world.bind(pid, &file_object(name), *wanted).is_ok()
                    })
                    .collect();
                if !given.is_empty() && self.rng.u32(..3) > 0 {
                    choice = given[self.rng.usize(..given.len())];
                }
                let (name, (mode, wanted)) = choice;
                self.open_as(at, name, mode, wanted)
            }
        }
    }

    /// Opens a file: what is bound.
    pub(super) fn open_as(
        &mut self,
        at: usize,
        name: &str,
        mode: &str,
        wanted: u32,
    ) -> Result<Option<Slot>> {
        let object = file_object(name);
        let pid = self.actors[&at].pid;
        // to create names its object by itself
        let created = match mode {
            "c" => self.world.bind(pid, &object, CREATE).map(drop),
            _ => Ok(()),
        };
        let answer = self.ask(at, &format!("open {} {mode}", path_of(name)))?;
        let model = created.and_then(|()| self.world.bind(pid, &object, wanted));
        if mode == "c" {
            remove(&path_of(name))?;
        }
        self.bound("open", at, answer, model, object, wanted)
    }

    pub(super) fn connect(&mut self, at: usize) -> Result<()> {
        let (object, words) = if self.rng.bool() {
            let port = PORTS[self.rng.usize(..PORTS.len())];
            (
                Object::Inet(Class::Tcp, [127, 0, 0, 1].into(), port),
                format!("tcp {port}"),
            )
        } else {
            let path = format!("{ROOT}/run/{}", SOCKETS[self.rng.usize(..SOCKETS.len())]);
            (Object::Unix(path.clone().into()), format!("unix {path}"))
        };
        let pid = self.actors[&at].pid;
        let answer = self.ask(at, &words)?;
        let model = self.world.bind(pid, &object, CONNECT | READ | WRITE);
        self.bound("connect", at, answer, model, object, READ | WRITE)
            .map(drop)
    }

    fn bound(
        &mut self,
        what: &'static str,
        at: usize,
        answer: Answer,
        model: Result<Option<Fd>, Refusal>,
        object: Object,
        mode: u32,
    ) -> Result<Option<Slot>> {
        if !self.agree(what, &answer, model.map(drop), false)? {
            return Ok(None);
        }
        let fd = model.ok().flatten().context("nothing is bound")?;
        let owner = self.actors[&at].domain;
        let mut description = Description::default();
        description.holders.insert(owner, [].into());
        self.descriptions.push(description);
        let slot = Slot {
            fd: answer.unwrap_or_default(),
            model: Some(fd),
            object,
            mode,
            description: self.descriptions.len() - 1,
            owner,
            part: false,
        };
        self.actor(at)?.slots.push(slot.clone());
        Ok(Some(slot))
    }

    pub(super) fn using(&mut self, at: usize) -> Result<()> {
        match self.slot(at) {
            Some((_, slot)) => self.use_slot(at, &slot),
            None => Ok(()),
        }
    }

    /// Uses a descriptor in one of the ways that there are.
    pub(super) fn use_slot(&mut self, at: usize, slot: &Slot) -> Result<()> {
        let ways = ways(slot);
        let (what, how, right) = ways[self.rng.usize(..ways.len())];
        let pid = self.actors[&at].pid;
        let answer = self.ask(at, &format!("{what} {}{how}", slot.fd))?;
        let before = self.world.clone();
        let model = self.access(pid, slot, right);
        let part = slot.part || self.descriptions[slot.description].is_guessed;
        let said = self.agree(what, &answer, model, part)?;
        if !said && model.is_ok() {
            // what was refused is not counted
            self.world = before;
        }
        if said && what == "map" {
            let map = slot.model.map(|fd| (fd, right));
            self.actor(at)?.maps.extend(map);
        }
        Ok(())
    }

    /// What the model says of a use.
    pub(super) fn access(&mut self, pid: Pid, slot: &Slot, right: u32) -> Result<(), Refusal> {
        self.world
            .access(pid, slot.model.ok_or(Refusal::Descriptor)?, right)
    }

    /// Would the model allow all that it was opened for?
    pub(super) fn has_all(&self, pid: Pid, slot: &Slot) -> bool {
        [READ, WRITE, APPEND].into_iter().all(|right| {
            let allows = |fd| self.world.clone().access(pid, fd, right).is_ok();
            slot.mode & right == 0 || slot.model.is_some_and(allows)
        })
    }

    pub(super) fn close(&mut self, at: usize) -> Result<()> {
        let Some((one, slot)) = self.slot(at) else {
            return Ok(());
        };
        // the model keeps it, as mappings do
        self.ask(at, &format!("close {}", slot.fd))?.ok();
        self.actor(at)?.slots.remove(one);
        Ok(())
    }
}
