//! `check --caps`: whether a capability file compiles, and what its subjects may do.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use miette::Report;
use serde::Serialize;
use tidegate_audit::printable;
use tidegate_bundle::caps::{Capabilities, Capability, Class, Needs, Object, Objects};
use tidegate_policy::caps;

use super::print_json;
use crate::exit::{Failure, Outcome};
use crate::output::{say, tell};

/// The classes that a path can be asked as.
const OF_PATHS: [Class; 5] = [
    Class::File,
    Class::Dir,
    Class::Program,
    Class::Library,
    Class::Unix,
];

/// What capability files say.
#[derive(Debug, Serialize)]
struct Summary<'c> {
    subjects: Vec<Subject<'c>>,
    services: Vec<Service<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<Found<'c>>>,
}

#[derive(Debug, Serialize)]
struct Subject<'c> {
    name: &'c str,
    rule: String,
    /// Access operations that are checked at each use, and could be without.
    control: Vec<Controlled<'c>>,
    capabilities: Vec<Held<'c>>,
}

#[derive(Debug, Serialize)]
struct Controlled<'c> {
    class: &'c str,
    permissions: Vec<&'c str>,
}

/// A capability that a subject holds.
#[derive(Debug, Serialize)]
struct Held<'c> {
    class: &'c str,
    objects: String,
    permissions: Vec<&'c str>,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    becomes: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uses: Option<u32>,
    rule: String,
    text: &'c str,
}

#[derive(Debug, Serialize)]
struct Service<'c> {
    name: &'c str,
    socket: &'c str,
    permissions: &'c [String],
    operations: Vec<Operation<'c>>,
    rule: String,
}

#[derive(Debug, Serialize)]
struct Operation<'c> {
    number: u32,
    name: &'c str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// What a subject may do with a path as an object of a class.
#[derive(Debug, Serialize)]
struct Found<'c> {
    path: String,
    subject: &'c str,
    class: &'c str,
    given: Vec<Given<'c>>,
}

/// What a line gives.
#[derive(Debug, Serialize)]
struct Given<'c> {
    permissions: Vec<&'c str>,
    rule: String,
    text: &'c str,
}

pub fn run(file: &Path, paths: &[PathBuf], json: bool) -> Outcome {
    // a file that is not there is no error in a file
    fs::metadata(file).map_err(|e| Failure::io(format!("read {}", file.display()), e))?;
    let compiled = caps::compile_file(file);
    let compiled = compiled.map_err(|errors| Failure::policy(Report::new(errors)))?;
    for warning in compiled.warnings {
        tell!("{:?}", Report::new(warning));
    }
    let caps = &compiled.capabilities;
    let found = paths.iter().flat_map(|path| found(caps, path));
    let found: Vec<_> = found.collect();
    if json {
        return print_json(&Summary {
            subjects: (0..)
                .zip(&caps.subjects)
                .map(|it| subject(caps, it))
                .collect(),
            services: caps.services.iter().map(service).collect(),
            paths: (!paths.is_empty()).then_some(found),
        });
    }
    match paths {
        [] => say_all(caps),
        paths => say_found(paths, &found),
    }
    Ok(())
}

fn subject<'c>(
    caps: &'c Capabilities,
    (number, subject): (u32, &'c tidegate_bundle::caps::Subject),
) -> Subject<'c> {
    let control = subject.control.iter().map(|&(class, rights)| Controlled {
        class: class.word().unwrap_or_default(),
        permissions: caps.words(class, rights),
    });
    let own = caps.capabilities.iter();
    let own = own.filter(|capability| capability.subject == number);
    Subject {
        name: &subject.name,
        rule: subject.source.to_string(),
        control: control.collect(),
        capabilities: own.map(|capability| held(caps, capability)).collect(),
    }
}

fn held<'c>(caps: &'c Capabilities, capability: &'c Capability) -> Held<'c> {
    let becomes = capability.becomes.map(|at| &caps.subjects[at as usize]);
    Held {
        class: class_word(caps, capability.class),
        objects: objects(&capability.objects),
        permissions: caps.words(capability.class, capability.rights),
        becomes: becomes.map(|subject| subject.name.as_str()),
        expires: capability.expires,
        uses: capability.uses,
        rule: capability.source.to_string(),
        text: &capability.source.text,
    }
}

/// A class by its word, or by the service's name.
fn class_word(caps: &Capabilities, class: Class) -> &str {
    match class {
        Class::Service(at) => &caps.services[usize::from(at)].name,
        class => class.word().unwrap_or_default(),
    }
}

fn objects(objects: &Objects) -> String {
    match objects {
        Objects::Named(pattern) => pattern.text().to_owned(),
        Objects::Network { networks, ports } => {
            let networks = networks
                .iter()
                .map(|(addr, prefix)| format!("{addr}/{prefix}"));
            let networks: Vec<_> = networks.collect();
            format!("{} port {}-{}", networks.join(" "), ports.0, ports.1)
        }
    }
}

fn service(service: &tidegate_bundle::caps::Service) -> Service<'_> {
    let operations = service.operations.iter().map(|operation| Operation {
        number: operation.number,
        name: &operation.name,
        kind: match operation.needs {
            Needs::Free => "free",
            Needs::Bind(_) => "bind",
            Needs::Active(_) => "active",
        },
    });
    Service {
        name: &service.name,
        socket: service.socket.text(),
        permissions: &service.permissions,
        operations: operations.collect(),
        rule: service.source.to_string(),
    }
}

/// What subjects may do with a path, without those that may do nothing.
fn found<'c>(caps: &'c Capabilities, path: &Path) -> Vec<Found<'c>> {
    let name = path.as_os_str().as_bytes();
    let mut all = Vec::new();
    for (number, subject) in (0..).zip(&caps.subjects) {
        for class in OF_PATHS {
            let object = match class {
                Class::Unix => Object::Unix(name.to_vec()),
                class => Object::Path(class, name.to_vec()),
            };
            let given = given(caps, number, &object);
            if !given.is_empty() {
                all.push(Found {
                    path: path.to_string_lossy().into_owned(),
                    subject: &subject.name,
                    class: class_word(caps, class),
                    given,
                });
            }
        }
    }
    all
}

/// What each line gives that is the first to give something.
fn given<'c>(caps: &'c Capabilities, subject: u32, object: &Object) -> Vec<Given<'c>> {
    let mut left = u32::MAX;
    let by = caps.lookup(subject, object).by.iter();
    let lines = by.filter_map(|&at| {
        let capability = &caps.capabilities[at as usize];
        let rights = capability.rights & left;
        left &= !rights;
        (rights != 0).then(|| Given {
            permissions: caps.words(capability.class, rights),
            rule: capability.source.to_string(),
            text: &capability.source.text,
        })
    });
    lines.collect()
}

fn say_all(caps: &Capabilities) {
    for (number, it) in (0..).zip(&caps.subjects) {
        let it = subject(caps, (number, it));
        let count = match it.capabilities.len() {
            1 => "1 capability".to_owned(),
            count => format!("{count} capabilities"),
        };
        say!("subject {}: {count}\t{}", it.name, printable(&it.rule));
        for held in &it.capabilities {
            say!("  {}\t{}", printable(held.text), printable(&held.rule));
        }
        for control in &it.control {
            say!(
                "  checked at each use: {} {}",
                control.class,
                control.permissions.join(" ")
            );
        }
    }
    for it in caps.services.iter().map(service) {
        say!(
            "service {} on {}: {} permissions, {} operations\t{}",
            it.name,
            printable(it.socket),
            it.permissions.len(),
            it.operations.len(),
            printable(&it.rule)
        );
    }
}

fn say_found(paths: &[PathBuf], found: &[Found<'_>]) {
    for path in paths {
        let path = path.to_string_lossy();
        let mut of_path = found.iter().filter(|it| it.path == path).peekable();
        if of_path.peek().is_none() {
            say!("{}\tno subject may do anything with it", printable(&path));
        }
        for it in of_path {
            for given in &it.given {
                say!(
                    "{}\t{}\t{}\t{}\t{}: {}",
                    printable(&path),
                    it.subject,
                    it.class,
                    given.permissions.join(" "),
                    printable(&given.rule),
                    printable(given.text)
                );
            }
        }
    }
}
