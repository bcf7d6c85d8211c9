//! Requests to services, and the descriptors that their replies make.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_bundle::caps::{Need, Needs, Object, Rights, permission};

use super::{Active, Fd, Pid, Refusal, Session, World};
use crate::caps::decide::{self, Given, Layer};

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

/// What a client and a service share.
#[derive(Debug, Clone, Default)]
pub(super) struct Connection {
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

impl World {
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
        let layers = self.processes[pid].layers.clone();
        let openers = self.openers(asking);
        for layer in layers.union(&openers).copied() {
            let is_own = layers.contains(&layer);
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
                        let active = self.held(asking, (layer, is_own), service, &need, wanted)?;
                        used.extend(active.map(|at| (at, wanted)));
                    }
                }
                Needs::Bind(needs) if is_own => {
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
                // nothing is bound for a layer that has only opened what is used
                Needs::Bind(_) => {}
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

    /// The layers that the descriptors in a request were opened with, whoever uses them.
    fn openers(&self, asking: Request<'_>) -> BTreeSet<Layer> {
        let descriptors = &self.connections[asking.connection].descriptors;
        let named = asking.operands.iter().filter_map(|operand| match operand {
            Operand::Descriptor(number) => descriptors.get(number),
            _ => None,
        });
        named
            .flat_map(|by_layer| by_layer.keys().copied())
            .collect()
    }

    /// The active capability of a descriptor in a request, for a layer: the user's own, or one that it was opened with. What was
    /// opened without the user's layer, or by another session, the user is also asked about as if it bound it now, which leaves
    /// nothing behind.
    fn held(
        &self,
        asking: Request<'_>,
        (layer, is_own): (Layer, bool),
        service: u16,
        need: &Need,
        wanted: u32,
    ) -> Result<Option<usize>, Refusal> {
        let Some(Operand::Descriptor(number)) = operand(asking.operands, need.operand) else {
            return Err(Refusal::Operand(need.operand));
        };
        let connection = &self.connections[asking.connection];
        let by_layer = connection.descriptors.get(number);
        let by_layer = by_layer.ok_or(Refusal::Descriptor)?;
        for &at in by_layer.values() {
            self.alive(at)?;
        }
        let own = by_layer.get(&layer).copied();
        let active = own.map(|at| &self.actives[at]);
        if active.is_some_and(|active| wanted & !active.rights != 0) {
            return Err(Refusal::NotBound);
        }
        let session = self.session_of(asking.pid)?;
        if is_own && active.is_none_or(|active| active.session != session) {
            let object = Object::Of(service, connection.names[number].clone());
            self.ask_service(asking.pid, layer, &object, wanted)?;
        }
        Ok(own)
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
