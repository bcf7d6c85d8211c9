//! Actors that become others: narrowed, executed, born.

use anyhow::{Result, anyhow, ensure};
use tidegate_bundle::caps::permission::EXECUTE;
use tidegate_bundle::caps::{Class, Object};
use tidegate_policy::caps::model::{Fd, Pid, Refusal, Revoke};

use super::{Actor, Play, layer};
use crate::caps_random::file::{ROOT, SUBJECTS};
use crate::caps_random::stage::ACTORS;

impl Play {
    pub(super) fn narrow(&mut self, at: usize) -> Result<()> {
        let subject = self.rng.usize(..SUBJECTS.len());
        self.narrow_by(at, subject)
    }

    /// A subject is taken back, and then an actor narrows itself by it, and uses what it has.
    pub(super) fn narrow_late(&mut self, at: usize) -> Result<()> {
        let layers = self.world.layers(self.actors[&at].pid);
        let others: Vec<usize> = (0..SUBJECTS.len())
            .filter(|&subject| !layers.contains(&layer(subject)))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let subject = others[self.rng.usize(..others.len())];
        self.take_back(Revoke::Subject(layer(subject)))?;
        self.narrow_by(at, subject)?;
        for slot in self
            .actors
            .get(&at)
            .map_or_else(Vec::new, |actor| actor.slots.clone())
        {
            self.use_slot(at, &slot)?;
        }
        Ok(())
    }

    fn narrow_by(&mut self, at: usize, subject: usize) -> Result<()> {
        let Actor {
            pid,
            number,
            domain,
            ..
        } = self.actors[&at];
        let bundle = self.stage.bundle;
        let words = format!("narrow {} {bundle}", SUBJECTS[subject]);
        self.trace.push(format!("{at}: {words}"));
        let answer = self.stage.ask_dying(at, &words, number)?;
        let had = self.world.layers(pid).contains(&layer(subject));
        let mut narrowed = self.world.clone();
        let model = narrowed.narrow(pid, layer(subject));
        let lost = |&(fd, right): &(Fd, u32)| {
            narrowed.clone().access(pid, fd, right) == Err(Refusal::Revoked)
        };
        let loses = self.actors[&at].maps.iter().any(lost);
        let Some(answer) = answer else {
            self.trace.push("  it is killed".into());
            self.tally.entry("narrow").or_default()[1] += 1;
            ensure!(
                loses,
                "{at} was killed as it narrowed itself, and has lost nothing that it has mapped"
            );
            self.world = narrowed;
            self.actors.remove(&at);
            return Ok(());
        };
        let part = self.is_all_taken(pid);
        if !self.agree("narrow", &answer, model, part)? {
            return Ok(());
        }
        ensure!(
            had || !loses,
            "{at} has mapped what was taken from what it has narrowed itself by, and lives"
        );
        self.world = narrowed;
        if !had {
            let narrowed = self.domain();
            self.before.insert(narrowed, domain);
            self.actor(at)?.domain = narrowed;
        }
        Ok(())
    }

    /// Was all taken from its session? Then it has no socket, either.
    fn is_all_taken(&self, pid: Pid) -> bool {
        let mut world = self.world.clone();
        let object = Object::Path(Class::Program, format!("{ROOT}/bin/same").into());
        world.bind(pid, &object, EXECUTE).is_err()
    }

    pub(super) fn exec(&mut self, at: usize) -> Result<()> {
        let program = format!(
            "{ROOT}/bin/{}",
            ["tool", "plug", "same"][self.rng.usize(..3)]
        );
        let pid = self.actors[&at].pid;
        let before = self.world.layers(pid).clone();
        let answer = self.ask(at, &format!("exec {program}"))?;
        let model = self.world.exec(pid, program.as_bytes());
        if !self.agree("exec", &answer, model, false)? {
            return Ok(());
        }
        self.actor(at)?.maps.clear();
        if *self.world.layers(pid) == before {
            return Ok(());
        }
        let domain = self.domain();
        let left = self.world.descriptors(pid);
        let mut slots = std::mem::take(&mut self.actor(at)?.slots);
        for slot in &mut slots {
            let chain = self.chain_of(slot);
            self.descriptions[slot.description]
                .holders
                .insert(domain, chain);
            slot.owner = domain;
            slot.model = slot.model.filter(|fd| left.contains(fd));
            slot.part |= !self.has_all(pid, slot);
        }
        let actor = self.actor(at)?;
        actor.domain = domain;
        actor.slots = slots;
        Ok(())
    }

    pub(super) fn fork(&mut self, at: usize) -> Result<()> {
        // a channel serves one actor only
        let next = self.born;
        if next >= ACTORS {
            return Ok(());
        }
        let (input, output) = self.stage.ends(next);
        self.ask(at, &format!("fork {input} {output}"))?
            .map_err(|errno| anyhow!("fork: errno {errno}"))?;
        self.born += 1;
        ensure!(
            self.stage.answer(next)? == "ok ",
            "the child says something else"
        );
        let child = Actor {
            pid: self.world.fork(self.actors[&at].pid),
            number: self.stage.number(next)?,
            is_deaf: false,
            ..self.actors[&at].clone()
        };
        self.actors.insert(next, child);
        Ok(())
    }
}
