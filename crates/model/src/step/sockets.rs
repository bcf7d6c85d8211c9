//! Unix sockets, descriptors that change hands, connections to networks.

use std::collections::VecDeque;

use super::Actor;
use crate::channel::Direction;
use crate::decide::{Step, Stop, refuse, sensible};
use crate::tree::Kind;
use crate::world::{Object, Socket, World};
use crate::{Address, Level, Pid, Slot};

impl World {
    fn new_socket(&mut self) -> usize {
        let channel = self.new_channel();
        self.sockets.push(Socket {
            channel,
            peer: None,
            name: None,
            listens: false,
            backlog: VecDeque::new(),
            queue: VecDeque::new(),
        });
        self.sockets.len() - 1
    }

    /// Two ends that are each other's peers.
    fn new_connection(&mut self) -> (usize, usize) {
        let (one, other) = (self.new_socket(), self.new_socket());
        self.sockets[one].peer = Some(other);
        self.sockets[other].peer = Some(one);
        (one, other)
    }

    pub(super) fn pair(&mut self, who: Actor, one: Slot, other: Slot) -> Step {
        self.room(who, one)?;
        self.room(who, other)?;
        sensible(one != other)?;
        let ends = self.new_connection();
        for (slot, end) in [(one, ends.0), (other, ends.1)] {
            let open = self.new_open(Object::Socket(end), Direction::BOTH);
            self.hold(who, slot, open)?;
        }
        Ok(())
    }

    /// A socket bound to a name; a listener, or a mailbox.
    pub(super) fn name_socket(
        &mut self,
        who: Actor,
        address: &Address,
        to: Slot,
        listens: bool,
    ) -> Step {
        self.room(who, to)?;
        let socket = self.sockets.len();
        match address {
            Address::Path(path) => {
                let (dir, name) = self.free(path)?;
                let given = self.creation(who.subject, dir, name)?;
                self.new_socket();
                let node = self.enter(dir, name, Kind::Socket(socket), given);
                self.sockets[socket].name = Some(node);
            }
            Address::Abstract(name) => {
                sensible(self.addressed(address).is_err())?;
                self.new_socket();
                self.names.insert(*name, socket);
            }
        }
        self.sockets[socket].listens = listens;
        let open = self.new_open(Object::Socket(socket), Direction::BOTH);
        self.hold(who, to, open)
    }

    /// The socket that a name leads to, while somebody has it.
    pub(crate) fn addressed(&self, address: &Address) -> Step<usize> {
        let socket = match address {
            Address::Path(path) => match self.nodes[self.existing(path)?].kind {
                Kind::Socket(socket) => socket,
                _ => return Err(Stop::Senseless),
            },
            Address::Abstract(name) => *self.names.get(name).ok_or(Stop::Senseless)?,
        };
        sensible(self.is_connected(socket))?;
        Ok(socket)
    }

    /// modify(socket file).
    pub(super) fn reach(&self, who: Actor, socket: usize) -> Step {
        if self.level(who.subject) < self.admits(socket) {
            refuse()
        } else {
            Ok(())
        }
    }

    /// From here on a connection is a channel both ways; the end that waits to
    /// be accepted is the listener's.
    pub(super) fn connect(&mut self, who: Actor, address: &Address, to: Slot) -> Step {
        self.room(who, to)?;
        let listener = self.addressed(address)?;
        sensible(self.sockets[listener].listens)?;
        self.reach(who, listener)?;
        let (client, server) = self.new_connection();
        self.sockets[server].name = self.sockets[listener].name;
        self.sockets[listener].backlog.push_back(server);
        let open = self.new_open(Object::Socket(client), Direction::BOTH);
        let held = self.hold(who, to, open);
        if held.is_err() {
            self.sockets[listener].backlog.pop_back();
        }
        held
    }

    pub(super) fn accept(&mut self, who: Actor, slot: Slot, to: Slot) -> Step {
        self.room(who, to)?;
        let Object::Socket(listener) = self.opens[self.descriptor(who, slot)?].object else {
            return Err(Stop::Senseless);
        };
        let end = self.sockets[listener]
            .backlog
            .pop_front()
            .ok_or(Stop::Senseless)?;
        let open = self.new_open(Object::Socket(end), Direction::BOTH);
        self.hold(who, to, open)
    }

    /// What a message carries. A socket's own messages carry nothing, so that no
    /// socket is ever on its way through itself.
    fn carried(&self, who: Actor, carry: Option<Slot>) -> Step<Option<usize>> {
        let Some(slot) = carry else { return Ok(None) };
        let open = self.descriptor(who, slot)?;
        if let Object::Socket(socket) = self.opens[open].object {
            let s = &self.sockets[socket];
            let idle = |id: usize| self.sockets[id].queue.iter().all(Option::is_none);
            sensible(!s.listens && idle(socket) && s.peer.is_none_or(idle))?;
        }
        Ok(Some(open))
    }

    pub(super) fn send(&mut self, who: Actor, slot: Slot, carry: Option<Slot>) -> Step {
        let own = self.opens[self.descriptor(who, slot)?].object;
        let Object::Socket(socket) = own else {
            return Err(Stop::Senseless);
        };
        let peer = self.sockets[socket].peer.ok_or(Stop::Senseless)?;
        sensible(self.is_connected(peer))?;
        let carried = self.carried(who, carry)?;
        if let Some(open) = carried {
            let object = self.opens[open].object;
            sensible(object != own && object != Object::Socket(peer))?;
        }
        self.admitted(who, peer)?;
        self.speak(who.subject, self.sockets[peer].channel);
        self.sockets[peer].queue.push_back(carried);
        Ok(())
    }

    /// A datagram: whoever reads the mailbox falls to its sender's level.
    pub(super) fn post(&mut self, who: Actor, address: &Address, carry: Option<Slot>) -> Step {
        let socket = self.addressed(address)?;
        sensible(!self.sockets[socket].listens && self.sockets[socket].peer.is_none())?;
        let carried = self.carried(who, carry)?;
        sensible(carried.is_none_or(|open| self.opens[open].object != Object::Socket(socket)))?;
        self.reach(who, socket)?;
        let channel = self.sockets[socket].channel;
        let before = self.channels[channel].level;
        self.channels[channel].level = before.min(self.level(who.subject));
        let joined = self.join();
        if joined.is_err() {
            self.channels[channel].level = before;
        }
        joined?;
        self.speak(who.subject, channel);
        self.sockets[socket].queue.push_back(carried);
        Ok(())
    }

    pub(super) fn receive(&mut self, who: Actor, slot: Slot, to: Slot) -> Step {
        self.room(who, to)?;
        let object = self.opens[self.descriptor(who, slot)?].object;
        let Object::Socket(socket) = object else {
            return Err(Stop::Senseless);
        };
        sensible(!self.sockets[socket].listens)?;
        let carried = self.sockets[socket]
            .queue
            .pop_front()
            .ok_or(Stop::Senseless)?;
        self.hear(who.subject, self.content(object));
        match carried {
            // that a descriptor was kept back is all that the receiver is told
            Some(open) => self.get(who, open, to).or_else(|_| refuse()),
            None => Ok(()),
        }
    }

    /// A descriptor comes from elsewhere.
    fn get(&mut self, who: Actor, open: usize, to: Slot) -> Step {
        let (read, write) = (self.opens[open].read, self.opens[open].write);
        match self.opens[open].object {
            Object::Node(node) => self.bind(who.subject, node, read, write)?,
            Object::Memory(memory) if write => self.bind_memory(who.subject, memory)?,
            Object::Pipe(channel) => self.may_open_fifo(who.subject, channel)?,
            _ => {}
        }
        self.hold(who, to, open)
    }

    pub(super) fn take(&mut self, who: Actor, from: Pid, slot: Slot, to: Slot) -> Step {
        self.room(who, to)?;
        let target = self.other(who, from)?;
        let open = self.descriptor(target, slot)?;
        self.attach_to(who, target)?;
        self.get(who, open, to)
    }

    pub(super) fn dial(&mut self, who: Actor, network: Level, to: Slot) -> Step {
        self.room(who, to)?;
        sensible(network <= self.top())?;
        if network > 0 {
            self.modify(who.subject, network)?; // connecting sends
        }
        self.observe_network(who.subject, network)?;
        if !self.subjects[who.subject].nonetdemote {
            self.hear(who.subject, network);
        }
        let open = self.new_open(Object::Network(network), Direction::BOTH);
        self.hold(who, to, open)
    }
}
