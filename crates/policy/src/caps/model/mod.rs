//! The reference model: processes, what they have bound, and what becomes of it.
//!
//! Pure: a [`World`] is stepped by its methods, and has no clock but [`World::pass_time`]. What may be done is [`decide`]'s to say;
//! here is what active capabilities are, and that none is good for more than what it came from.

mod service;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_bundle::caps::{Capabilities, Class, Object, permission};
use tidegate_bundle::limits::MAX_LAYERS;

use self::service::Connection;
pub use self::service::Operand;
use super::decide::{self, Given, Layer, Missing, Withdrawn, least};

/// A process, by its number in the world.
pub type Pid = usize;
/// A descriptor of a process.
pub type Fd = usize;
/// A session: what one start with a capability file began, by its number.
pub type Session = usize;

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A layer does not allow it.
    Missing(Missing),
    /// What was bound does not include it.
    NotBound,
    /// What it goes by was taken back.
    Revoked,
    /// Its time is over.
    Expired,
    /// Its uses are used up.
    UsedUp,
    /// There would be too many layers.
    Layers,
    /// There is no such descriptor.
    Descriptor,
    /// The service has no such operation.
    Operation,
    /// An operand is not there, or not of the kind that the operation authorises.
    Operand(u8),
    /// The operation vector has nothing for the operand's value.
    Value(u8),
    /// A reply to nothing that was asked, or with a number that is taken.
    Reply,
}

impl From<Missing> for Refusal {
    fn from(missing: Missing) -> Self {
        Refusal::Missing(missing)
    }
}

/// What can be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoke {
    /// Everything that a session has.
    Session(Session),
    /// What a subject gives.
    Subject(Layer),
    /// What a capability gives: its files' number, and its own.
    Capability(usize, u32),
    /// What anybody has of an object; of a service's, with the number of the files that describe the service.
    Object(Option<usize>, Object),
}

/// An active capability: rights on one bound object.
#[derive(Debug, Clone)]
struct Active {
    /// What may be done.
    rights: u32,
    /// What of it is counted.
    counted: u32,
    session: Session,
    /// The layers that it was bound for.
    layers: BTreeSet<Layer>,
    object: Object,
    /// For a service's object, the files that describe the service.
    files: Option<usize>,
    given: BTreeSet<(usize, u32)>,
    /// When it ends.
    until: Option<u64>,
    /// Counters of the uses that are left, each of which is counted down.
    counters: Vec<usize>,
    /// What it was derived from, and ends with.
    from: Option<usize>,
    revoked: bool,
}

/// A process's descriptor.
#[derive(Debug, Clone)]
struct Descriptor {
    object: Object,
    /// For what it was opened: what ordinary Linux lets be done by it.
    mode: u32,
    /// Without one, nobody governed opened it.
    active: Option<usize>,
    /// Of a connected Unix socket.
    connection: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Process {
    session: Option<Session>,
    /// None for a process that is not governed.
    layers: BTreeSet<Layer>,
    descriptors: BTreeMap<Fd, Descriptor>,
}

/// Processes and what they have bound.
#[derive(Debug, Clone)]
pub struct World {
    files: Vec<Capabilities>,
    now: u64,
    processes: Vec<Process>,
    /// By session, what was taken back while it ran.
    sessions: Vec<Withdrawn>,
    actives: Vec<Active>,
    counters: Vec<u32>,
    connections: Vec<Connection>,
}

impl World {
    /// A world in which nothing runs.
    pub fn new(files: Vec<Capabilities>) -> World {
        World {
            files,
            now: 0,
            processes: Vec::new(),
            sessions: Vec::new(),
            actives: Vec::new(),
            counters: Vec::new(),
            connections: Vec::new(),
        }
    }

    /// The time, in seconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Time goes on.
    pub fn pass_time(&mut self, seconds: u64) {
        self.now += seconds;
    }

    /// A process that is not governed.
    pub fn ungoverned(&mut self) -> Pid {
        self.processes.push(Process::default());
        self.processes.len() - 1
    }

    /// A process that begins a session as a subject.
    pub fn start(&mut self, layer: Layer) -> Pid {
        self.sessions.push(Withdrawn::default());
        self.processes.push(Process {
            session: Some(self.sessions.len() - 1),
            layers: BTreeSet::from([layer]),
            descriptors: BTreeMap::new(),
        });
        self.processes.len() - 1
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// How many sessions were begun.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// A process's layers.
    pub fn layers(&self, pid: Pid) -> &BTreeSet<Layer> {
        &self.processes[pid].layers
    }

    /// A process's session, unless it is not governed.
    pub fn session(&self, pid: Pid) -> Option<Session> {
        self.processes[pid].session
    }

    /// A process's descriptors.
    pub fn descriptors(&self, pid: Pid) -> Vec<Fd> {
        self.processes[pid].descriptors.keys().copied().collect()
    }

    /// A child, with all that its parent has.
    pub fn fork(&mut self, pid: Pid) -> Pid {
        self.processes.push(self.processes[pid].clone());
        self.processes.len() - 1
    }

    /// A process narrows itself, as Landlock's users do. What it has bound stays as it is, unless
    /// the layer was taken back from its session: that leaves nothing, now or earlier. A process
    /// that is not governed begins a session.
    ///
    /// # Errors
    ///
    /// If it has all layers that it may have.
    pub fn narrow(&mut self, pid: Pid, layer: Layer) -> Result<(), Refusal> {
        if self.processes[pid].session.is_none() {
            self.sessions.push(Withdrawn::default());
            self.processes[pid].session = Some(self.sessions.len() - 1);
        }
        self.add(pid, &BTreeSet::from([layer]))
    }

    fn add(&mut self, pid: Pid, layers: &BTreeSet<Layer>) -> Result<(), Refusal> {
        let process = &mut self.processes[pid];
        let all: BTreeSet<_> = process.layers.union(layers).copied().collect();
        match all.len() > MAX_LAYERS {
            true => Err(Refusal::Layers),
            false => {
                process.layers = all;
                Ok(())
            }
        }
    }

    /// A bind operation, which asks for `wanted`. Where that includes access operations, something is bound.
    ///
    /// # Errors
    ///
    /// If a layer does not allow all of it.
    pub fn bind(&mut self, pid: Pid, object: &Object, wanted: u32) -> Result<Option<Fd>, Refusal> {
        let mode = wanted & object.class().controllable();
        let mut active = None;
        if let Some(session) = self.processes[pid].session {
            let (layers, taken) = (&self.processes[pid].layers, &self.sessions[session]);
            let mut given = decide::ask(&self.files, layers, taken, object, wanted)?;
            let (beside, by) = decide::beside(&self.files, layers, taken, object, &given);
            given.by.extend(by);
            let rights = mode | beside;
            if mode != 0 {
                active = Some(self.active(pid, session, object, rights, given, None));
            }
        }
        if mode == 0 {
            return Ok(None);
        }
        let is_connection = object.class() == Class::Unix && wanted & permission::CONNECT != 0;
        let connection = is_connection.then(|| {
            self.connections.push(Connection::default());
            self.connections.len() - 1
        });
        let active = active.map(|active| self.keep(active));
        Ok(Some(self.install(
            pid,
            Descriptor {
                object: object.clone(),
                mode,
                active,
                connection,
            },
        )))
    }

    fn active(
        &mut self,
        pid: Pid,
        session: Session,
        object: &Object,
        rights: u32,
        given: Given,
        from: Option<usize>,
    ) -> Active {
        let layers = self.processes[pid].layers.clone();
        let class = object.class();
        let mut counters = from.map_or_else(Vec::new, |at| self.actives[at].counters.clone());
        if let Some(uses) = given.uses {
            self.counters.push(uses);
            counters.push(self.counters.len() - 1);
        }
        let until = given.expires.map(|seconds| self.now + u64::from(seconds));
        Active {
            rights,
            counted: decide::controlled(&self.files, &layers, class)
                | from.map_or(0, |at| self.actives[at].counted),
            session,
            layers,
            object: object.clone(),
            files: None,
            given: given.by,
            until: least(until, from.and_then(|at| self.actives[at].until)),
            counters,
            from,
            revoked: false,
        }
    }

    fn keep(&mut self, active: Active) -> usize {
        self.actives.push(active);
        self.actives.len() - 1
    }

    fn install(&mut self, pid: Pid, descriptor: Descriptor) -> Fd {
        let descriptors = &mut self.processes[pid].descriptors;
        let fd = (0..)
            .find(|fd| !descriptors.contains_key(fd))
            .unwrap_or_default();
        descriptors.insert(fd, descriptor);
        fd
    }

    /// Closes a descriptor.
    pub fn close(&mut self, pid: Pid, fd: Fd) {
        self.processes[pid].descriptors.remove(&fd);
    }

    /// An access operation.
    ///
    /// # Errors
    ///
    /// If the descriptor is not there or not good for it any more.
    pub fn access(&mut self, pid: Pid, fd: Fd, right: u32) -> Result<(), Refusal> {
        let descriptors = &self.processes[pid].descriptors;
        let descriptor = descriptors.get(&fd).ok_or(Refusal::Descriptor)?;
        let (object, class) = (&descriptor.object, descriptor.object.class());
        if let Some(session) = self.processes[pid].session {
            let taken = &self.sessions[session];
            let is_taken =
                taken.everything || !taken.layers.is_disjoint(&self.processes[pid].layers);
            if is_taken || taken.objects.contains(&(None, object.clone())) {
                return Err(Refusal::Revoked);
            }
        }
        if right & class.controllable() & !descriptor.mode != 0 {
            return Err(Refusal::NotBound);
        }
        match descriptor.active {
            None => Ok(()),
            Some(at) => self.use_active(at, right),
        }
    }

    /// Uses an active capability, which is counted.
    fn use_active(&mut self, at: usize, right: u32) -> Result<(), Refusal> {
        self.alive(at)?;
        if right & !self.actives[at].rights != 0 {
            return Err(Refusal::NotBound);
        }
        if right & self.actives[at].counted != 0 {
            for counter in self.actives[at].counters.clone() {
                self.counters[counter] -= 1;
            }
        }
        Ok(())
    }

    /// Whether an active capability, and all that it comes from, is good for anything.
    fn alive(&self, at: usize) -> Result<(), Refusal> {
        let active = &self.actives[at];
        if active.revoked {
            return Err(Refusal::Revoked);
        }
        if active.until.is_some_and(|until| self.now >= until) {
            return Err(Refusal::Expired);
        }
        if active
            .counters
            .iter()
            .any(|&counter| self.counters[counter] == 0)
        {
            return Err(Refusal::UsedUp);
        }
        active.from.map_or(Ok(()), |from| self.alive(from))
    }

    /// A descriptor is handed over (SCM_RIGHTS, pidfd_getfd). The receiver has of it what it may
    /// have itself.
    ///
    /// # Errors
    ///
    /// If the descriptor is good for nothing any more, or the receiver may do nothing with its object.
    pub fn pass(&mut self, from: Pid, fd: Fd, to: Pid) -> Result<Fd, Refusal> {
        let descriptors = &self.processes[from].descriptors;
        let descriptor = descriptors.get(&fd).ok_or(Refusal::Descriptor)?.clone();
        let descriptor = self.received(to, descriptor)?;
        Ok(self.install(to, descriptor))
    }

    /// A descriptor as a process has it that did not bind it.
    fn received(&mut self, to: Pid, mut descriptor: Descriptor) -> Result<Descriptor, Refusal> {
        if let Some(active) = descriptor.active {
            self.alive(active)?;
        }
        let Some(session) = self.processes[to].session else {
            // a process that is not governed is not limited either
            descriptor.active = None;
            return Ok(descriptor);
        };
        let object = &descriptor.object;
        let (layers, taken) = (&self.processes[to].layers, &self.sessions[session]);
        let had = match descriptor.active {
            Some(at) => self.actives[at].rights,
            None => object.class().access(),
        };
        let bound = had & descriptor.mode;
        let rights = decide::common(&self.files, layers, taken, object, bound);
        if rights == 0 {
            // it says what is missing
            decide::ask(&self.files, layers, taken, object, bound)?;
            return Err(Refusal::NotBound);
        }
        let mut given = decide::ask(&self.files, layers, taken, object, rights)?;
        let (beside, by) = decide::beside(&self.files, layers, taken, object, &given);
        given.by.extend(by);
        let rights = rights | had & beside;
        let object = object.clone();
        let active = self.active(to, session, &object, rights, given, descriptor.active);
        descriptor.active = Some(self.keep(active));
        Ok(descriptor)
    }

    /// A program is executed: the process goes on as it is, narrowed by what the program is given.
    ///
    /// # Errors
    ///
    /// If a layer does not allow it, or there would be too many.
    pub fn exec(&mut self, pid: Pid, program: &[u8]) -> Result<(), Refusal> {
        let object = Object::Path(Class::Program, program.to_owned());
        self.content(pid, &object, permission::EXECUTE)
    }

    /// A library is mapped for execution: the address space keeps what both may.
    ///
    /// # Errors
    ///
    /// If a layer does not allow it, there would be too many, or what it brings was taken back: what is mapped could not be.
    pub fn load(&mut self, pid: Pid, library: &[u8]) -> Result<(), Refusal> {
        let object = Object::Path(Class::Library, library.to_owned());
        self.content(pid, &object, permission::LOAD)
    }

    /// New content comes into a process. What brings a layer with it also gets of what is bound only what it may have, as if it
    /// were handed over.
    fn content(&mut self, pid: Pid, object: &Object, right: u32) -> Result<(), Refusal> {
        let process = &self.processes[pid];
        let Some(session) = process.session else {
            return Ok(());
        };
        let taken = &self.sessions[session];
        decide::ask(&self.files, &process.layers, taken, object, right)?;
        let brought = decide::brought(&self.files, &process.layers, taken, object);
        if brought.is_subset(&process.layers) {
            return Ok(());
        }
        if right == permission::LOAD && !taken.layers.is_disjoint(&brought) {
            return Err(Refusal::Revoked);
        }
        self.add(pid, &brought)?;
        let held = std::mem::take(&mut self.processes[pid].descriptors);
        for (fd, descriptor) in held {
            if let Ok(descriptor) = self.received(pid, descriptor) {
                self.processes[pid].descriptors.insert(fd, descriptor);
            }
        }
        Ok(())
    }

    /// Takes back what was given, at once, and keeps it from being given again to the sessions that run now: how many active
    /// capabilities ended, without those that were derived from them.
    pub fn revoke(&mut self, what: &Revoke) -> usize {
        for (number, session) in self.sessions.iter_mut().enumerate() {
            match what {
                Revoke::Session(own) => session.everything |= *own == number,
                Revoke::Subject(layer) => {
                    session.layers.insert(*layer);
                }
                Revoke::Capability(files, at) => {
                    session.capabilities.insert((*files, *at));
                }
                Revoke::Object(files, object) => {
                    session.objects.insert((*files, object.clone()));
                }
            }
        }
        let mut ended = 0;
        for active in self.actives.iter_mut().filter(|active| !active.revoked) {
            active.revoked = match what {
                Revoke::Session(session) => active.session == *session,
                Revoke::Subject(layer) => active.layers.contains(layer),
                Revoke::Capability(files, at) => active.given.contains(&(*files, *at)),
                Revoke::Object(files, object) => active.files == *files && active.object == *object,
            };
            ended += usize::from(active.revoked);
        }
        ended
    }
}
