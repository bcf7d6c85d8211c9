//! A policy's view of a recording: which level each process has by now.

use std::collections::HashMap;
use std::rc::Rc;

use tidegate_bundle::{Attrs, Policy};

use crate::channel::{Channel, ChannelId};
use crate::confined::Confined;
use crate::domain::Domains;
use crate::event::{Cause, Event, Reason, Refusal};
use crate::line::{Act, Inode, Line};
use crate::rules::{self, Object};

/// What a subject is: tasks that share memory or descriptors.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub level: u8,
    pub attrs: u8,
    pub cause: Option<Rc<Cause>>,
    pub pids: Vec<u32>,
}

/// A process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub start: u64,
    pub subject: usize,
    pub comm: String,
    /// The exec under way: the lowest level met, the trust it would give, the file.
    pub exec: Option<Exec>,
    /// What it has just created and may open for writing, as long as it is not below that.
    pub created: Option<(Inode, u8)>,
    /// What it has mapped shared and writable, as it was labelled then.
    pub mapped: Vec<Object>,
    /// The channels it has ends of.
    pub channels: Vec<ChannelId>,
}

#[derive(Debug)]
pub(crate) struct Exec {
    pub level: u8,
    pub attrs: u8,
    pub path: String,
}

/// One policy's view of a recording.
pub struct Side<'p> {
    pub(crate) policy: &'p Policy,
    pub(crate) top: u8,
    /// Whether the recorded levels are this policy's own.
    own: bool,
    pub(crate) begun: bool,
    pub(crate) subjects: Vec<State>,
    free: Vec<usize>,
    pub(crate) processes: HashMap<u32, Process>,
    pub(crate) given: HashMap<Inode, u8>,
    pub(crate) channels: HashMap<ChannelId, Channel>,
    pub(crate) events: Vec<Event>,
    confined: Confined,
    domains: Option<Domains<'p>>,
}

impl<'p> Side<'p> {
    /// Nobody yet. `own`: the recording was made while this policy was in force.
    pub fn new(policy: &'p Policy, own: bool) -> Side<'p> {
        Side {
            policy,
            top: policy.top(),
            own,
            begun: false,
            subjects: Vec::new(),
            free: Vec::new(),
            processes: HashMap::new(),
            given: HashMap::new(),
            channels: HashMap::new(),
            events: Vec::new(),
            confined: Confined::default(),
            domains: None,
        }
    }

    /// With what its SELinux policy says.
    pub fn with_domains(self, domains: Option<Domains<'p>>) -> Side<'p> {
        Side { domains, ..self }
    }

    /// The policy.
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// The level of a process; one that is not known is at the top.
    pub fn level_of(&self, pid: u32) -> u8 {
        let process = self.processes.get(&pid);
        process.map_or(self.top, |p| self.subjects[p.subject].level)
    }

    /// Takes a line in; what it brings about.
    pub fn feed(&mut self, line: &Line<'_>) -> &[Event] {
        self.events.clear();
        match line.act {
            Act::Given => {
                if let Some(level) = self.policy.level(&line.level) {
                    self.given.insert(line.inode, level);
                }
            }
            Act::Begun => self.settle(),
            Act::Closed => self.forget_channel(ChannelId::Link(line.channel)),
            Act::Exit => self.exit(line.pid),
            Act::End | Act::Pipe => {}
            _ => self.decide(line),
        }
        self.confine(line);
        self.ask_te(line);
        &self.events
    }

    /// How many accesses depend on whose the file is, which is not recorded.
    pub fn unsure(&self) -> u64 {
        self.confined.unsure
    }

    /// What a SELinux policy says of the whole; `None`: there is none.
    pub(crate) fn domains(&self) -> Option<&Domains<'p>> {
        self.domains.as_ref()
    }

    /// What its SELinux policy says of a line.
    fn ask_te(&mut self, line: &Line<'_>) {
        let Some(domains) = &mut self.domains else {
            return;
        };
        for refused in domains.feed(line) {
            self.events.push(Event::Refused(Refusal {
                act: refused.act,
                reason: Reason::Te,
                object: refused.object.clone(),
                level: 0,
                source: None,
                subject: 0,
                cause: None,
                profile: None,
                te: Some(refused.clone()),
            }));
        }
    }

    /// What profiles say of a line.
    fn confine(&mut self, line: &Line<'_>) {
        let set = &self.policy.profiles;
        if set.profiles.is_empty() {
            return;
        }
        for refused in self.confined.feed(set, line) {
            self.events.push(Event::Refused(Refusal {
                act: line.act,
                reason: match refused.missing {
                    true => Reason::NoProfile,
                    false => Reason::Profile,
                },
                object: refused.object,
                level: 0,
                source: None,
                subject: 0,
                cause: None,
                profile: Some(refused.profile as u32),
                te: None,
            }));
        }
    }

    /// A process that begins, at a level.
    pub(crate) fn birth(&mut self, pid: u32, start: u64, comm: &str) {
        self.exit(pid);
        let subject = self.subject(State {
            level: self.top,
            pids: vec![pid],
            ..State::default()
        });
        let process = Process {
            start,
            subject,
            comm: comm.into(),
            ..Process::default()
        };
        self.processes.insert(pid, process);
    }

    fn subject(&mut self, state: State) -> usize {
        match self.free.pop() {
            Some(index) => {
                self.subjects[index] = state;
                index
            }
            None => {
                self.subjects.push(state);
                self.subjects.len() - 1
            }
        }
    }

    /// The process of a line; one whose birth was not recorded begins at the top.
    pub(crate) fn meet(&mut self, line: &Line<'_>) {
        let known = self
            .processes
            .get(&line.pid)
            .is_some_and(|p| p.start == 0 || line.start == 0 || p.start == line.start);
        if !known {
            self.birth(line.pid, line.start, &line.comm);
        }
        let Some(process) = self.processes.get_mut(&line.pid) else {
            return;
        };
        if process.start == 0 {
            process.start = line.start;
        }
        if process.comm != line.comm {
            process.comm = line.comm.as_ref().into();
        }
    }

    /// A child: its parent's label, channels and mappings.
    pub(crate) fn fork(&mut self, parent: u32, child: u32, shares: bool) {
        self.exit(child);
        let Some(process) = self.processes.get(&parent) else {
            return;
        };
        let mut new = Process {
            start: 0,
            subject: process.subject,
            comm: process.comm.clone(),
            mapped: process.mapped.clone(),
            ..Process::default()
        };
        let (old, channels) = (process.subject, process.channels.clone());
        if shares {
            self.subjects[old].pids.push(child);
        } else {
            let state = State {
                cause: self.subjects[old].cause.clone(),
                pids: vec![child],
                ..self.subjects[old]
            };
            new.subject = self.subject(state);
        }
        self.processes.insert(child, new);
        for id in channels {
            self.inherit(id, parent, child);
        }
    }

    /// A program begins: a label of its own, and the level of what was executed.
    pub(crate) fn started(&mut self, line: &Line<'_>) {
        let pid = line.pid;
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.mapped.clear();
        process.created = None;
        let (old, exec) = (process.subject, process.exec.take());
        if self.subjects[old].pids.len() > 1 {
            self.subjects[old].pids.retain(|&other| other != pid);
            let state = State {
                cause: self.subjects[old].cause.clone(),
                pids: vec![pid],
                ..self.subjects[old]
            };
            let new = self.subject(state);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.subject = new;
            }
        }
        let Some(exec) = exec else { return };
        let falls = exec.level < self.level_of(pid);
        self.state_mut(pid).attrs = if falls { 0 } else { exec.attrs };
        if falls {
            self.fall(line, exec.level, Act::Exec, &exec.path);
        }
    }

    /// A process ends.
    pub(crate) fn exit(&mut self, pid: u32) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        for id in process.channels {
            self.leave(id, pid);
        }
        let state = &mut self.subjects[process.subject];
        state.pids.retain(|&other| other != pid);
        if state.pids.is_empty() {
            state.cause = None;
            self.free.push(process.subject);
        }
    }

    pub(crate) fn state(&self, pid: u32) -> &State {
        &self.subjects[self.processes[&pid].subject]
    }

    pub(crate) fn state_mut(&mut self, pid: u32) -> &mut State {
        &mut self.subjects[self.processes[&pid].subject]
    }

    /// A process as the rules see it.
    pub(crate) fn who(&self, pid: u32) -> rules::Subject {
        let state = self.state(pid);
        rules::Subject {
            level: state.level,
            attrs: state.attrs,
        }
    }

    /// Lowers the process that a line is about and all that read what it writes, or refuses the
    /// line; whether it fell.
    pub(crate) fn fall(&mut self, line: &Line<'_>, to: u8, act: Act, object: &str) -> bool {
        let first = self.processes[&line.pid].subject;
        let falling = self.falling(first, to);
        let pids = falling.iter().flat_map(|&s| &self.subjects[s].pids);
        let low = rules::Subject {
            level: to,
            attrs: 0,
        };
        let mut mapped = pids.flat_map(|pid| &self.processes[pid].mapped);
        if self.begun && mapped.any(|&o| !rules::modify(low, o, self.top)) {
            self.refuse(line, act, Reason::Mapping, object, Object::of(to, 0), None);
            return false;
        }
        for subject in falling {
            let state = &self.subjects[subject];
            let Some(&pid) = state.pids.first() else {
                continue;
            };
            let direct = subject == first;
            let from = state.level;
            let cause = Rc::new(Cause {
                act: if direct { act } else { Act::Pipe },
                object: if direct {
                    object.into()
                } else {
                    format!("{}({})", line.comm, line.pid).into()
                },
                comm: self.processes[&pid].comm.as_str().into(),
                pid,
                level: to,
                time: line.time,
                prev: state.cause.clone(),
            });
            let state = &mut self.subjects[subject];
            state.level = to;
            state.cause = Some(cause.clone());
            self.events.push(Event::Fell { pid, from, cause });
            for pid in self.subjects[subject].pids.clone() {
                self.lower_floors(pid, to);
            }
        }
        true
    }

    /// Notes that the policy refuses a line, unless its program is permissive.
    pub(crate) fn refuse(
        &mut self,
        line: &Line<'_>,
        act: Act,
        reason: Reason,
        object: &str,
        label: Object,
        source: Option<u32>,
    ) {
        let state = self.state(line.pid);
        let permissive = u16::from(state.attrs) & Attrs::PERMISSIVE.bits() != 0;
        if permissive && reason != Reason::TopOnly {
            return;
        }
        self.events.push(Event::Refused(Refusal {
            act,
            reason,
            object: object.into(),
            level: label.level,
            source,
            subject: state.level,
            cause: state.cause.clone(),
            profile: None,
            te: None,
        }));
    }

    /// The level that a process had when recording began, where the recording says so:
    /// the policy's own as it was, any other no higher.
    pub(crate) fn recorded_level(&self, line: &Line<'_>) -> Option<u8> {
        let level = self.policy.level(&line.level)?;
        (self.own || level < self.level_of(line.pid)).then_some(level)
    }
}
