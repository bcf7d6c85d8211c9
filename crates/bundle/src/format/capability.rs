//! The `capability` section: compiled capability files, in a bundle of their own.
//!
//! They are no part of a policy that is put in force as a whole: a session brings its own. A bundle with a policy refuses the
//! section, so nothing is taken for enforced that is not.

use std::collections::BTreeMap;

use super::section::{Reader, Room, Writer};
use super::{BundleError, CAPABILITY, automaton, open, seal, section};
use crate::caps::{
    Allowed, Capabilities, Capability, Class, Names, Need, Needs, Objects, Operation, Pattern,
    Rights, Service, Subject,
};
use crate::limits::{
    MAX_CAPABILITIES, MAX_CAPS_BUNDLE, MAX_CAPS_BYTES, MAX_CAPS_REST, MAX_EXPIRY, MAX_LINE,
    MAX_OPERANDS, MAX_SERVICE_PERMISSIONS, MAX_SERVICES, MAX_SUBJECTS,
};
use crate::names::is_capability_name;
use crate::network::masked;
use crate::policy::RuleSource;

/// Classes that a subject can have an automaton or controlled operations for, at most.
const MAX_CLASSES: usize = Class::WORDS.len() + MAX_SERVICES;

impl Capabilities {
    /// The bundle that holds these.
    pub fn to_bundle(&self) -> Vec<u8> {
        seal(&section::write_all(&[(CAPABILITY, write(self))]))
    }

    /// Reads a bundle, which may be anything.
    ///
    /// # Errors
    ///
    /// The first thing wrong with it.
    pub fn from_bundle(bytes: &[u8]) -> Result<Capabilities, BundleError> {
        if bytes.len() > MAX_CAPS_BUNDLE {
            return Err(BundleError::TooLarge(bytes.len()));
        }
        let mut found = None;
        for (name, content) in section::read_all(open(bytes)?)? {
            if name != CAPABILITY {
                return Err(BundleError::UnknownSection(name.to_owned()));
            }
            if found.replace(content).is_some() {
                return Err(BundleError::SectionTwice(name.to_owned()));
            }
        }
        let content = found.ok_or(BundleError::MissingSection(CAPABILITY))?;
        let caps = Reader::new(content, CAPABILITY).capabilities()?;
        check(&caps).map_err(BundleError::Capabilities)?;
        Ok(caps)
    }
}

fn write(caps: &Capabilities) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(&caps.services);
    out.value(&caps.subjects.len());
    for subject in &caps.subjects {
        out.value(&subject.name);
        out.value(&subject.source);
        out.list(&subject.control);
        out.value(&subject.automata.len());
        for (class, of_class) in &subject.automata {
            out.value(class);
            automaton::write(&mut out, of_class);
        }
    }
    out.list(&caps.capabilities);
    automaton::write(&mut out, &caps.sockets);
    out.0
}

impl Reader<'_> {
    /// Reads the section, which is still to be checked.
    fn capabilities(mut self) -> Result<Capabilities, BundleError> {
        let mut automata = Room::new("bytes of automata", MAX_CAPS_BYTES);
        let mut rest = Room::new("bytes of texts and services", MAX_CAPS_REST);
        let services = self.list_within("services", MAX_SERVICES, &mut rest, service_bytes)?;
        let count = self.count("subjects", MAX_SUBJECTS)?;
        let subjects = (0..count)
            .map(|_| self.subject(&mut automata))
            .collect::<Result<_, _>>()?;
        let caps = Capabilities {
            services,
            subjects,
            capabilities: self.list_within(
                "capabilities",
                MAX_CAPABILITIES,
                &mut rest,
                capability_bytes,
            )?,
            sockets: self.answering_automaton(&mut automata, |_| 0)?,
        };
        self.finish()?;
        Ok(caps)
    }

    fn subject(&mut self, room: &mut Room) -> Result<Subject, BundleError> {
        let name = self.value("subjects")?;
        let source = self.value("subjects")?;
        let control = self.list("controlled classes", MAX_CLASSES)?;
        let count = self.count("automata of a subject", MAX_CLASSES)?;
        let mut automata = Vec::new();
        for _ in 0..count {
            let class = self.value("automata")?;
            let automaton = self.answering_automaton(room, Allowed::own_bytes)?;
            automata.push((class, automaton));
        }
        Ok(Subject {
            name,
            control,
            automata,
            source,
        })
    }
}

/// The bytes that a capability takes in memory.
fn capability_bytes(it: &Capability) -> usize {
    let objects = match &it.objects {
        Objects::Named(pattern) => pattern.text().len(),
        Objects::Network { networks, .. } => size_of_val(&networks[..]),
    };
    size_of::<Capability>() + objects + source_bytes(&it.source)
}

/// The bytes that a service takes in memory.
fn service_bytes(it: &Service) -> usize {
    let permissions = it.permissions.iter();
    let permissions = permissions.map(|name| size_of::<String>() + name.len());
    let operations = it.operations.iter().map(|operation| {
        let needs: &[Need] = match &operation.needs {
            Needs::Free => &[],
            Needs::Bind(needs) | Needs::Active(needs) => needs,
        };
        let vectors = needs.iter().map(|need| match &need.rights {
            Rights::Fixed(_) => 0,
            Rights::By { vector, .. } => size_of_val(&vector[..]),
        });
        let own = operation.name.len() + size_of_val(needs);
        size_of::<Operation>() + own + vectors.sum::<usize>()
    });
    let names = it.name.len() + it.socket.text().len() + source_bytes(&it.source);
    size_of::<Service>() + names + permissions.sum::<usize>() + operations.sum::<usize>()
}

fn source_bytes(source: &RuleSource) -> usize {
    source.file.len() + source.text.len()
}

/// What of capability files cannot be, if anything.
fn check(caps: &Capabilities) -> Result<(), &'static str> {
    if caps.subjects.is_empty() {
        return Err("no subject");
    }
    let subjects = caps.subjects.iter().map(|subject| &subject.name);
    let services = caps.services.iter().map(|service| &service.name);
    for names in [subjects.collect::<Vec<_>>(), services.collect()] {
        check_names(&names)?;
    }
    caps.services.iter().try_for_each(check_service)?;
    check_sockets(caps)?;
    let is_sorted = caps
        .capabilities
        .is_sorted_by_key(|capability| capability.subject);
    if !is_sorted {
        return Err("capabilities that do not stand by subject");
    }
    for capability in &caps.capabilities {
        check_capability(capability, caps)?;
    }
    for (number, subject) in (0..).zip(&caps.subjects) {
        check_subject(number, subject, caps)?;
    }
    Ok(())
}

fn check_names(names: &[&String]) -> Result<(), &'static str> {
    let mut seen = std::collections::HashSet::new();
    if !names.iter().all(|name| is_capability_name(name)) {
        return Err("a name that is none");
    }
    match names.iter().all(|name| seen.insert(*name)) {
        true => Ok(()),
        false => Err("a name twice"),
    }
}

fn check_source(source: &RuleSource) -> Result<(), &'static str> {
    match source.text.len() > MAX_LINE || source.file.len() > MAX_LINE {
        true => Err("an overlong text or file name"),
        false => Ok(()),
    }
}

/// A pattern is read as one of any names: here it is known which.
fn check_pattern(pattern: &Pattern, names: Names) -> Result<(), &'static str> {
    match Pattern::parse(pattern.text(), names).is_ok() {
        true => Ok(()),
        false => Err("a pattern that no such object can have"),
    }
}

fn check_service(service: &Service) -> Result<(), &'static str> {
    check_source(&service.source)?;
    check_pattern(&service.socket, Names::Sockets)?;
    check_names(&service.permissions.iter().collect::<Vec<_>>())?;
    let operations = &service.operations;
    if !operations.is_sorted_by(|a, b| a.number < b.number) {
        return Err("operations out of order");
    }
    check_names(
        &operations
            .iter()
            .map(|operation| &operation.name)
            .collect::<Vec<_>>(),
    )?;
    let all = all_of(service);
    operations
        .iter()
        .try_for_each(|operation| check_operation(operation, all))
}

/// All permissions of a service.
fn all_of(service: &Service) -> u32 {
    match service.permissions.len() {
        0 => 0,
        count => u32::MAX >> (MAX_SERVICE_PERMISSIONS - count),
    }
}

fn check_operation(operation: &Operation, all: u32) -> Result<(), &'static str> {
    let needs: &[Need] = match &operation.needs {
        Needs::Free => return Ok(()),
        Needs::Bind(needs) | Needs::Active(needs) => needs,
    };
    let is_operand = |number: u8| (1..=MAX_OPERANDS).contains(&usize::from(number));
    let is_some = |rights: u32| rights != 0 && rights & !all == 0;
    let mut seen = 0_u32;
    for need in needs {
        if !is_operand(need.operand) || seen & 1 << need.operand != 0 {
            return Err("an operand that cannot be, or twice");
        }
        seen |= 1 << need.operand;
        let is_good = match &need.rights {
            Rights::Fixed(rights) => is_some(*rights),
            Rights::By { operand, vector } => {
                is_operand(*operand)
                    && !vector.is_empty()
                    && vector.is_sorted_by(|a, b| a.0 < b.0)
                    && vector.iter().all(|&(_, rights)| is_some(rights))
            }
        };
        if !is_good {
            return Err("permissions that an operation cannot need");
        }
    }
    match needs.is_empty() {
        true => Err("an operation that needs nothing and is not free"),
        false => Ok(()),
    }
}

fn check_sockets(caps: &Capabilities) -> Result<(), &'static str> {
    caps.sockets.check()?;
    if *caps.sockets.nothing() != 0 {
        return Err("an answer in state 0");
    }
    let beyond = |&at: &u16| usize::from(at) > caps.services.len();
    match caps.sockets.answers.iter().any(beyond) {
        true => Err("a socket of a service that is not there"),
        false => Ok(()),
    }
}

fn check_capability(capability: &Capability, caps: &Capabilities) -> Result<(), &'static str> {
    check_source(&capability.source)?;
    let is_subject = |at: u32| (at as usize) < caps.subjects.len();
    if !is_subject(capability.subject) || !capability.becomes.is_none_or(is_subject) {
        return Err("a capability of a subject that is not there");
    }
    let class = capability.class;
    let all = match class {
        Class::Service(at) => caps.services.get(usize::from(at)).map(all_of),
        class => Some(class.all()),
    };
    let all = all.ok_or("a capability for a service that is not there")?;
    if capability.rights == 0 || capability.rights & !all != 0 {
        return Err("a capability with permissions that its class has not");
    }
    if capability.becomes.is_some() && class.is_bound() {
        return Err("content that is none");
    }
    let is_limit = capability
        .expires
        .is_none_or(|it| (1..=MAX_EXPIRY).contains(&it));
    if !is_limit || capability.uses == Some(0) || !class.is_bound() && !capability.lasts() {
        return Err("a limit that cannot be");
    }
    match (&capability.objects, class) {
        (Objects::Network { networks, ports }, Class::Tcp | Class::Udp) => {
            let is_network = |&(addr, prefix): &(std::net::IpAddr, u8)| {
                prefix <= if addr.is_ipv4() { 32 } else { 128 } && masked(addr, prefix) == addr
            };
            match networks.iter().all(is_network) && ports.0 <= ports.1 {
                true => Ok(()),
                false => Err("a network that is none"),
            }
        }
        (Objects::Named(pattern), Class::Unix) => check_pattern(pattern, Names::Sockets),
        (Objects::Named(pattern), Class::Service(_)) => check_pattern(pattern, Names::Objects),
        (Objects::Named(pattern), Class::File | Class::Dir | Class::Program | Class::Library) => {
            check_pattern(pattern, Names::Paths)
        }
        _ => Err("objects that its class has not"),
    }
}

fn check_subject(number: u32, subject: &Subject, caps: &Capabilities) -> Result<(), &'static str> {
    check_source(&subject.source)?;
    let is_control =
        |&(class, rights): &(Class, u32)| rights != 0 && rights & !class.controllable() == 0;
    if !subject.control.iter().all(is_control) || !subject.control.is_sorted_by(|a, b| a.0 < b.0) {
        return Err("controlled operations that cannot be, or out of order");
    }
    if !subject.automata.is_sorted_by(|a, b| a.0 < b.0) {
        return Err("automata out of order");
    }
    // every class that it has capabilities for has an automaton: one that is missing would say nothing of them
    let own = caps
        .capabilities
        .partition_point(|capability| capability.subject < number);
    let own = caps.capabilities[own..].iter();
    let own = own.take_while(|capability| capability.subject == number);
    let classes: BTreeMap<Class, ()> = own.map(|capability| (capability.class, ())).collect();
    if !classes
        .keys()
        .eq(subject.automata.iter().map(|(class, _)| class))
    {
        return Err("automata of other classes than its capabilities");
    }
    for (class, automaton) in &subject.automata {
        automaton.check()?;
        if *automaton.nothing() != Allowed::default() {
            return Err("an answer in state 0");
        }
        for answer in &automaton.answers {
            check_answer(answer, number, *class, caps)?;
        }
    }
    Ok(())
}

/// An answer has the rights of the capabilities that it names, which are the subject's, of the class, and in their order.
fn check_answer(
    answer: &Allowed,
    subject: u32,
    class: Class,
    caps: &Capabilities,
) -> Result<(), &'static str> {
    let mut rights = 0;
    let mut before = None;
    for &at in &answer.by {
        let capability = caps.capabilities.get(at as usize);
        let capability = capability.ok_or("an answer of a capability that is not there")?;
        if capability.subject != subject || capability.class != class {
            return Err("an answer of another's capability");
        }
        let place = Some((!capability.lasts(), at));
        if place <= before {
            return Err("an answer whose capabilities are out of order");
        }
        before = place;
        rights |= capability.rights;
    }
    match answer.rights == rights {
        true => Ok(()),
        false => Err("an answer with other rights than its capabilities"),
    }
}
