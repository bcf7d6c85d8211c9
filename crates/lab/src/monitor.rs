//! Lava's monitors, as Lava had them: processes. A client's request goes to its monitor, from there to the service's monitor,
//! and from there to the service, each time by a packet over a Unix socket; the reply goes the same way back.
//!
//! Each authorises by a capability file, with the kernel's own decisions compiled for user space ([`tidegate_lava::Server`]):
//! what is measured is the way of a request, and not another authorisation.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recv, send, socket_with,
};
use tidegate_bundle::caps::{Capabilities, Needs, Object};
use tidegate_lava::{Image, Server};
use tidegate_policy::caps;
use tidegate_service::{Change, Operand, Reply, Request};

/// The socket in a directory where requests are taken, by a monitor as by a service.
const SOCKET: &str = "packets";
/// Bytes of a message at most.
const MESSAGE: usize = 8192;
/// Bytes of a reply's payload, which a refusal has as well: its reader waits for as many.
const PAYLOAD: usize = 8;
/// Where an image is laid out: its places are above 0.
const BASE: u32 = 64;

/// What `monitor` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The capability file, whose first subject all clients are
    #[arg(long, value_name = "FILE")]
    caps: PathBuf,
    /// The directory of the socket where requests come in
    #[arg(value_name = "DIR")]
    here: PathBuf,
    /// The directory of the socket that they are passed on to
    #[arg(value_name = "DIR")]
    onwards: PathBuf,
}

/// Is a monitor: one connection at a time, each passed on over one of its own.
///
/// # Errors
/// If it cannot be one. What goes wrong with a connection ends that connection.
pub fn run(options: &Options) -> Result<()> {
    let caps = caps::compile_file(&options.caps)?.capabilities;
    ensure!(caps.services.len() == 1, "a monitor is of one service");
    serve(
        &listening(&options.here)?,
        &caps,
        &options.onwards.join(SOCKET),
    )
}

/// A socket that is connected to from now on.
fn listening(dir: &Path) -> Result<OwnedFd> {
    fs::create_dir_all(dir)?;
    let here = dir.join(SOCKET);
    let listener = packets()?;
    bind(&listener, &SocketAddrUnix::new(&here)?)
        .with_context(|| format!("listening at {}", here.display()))?;
    listen(&listener, 1)?;
    Ok(listener)
}

fn serve(listener: &OwnedFd, caps: &Capabilities, onwards: &Path) -> Result<()> {
    let image = Image::of(caps, BASE);
    loop {
        let client = accept(listener)?;
        let mut authority = Authority::of(caps, &image);
        if let Err(error) = pass_on(&mut authority, &client, onwards) {
            eprintln!("tidegate-lab: a monitor's connection: {error:#}");
        }
    }
}

fn packets() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(socket)
}

/// Passes on what is authorised, and refuses the rest, until the client has gone.
fn pass_on(authority: &mut Authority<'_>, client: &OwnedFd, onwards: &Path) -> Result<()> {
    let service = packets()?;
    connect(&service, &SocketAddrUnix::new(onwards)?)
        .with_context(|| format!("connecting to {}", onwards.display()))?;
    let mut bytes = [0; MESSAGE];
    loop {
        let len = packet(client, &mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        let request = Request::decode(&bytes[..len])?;
        let Some(bound) = authority.ask(&request) else {
            let refusal = Reply {
                status: Errno::ACCESS.raw_os_error().cast_unsigned(),
                payload: vec![0; PAYLOAD],
                ..Reply::to(&request)
            };
            send(client, &refusal.encode()?, SendFlags::NOSIGNAL)?;
            continue;
        };
        send(&service, &bytes[..len], SendFlags::NOSIGNAL)?;
        let len = packet(&service, &mut bytes)?;
        authority.take(&Reply::decode(&bytes[..len])?, bound);
        send(client, &bytes[..len], SendFlags::NOSIGNAL)?;
    }
}

/// A packet as a whole; 0 bytes: there are no more.
fn packet(from: &OwnedFd, bytes: &mut [u8]) -> Result<usize> {
    let (_, whole) = recv(from, &mut *bytes, RecvFlags::TRUNC)?;
    ensure!(whole <= bytes.len(), "a message of {whole} bytes");
    Ok(whole)
}

/// What a connection's client may do, and holds.
struct Authority<'f> {
    caps: &'f Capabilities,
    server: Server<'f>,
    /// Active capabilities by their descriptors: permissions.
    held: HashMap<u64, u32>,
}

impl<'f> Authority<'f> {
    fn of(caps: &'f Capabilities, image: &'f Image) -> Self {
        Self {
            caps,
            server: Server::of(image, &[]),
            held: HashMap::new(),
        }
    }

    /// The permissions that a reply's descriptor would have; none: the request is refused.
    fn ask(&self, request: &Request) -> Option<u32> {
        let operation = self.caps.services[0].operation(request.operation)?;
        let operand = |number: u8| request.operands.get(usize::from(number) - 1);
        let value = |number| match operand(number) {
            Some(Operand::Number(value)) => Some(*value),
            _ => None,
        };
        let mut first = None;
        let (Needs::Bind(needs) | Needs::Active(needs)) = &operation.needs else {
            return Some(0);
        };
        let binds = matches!(operation.needs, Needs::Bind(_));
        for need in needs {
            let wanted = need.rights.of(value)?;
            let given = match operand(need.operand)? {
                Operand::Name(name) if binds => {
                    let object = Object::Of(0, name.clone());
                    self.server.asked(&[0], &object, 0, wanted, 0).given
                }
                Operand::Descriptor(descriptor) if !binds => *self.held.get(descriptor)?,
                _ => return None,
            };
            if wanted & !given != 0 {
                return None;
            }
            first = first.or(Some(wanted));
        }
        first
    }

    /// Takes in what a reply makes of a descriptor, after a request that was given so much.
    fn take(&mut self, reply: &Reply, given: u32) {
        match reply.change {
            Some(Change::Bound(descriptor)) => {
                self.held.insert(descriptor, given);
            }
            Some(Change::Dropped(descriptor)) => {
                self.held.remove(&descriptor);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tidegate_service::{Client, Connection};

    use super::*;

    const FILE: &str = "
subject lab {
    connect unix /s
    service notes pub:* read write
    service notes own:* read
}
service notes on /s {
    permission read write
    operation 1 open  bind   operand 1 by operand 2 { 0 read  1 write }
    operation 2 put   active operand 1 write
    operation 3 close active operand 1 read
    operation 4 ping  free
}
";

    fn name(text: &str) -> Operand {
        Operand::Name(text.into())
    }

    fn request(operation: u32, operands: Vec<Operand>) -> Request {
        Request {
            operation,
            operands,
            ..Request::default()
        }
    }

    #[test]
    fn who_asks_is_given_what_the_file_gives() {
        let caps = caps::compile_str("x.caps", FILE).unwrap();
        let caps = caps.capabilities;
        let image = Image::of(&caps, BASE);
        let mut authority = Authority::of(&caps, &image);
        let (read, write) = (Operand::Number(0), Operand::Number(1));
        let open = |what: &str, how: &Operand| request(1, vec![name(what), how.clone()]);
        let given = authority.ask(&open("pub:a", &write)).unwrap();
        assert!(authority.ask(&open("own:a", &read)).is_some());
        for refused in [
            open("own:a", &write),
            open("secret", &read),
            open("pub:a", &Operand::Number(7)),
            request(1, vec![name("pub:a")]),
            request(1, vec![Operand::Descriptor(1), write.clone()]),
            request(2, vec![Operand::Descriptor(1)]),
            request(9, vec![]),
        ] {
            assert_eq!(authority.ask(&refused), None, "{refused:?}");
        }
        assert_eq!(authority.ask(&request(4, vec![])), Some(0));

        let reply = |change| Reply {
            change: Some(change),
            ..Reply::default()
        };
        authority.take(&reply(Change::Bound(1)), given);
        let of_it = |operation| request(operation, vec![Operand::Descriptor(1)]);
        assert!(authority.ask(&of_it(2)).is_some());
        assert_eq!(authority.ask(&of_it(3)), None, "it was opened for writing");
        authority.take(&reply(Change::Dropped(1)), 0);
        assert_eq!(authority.ask(&of_it(2)), None);
    }

    /// By two monitors, one behind the other, to a service.
    #[test]
    fn what_is_authorised_arrives_and_the_rest_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let service = listening(&at("service")).unwrap();
        for (here, onwards) in [("second", "service"), ("first", "second")] {
            let listener = listening(&at(here)).unwrap();
            let onwards = at(onwards).join(SOCKET);
            let caps = caps::compile_str("x.caps", FILE).unwrap();
            thread::spawn(move || serve(&listener, &caps.capabilities, &onwards));
        }
        let service = thread::spawn(move || {
            let mut connection = Connection::of(accept(&service).unwrap()).unwrap();
            let mut names = Vec::new();
            while let Some(request) = connection.receive().unwrap() {
                connection.reply(&Reply::to(&request)).unwrap();
                names.push(request.operands[0].clone());
            }
            names
        });
        let mut client = Client::connect(at("first").join(SOCKET)).unwrap();
        let mut status = |what| {
            let operands = vec![name(what), Operand::Number(0)];
            client.call(1, operands, Vec::new()).unwrap().status
        };
        assert_eq!(status("pub:a"), 0);
        assert_eq!(status("secret"), 13, "EACCES");
        assert_eq!(status("own:a"), 0);
        drop(client);
        assert_eq!(service.join().unwrap(), [name("pub:a"), name("own:a")]);
    }
}
