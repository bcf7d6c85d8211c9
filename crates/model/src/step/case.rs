//! How a case is decided: in a world that holds what it is about and nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use tidegate_bundle::{Attrs, Policy};

use super::Actor;
use crate::decide::{Step, Stop};
use crate::tree::{Kind, Node, NodeId};
use crate::world::{Socket, World};
use crate::{Asked, Case, Level, Ruling, Thing};

impl Case {
    /// Judges the last operation under a policy.
    pub fn decide(&self, policy: &Arc<Policy>) -> Ruling {
        let mut world = World::bare(Arc::clone(policy), "");
        let who = world.enrol(self.level);
        let mut ruling = Ruling::Allowed;
        for deed in &self.deeds {
            let permissive = world.run_as(who, deed.program.as_deref());
            ruling = match world.try_one(who, &deed.asked) {
                Ok(()) => Ruling::Allowed,
                Err(Stop::Refused(_)) if permissive && deed.asked != Asked::Top => Ruling::Recorded,
                Err(Stop::Refused(errno)) => Ruling::Refused(errno),
                Err(Stop::Senseless) => Ruling::Senseless,
            };
        }
        ruling
    }

    /// The subject's level after all of it.
    pub fn level_after(&self, policy: &Arc<Policy>) -> Level {
        let mut world = World::bare(Arc::clone(policy), "");
        let who = world.enrol(self.level);
        for deed in &self.deeds {
            world.run_as(who, deed.program.as_deref());
            // what was refused leaves what it had caused
            let _ = world.try_one(who, &deed.asked);
        }
        world.level(who.subject)
    }
}

impl World {
    /// The subject is this program from here on. Whether it is `permissive`.
    fn run_as(&mut self, who: Actor, program: Option<&str>) -> bool {
        let (level, attrs) = program.map_or((0, Attrs::empty()), |path| self.program(path));
        let (nodemote, nonetdemote) = self.trusted(level, attrs);
        let subject = &mut self.subjects[who.subject];
        (subject.nodemote, subject.nonetdemote) = (nodemote, nonetdemote);
        level == self.top() && attrs.contains(Attrs::PERMISSIVE)
    }

    fn try_one(&mut self, who: Actor, asked: &Asked) -> Step {
        let s = who.subject;
        match asked {
            Asked::Open(thing, access) => {
                let node = self.thing(thing, Kind::File)?;
                self.bind(s, node, access.reads(), access.writes())
            }
            Asked::Map(thing) => {
                let node = self.thing(thing, Kind::File)?;
                self.bind(s, node, true, true)
            }
            Asked::Exec(thing) | Asked::Look(thing) => {
                let node = self.thing(thing, Kind::File)?;
                self.observe_node(s, node)
            }
            Asked::Change(thing) => {
                let node = self.thing(thing, Kind::File)?;
                self.modify_node(s, node)
            }
            Asked::Create(path) => {
                let (dir, name) = self.place(path)?;
                let given = self.creation(s, dir, name)?;
                if self.find(path.trim_start_matches('/')).is_none() {
                    self.enter(dir, name, Kind::File, given);
                }
                Ok(())
            }
            Asked::Name(path) => {
                let (dir, name) = self.place(path)?;
                self.creation(s, dir, name).map(drop)
            }
            Asked::Take(level, path) => {
                let (dir, name) = self.place(path)?;
                self.modify_names(s, dir)?;
                let node = self.nameless(dir, *level);
                self.naming(node, dir, name, false).map(drop)
            }
            Asked::Remove(thing) => {
                self.thing(thing, Kind::File)?;
                self.remove(who, thing.path.trim_start_matches('/'))
            }
            Asked::Reach(thing) => {
                let socket = self.listener();
                let node = self.thing(thing, Kind::Socket(socket))?;
                self.sockets[socket].name = Some(node);
                self.reach(who, socket)
            }
            Asked::Dial(address) => {
                let level = self.network(*address);
                self.dial(who, level, self.free_slot(who))
            }
            Asked::Hear(address) => {
                let level = address.map_or(0, |a| self.network(a));
                self.observe_network(s, level)
            }
            Asked::Send(address) => match self.network(*address) {
                0 => Ok(()),
                level => self.modify(s, level),
            },
            Asked::Act(level) => self.modify(s, *level),
            Asked::Observe(level) => self.observe(s, *level),
            Asked::Top => self.modify(s, self.top()),
        }
    }

    /// The level of an address.
    fn network(&self, address: IpAddr) -> Level {
        self.policy.network(address).map_or(0, |line| line.level)
    }

    fn free_slot(&self, who: Actor) -> u8 {
        let table = &self.tables[self.processes[who.process].table];
        (0..crate::world::SLOTS)
            .find(|slot| !table.contains_key(slot))
            .unwrap_or(crate::world::SLOTS)
    }

    /// A listener whose name is not known yet.
    fn listener(&mut self) -> usize {
        let channel = self.new_channel();
        self.sockets.push(Socket {
            channel,
            peer: None,
            name: None,
            listens: true,
            backlog: VecDeque::new(),
            queue: VecDeque::new(),
        });
        self.sockets.len() - 1
    }

    /// An object of this level that comes from elsewhere.
    fn nameless(&mut self, dir: NodeId, level: Level) -> NodeId {
        self.nodes.push(Node {
            kind: Kind::File,
            given: Some(level),
            place: Some((dir, "#".into())),
            links: 1,
            content: level,
        });
        self.nodes.len() - 1
    }

    /// The object, put where its path says unless a deed before has made it.
    fn thing(&mut self, thing: &Thing, kind: Kind) -> Step<NodeId> {
        if let Some(node) = self.find(thing.path.trim_start_matches('/'))
            && !thing.path.trim_start_matches('/').is_empty()
        {
            return Ok(node);
        }
        let (dir, name) = self.place(&thing.path)?;
        // what a map calls neutral is meant to be a device
        let rule = self.policy.lookup(thing.path.as_bytes());
        let kind = match kind {
            Kind::File if rule.attrs.contains(Attrs::NEUTRAL) => Kind::Device,
            kind => kind,
        };
        Ok(self.enter(dir, name, kind, thing.given))
    }

    /// The directory of a path, made if it is not there, and the name in it.
    fn place<'p>(&mut self, path: &'p str) -> Step<(NodeId, &'p str)> {
        let (above, name) = path.rsplit_once('/').ok_or(Stop::Senseless)?;
        if name.is_empty() {
            return Err(Stop::Senseless);
        }
        let mut dir = 0;
        for part in above.split('/').filter(|part| !part.is_empty()) {
            dir = match &self.nodes[dir].kind {
                Kind::Directory(names) => match names.get(part) {
                    Some(&node) => node,
                    None => self.enter(dir, part, Kind::Directory(BTreeMap::new()), None),
                },
                _ => return Err(Stop::Senseless),
            };
        }
        if !self.nodes[dir].is_dir() {
            return Err(Stop::Senseless);
        }
        Ok((dir, name))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::map;

    use super::*;
    use crate::{Access, Deed, Errno};

    fn policy() -> Arc<Policy> {
        let map = "levels system > user > untrusted\nsystem /\nuser /home child-of\n\
                   user /home/*/src creator\nuser /home/*/.ssh lownoopen\n\
                   system /usr/bin/ssh nonetdemote\nsystem /usr/bin/lax permissive\n\
                   user /run/bus\nsystem /run/log lowwrite\nuser network 192.0.2.0/24\n\
                   untrusted /home/*/Downloads\nneutral /dev/gpu\n";
        Arc::new(map::compile_str("case", map).unwrap().policy)
    }

    fn thing(path: &str) -> Thing {
        Thing {
            path: path.into(),
            given: None,
        }
    }

    fn by(program: Option<&str>, level: Level, asked: Vec<Asked>) -> Case {
        let deed = |asked| Deed {
            program: program.map(Into::into),
            asked,
        };
        Case {
            level,
            deeds: asked.into_iter().map(deed).collect(),
        }
    }

    fn ruling(level: Level, asked: Asked) -> Ruling {
        by(None, level, vec![asked]).decide(&policy())
    }

    const NO: Ruling = Ruling::Refused(Errno::Perm);

    #[test]
    fn the_two_checks() {
        let notes = || thing("/home/ann/notes");
        assert_eq!(ruling(0, Asked::Open(notes(), Access::Write)), NO);
        assert_eq!(
            ruling(1, Asked::Open(notes(), Access::Write)),
            Ruling::Allowed
        );
        assert_eq!(
            ruling(0, Asked::Open(notes(), Access::Read)),
            Ruling::Allowed
        );
        let key = || thing("/home/ann/.ssh/id");
        assert_eq!(ruling(0, Asked::Open(key(), Access::Read)), NO);
        assert_eq!(ruling(0, Asked::Change(notes())), NO);
        let own = Thing {
            given: Some(0),
            ..notes()
        };
        assert_eq!(ruling(0, Asked::Change(own)), Ruling::Allowed);
        let gpu = || Asked::Open(thing("/dev/gpu"), Access::Both);
        assert_eq!(ruling(0, gpu()), Ruling::Allowed);
        assert_eq!(by(None, 2, vec![gpu()]).level_after(&policy()), 2);
        assert_eq!(ruling(1, Asked::Act(2)), NO);
        assert_eq!(ruling(1, Asked::Top), NO);
        assert_eq!(ruling(2, Asked::Top), Ruling::Allowed);
    }

    #[test]
    fn names_and_sockets() {
        let create = |path: &str| ruling(0, Asked::Create(path.into()));
        assert_eq!(create("/home/ann/x"), NO);
        assert_eq!(create("/home/ann/src/x"), Ruling::Allowed);
        let take = |path: &str| ruling(1, Asked::Take(0, path.into()));
        assert_eq!(take("/home/ann/x"), NO);
        assert_eq!(take("/home/ann/src/x"), Ruling::Allowed);
        assert_eq!(ruling(0, Asked::Remove(thing("/home/ann/src/x"))), NO);
        assert_eq!(ruling(0, Asked::Reach(thing("/run/bus"))), NO);
        assert_eq!(ruling(1, Asked::Reach(thing("/run/bus"))), Ruling::Allowed);
        assert_eq!(ruling(0, Asked::Reach(thing("/run/log"))), Ruling::Allowed);
        let friend = "192.0.2.7".parse().unwrap();
        assert_eq!(ruling(0, Asked::Send(friend)), NO);
        assert_eq!(ruling(0, Asked::Dial(friend)), NO);
    }

    #[test]
    fn what_came_before_counts() {
        let write = || Asked::Open(thing("/home/ann/notes"), Access::Write);
        let read = Asked::Open(thing("/home/ann/Downloads/x"), Access::Read);
        let far: IpAddr = "203.0.113.7".parse().unwrap();
        assert_eq!(by(None, 1, vec![read, write()]).decide(&policy()), NO);
        let dial = vec![Asked::Dial(far), write()];
        assert_eq!(by(None, 1, dial.clone()).decide(&policy()), NO);
        assert_eq!(by(None, 1, dial.clone()).level_after(&policy()), 0);
        let ssh = by(Some("/usr/bin/ssh"), 1, dial);
        assert_eq!(ssh.decide(&policy()), Ruling::Allowed);
        let lax = by(Some("/usr/bin/lax"), 0, vec![write()]);
        assert_eq!(lax.decide(&policy()), Ruling::Recorded);
        // its own file it may write and remove
        let path = "/home/ann/src/x";
        let own = vec![
            Asked::Create(path.into()),
            Asked::Open(thing(path), Access::Both),
            Asked::Remove(thing(path)),
        ];
        assert_eq!(by(None, 0, own).decide(&policy()), Ruling::Allowed);
    }
}
