//! The reference model: processes, what they have bound, and what becomes of it.
//!
//! Pure: a [`World`] is stepped by its methods, and has no clock but [`World::pass_time`]. What may be done is [`decide`]'s to say;
//! here is what active capabilities are, and that none is good for more than what it came from.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{self, Given, Layer, Missing, Withdrawn, least};
use super::{Capabilities, Class, Need, Needs, Object, Rights, permission};
use crate::limits::MAX_LAYERS;

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

/// An operand of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Number(u64),
    /// The name of an object.
    Name(Vec<u8>),
    /// A descriptor of the connection's.
    Descriptor(u64),
}

/// An active capability: rights on one bound object.
#[derive(Debug, Clone)]
struct Active {
    /// What may be done.
    rights: u32,
    /// What of it is counted.
    counted: u32,
    session: Session,
    /// Whom it was bound for.
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
    /// None for who is not governed.
    layers: BTreeSet<Layer>,
    descriptors: BTreeMap<Fd, Descriptor>,
}

/// What a client and a service share.
#[derive(Debug, Clone, Default)]
struct Connection {
    /// Requests of bind operations that were authorised, and not answered yet: by layer, what each gave.
    asked: Vec<Option<Asked>>,
    /// What descriptors of the service's are good for: by layer, an active capability.
    descriptors: BTreeMap<u64, BTreeMap<Layer, usize>>,
    /// The objects that these are for.
    names: BTreeMap<u64, Vec<u8>>,
}

/// A request that binds an object of a service.
#[derive(Debug, Clone)]
struct Asked {
    name: Vec<u8>,
    /// By layer, what the reply's descriptor will be good for, and how many uses of it.
    active: BTreeMap<Layer, (Active, Option<u32>)>,
}

/// A request that is being authorised.
#[derive(Clone, Copy)]
struct Request<'r> {
    pid: Pid,
    connection: usize,
    operands: &'r [Operand],
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

    /// A process narrows itself, as Landlock's users do. What it has bound stays as it is. Who is not governed begins a session.
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
            let given = decide::ask(&self.files, layers, taken, object, wanted)?;
            let rights = mode | decide::beside(&self.files, layers, taken, object, &given);
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

    /// A descriptor is handed over (SCM_RIGHTS, pidfd_getfd). Who gets it has of it what it may have itself.
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
            // who is not governed is not limited either
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
        let given = decide::ask(&self.files, layers, taken, object, rights)?;
        let rights = rights | had & decide::beside(&self.files, layers, taken, object, &given);
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
    /// If a layer does not allow it, or there would be too many.
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

    /// A request to the service at the other end of a connection: each layer that describes the service authorises it. A bind
    /// operation gives the number by which it is answered.
    ///
    /// # Errors
    ///
    /// If the connection is not good for writing, or a layer does not allow the request.
    pub fn request(
        &mut self,
        pid: Pid,
        fd: Fd,
        number: u32,
        operands: &[Operand],
    ) -> Result<Option<usize>, Refusal> {
        self.access(pid, fd, permission::WRITE)?;
        let descriptor = &self.processes[pid].descriptors[&fd];
        let (Some(connection), Object::Unix(socket)) = (descriptor.connection, &descriptor.object)
        else {
            return Ok(None);
        };
        let (socket, of_connection) = (socket.clone(), descriptor.active);
        let asking = Request {
            pid,
            connection,
            operands,
        };
        let mut used: Vec<(usize, u32)> = Vec::new();
        let mut asked: Option<Asked> = None;
        for layer in self.processes[pid].layers.clone() {
            let Some(service) = self.files[layer.files].service_at(&socket) else {
                continue;
            };
            let services = &self.files[layer.files].services;
            let operation = services[usize::from(service)].operation(number);
            let needs = operation.ok_or(Refusal::Operation)?.needs.clone();
            match needs {
                Needs::Free => {}
                Needs::Active(needs) => {
                    for need in needs {
                        let wanted = rights(&need, operands)?;
                        let active = self.held(asking, layer, service, &need, wanted)?;
                        used.extend(active.map(|at| (at, wanted)));
                    }
                }
                Needs::Bind(needs) => {
                    for (index, need) in needs.iter().enumerate() {
                        let wanted = rights(need, operands)?;
                        let Some(Operand::Name(name)) = operand(operands, need.operand) else {
                            return Err(Refusal::Operand(need.operand));
                        };
                        let object = Object::Of(service, name.clone());
                        let given = self.ask_service(pid, layer, &object, wanted)?;
                        // the descriptor in the reply is for the first object
                        if index == 0 {
                            let uses = given.uses;
                            let given = Given {
                                uses: None,
                                ..given
                            };
                            let session = self.session_of(pid)?;
                            let active = Active {
                                files: Some(layer.files),
                                counted: u32::MAX,
                                counters: Vec::new(),
                                layers: BTreeSet::from([layer]),
                                ..self.active(pid, session, &object, wanted, given, of_connection)
                            };
                            let asked = asked.get_or_insert_with(|| Asked {
                                name: name.clone(),
                                active: BTreeMap::new(),
                            });
                            if asked.name != *name {
                                // layers that describe the service otherwise would speak of different objects
                                return Err(Refusal::Operand(need.operand));
                            }
                            asked.active.insert(layer, (active, uses));
                        }
                    }
                }
            }
        }
        for (at, wanted) in used {
            self.use_active(at, wanted)?;
        }
        Ok(asked.map(|asked| {
            let requests = &mut self.connections[connection].asked;
            requests.push(Some(asked));
            requests.len() - 1
        }))
    }

    fn session_of(&self, pid: Pid) -> Result<Session, Refusal> {
        self.processes[pid].session.ok_or(Refusal::NotBound)
    }

    fn ask_service(
        &self,
        pid: Pid,
        layer: Layer,
        object: &Object,
        wanted: u32,
    ) -> Result<Given, Refusal> {
        let taken = &self.sessions[self.session_of(pid)?];
        Ok(decide::ask_layer(
            &self.files,
            layer,
            taken,
            object,
            wanted,
        )?)
    }

    /// The active capability of a descriptor in a request, for a layer. A layer that came later has none, and is asked as if it
    /// bound the object now, which leaves nothing behind.
    fn held(
        &self,
        asking: Request<'_>,
        layer: Layer,
        service: u16,
        need: &Need,
        wanted: u32,
    ) -> Result<Option<usize>, Refusal> {
        let Some(Operand::Descriptor(number)) = operand(asking.operands, need.operand) else {
            return Err(Refusal::Operand(need.operand));
        };
        let connection = &self.connections[asking.connection];
        let by_layer = connection
            .descriptors
            .get(number)
            .ok_or(Refusal::Descriptor)?;
        for &at in by_layer.values() {
            self.alive(at)?;
        }
        match by_layer.get(&layer) {
            Some(&at) if wanted & !self.actives[at].rights != 0 => Err(Refusal::NotBound),
            Some(&at) => Ok(Some(at)),
            None => {
                let object = Object::Of(service, connection.names[number].clone());
                self.ask_service(asking.pid, layer, &object, wanted)?;
                Ok(None)
            }
        }
    }

    /// The service answers a request of a bind operation with a descriptor, whose number it chooses.
    ///
    /// # Errors
    ///
    /// If there is no such request, or the number is taken.
    pub fn reply(&mut self, pid: Pid, fd: Fd, request: usize, number: u64) -> Result<(), Refusal> {
        let descriptors = &self.processes[pid].descriptors;
        let descriptor = descriptors.get(&fd).ok_or(Refusal::Descriptor)?;
        let connection = descriptor.connection.ok_or(Refusal::Reply)?;
        let shared = &mut self.connections[connection];
        if shared.descriptors.contains_key(&number) {
            return Err(Refusal::Reply);
        }
        let asked = shared.asked.get_mut(request).and_then(Option::take);
        let Asked { name, active } = asked.ok_or(Refusal::Reply)?;
        let mut by_layer = BTreeMap::new();
        for (layer, (mut active, uses)) in active {
            // what was taken back between request and reply is not given by the reply
            let taken = &self.sessions[active.session];
            if decide::ask_layer(&self.files, layer, taken, &active.object, active.rights).is_err()
                || active
                    .given
                    .iter()
                    .any(|by| taken.capabilities.contains(by))
            {
                active.revoked = true;
            }
            if let Some(uses) = uses {
                self.counters.push(uses);
                active.counters.push(self.counters.len() - 1);
            }
            by_layer.insert(layer, self.keep(active));
        }
        let shared = &mut self.connections[connection];
        shared.descriptors.insert(number, by_layer);
        shared.names.insert(number, name);
        Ok(())
    }

    /// The service drops a descriptor.
    pub fn drop_descriptor(&mut self, pid: Pid, fd: Fd, number: u64) {
        let descriptor = self.processes[pid].descriptors.get(&fd);
        if let Some(connection) = descriptor.and_then(|descriptor| descriptor.connection) {
            self.connections[connection].descriptors.remove(&number);
            self.connections[connection].names.remove(&number);
        }
    }
}

fn operand(operands: &[Operand], number: u8) -> Option<&Operand> {
    operands.get(usize::from(number).checked_sub(1)?)
}

/// The permissions that a request takes on an operand.
fn rights(need: &Need, operands: &[Operand]) -> Result<u32, Refusal> {
    let value = |number: u8| match operand(operands, number) {
        Some(Operand::Number(value)) => Some(*value),
        _ => None,
    };
    need.rights.of(value).ok_or(match need.rights {
        Rights::By { operand, .. } if value(operand).is_some() => Refusal::Value(operand),
        Rights::By { operand, .. } => Refusal::Operand(operand),
        Rights::Fixed(_) => Refusal::Operand(need.operand),
    })
}
