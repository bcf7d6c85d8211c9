//! Names: creation, removal, rename, link.

use std::collections::BTreeMap;

use tidegate_bundle::Attrs;

use super::Actor;
use crate::Made;
use crate::Slot;
use crate::channel::Direction;
use crate::decide::{Step, Stop, refuse, sensible};
use crate::tree::{Kind, Node, NodeId};
use crate::world::{Object, World};

/// What tells two places apart beside their levels.
const OWN: Attrs = Attrs::LOWWRITE.union(Attrs::LOWNOOPEN);

impl World {
    pub(super) fn make(&mut self, who: Actor, path: &str, what: Made) -> Step {
        let (dir, name) = self.free(path)?;
        if what == Made::Device && self.level(who.subject) < self.top() {
            return refuse();
        }
        let given = self.creation(who.subject, dir, name)?;
        let kind = match what {
            Made::Directory => Kind::Directory(BTreeMap::new()),
            Made::Symlink => Kind::Symlink,
            Made::Fifo => Kind::Fifo(self.new_channel()),
            Made::Device => Kind::Device,
        };
        let node = self.enter(dir, name, kind, given);
        if what == Made::Symlink {
            self.fill(who.subject, node);
        }
        Ok(())
    }

    /// A file without a name, open for reading and writing: a creation in the
    /// directory, at the level of what is below it.
    pub(super) fn unnamed(&mut self, who: Actor, dir: &str, to: Slot) -> Step {
        self.room(who, to)?;
        let dir = self.existing(dir)?;
        sensible(self.nodes[dir].is_dir())?;
        let given = self.creation(who.subject, dir, "#")?;
        self.nodes.push(Node {
            kind: Kind::File,
            given,
            place: Some((dir, "#".into())),
            links: 0,
            content: self.top(),
        });
        let node = self.nodes.len() - 1;
        self.bind(who.subject, node, true, true)?;
        let open = self.new_open(Object::Node(node), Direction::BOTH);
        self.hold(who, to, open)
    }

    /// The first name of such a file.
    pub(super) fn name(&mut self, who: Actor, slot: Slot, path: &str) -> Step {
        let Object::Node(node) = self.opens[self.descriptor(who, slot)?].object else {
            return Err(Stop::Senseless);
        };
        let named = |n: &Node| n.place.as_ref().is_none_or(|(_, name)| name != "#");
        sensible(self.nodes[node].links == 0 && !named(&self.nodes[node]))?;
        let (dir, name) = self.free(path)?;
        self.further_name(who, node, dir, name)?;
        self.nodes[node].place = Some((dir, name.into()));
        Ok(())
    }

    pub(super) fn remove(&mut self, who: Actor, path: &str) -> Step {
        let node = self.existing(path)?;
        let (dir, name) = self.parent(path)?;
        if let Kind::Directory(names) = &self.nodes[node].kind {
            sensible(names.is_empty())?;
        }
        self.modify_names(who.subject, dir)?;
        self.modify_named(who.subject, node)?;
        self.may_lose(node)?;
        self.take_name(dir, name);
        Ok(())
    }

    pub(super) fn rename(&mut self, who: Actor, from: &str, to: &str) -> Step {
        let node = self.existing(from)?;
        let (old_dir, old) = self.parent(from)?;
        let (new_dir, new) = self.parent(to)?;
        let over = self.find(to);
        let directory = self.nodes[node].is_dir();
        sensible(match over {
            Some(over) => over != node && !directory && !self.nodes[over].is_dir(),
            None => !directory || !self.is_below(new_dir, node),
        })?;
        // a FIFO's readers and writers are counted apart
        sensible(self.nodes[node].fifo().is_none() || !self.is_open(node))?;

        self.modify_names(who.subject, old_dir)?;
        self.modify_named(who.subject, node)?;
        self.modify_names(who.subject, new_dir)?;
        if let Some(over) = over {
            self.modify_named(who.subject, over)?;
        }
        let given = self.naming(node, new_dir, new, false)?;
        if let Some(over) = over {
            self.may_lose(over)?;
        }

        let seen_by_it = self.nodes[node]
            .place
            .as_ref()
            .is_some_and(|(d, n)| *d == old_dir && n == old);
        self.take_name(new_dir, new);
        self.put_name(new_dir, new, node);
        self.take_name(old_dir, old);
        if seen_by_it {
            self.nodes[node].place = Some((new_dir, new.into()));
        }
        self.nodes[node].given = given;
        Ok(())
    }

    pub(super) fn link(&mut self, who: Actor, from: &str, to: &str) -> Step {
        let node = self.existing(from)?;
        sensible(self.nodes[node].is_file())?;
        let (dir, name) = self.free(to)?;
        self.further_name(who, node, dir, name)
    }

    fn further_name(&mut self, who: Actor, node: NodeId, dir: NodeId, name: &str) -> Step {
        // by which of two names it is seen after an eviction must not matter
        let place = self.policy.lookup(self.path_in(dir, name).as_bytes());
        let (level, attrs) = self.label(node);
        let falls = place.level < level;
        sensible(
            (attrs ^ place.attrs) & OWN == Attrs::empty()
                || falls && !attrs.contains(Attrs::LOWNOOPEN),
        )?;

        self.modify_node(who.subject, node)?;
        self.modify_names(who.subject, dir)?;
        let given = self.naming(node, dir, name, true)?;
        self.put_name(dir, name, node);
        self.nodes[node].given = given;
        Ok(())
    }

    /// Is a directory another one, or below it?
    fn is_below(&self, dir: NodeId, other: NodeId) -> bool {
        let up = |at: &NodeId| self.nodes[*at].place.as_ref().map(|(dir, _)| *dir);
        std::iter::successors(Some(dir), up).any(|at| at == other)
    }
}
