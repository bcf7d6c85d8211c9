//! The service: a thread a connection.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tidegate_avc::{AvcError, Denied, Sid};

use crate::http::{self, Request};
use crate::rights::{Act, Rights};
use crate::store::{Document, Store, is_name};

/// Connections at once; more are turned away.
const CONNECTIONS: usize = 128;

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a follower of a document is looked at, if nothing happens.
const BEAT: Duration = Duration::from_secs(1);

/// What connections share.
struct Service {
    rights: Rights,
    store: Store,
    open: AtomicUsize,
}

/// What a request comes to.
enum Failed {
    /// Some status, and why.
    Status(&'static str, String),
    /// The connection is gone.
    Gone,
}

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Failed {
        Failed::Gone
    }
}

impl From<anyhow::Error> for Failed {
    fn from(e: anyhow::Error) -> Failed {
        Failed::Status("500 Internal Server Error", format!("{e:#}"))
    }
}

impl From<AvcError> for Failed {
    fn from(e: AvcError) -> Failed {
        match e {
            AvcError::Invalid(_) => Failed::Status("403 Forbidden", e.to_string()),
            _ => Failed::Status("503 Service Unavailable", e.to_string()),
        }
    }
}

impl From<Denied> for Failed {
    fn from(e: Denied) -> Failed {
        match e {
            Denied::Undecided(e) => e.into(),
            refused => Failed::Status("403 Forbidden", refused.to_string()),
        }
    }
}

/// Serves until it is killed.
pub fn serve(socket: &Path, directory: &Path, collection: Option<&str>) -> Result<()> {
    let service = Arc::new(Service {
        rights: Rights::open(collection)?,
        store: Store::open(directory)?,
        open: AtomicUsize::new(0),
    });
    let listening = || -> io::Result<UnixListener> {
        let _ = fs::remove_file(socket);
        let listener = UnixListener::bind(socket)?;
        // the policy says who may do what
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
        Ok(listener)
    };
    let listener = listening().with_context(|| format!("listen on {}", socket.display()))?;
    let ours = Arc::clone(&service);
    thread::spawn(move || watch(&ours));
    println!("serving {} at {}", directory.display(), socket.display());
    loop {
        let (stream, _) = listener.accept()?;
        if service.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            service.open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let service = Arc::clone(&service);
        thread::spawn(move || {
            let _ = service.converse(stream);
            service.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Has the followers of a document look anew when another policy is in force.
fn watch(service: &Service) {
    let mut seen = service.rights.avc.sequence();
    loop {
        if service.rights.avc.wait(seen, BEAT) {
            seen = service.rights.avc.sequence();
            service.store.wake();
        }
    }
}

impl Service {
    fn converse(&self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(request) = http::read(&mut stream)? else {
            return http::answer(
                &mut stream,
                "400 Bad Request",
                None,
                b"that is no request\n",
            );
        };
        match self.answer(&mut stream, &request) {
            Ok(()) | Err(Failed::Gone) => Ok(()),
            Err(Failed::Status(status, why)) => {
                http::answer(&mut stream, status, None, format!("{why}\n").as_bytes())
            }
        }
    }

    fn answer(&self, stream: &mut UnixStream, request: &Request) -> Result<(), Failed> {
        let not_found = || Failed::Status("404 Not Found", "there is no such document".into());
        let path = request.path.strip_prefix("/doc/").ok_or_else(not_found)?;
        let (name, follows) = match path.strip_suffix("/follow") {
            Some(name) => (name, true),
            None => (path, false),
        };
        if !is_name(name) {
            let why = "a name has up to 64 letters, digits, dots and dashes".into();
            return Err(Failed::Status("400 Bad Request", why));
        }
        // the process that connected, not the one that writes: that is what the policy knows
        let client = self.rights.peer(stream)?;
        match request.method.as_str() {
            "GET" if follows => self.follow(stream, client, name),
            "GET" => {
                let document = self.store.get(name).ok_or_else(not_found)?;
                self.may(client, Act::Read, &document, name)?;
                Ok(http::answer(
                    stream,
                    "200 OK",
                    Some(&document.context),
                    &document.body,
                )?)
            }
            "PUT" => {
                let label = self.put(client, name, &request.body)?;
                Ok(http::answer(stream, "200 OK", Some(&label), b"")?)
            }
            "DELETE" => {
                let document = self.store.get(name).ok_or_else(not_found)?;
                self.may(client, Act::Delete, &document, name)?;
                self.store
                    .delete(name, &document.context)?
                    .ok_or_else(changed)?;
                Ok(http::answer(stream, "200 OK", None, b"")?)
            }
            _ => Err(Failed::Status(
                "405 Method Not Allowed",
                "GET, PUT or DELETE".into(),
            )),
        }
    }

    fn may(&self, client: Sid, act: Act, document: &Document, name: &str) -> Result<(), Failed> {
        let label = self.rights.avc.sid(&document.context)?;
        Ok(self.rights.may(client, act, label, name)?)
    }

    /// Writes a document; its label. One that is new has the label that the policy says.
    fn put(&self, client: Sid, name: &str, body: &[u8]) -> Result<String, Failed> {
        let known = self.store.get(name);
        let is_new = known.is_none();
        let context = match known {
            Some(document) => {
                self.may(client, Act::Write, &document, name)?;
                document.context
            }
            None => {
                let label = self.rights.label(client, name)?;
                self.rights.may(client, Act::Create, label, name)?;
                self.rights.text(label)
            }
        };
        self.store
            .put(name, &context, body, is_new)?
            .ok_or_else(changed)?;
        Ok(context)
    }

    /// Sends a document, and again each time that it changes. Before each part it is asked whether the client may read it,
    /// and when another policy comes: one that may not any more is cut off.
    fn follow(&self, stream: &mut UnixStream, client: Sid, name: &str) -> Result<(), Failed> {
        let mut sent = None;
        loop {
            let sequence = self.rights.avc.sequence();
            let Some(document) = self.store.get(name) else {
                return match sent {
                    None => Err(Failed::Status(
                        "404 Not Found",
                        "there is no such document".into(),
                    )),
                    Some(_) => Ok(()),
                };
            };
            match (self.may(client, Act::Read, &document, name), sent) {
                (Err(refused), None) => return Err(refused),
                // what was begun ends without its end, so that the client knows
                (Err(_), Some(_)) => return Ok(()),
                (Ok(()), _) => {}
            }
            if sent.is_none() {
                http::begin(stream)?;
            }
            if sent != Some(document.version) {
                http::part(stream, &document.body)?;
                sent = Some(document.version);
            }
            if is_gone(stream) {
                return Err(Failed::Gone);
            }
            let same = || self.rights.avc.sequence() == sequence;
            self.store.wait(name, document.version, BEAT, same);
        }
    }
}

fn changed() -> Failed {
    Failed::Status("409 Conflict", "it was changed meanwhile: try again".into())
}

/// Whether the client has closed its end.
fn is_gone(stream: &impl AsFd) -> bool {
    let mut end = [PollFd::new(stream, PollFlags::RDHUP)];
    let looked = poll(&mut end, Some(&Timespec::default()));
    looked.is_ok_and(|n| n > 0)
}
