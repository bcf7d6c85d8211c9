//! Sessions of capability files: how a client is limited, which sessions there are, and what is
//! taken back.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tidegate_audit::{Placed, wall_clock};
use tidegate_bundle::RuleSource;
use tidegate_bundle::caps::{
    Capabilities, Class, NameTable, Object, Service, SocketType, permission,
};
use tidegate_lava::{Image, Places, object_id};
use tidegate_monitor::{HeldImage, Layer, Room, Spot, When, Withdrawn};
use tidegate_protocol::{Code, Session, Withdraw};

use crate::bundles::Bundles;
use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::locks::{Ordered, PLACING, TAKEN_BACK};
use crate::peer::Peer;

/// Names of objects that are remembered, at most.
const NAMES: usize = 1 << 12;
/// Bytes of the name of a service's object, at most (`CAPS_WIRE_NAME`).
const MAX_NAME: usize = 255;

/// What is known of sessions besides what the kernel knows.
#[derive(Debug, Default)]
pub struct Sessions {
    /// What objects are called that were taken back, by their numbers.
    objects: Ordered<TAKEN_BACK, HashMap<u64, String>>,
    /// Bundles of capability files that are being looked at.
    bundles: Bundles,
    /// Held while an image is laid out: the next would be laid out for the same place.
    placing: Ordered<PLACING, ()>,
}

/// Has the caller be limited by a subject of the capability files whose bundle came along.
pub fn limit(
    known: &Sessions,
    enforcement: &Enforcement,
    peer: &Peer,
    bundle: Option<OwnedFd>,
    subject: Option<&str>,
    now: bool,
) -> Outcome<String> {
    // the kernel looks again, a thread at a time; here it is known before anything is done
    if peer.uid != 0 && !has_no_new_privs(peer.pid)? {
        return Err(tidegate_monitor::Error::NewPrivileges.into());
    }
    let bundle = known.bundles.take(bundle, peer.uid)?;
    let caps =
        Capabilities::from_bundle(&bundle.bytes).map_err(|e| DaemonError::new(Code::Policy, e))?;
    let number = match subject {
        None => 0,
        Some(name) => caps.subject(name).ok_or_else(|| no_subject(name, &caps))?,
    };
    let subject = &caps.subjects[number as usize];
    let name = format!("{} ({})", subject.name, subject.source.file);
    let when = match now {
        true => When::Now,
        false => When::Executed,
    };
    let hash = *blake3::hash(&bundle.bytes).as_bytes();
    let monitor = &enforcement.monitor;
    // not locked: it is the one that asked from here on, and not another of the same number
    let process = peer.found(monitor)?;
    let (layer, begun, image) = {
        let (mut sessions, image) = placed(known, enforcement, hash, peer.uid, &caps)?;
        let begun = match process.domain {
            None => Some(sessions.begin(peer.uid)?),
            Some(_) => None,
        };
        let layer = Layer {
            place: Places::of(&caps, image.at).subject(number),
            image: image.index,
            is_watched: is_watched(&caps),
            has_services: !caps.services.is_empty(),
            has_streams: caps.services.iter().any(may_be_stream),
        };
        sessions.prepare(layer)?;
        (layer, begun, image)
    };
    drop((caps, bundle));
    // a disk may delay this, and the client what follows; nobody else waits for it, nor for the bundle's room
    enforcement.policies.caps.keep(&image)?;
    if let Some(begun) = begun
        && begun.give(layer, &process, peer.uid, when)?
    {
        return Ok(format!("session {}: {name}", begun.number));
    }
    monitor.narrow(layer, &process, peer.uid, when)?;
    Ok(format!("limited by {name}, too"))
}

/// Has the image of capability files be in the kernel, and its names known. An image is laid out while those alone wait that bring
/// files, too, and once its user may bring it. Sessions stand still from then on, so that it does not go again.
fn placed<'e>(
    known: &Sessions,
    enforcement: &'e Enforcement,
    hash: [u8; 32],
    uid: u32,
    caps: &Capabilities,
) -> Outcome<(tidegate_monitor::Capabilities<'e>, HeldImage)> {
    let names = NameTable::of(caps);
    let room = Room::of(Image::length(caps), names.bytes());
    let _one = known.placing.lock();
    let mut sessions = enforcement.monitor.capabilities();
    let image = match sessions.spot(hash, uid, room)? {
        Spot::Held(image) => image,
        Spot::Free(at) => {
            drop(sessions);
            let image = Image::of(caps, at);
            sessions = enforcement.monitor.capabilities();
            sessions.place(hash, uid, &image, room)?
        }
    };
    enforcement.policies.caps.know(image.at, names);
    Ok((sessions, image))
}

fn may_be_stream(service: &Service) -> bool {
    service.socket_type != Some(SocketType::Seqpacket)
}

/// Whether something in it is checked at each use, or ends by itself. So is what may be appended to and not written, as not each
/// write appends.
fn is_watched(caps: &Capabilities) -> bool {
    const WRITES: u32 = permission::WRITE | permission::APPEND;
    let controls = caps.subjects.iter().any(|it| !it.control.is_empty());
    let appends = |rights: u32| rights & WRITES == permission::APPEND;
    let mut capabilities = caps.capabilities.iter();
    controls || capabilities.any(|it| !it.lasts() || appends(it.rights))
}

fn no_subject(name: &str, caps: &Capabilities) -> DaemonError {
    let known: Vec<&str> = caps.subjects.iter().map(|it| &*it.name).collect();
    let known = known.join(", ");
    let message = format!("the file has no subject `{name}`: it has {known}");
    DaemonError::new(Code::Usage, message)
}

/// Whether all threads of a process have given up to get new privileges.
fn has_no_new_privs(pid: u32) -> Outcome<bool> {
    let path = format!("/proc/{pid}/task");
    let failed = |e| DaemonError::io(format!("read {path}"), e);
    let has = |thread: fs::DirEntry| {
        // one that has ended meanwhile has no file any more
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let value = |line: &str| Some(line.strip_prefix("NoNewPrivs:")?.trim() == "1");
        status.lines().find_map(value).unwrap_or(true)
    };
    let threads: Vec<_> = fs::read_dir(&path)
        .and_then(Iterator::collect)
        .map_err(failed)?;
    Ok(threads.into_iter().all(has))
}

/// The sessions that there are, of one user or of all.
pub fn list(
    known: &Sessions,
    enforcement: &Enforcement,
    only: Option<u32>,
) -> Outcome<Vec<Session>> {
    let monitor = &enforcement.monitor;
    let (domains, mut taken) = (monitor.domains()?, monitor.withdrawn()?);
    let files = &enforcement.policies.caps;
    let told = |what: &tidegate_monitor::Withdraw| match *what {
        tidegate_monitor::Withdraw::Session(_) => "all".to_owned(),
        tidegate_monitor::Withdraw::Subject(place) => {
            format!("subject {}", files.subject_name(place))
        }
        tidegate_monitor::Withdraw::Capability(place) => files.capability_name(place),
        tidegate_monitor::Withdraw::Object(id, _) => {
            let name = known.objects.lock().get(&id).cloned();
            name.unwrap_or_else(|| format!("object {id:016x}"))
        }
    };
    let sessions = monitor.sessions()?.into_iter();
    let wanted = sessions.filter(|s| s.tasks > 0 && only.is_none_or(|uid| uid == s.uid));
    let session = |s: tidegate_monitor::Session| {
        let own = domains.iter().filter(|domain| domain.session == s.place);
        let mut layers: Vec<u32> = own.flat_map(|domain| domain.layers.clone()).collect();
        layers.sort_unstable();
        layers.dedup();
        let mut revoked: Vec<String> = taken
            .remove(&s.place)
            .unwrap_or_default()
            .iter()
            .map(told)
            .collect();
        revoked.sort_unstable();
        Session {
            number: s.number,
            uid: s.uid,
            since: format!("{:.0}", wall_clock(s.started)),
            tasks: s.tasks,
            subjects: layers.iter().map(|&at| files.subject_name(at)).collect(),
            revoked,
        }
    };
    let mut all: Vec<Session> = wanted.map(session).collect();
    all.sort_unstable_by_key(|session| session.number);
    Ok(all)
}

/// Takes capabilities back. It reads no file, and waits for no lock of names before it has told the kernel.
pub fn withdraw(
    known: &Sessions,
    enforcement: &Enforcement,
    asked: &Withdraw,
) -> Outcome<Withdrawn> {
    use tidegate_monitor::Withdraw as Kernel;
    let no = |text: String| DaemonError::new(Code::No, text);
    let files = || enforcement.policies.caps.all();
    let is_of = |source: &RuleSource, file: &str| {
        source.file == file || source.file.ends_with(&format!("/{file}"))
    };
    let what = match asked {
        Withdraw::Session { number } => {
            let sessions = enforcement.monitor.sessions()?;
            let is_it = |s: &tidegate_monitor::Session| s.number == *number && s.tasks > 0;
            if !sessions.iter().any(is_it) {
                return Err(no(format!("there is no session {number}")));
            }
            vec![Kernel::Session(*number)]
        }
        Withdraw::Subject { file, name } => {
            let mut found = Vec::new();
            for placed in files() {
                for (number, (subject, source)) in (0..).zip(placed.names.subjects()) {
                    let is_file = |file: &String| is_of(&source, file);
                    if subject == name && file.as_ref().is_none_or(is_file) {
                        found.push(Kernel::Subject(placed.places.subject(number)));
                    }
                }
            }
            if found.is_empty() {
                return Err(no(format!("no session's files have a subject `{name}`")));
            }
            found
        }
        Withdraw::Capability { file, line } => {
            let mut found = Vec::new();
            for placed in files() {
                for (number, source) in (0..).zip(placed.names.capabilities()) {
                    if source.line == *line && is_of(&source, file) {
                        found.push(Kernel::Capability(placed.places.capability(number)));
                    }
                }
            }
            if found.is_empty() {
                let text = format!("no session's files have a capability at {file}:{line}");
                return Err(no(text));
            }
            found
        }
        Withdraw::Object { class, name } => {
            let ids = match class.as_str() {
                "service" => of_services(name, &files())?,
                _ => {
                    let object =
                        object(class, name).map_err(|e| DaemonError::new(Code::Usage, e))?;
                    vec![(object_id(&object, 0), None)]
                }
            };
            let of = |(id, files)| Kernel::Object(id, files);
            ids.into_iter().map(of).collect()
        }
    };
    let done = enforcement.monitor.withdraw(&what);
    if let Withdraw::Object { class, name } = asked {
        let mut objects = known.objects.lock();
        for what in &what {
            if let Kernel::Object(id, _) = what
                && objects.len() < NAMES
            {
                objects.insert(*id, format!("{class} {name}"));
            }
        }
    }
    Ok(done?)
}

/// The numbers of `SERVICE:NAME`, an object of a service of that name: one for each file that describes such a service, and that file's
/// place.
fn of_services(name: &str, files: &[Arc<Placed>]) -> Outcome<Vec<(u64, Option<u32>)>> {
    let parts = name.split_once(':');
    let parts = parts.filter(|(_, object)| (1..=MAX_NAME).contains(&object.len()));
    let (service, object) = parts.ok_or_else(|| {
        let text = format!(
            "`{name}` is not SERVICE:NAME, the object of a service, whose name has 1 to {MAX_NAME} bytes"
        );
        DaemonError::new(Code::Usage, text)
    })?;
    let mut found = Vec::new();
    for placed in files {
        let services = (0..).zip(placed.names.services());
        let named = services.filter(|(_, known)| known.name == service);
        let base = placed.places.base;
        found.extend(named.map(|(number, _)| {
            let of = Object::Of(number, object.into());
            (object_id(&of, base), Some(base))
        }));
    }
    match found.is_empty() {
        true => {
            let text = format!("no session's files have a service `{service}`");
            Err(DaemonError::new(Code::No, text))
        }
        false => Ok(found),
    }
}

/// An object by its class's word and its name.
fn object(class: &str, name: &str) -> Result<Object, String> {
    let known = Class::WORDS.into_iter().find(|(word, _)| *word == class);
    let words = || Class::WORDS.map(|(word, _)| word).join(", ") + ", service";
    let (_, class) = known.ok_or_else(|| format!("`{class}` is none of {}", words()))?;
    match class {
        Class::Tcp | Class::Udp => {
            let address: SocketAddr = name.parse().map_err(|_| {
                format!("`{name}` is not ADDRESS:PORT, for example 192.0.2.1:443 or [::1]:80")
            })?;
            Ok(Object::Inet(
                class,
                address.ip().to_canonical(),
                address.port(),
            ))
        }
        _ if name.starts_with('/') => Ok(Object::Path(class, name.into())),
        Class::Unix if name.starts_with('@') => Ok(Object::Unix(name.into())),
        _ => Err(format!("`{name}` is not an absolute path")),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::caps;

    use super::*;

    #[test]
    fn objects_are_named_by_class() {
        assert!(matches!(
            object("file", "/srv/a"),
            Ok(Object::Path(Class::File, _))
        ));
        assert!(matches!(object("unix", "@a"), Ok(Object::Unix(_))));
        let v4 = object("tcp", "[::ffff:10.0.0.1]:80").unwrap();
        assert_eq!(v4, object("tcp", "10.0.0.1:80").unwrap());
        for (class, name) in [
            ("fil", "/a"),
            ("file", "a"),
            ("tcp", "10.0.0.1"),
            ("file", "@a"),
        ] {
            assert!(object(class, name).is_err(), "{class} {name}");
        }
    }

    #[test]
    fn objects_of_services_are_found_in_each_file_that_has_one_of_that_name() {
        let placed = |text: &str, base| {
            let caps = caps::compile_str("t.caps", text).unwrap().capabilities;
            let names = NameTable::of(&caps);
            let places = Places::named(&names, base);
            Arc::new(Placed { names, places })
        };
        let service = "service notes on /run/n {\n permission read\n operation 1 ping free\n}\n";
        let subject = "subject a {\n file /a read\n}\n";
        let files = [
            placed(&format!("{subject}{service}"), 0x1000),
            placed(subject, 0x2000),
            placed(&format!("{service}{subject}"), 0x3000),
        ];
        let found = of_services("notes:pub:a", &files).unwrap();
        let object = Object::Of(0, b"pub:a".to_vec());
        let expected = [0x1000, 0x3000].map(|image| (object_id(&object, image), Some(image)));
        assert_eq!(found, expected);
        for (name, code) in [
            ("other:a", Code::No),
            ("notes", Code::Usage),
            ("notes:", Code::Usage),
        ] {
            assert_eq!(
                of_services(name, &files).unwrap_err().code(),
                code,
                "{name}"
            );
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "is taken while")]
    fn no_files_name_is_looked_up_while_names_of_objects_are_held() {
        let known = Sessions::default();
        let _objects = known.objects.lock();
        crate::capability_files::CapsFiles::default().subject_name(0);
    }

    #[test]
    fn this_process_says_whether_it_has_given_up_new_privileges() {
        assert!(has_no_new_privs(std::process::id()).is_ok());
        assert!(has_no_new_privs(u32::MAX).is_err());
    }
}
