//! Each operation: what makes it sensible, what the contract asks, what it does.
//!
//! A step first asks for what is ordinary (is there such a file, is there room),
//! then for what the contract says, in the contract's order, and then acts. What
//! a refused operation had already caused, such as a demotion, stays.

mod case;
mod files;
mod memory;
mod names;
mod processes;
mod sockets;

use crate::channel::Direction;
use crate::decide::{Step, Stop, sensible};
use crate::world::{Object, Open, SLOTS, World};
use crate::{Act, Op, Slot, Verdict};

/// The actor: a process and its subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor {
    pub process: usize,
    pub subject: usize,
}

impl World {
    /// Tries an operation. `None`: it makes no sense here, and nothing happened.
    pub fn step(&mut self, op: &Op) -> Option<Verdict> {
        let process = usize::from(op.who);
        let acting = self.processes.get(process).filter(|p| p.alive)?;
        if op.second && (acting.threads < 2 || !by_any_thread(&op.act)) {
            return None;
        }
        let who = Actor {
            process,
            subject: acting.subject,
        };
        let verdict = match self.act(who, &op.act) {
            Ok(verdict) => verdict,
            Err(Stop::Refused(errno)) => Verdict::Refused(errno),
            Err(Stop::Senseless) => return None,
        };
        self.empty_fifos();
        self.flow();
        Some(verdict)
    }

    fn act(&mut self, who: Actor, act: &Act) -> Step<Verdict> {
        match act {
            Act::Open {
                path,
                access,
                create,
                truncate,
                to,
            } => {
                self.open(who, path, *access, *create, *truncate, *to)?;
            }
            Act::Reopen { slot, access, to } => self.reopen(who, *slot, *access, *to)?,
            Act::Close { slot } => self.close(who, *slot)?,
            Act::Read { slot } => self.read(who, *slot)?,
            Act::Write { slot } => self.write(who, *slot)?,
            Act::Resize { slot } => self.resize(who, *slot)?,
            Act::Change { path, what } => self.change(who, path, *what)?,
            Act::GetXattr { path } => self.get_xattr(who, path)?,
            Act::Readlink { path } => self.readlink(who, path)?,
            Act::Look { path } => self.existing(path).map(drop)?,
            Act::Make { path, what } => self.make(who, path, *what)?,
            Act::Unnamed { dir, to } => self.unnamed(who, dir, *to)?,
            Act::Name { slot, path } => self.name(who, *slot, path)?,
            Act::Remove { path } => self.remove(who, path)?,
            Act::Rename { from, to } => self.rename(who, from, to)?,
            Act::Link { from, to } => self.link(who, from, to)?,
            Act::Pipe { read, write } => self.pipe(who, *read, *write)?,
            Act::Pair { one, other } => self.pair(who, *one, *other)?,
            Act::Listen { address, to } => self.name_socket(who, address, *to, true)?,
            Act::Mailbox { address, to } => self.name_socket(who, address, *to, false)?,
            Act::Connect { address, to } => self.connect(who, address, *to)?,
            Act::Accept { slot, to } => self.accept(who, *slot, *to)?,
            Act::Send { slot, carry } => self.send(who, *slot, *carry)?,
            Act::Post { address, carry } => self.post(who, address, *carry)?,
            Act::Receive { slot, to } => self.receive(who, *slot, *to)?,
            Act::Take { from, slot, to } => self.take(who, *from, *slot, *to)?,
            Act::Memfd { to } => self.memfd(who, *to)?,
            Act::Map { slot, shared, at } => self.map(who, *slot, *shared, *at)?,
            Act::MapFresh { at } => self.map_fresh(who, *at)?,
            Act::Unmap { at } => self.unmap(who, *at)?,
            // what passes through a mapping flows all the time
            Act::Load { at } => self.mapping(who, *at).map(drop)?,
            Act::Store { at } => sensible(self.mapping(who, *at)?.writable)?,
            Act::Segment { id } => self.segment(who, *id)?,
            Act::Attach { id, write, at } => self.attach(who, *id, *write, *at)?,
            Act::Drop { id } => self.drop_segment(who, *id)?,
            Act::Queue { id } => self.queue(who, *id)?,
            Act::Enqueue { id } => self.enqueue(who, *id)?,
            Act::Dequeue { id } => self.dequeue(who, *id)?,
            Act::Fork { child } => self.fork(who, *child, false)?,
            Act::Share { child } => self.fork(who, *child, true)?,
            Act::Thread => self.thread(who)?,
            Act::Exec { program } => return self.exec(who, *program),
            Act::Exit => self.end(who.process),
            Act::Signal { pid } | Act::Renice { pid } => self.target(who, *pid).map(drop)?,
            Act::Kill { pid } => self.kill(who, *pid)?,
            Act::Peek { pid } => self.peek(who, *pid)?,
            Act::Poke { pid } => self.poke(who, *pid)?,
            Act::Dial { network, to } => self.dial(who, *network, *to)?,
        }
        Ok(Verdict::Done)
    }

    /// The description behind a descriptor.
    pub(crate) fn descriptor(&self, who: Actor, slot: Slot) -> Step<usize> {
        let table = &self.tables[self.processes[who.process].table];
        table.get(&slot).copied().ok_or(Stop::Senseless)
    }

    /// A descriptor's place that is still free.
    pub(crate) fn room(&self, who: Actor, slot: Slot) -> Step {
        sensible(slot < SLOTS && self.descriptor(who, slot).is_err())
    }

    pub(crate) fn new_open(&mut self, object: Object, direction: Direction) -> usize {
        self.opens.push(Open {
            object,
            read: direction.read,
            write: direction.write,
        });
        self.opens.len() - 1
    }

    /// Puts a description into a table. What reads then stands no higher than
    /// what writes, or the descriptor is not given.
    pub(crate) fn hold(&mut self, who: Actor, slot: Slot, open: usize) -> Step {
        let table = self.processes[who.process].table;
        self.tables[table].insert(slot, open);
        let joined = self.join();
        if joined.is_err() {
            self.tables[table].remove(&slot);
        }
        joined
    }
}

/// Whether the second thread may do it: it makes no processes or threads.
fn by_any_thread(act: &Act) -> bool {
    !matches!(
        act,
        Act::Fork { .. } | Act::Share { .. } | Act::Thread | Act::Exit
    )
}
