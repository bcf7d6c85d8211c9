//! The two checks, and what they are asked of.

use tidegate_bundle::Attrs;

use crate::tree::{Kind, NodeId};
use crate::world::World;
use crate::{Errno, Level};

/// Why a step was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The contract refuses it.
    Refused(Errno),
    /// It makes no sense in this state: there is no such file, descriptor, …
    Senseless,
}

pub(crate) type Step<T = ()> = Result<T, Stop>;

/// The contract's `EPERM`.
pub(crate) fn refuse<T>() -> Step<T> {
    Err(Stop::Refused(Errno::Perm))
}

/// Ordinary preconditions, which have nothing to do with levels.
pub(crate) fn sensible(so: bool) -> Step {
    if so { Ok(()) } else { Err(Stop::Senseless) }
}

impl World {
    pub(crate) fn level(&self, subject: usize) -> Level {
        self.subjects[subject].level
    }

    /// A node's label.
    pub(crate) fn label(&self, node: NodeId) -> (Level, Attrs) {
        let rule = self.policy.lookup(self.path(node).as_bytes());
        // `neutral` is about devices: what else is at such a place is at the rule's level
        let attrs = match self.nodes[node].kind {
            Kind::Device => rule.attrs,
            _ => rule.attrs - Attrs::NEUTRAL,
        };
        match self.nodes[node].given {
            // what has another level than its rule says is not what the rule opens to all
            Some(level) => (level, attrs - Attrs::LOWWRITE),
            None => (rule.level, attrs),
        }
    }

    /// observe(s, o), of an object of this level.
    pub(crate) fn observe(&mut self, subject: usize, level: Level) -> Step {
        #[cfg(test)]
        if self.fault == Some(crate::fault::Fault::Observe) {
            return Ok(());
        }
        let s = &self.subjects[subject];
        if s.nodemote || s.level <= level {
            Ok(())
        } else {
            self.demote(subject, level)
        }
    }

    /// The same of what a network says.
    pub(crate) fn observe_network(&mut self, subject: usize, level: Level) -> Step {
        if self.subjects[subject].nonetdemote {
            Ok(())
        } else {
            self.observe(subject, level)
        }
    }

    /// The same of a node.
    pub(crate) fn observe_node(&mut self, subject: usize, node: NodeId) -> Step {
        let (level, attrs) = self.label(node);
        if attrs.contains(Attrs::NEUTRAL) {
            return Ok(());
        }
        self.observe(subject, level)
    }

    /// modify(s, o), of an object of this level.
    pub(crate) fn modify(&self, subject: usize, level: Level) -> Step {
        if self.level(subject) < level {
            refuse()
        } else {
            Ok(())
        }
    }

    /// modify(s, o), of a node.
    pub(crate) fn modify_node(&self, subject: usize, node: NodeId) -> Step {
        let (level, attrs) = self.label(node);
        if attrs.intersects(Attrs::LOWWRITE | Attrs::NEUTRAL) {
            Ok(())
        } else {
            self.modify(subject, level)
        }
    }

    /// modify(s, o), of what a name stands for, to take the name from it. What opens the content of a device, a socket
    /// or a FIFO to all does not open its name.
    pub(crate) fn modify_named(&self, subject: usize, node: NodeId) -> Step {
        match self.nodes[node].kind {
            Kind::Directory(_) | Kind::File | Kind::Symlink => self.modify_node(subject, node),
            Kind::Fifo(_) | Kind::Device | Kind::Socket(_) => {
                self.modify(subject, self.label(node).0)
            }
        }
    }

    /// May the subject open this node at all?
    pub(crate) fn may_open(&self, subject: usize, node: NodeId) -> Step {
        let (level, attrs) = self.label(node);
        if attrs.contains(Attrs::LOWNOOPEN) && self.level(subject) < level {
            return refuse();
        }
        Ok(())
    }

    /// May the subject have a descriptor of this node? Observes and modifies.
    pub(crate) fn bind(&mut self, subject: usize, node: NodeId, read: bool, write: bool) -> Step {
        self.may_open(subject, node)?;
        if read {
            self.observe_node(subject, node)?;
        }
        if write {
            self.modify_node(subject, node)
        } else {
            Ok(())
        }
    }

    /// May the subject change the names in a directory?
    pub(crate) fn modify_names(&self, subject: usize, dir: NodeId) -> Step {
        let creator = self.label(dir).1.contains(Attrs::CREATOR);
        if creator {
            Ok(())
        } else {
            self.modify_node(subject, dir)
        }
    }

    /// What a creation gives: the new object's level, if it is not its rule's.
    pub(crate) fn creation(&self, subject: usize, dir: NodeId, name: &str) -> Step<Option<Level>> {
        self.modify_names(subject, dir)?;
        let rule = self.policy.lookup(self.path_in(dir, name).as_bytes());
        let level = self.level(subject);
        if level >= rule.level {
            Ok(None)
        } else if rule.attrs.contains(Attrs::CREATOR) {
            Ok(Some(level))
        } else {
            refuse()
        }
    }

    /// What a new name does to a node: the level that it is given, if any. With
    /// `further`, it keeps the names it has.
    pub(crate) fn naming(
        &self,
        node: NodeId,
        dir: NodeId,
        name: &str,
        further: bool,
    ) -> Step<Option<Level>> {
        let place = self.policy.lookup(self.path_in(dir, name).as_bytes());
        let (level, attrs) = self.label(node);
        #[cfg(test)]
        if self.fault == Some(crate::fault::Fault::Launder) {
            return Ok(None);
        }
        if place.level > level && !place.attrs.contains(Attrs::CREATOR) {
            return refuse();
        }
        if self.nodes[node].is_dir() && !self.same_tree(node, dir, name) {
            return Err(Stop::Refused(Errno::Xdev));
        }
        let new = level.min(place.level);
        let elsewhere = further || self.nodes[node].links > 1;
        let given = self.nodes[node].given.is_some() || new != place.level;
        let closes =
            attrs.contains(Attrs::LOWWRITE) && (given || !place.attrs.contains(Attrs::LOWWRITE));
        if (new < level || closes) && self.is_open(node) {
            return Err(Stop::Refused(Errno::Busy));
        }
        let own = self.nodes[node].given.is_some();
        if new < level && (own || elsewhere && !self.nodes[node].is_dir()) {
            return Err(Stop::Refused(Errno::Xdev));
        }
        Ok(given.then_some(new))
    }

    /// Does one rule hold for all below a directory, here and there?
    fn same_tree(&self, node: NodeId, dir: NodeId, name: &str) -> bool {
        let below = |path: String| {
            let rule = self.policy.lookup(format!("{path}/x").as_bytes());
            (rule.level, rule.attrs)
        };
        below(self.path(node)) == below(self.path_in(dir, name))
    }
}
