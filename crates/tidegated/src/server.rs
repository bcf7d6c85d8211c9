//! The sockets, and the signals.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_protocol::Code;

use crate::ask::{hear, tell};
use crate::closing::Closing;
use crate::error::{DaemonError, Outcome};
use crate::handlers::{Answer, Then, answer};
use crate::messages::complain;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::watchdog::{Watchdog, Who};
use crate::{paths, threads};

/// How long a client may take to ask, and how long to hear the answer: from the first byte to the last.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long nobody is let in where there is no room for one more connection, as no descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two complaints about that.
const TOLD: Duration = Duration::from_secs(60);

/// How often the other threads are looked after.
const ROUND: Duration = Duration::from_secs(5);

/// How often the thread that lets administrators in looks up.
const BEAT: Duration = Duration::from_millis(500);

/// Connections that wait to be let in. They are few, so that one for which there was room is let in soon; the others wait in connect(2).
const WAITING: i32 = 32;

/// Clients of one level answered at once, so that no lower one keeps it out; more
/// are turned away.
const CLIENTS: usize = 16;

/// And as many again of root's, so that no users together keep out those who administer, or serve others.
const CLIENTS_OF_ROOT: usize = 16;

/// Of one user that is not root, so that nobody keeps others out.
const CLIENTS_OF_ONE: usize = 8;

/// A client that has a connection open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Client {
    level: u8,
    uid: u32,
    /// By capability files: such a root does not administer.
    limited: bool,
}

/// The connections that are open.
type Clients = Arc<Mutex<Vec<Client>>>;

/// A place among the clients, which is free again when this is dropped, whatever its thread came to.
#[derive(Debug)]
struct Admitted {
    clients: Clients,
    client: Client,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.clients.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(at) = open.iter().position(|&c| c == self.client) {
            open.swap_remove(at);
        }
    }
}

/// Makes room for a connection; `None`: there is no room.
fn admit(clients: &Clients, client: Client) -> Option<Admitted> {
    let mut open = clients.lock().unwrap_or_else(|e| e.into_inner());
    let peers = open.iter().filter(|c| c.level == client.level).count();
    let same = open.iter().filter(|&&c| c == client).count();
    let room = match client.uid {
        0 if !client.limited => peers < CLIENTS || same < CLIENTS_OF_ROOT,
        _ => peers < CLIENTS && same < CLIENTS_OF_ONE,
    };
    room.then(|| {
        open.push(client);
        Admitted {
            clients: Arc::clone(clients),
            client,
        }
    })
}

/// The listening sockets.
#[derive(Debug)]
pub struct Server {
    everybodys: Door,
    administrators: Arc<Door>,
    signals: UnixStream,
    finished: UnixStream,
}

impl Server {
    /// Binds the sockets; SIGTERM and SIGINT end [`Server::run`] from here on.
    pub fn listen() -> Outcome<Server> {
        let failed = |e| DaemonError::io("make a pair of sockets", e);
        raise_limit();
        let (finished, finishes) = UnixStream::pair().map_err(failed)?;
        // a client that finds the second one finds the first
        let administrators = Arc::new(Door::listen(paths::ADMIN, 0o600, &finishes)?);
        let everybodys = Door::listen(paths::SOCKET, 0o666, &finishes)?;
        let (signals, write) = UnixStream::pair().map_err(failed)?;
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            let write = write.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, write).map_err(failed)?;
        }
        Ok(Server {
            everybodys,
            administrators,
            signals,
            finished,
        })
    }

    /// Answers until a signal or a `stop` ends it.
    pub fn run(&self, shared: &Arc<Shared>, watchdog: &Watchdog) -> Outcome {
        let administrators = Arc::clone(&self.administrators);
        let with = Arc::clone(shared);
        threads::spawn("admin", &shared.threads, move || {
            let beat = || with.threads.beat(Who::Admin);
            if let Err(failure) = administrators.keep(&with, &[], BEAT, beat) {
                complain(&failure.to_string());
            }
        })?;
        let mut looked = Instant::now();
        let round = || {
            if looked.elapsed() >= ROUND {
                looked = Instant::now();
                watchdog.look_after(shared.threads.pulse());
            }
        };
        let ends = [&self.signals, &self.finished];
        self.everybodys.keep(shared, &ends, ROUND, round)
    }
}

/// A socket that listens, and the clients that have a connection by it: those that came by another
/// have no part in its places.
#[derive(Debug)]
struct Door {
    listener: UnixListener,
    clients: Clients,
    closing: Closing,
    /// A client writes here to end the daemon.
    finishes: UnixStream,
}

impl Door {
    fn listen(path: &str, mode: u32, finishes: &UnixStream) -> Outcome<Door> {
        let failed = |e| DaemonError::io(format!("listen on {path}"), e);
        Ok(Door {
            listener: listening(path, mode).map_err(failed)?,
            clients: Clients::default(),
            closing: Closing::start()?,
            finishes: finishes.try_clone().map_err(failed)?,
        })
    }

    /// Lets clients in until one of `ends` can be read, or the daemon ends. `round` is called before each wait for a client, which is no
    /// longer than `beat`.
    ///
    /// The thread that does this waits for nobody else: it asks, reads and closes no connection, as a client may have sent a descriptor
    /// whose end waits for the client (closing.rs).
    fn keep(
        &self,
        shared: &Arc<Shared>,
        ends: &[&UnixStream],
        beat: Duration,
        mut round: impl FnMut(),
    ) -> Outcome {
        let beat = Timespec::try_from(beat).unwrap_or_default();
        let mut told = None::<Instant>;
        loop {
            round();
            let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
            fds.extend(ends.iter().map(|end| PollFd::new(*end, PollFlags::IN)));
            let ready = match poll(&mut fds, Some(&beat)) {
                Err(rustix::io::Errno::INTR) => 0,
                Err(e) => return Err(DaemonError::io("wait for clients", e)),
                Ok(ready) => ready,
            };
            if shared.threads.ends() || fds[1..].iter().any(|f| !f.revents().is_empty()) {
                return Ok(());
            }
            if ready == 0 {
                continue;
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // the client has gone again
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => {
                    // the connection goes on waiting, so poll() would return at once
                    if told.is_none_or(|told| told.elapsed() >= TOLD) {
                        told = Some(Instant::now());
                        complain(&format!("no client can be let in: {e}"));
                    }
                    thread::sleep(PAUSE);
                    continue;
                }
            };
            match self.client(shared, &stream) {
                Some((peer, place)) => self.serve(shared, stream, peer, place),
                None => self.closing.close(stream),
            }
        }
    }

    /// The client that connected, and its place; `None`: there is no room for it, or it has gone.
    fn client(&self, shared: &Shared, stream: &UnixStream) -> Option<(Peer, Admitted)> {
        let peer = Peer::of(stream).ok()?;
        let monitor = &shared.enforcement.monitor;
        let client = Client {
            level: peer.level(monitor).ok()?,
            uid: peer.uid,
            limited: peer.is_limited(monitor).ok()?,
        };
        let place = admit(&self.clients, client)?;
        Some((peer, place))
    }

    /// Answers a client in a thread of its own, which closes the connection, too.
    fn serve(&self, shared: &Arc<Shared>, stream: UnixStream, peer: Peer, place: Admitted) {
        let shared = Arc::clone(shared);
        let end = self.finishes.try_clone();
        // what a thread is given that cannot be started is dropped here
        let (hand, handed) = sync_channel::<(UnixStream, Peer, Admitted)>(1);
        let spawned = thread::Builder::new().name("client".into()).spawn(move || {
            let Ok((stream, peer, place)) = handed.recv() else {
                return;
            };
            let then = converse(&shared, &peer, &stream);
            if let (Ok(Then::End), Ok(mut end)) = (then, end) {
                let _ = end.write_all(b".");
            }
            drop((stream, peer));
            drop(place);
        });
        match spawned {
            Ok(_) => {
                // the thread waits for it
                let _ = hand.send((stream, peer, place));
            }
            Err(_) => {
                drop(peer);
                self.closing.close(stream);
            }
        }
    }
}

/// One question, one answer.
fn converse(shared: &Arc<Shared>, peer: &Peer, stream: &UnixStream) -> io::Result<Then> {
    let asked = hear(stream, Instant::now() + PATIENCE)?;
    let (answer, then) = match asked.question {
        Ok(ask) => answer(shared, peer, ask, asked.descriptor),
        Err(message) => (
            Answer::Error {
                code: Code::Usage as u8,
                message,
            },
            Then::GoOn,
        ),
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    let _ = tell(stream, &text, Instant::now() + PATIENCE);
    Ok(then)
}

/// A socket that listens at a path, to which nobody can connect before it has its mode.
fn listening(path: &str, mode: u32) -> io::Result<UnixListener> {
    let _ = fs::remove_file(path);
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    listen(&socket, WAITING)?;
    Ok(socket.into())
}

/// As many descriptors as this process may have: each client takes four.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // with fewer, fewer are let in at a time
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(clients: &Clients, level: u8, uid: u32) -> Vec<Admitted> {
        let client = Client {
            level,
            uid,
            limited: false,
        };
        (0..100).filter_map(|_| admit(clients, client)).collect()
    }

    #[test]
    fn one_user_does_not_keep_others_out() {
        let clients = Clients::default();
        let mut own = admitted(&clients, 1, 1000);
        assert_eq!(own.len(), CLIENTS_OF_ONE);
        own.pop();
        own.extend(admitted(&clients, 1, 1000));
        assert_eq!(own.len(), CLIENTS_OF_ONE);
        let others = admitted(&clients, 1, 1001);
        assert_eq!(others.len(), CLIENTS - CLIENTS_OF_ONE);
    }

    #[test]
    fn one_level_does_not_keep_others_out() {
        let clients = Clients::default();
        let low = admitted(&clients, 0, 0);
        assert_eq!(low.len(), CLIENTS);
        assert!(admitted(&clients, 0, 1000).is_empty());
        assert_eq!(admitted(&clients, 2, 0).len(), CLIENTS);
        assert_eq!(admitted(&clients, 1, 1000).len(), CLIENTS_OF_ONE);
    }

    #[test]
    fn root_within_a_session_does_not_keep_root_out() {
        let clients = Clients::default();
        let limited = Client {
            level: 1,
            uid: 0,
            limited: true,
        };
        let within: Vec<_> = (0..100).filter_map(|_| admit(&clients, limited)).collect();
        assert_eq!(within.len(), CLIENTS_OF_ONE);
        assert!(admitted(&clients, 1, 0).len() >= CLIENTS_OF_ROOT);
    }

    #[test]
    fn users_together_do_not_keep_root_out() {
        let clients = Clients::default();
        let users: Vec<_> = (1000..1010)
            .flat_map(|uid| admitted(&clients, 1, uid))
            .collect();
        assert_eq!(users.len(), CLIENTS);
        assert_eq!(admitted(&clients, 1, 0).len(), CLIENTS_OF_ROOT);
    }

    #[test]
    fn a_place_is_free_again_when_its_thread_panics() {
        let clients = Clients::default();
        let place = admit(
            &clients,
            Client {
                level: 1,
                uid: 1000,
                limited: false,
            },
        );
        let thread = thread::spawn(move || {
            let _place = place.unwrap();
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!(admitted(&clients, 1, 1000).len(), CLIENTS_OF_ONE);
    }
}
