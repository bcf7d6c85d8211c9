//! Processes: their birth, their programs, their end, and what one does to
//! another.

use std::collections::BTreeMap;

use tidegate_bundle::Attrs;

use super::Actor;
use crate::decide::{Step, Stop, refuse, sensible};
use crate::world::{Object, PROCESSES, Process, Subject, Table, World};
use crate::{Level, Pid, Program, Verdict};

impl World {
    /// A child has its parent's label. One that shares the descriptor table is
    /// the same subject.
    pub(super) fn fork(&mut self, who: Actor, child: Pid, share: bool) -> Step {
        sensible(usize::from(child) == self.processes.len() && child < PROCESSES)?;
        let mut new = self.processes[who.process].clone();
        new.threads = 1;
        if !share {
            self.subjects.push(self.subjects[who.subject].clone());
            new.subject = self.subjects.len() - 1;
            self.tables.push(self.tables[new.table].clone());
            new.table = self.tables.len() - 1;
        }
        self.processes.push(new);
        Ok(())
    }

    pub(super) fn thread(&mut self, who: Actor) -> Step {
        let process = &mut self.processes[who.process];
        sensible(process.threads == 1)?;
        process.threads = 2;
        Ok(())
    }

    /// A program begins with memory, a descriptor table and a label of its own.
    /// It observes its files itself, and what its predecessor was trusted with and
    /// left open. Past the point of no return, so that where it cannot fall it dies.
    pub(super) fn exec(&mut self, who: Actor, program: Program) -> Step<Verdict> {
        let (mut file, attrs) = self.program(program.path());
        if program == Program::Script {
            file = file.min(self.program(Program::Worker.path()).0);
        }
        let old = &self.subjects[who.subject];
        let (nodemote, nonetdemote) = self.trusted(file, attrs);
        let new = Subject {
            level: old.level,
            nodemote,
            nonetdemote,
            seen: self.voice(who.subject).min(file),
        };
        let trusted = old.nodemote || old.nonetdemote;
        let (still, network) = (new.nodemote, !new.nonetdemote);
        let table: Table = self.tables[self.processes[who.process].table].clone();
        self.subjects.push(new);
        self.tables.push(table);
        let subject = self.subjects.len() - 1;
        self.processes[who.process] = Process {
            subject,
            table: self.tables.len() - 1,
            mappings: BTreeMap::new(),
            threads: 1,
            alive: true,
        };
        let mut to = file;
        if trusted && !still {
            let left = self.left_open(Actor { subject, ..who }, network);
            to = to.min(left);
        }
        let fell = if to < self.level(subject) {
            self.demote(subject, to)
        } else {
            self.join()
        };
        if fell.is_err() {
            self.end(who.process);
            return Ok(Verdict::Killed);
        }
        Ok(Verdict::Done)
    }

    /// What a program is trusted with whose files have this level and its attributes:
    /// never to be demoted, or not by the network.
    pub(super) fn trusted(&self, file: Level, attrs: Attrs) -> (bool, bool) {
        let trusting = file == self.top();
        (
            trusting && attrs.contains(Attrs::NODEMOTE),
            trusting && attrs.contains(Attrs::NONETDEMOTE),
        )
    }

    /// The lowest of what a program has open for reading that began without the
    /// trust of the one before it.
    fn left_open(&self, who: Actor, network: bool) -> Level {
        let table = &self.tables[self.processes[who.process].table];
        let read = table.values().filter(|open| self.opens[**open].read);
        let level = |open: &usize| match self.opens[*open].object {
            Object::Node(node) => self.label(node).0,
            Object::Network(level) if network => level,
            _ => self.top(), // channels are looked at as always
        };
        read.map(level).min().unwrap_or(self.top())
    }

    pub(super) fn end(&mut self, process: usize) {
        self.processes[process].alive = false;
    }

    /// Another living process.
    pub(super) fn other(&self, who: Actor, pid: Pid) -> Step<Actor> {
        let process = usize::from(pid);
        sensible(process != who.process)?;
        let target = self.processes.get(process).filter(|p| p.alive);
        target
            .map(|p| Actor {
                process,
                subject: p.subject,
            })
            .ok_or(Stop::Senseless)
    }

    /// One that it may act on.
    pub(super) fn target(&self, who: Actor, pid: Pid) -> Step<Actor> {
        let target = self.other(who, pid)?;
        if self.level(who.subject) < self.level(target.subject) {
            refuse()
        } else {
            Ok(target)
        }
    }

    pub(super) fn kill(&mut self, who: Actor, pid: Pid) -> Step {
        let target = self.target(who, pid)?;
        self.end(target.process);
        Ok(())
    }

    /// Whether it may act in another's place: below the top only if it is trusted as far.
    fn controls(&self, who: usize, target: usize) -> bool {
        let (who, target) = (&self.subjects[who], &self.subjects[target]);
        let trusted = target.nodemote || (target.nonetdemote && !who.nonetdemote);
        who.level == self.top() || who.nodemote || !trusted
    }

    /// Looks into another's memory, or gets a hold on it: refused from below, and
    /// of a trusted one; observed from above. The calls that do so say EPERM of
    /// every refusal.
    pub(super) fn attach_to(&mut self, who: Actor, target: Actor) -> Step {
        let level = self.level(target.subject);
        if self.level(who.subject) < level || !self.controls(who.subject, target.subject) {
            refuse()
        } else {
            self.observe(who.subject, level).or_else(|_| refuse())
        }
    }

    pub(super) fn peek(&mut self, who: Actor, pid: Pid) -> Step {
        let target = self.other(who, pid)?;
        self.attach_to(who, target)?;
        self.hear(who.subject, self.voice(target.subject));
        Ok(())
    }

    pub(super) fn poke(&mut self, who: Actor, pid: Pid) -> Step {
        let target = self.other(who, pid)?;
        self.attach_to(who, target)?;
        self.hear(target.subject, self.voice(who.subject));
        Ok(())
    }
}
