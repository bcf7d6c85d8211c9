//! Descriptors that change hands: by messages, from one to the next and to the next, and taken out of another process.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use tidegate_policy::caps::model::{Fd, Refusal, Revoke, World};

use super::bind::{MODES, file_object};
use super::{Play, Slot};
use crate::caps_random::file::FILES;
use crate::caps_random::stage::Answer;

impl Play {
    /// The domains by which an actor has come to what it has of an open file, its own among them.
    pub(super) fn chain_of(&self, slot: &Slot) -> BTreeSet<usize> {
        let holders = &self.descriptions[slot.description].holders;
        let mut chain = holders.get(&slot.owner).cloned().unwrap_or_default();
        chain.insert(slot.owner);
        chain
    }

    /// The domains by which it has come as the kernel takes it, which sees the receiver alone: all
    /// that are known to have handed it over, or else all that have it.
    fn guess_of(&self, slot: &Slot) -> BTreeSet<usize> {
        let description = &self.descriptions[slot.description];
        let hands =
            |domain: &&usize| description.sent.contains(*domain) || self.hands.contains(*domain);
        let mut from: BTreeSet<usize> = description.holders.keys().filter(hands).copied().collect();
        if from.is_empty() {
            from = description.holders.keys().copied().collect();
        }
        let more: Vec<usize> = from
            .iter()
            .flat_map(|domain| &description.holders[domain])
            .copied()
            .collect();
        from.extend(more);
        from
    }

    /// Has a domain had something of it anyway? What comes back, or comes twice, is that.
    fn knows(&self, slot: &Slot, domain: usize) -> bool {
        let holders = &self.descriptions[slot.description].holders;
        self.lineage(domain)
            .iter()
            .any(|domain| holders.contains_key(domain))
    }

    /// Takes down which domain hands over to which, before the kernel is asked: whether it may be
    /// stricter, as it knows less.
    fn handed(&mut self, slot: &Slot, to: usize) -> Result<bool> {
        let (chain, guess) = (self.chain_of(slot), self.guess_of(slot));
        anyhow::ensure!(
            chain.is_subset(&guess),
            "who hands it over is not among those that the kernel takes for that: {chain:?}, {guess:?}"
        );
        let is_guessed = chain != guess;
        let description = &mut self.descriptions[slot.description];
        description.is_guessed |= is_guessed;
        description.holders.insert(to, guess);
        Ok(is_guessed)
    }

    /// Compares what was received: the receiver's descriptor.
    fn received(
        &mut self,
        what: &'static str,
        to: usize,
        slot: Slot,
        (answer, model, part): (Answer, Result<usize, Refusal>, bool),
    ) -> Result<Option<Slot>> {
        let part = part || self.descriptions[slot.description].is_guessed;
        if !self.agree(what, &answer, model.map(drop), slot.part || part)? {
            return Ok(None);
        }
        let mut received = Slot {
            fd: answer.unwrap_or_default(),
            model: model.ok(),
            ..slot
        };
        let pid = self.actors[&to].pid;
        received.part |= !self.has_all(pid, &received);
        self.actor(to)?.slots.push(received.clone());
        Ok(Some(received))
    }

    pub(super) fn hand(&mut self, at: usize) -> Result<()> {
        let others = self.others(at);
        let Some((_, slot)) = self.slot(at).filter(|_| !others.is_empty()) else {
            return Ok(());
        };
        let mut to = others[self.rng.usize(..others.len())];
        // many may do nothing with it, which needs not be seen so often
        let (from, world) = (self.actors[&at].pid, &self.world);
        let receives = |to: &&usize| {
            let receiver = &self.actors[to];
            let model = slot.model.unwrap_or(Fd::MAX);
            !self.knows(&slot, receiver.domain)
                && world.clone().pass(from, model, receiver.pid).is_ok()
        };
        let good: Vec<usize> = others.iter().filter(receives).copied().collect();
        if !good.is_empty() && self.rng.u32(..3) > 0 {
            to = good[self.rng.usize(..good.len())];
        }
        self.hand_to(at, slot, to).map(drop)
    }

    /// The actors that another can hand something to.
    fn others(&self, at: usize) -> Vec<usize> {
        let all = self.actors.iter();
        let others = all.filter(|&(&to, other)| to != at && !other.is_deaf);
        others.map(|(&to, _)| to).collect()
    }

    /// Hands a descriptor over by a message: what is received.
    fn hand_to(&mut self, at: usize, mut slot: Slot, to: usize) -> Result<Option<Slot>> {
        let (from, receiver) = (self.actors[&at].pid, self.actors[&to].clone());
        let Some(model) = slot.model else {
            return Ok(None);
        };
        if self.knows(&slot, receiver.domain) {
            return Ok(None);
        }
        let (inbox, outside) = self.stage.inbox(to);
        let given = self.ask(at, &format!("give {outside} {}", slot.fd))?;
        if given == Err(libc::EACCES) && self.tally.contains_key("revoke") {
            // it may have no socket any more
            return Ok(None);
        }
        given.map_err(|errno| anyhow!("give: errno {errno}"))?;
        self.descriptions[slot.description].sent.insert(slot.owner);
        let part = self.handed(&slot, receiver.domain)?;
        let answer = self.ask(to, &format!("take {inbox}"))?;
        let received = self.world.pass(from, model, receiver.pid);
        let is_deaf = answer == Err(libc::EACCES);
        self.actor(to)?.is_deaf |= is_deaf;
        let answer = match answer.as_deref() {
            Ok("none") => Err(libc::EACCES),
            _ => answer,
        };
        slot.owner = receiver.domain;
        self.received("take", to, slot, (answer, received, part || is_deaf))
    }

    /// Takes a descriptor out of another process (pidfd_getfd): of one's session, with all of one's layers.
    pub(super) fn take_from(&mut self, at: usize) -> Result<()> {
        let me = self.actors[&at].clone();
        let session = self.world.session(me.pid);
        let of_session = |is_own: bool| -> Vec<usize> {
            let all = self.actors.iter().filter(|&(&other, actor)| {
                let session = self.world.session(actor.pid) == session;
                other != at && session == is_own && !actor.slots.is_empty()
            });
            all.map(|(&other, _)| other).collect()
        };
        // of other sessions it is refused, which needs not be seen often
        let is_own = self.rng.u32(..8) > 0;
        let others = of_session(is_own);
        if others.is_empty() {
            return Ok(());
        }
        let other = others[self.rng.usize(..others.len())];
        let target = self.actors[&other].clone();
        let Some((_, mut slot)) = self.slot(other) else {
            return Ok(());
        };
        let Some(model) = slot.model else {
            return Ok(());
        };
        let layers = self.world.layers(target.pid);
        let reaches = self.world.session(target.pid) == session
            && self.world.layers(me.pid).is_subset(layers);
        // its own it has as it is
        let is_own = slot.owner == me.domain;
        if reaches && !is_own && self.knows(&slot, me.domain) {
            return Ok(());
        }
        let mut part = false;
        if reaches {
            let lineage = self.lineage(target.domain);
            self.hands.extend(lineage);
            if !is_own {
                part = self.handed(&slot, me.domain)?;
            }
        }
        let answer = self.ask(at, &format!("getfd {} {}", target.number, slot.fd))?;
        if !reaches {
            self.agree("getfd", &answer, Err(Refusal::Descriptor), false)?;
            return Ok(());
        }
        let received = self.world.pass(target.pid, model, me.pid);
        slot.owner = me.domain;
        if is_own && answer.is_ok() && received.is_err() {
            // it had that already, and may use it as little as before
            slot.model = None;
            slot.fd = answer.unwrap_or_default();
            self.actor(at)?.slots.push(slot);
            return Ok(());
        }
        self.received("getfd", at, slot, (answer, received, part))
            .map(drop)
    }

    /// One opens a file and hands it to a second, which hands it to a third. Then something of that is taken back from one of the
    /// first two, or time passes, or it is used up; and all three use it.
    pub(super) fn chain(&mut self, first: usize) -> Result<()> {
        let mut others = self.others(first);
        self.rng.shuffle(&mut others);
        let [second, third, ..] = others[..] else {
            return Ok(());
        };
        let pids = [first, second, third].map(|at| self.actors[&at].pid);
        let goes_through = |world: &mut World, name: &str, wanted| {
            let fd = world.bind(pids[0], &file_object(name), wanted).ok()??;
            let fd = world.pass(pids[0], fd, pids[1]).ok()?;
            world.pass(pids[1], fd, pids[2]).ok()
        };
        let all = FILES
            .iter()
            .flat_map(|name| MODES.map(|(mode, wanted)| (*name, mode, wanted)));
        let possible: Vec<_> = all
            .filter(|(name, _, wanted)| {
                goes_through(&mut self.world.clone(), name, *wanted).is_some()
            })
            .collect();
        if possible.is_empty() {
            return Ok(());
        }
        let (name, mode, wanted) = possible[self.rng.usize(..possible.len())];
        let mut links = Vec::new();
        links.extend(
            self.open_as(first, name, mode, wanted)?
                .map(|slot| (first, slot)),
        );
        for to in [second, third] {
            let Some((at, slot)) = links.last().cloned() else {
                return Ok(());
            };
            if let Some(slot) = self.hand_to(at, slot, to)? {
                self.use_slot(to, &slot)?;
                links.push((to, slot));
            }
        }
        let (last, slot) = links[links.len() - 1].clone();
        self.tally.entry("chain").or_default()[usize::from(last != third)] += 1;
        match self.rng.u32(..6) {
            way @ 0..2 => {
                if let Some(session) = self.world.session(pids[way as usize]) {
                    self.take_back(Revoke::Session(session))?;
                }
            }
            2..4 => {
                // a line that the last one has it by
                let pid = self.actors[&last].pid;
                let mut lines: Vec<u32> = (0..self.lines.len() as u32).collect();
                self.rng.shuffle(&mut lines);
                let ends = |line: &u32| {
                    let mut world = self.world.clone();
                    world.revoke(&Revoke::Capability(0, *line));
                    let fd = slot.model.unwrap_or_default();
                    world.access(pid, fd, wanted) == Err(Refusal::Revoked)
                };
                if let Some(&line) = lines.iter().find(|line| ends(line)) {
                    self.take_back(Revoke::Capability(0, line))?;
                }
            }
            4 if self.has_time => self.wait()?,
            _ => {
                for _ in 0..5 {
                    self.use_slot(last, &slot)?;
                }
            }
        }
        for (at, slot) in links.iter().rev() {
            if self.actors.contains_key(at) {
                self.use_slot(*at, slot)?;
            }
        }
        Ok(())
    }
}
