//! The socket, and the signals.

use std::fs;
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tidegate_flask::Sid;
use tidegate_monitor::Monitor;

use super::Shared;
use super::answer::{Then, answer};
use crate::exit::{Code, Failure, Outcome};
use crate::places;
use crate::protocol::{Answer, Ask, MAX_ASK};

/// How long a client may take to ask and to hear the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients of one level answered at once, so that no lower one keeps it out; more
/// are turned away.
const CLIENTS: usize = 16;

/// And as many again of root's, so that no users together keep out those who administer, or serve others.
const CLIENTS_OF_ROOT: usize = 16;

/// Of one user who is not root, so that nobody keeps others out.
const CLIENTS_OF_ONE: usize = 8;

/// Who has a connection open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Client {
    level: u8,
    uid: u32,
    /// By capability files: such a root does not administer.
    limited: bool,
}

/// The connections that are open.
type Clients = Arc<Mutex<Vec<Client>>>;

/// Makes room for a connection; `false`: there is none.
fn admit(clients: &Clients, client: Client) -> bool {
    let mut open = clients.lock().unwrap_or_else(|e| e.into_inner());
    let peers = open.iter().filter(|c| c.level == client.level).count();
    let same = open.iter().filter(|&&c| c == client).count();
    let room = match client.uid {
        0 if !client.limited => peers < CLIENTS || same < CLIENTS_OF_ROOT,
        _ => peers < CLIENTS && same < CLIENTS_OF_ONE,
    };
    if room {
        open.push(client);
    }
    room
}

fn dismiss(clients: &Clients, client: Client) {
    let mut open = clients.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(at) = open.iter().position(|&c| c == client) {
        open.swap_remove(at);
    }
}

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// Its process id.
    pub pid: u32,
    /// Its user id.
    pub uid: u32,
    /// The process itself, which cannot become another.
    process: OwnedFd,
    /// The connection, which others may have been handed.
    connection: OwnedFd,
}

impl Peer {
    fn of(stream: &UnixStream) -> io::Result<Peer> {
        let credentials = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Peer {
            pid: credentials.pid.as_raw_pid() as u32,
            uid: credentials.uid.as_raw(),
            process: peer_process(stream)?,
            connection: stream.as_fd().try_clone_to_owned()?,
        })
    }

    /// Its pidfd.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Whether a profile confines it.
    pub fn is_confined(&self, monitor: &Monitor) -> Outcome<bool> {
        Ok(monitor.is_confined(self.process.as_fd())?)
    }

    /// Has it be confined from its next execution on; false if it is already.
    pub fn confine(&self, monitor: &Monitor, profile: &str) -> Outcome<bool> {
        Ok(monitor.confine(self.process.as_fd(), profile)?)
    }

    /// Has it come under the SELinux policy from its next execution on; false: it is already.
    pub fn enter(&self, monitor: &Monitor, sid: tidegate_flask::Sid) -> Outcome<bool> {
        Ok(monitor.enter(self.process.as_fd(), self.pid, sid)?)
    }

    /// Whether the SELinux policy governs it, or who connected.
    pub fn is_governed(&self, monitor: &Monitor) -> Outcome<bool> {
        let process = monitor.process(self.pid)?.is_none_or(|p| p.sid.is_some());
        Ok(process || monitor.peer_sid(self.connection.as_fd())?.is_some())
    }

    /// The SIDs that it and who connected have; of who has none, none.
    ///
    /// # Errors
    /// It has ended.
    pub fn sids(&self, monitor: &Monitor) -> Outcome<Vec<Sid>> {
        let gone = || Failure::new(Code::NotPermitted, "the process that asks has ended");
        let process = monitor.process(self.pid)?.ok_or_else(gone)?;
        let connected = monitor.peer_sid(self.connection.as_fd())?;
        Ok(process.sid.into_iter().chain(connected).collect())
    }

    /// Its level, or that of the lowest who may have written to the connection so far:
    /// who connected need not be who asks.
    pub fn level(&self, monitor: &Monitor) -> Outcome<u8> {
        let process = monitor.level_of(self.process.as_fd())?;
        Ok(process.min(monitor.level_of_connection(self.connection.as_fd())?))
    }
}

/// SO_PEERPIDFD, which rustix does not know yet.
fn peer_process(stream: &UnixStream) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd: libc::c_int = -1;
    let mut len = size_of_val(&fd) as libc::socklen_t;
    // SAFETY: `fd` is as long as `len` says and outlives the call.
    let ret = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut len,
        )
    };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel made the descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The listening socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    signals: UnixStream,
    finished: (UnixStream, UnixStream),
}

impl Server {
    /// Binds the socket; SIGTERM and SIGINT end [`Server::run`] from here on.
    pub fn listen() -> Outcome<Server> {
        let failed = |e| Failure::io(format!("listen on {}", places::SOCKET), e);
        let _ = fs::remove_file(places::SOCKET);
        let listener = UnixListener::bind(places::SOCKET).map_err(failed)?;
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(places::SOCKET, open).map_err(failed)?;
        let (signals, write) = UnixStream::pair().map_err(failed)?;
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            let write = write.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, write).map_err(failed)?;
        }
        let finished = UnixStream::pair().map_err(failed)?;
        Ok(Server {
            listener,
            signals,
            finished,
        })
    }

    /// Answers until a signal or a `stop` ends it.
    pub fn run(&self, shared: &Arc<Shared>) {
        let clients = Clients::default();
        loop {
            let mut fds = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&self.finished.0, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            if fds[1..].iter().any(|f| !f.revents().is_empty()) {
                return;
            }
            let Ok((stream, _)) = self.listener.accept() else {
                continue;
            };
            let Ok(peer) = Peer::of(&stream) else {
                continue;
            };
            let Ok(level) = peer.level(&shared.monitor) else {
                continue;
            };
            let Ok(limited) = shared.monitor.has_capabilities(peer.pid) else {
                continue;
            };
            let client = Client {
                level,
                uid: peer.uid,
                limited,
            };
            if !admit(&clients, client) {
                continue;
            }
            let (shared, ours) = (Arc::clone(shared), Arc::clone(&clients));
            let end = self.finished.1.try_clone();
            let spawned = std::thread::Builder::new()
                .name("client".into())
                .spawn(move || {
                    let then = converse(&shared, &peer, &stream);
                    dismiss(&ours, client);
                    if let (Ok(Then::End), Ok(mut end)) = (then, end) {
                        let _ = end.write_all(b".");
                    }
                });
            if spawned.is_err() {
                dismiss(&clients, client);
            }
        }
    }
}

/// One question, one answer.
fn converse(shared: &Arc<Shared>, peer: &Peer, stream: &UnixStream) -> io::Result<Then> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (line, fd) = receive(stream)?;
    let (answer, then) = match serde_json::from_slice::<Ask>(&line) {
        Ok(ask) => answer(shared, peer, ask, fd),
        Err(e) => {
            let message = format!("not a question: {e}");
            (
                Answer::Error {
                    code: crate::exit::Code::Usage as u8,
                    message,
                },
                Then::GoOn,
            )
        }
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    let mut stream = stream;
    let _ = stream.write_all(&text);
    Ok(then)
}

/// The line asked, and the descriptor that came with it.
fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0u8; MAX_ASK];
    let (mut len, mut fd) = (0, None);
    while len < MAX_ASK && !bytes[..len].contains(&b'\n') {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut bytes[len..])],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                fd = fds.last().or(fd);
            }
        }
        if got.bytes == 0 {
            break;
        }
        len += got.bytes;
    }
    bytes.truncate(len);
    Ok((bytes, fd))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(clients: &Clients, level: u8, uid: u32) -> usize {
        let client = Client {
            level,
            uid,
            limited: false,
        };
        (0..100).filter(|_| admit(clients, client)).count()
    }

    #[test]
    fn one_user_does_not_keep_others_out() {
        let clients = Clients::default();
        assert_eq!(admitted(&clients, 1, 1000), CLIENTS_OF_ONE);
        dismiss(
            &clients,
            Client {
                level: 1,
                uid: 1000,
                limited: false,
            },
        );
        assert_eq!(admitted(&clients, 1, 1000), 1);
        assert_eq!(admitted(&clients, 1, 1001), CLIENTS - CLIENTS_OF_ONE);
    }

    #[test]
    fn one_level_does_not_keep_others_out() {
        let clients = Clients::default();
        assert_eq!(admitted(&clients, 0, 0), CLIENTS);
        assert_eq!(admitted(&clients, 0, 1000), 0);
        assert_eq!(admitted(&clients, 2, 0), CLIENTS);
        assert_eq!(admitted(&clients, 1, 1000), CLIENTS_OF_ONE);
    }

    #[test]
    fn root_within_a_session_does_not_keep_root_out() {
        let clients = Clients::default();
        let limited = Client {
            level: 1,
            uid: 0,
            limited: true,
        };
        let within = (0..100).filter(|_| admit(&clients, limited)).count();
        assert_eq!(within, CLIENTS_OF_ONE);
        assert!(admitted(&clients, 1, 0) >= CLIENTS_OF_ROOT);
    }

    #[test]
    fn users_together_do_not_keep_root_out() {
        let clients = Clients::default();
        let users: usize = (1000..1010).map(|uid| admitted(&clients, 1, uid)).sum();
        assert_eq!(users, CLIENTS);
        assert_eq!(admitted(&clients, 1, 0), CLIENTS_OF_ROOT);
    }
}
