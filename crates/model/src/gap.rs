//! Where the monitor is known not to do what the contract says. Each is an entry
//! of docs/limitations.md; the replay leaves these cases out until they are mended.

use tidegate_policy::Attrs;

use crate::step::Actor;
use crate::world::{Channel, Object, World};
use crate::{Act, Op};

impl World {
    /// The known gap that an operation would meet, by its name.
    pub fn gap(&self, op: &Op) -> Option<&'static str> {
        let process = usize::from(op.who);
        let subject = self.processes.get(process)?.subject;
        let who = Actor { process, subject };
        self.gap_at_sight(who, op)
            .or_else(|| self.gap_of_fall(who, op))
    }

    /// Those that show before the operation is tried.
    fn gap_at_sight(&self, who: Actor, op: &Op) -> Option<&'static str> {
        let subject = who.subject;
        match &op.act {
            Act::Unnamed { .. } if self.in_memory() => Some("unnamed-in-memory"),
            Act::Unnamed { dir, .. } if self.modify_names(subject, self.find(dir)?).is_err() => {
                Some("unnamed-asks-no-directory")
            }
            Act::Open { path, access, .. } if access.reads() => {
                let fifo = self.nodes[self.find(path)?].fifo()?;
                self.lowers_unwritten(subject, fifo)
            }
            Act::Reopen { slot, access, .. } if access.reads() => {
                match self.opens[self.descriptor(who, *slot).ok()?].object {
                    Object::Pipe(channel) => self.lowers_unwritten(subject, channel),
                    _ => None,
                }
            }
            Act::Attach { write: false, .. } => Some("memory-mapped-read-only"),
            Act::Attach { id, .. } => {
                let level = self.segments.get(usize::from(*id))?.level;
                (self.level(subject).min(level) < self.top()).then_some("shmat-write-below-top")
            }
            Act::Map { slot, shared, .. } => {
                let open = &self.opens[self.descriptor(who, *slot).ok()?];
                let memory = matches!(open.object, Object::Memory(_));
                (memory && !(*shared && open.write)).then_some("memory-mapped-read-only")
            }
            Act::Rename { from, to } => self.closes_open(from).or_else(|| self.unlinks_memory(to)),
            Act::Link { from, .. } => self.closes_open(from),
            Act::Remove { path } => self.unlinks_memory(path),
            _ => None,
        }
    }

    /// Those that show only when the operation is tried.
    fn gap_of_fall(&self, who: Actor, op: &Op) -> Option<&'static str> {
        let mut after = self.clone();
        after.step(op)?;
        if after.kept_up && self.has_channels() {
            return Some("refused-fall-lowers-channels");
        }
        match &op.act {
            Act::Rename { from, to } => {
                let attrs = |world: &World, path| Some(world.label(world.find(path)?).1);
                let changed = attrs(self, from)? ^ attrs(&after, to)?;
                let given = after.nodes[after.find(to)?].given.is_some();
                (given && changed.contains(Attrs::LOWNOOPEN)).then_some("given-keeps-lownoopen")
            }
            Act::Connect { address, .. } => {
                let listener = self.addressed(address).ok()?;
                (after.level(who.subject) < self.admits(listener))
                    .then_some("server-falls-unwritten")
            }
            _ => None,
        }
    }

    /// Is there anything whose readers a fall could lower?
    fn has_channels(&self) -> bool {
        let channel = |object| {
            matches!(
                object,
                Object::Pipe(_) | Object::Socket(_) | Object::Memory(_)
            )
        };
        self.held()
            .any(|(_, open)| channel(self.opens[open].object))
            || self.mapped().any(|(_, m)| channel(self.behind(m.of)))
    }

    fn lowers_unwritten(&self, subject: usize, channel: usize) -> Option<&'static str> {
        let Channel { level, ever, .. } = self.channels[channel];
        (ever < level && ever < self.level(subject)).then_some("fifo-lowers-unwritten")
    }

    fn closes_open(&self, path: &str) -> Option<&'static str> {
        let node = self.find(path)?;
        let open = self.label(node).1.contains(Attrs::LOWWRITE) && self.is_open(node);
        open.then_some("lowwrite-renamed-open")
    }

    fn unlinks_memory(&self, path: &str) -> Option<&'static str> {
        let node = self.find(path)?;
        let lost = self.nodes[node].is_file() && self.nodes[node].links == 1 && self.is_open(node);
        (lost && self.in_memory()).then_some("unlinked-in-memory")
    }

    /// Is the sandbox on a filesystem in memory?
    fn in_memory(&self) -> bool {
        self.root.starts_with("/dev/shm/")
    }
}
