//! The `notes` service. It has no rules of its own: what is not authorised does not arrive.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io, thread};

use anyhow::{Context, Result};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use tidegate_agent_host::{Mode, operation, status};
use tidegate_service::{Change, Connection, Operand, Reply, Request};

/// Notes by their names.
type Notes = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Listens at a path: packets, a request each.
pub fn listen_at(path: &str) -> Result<OwnedFd> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(e).with_context(|| format!("remove {path}"));
        }
        _ => {}
    }
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?).with_context(|| format!("bind {path}"))?;
    listen(&socket, 16)?;
    Ok(socket)
}

/// Serves whoever connects, a thread each, as long as the process lives.
pub fn serve(listener: impl AsFd, first: &[(String, String)]) -> Result<()> {
    let notes: Notes = Arc::default();
    let known = |(name, text): &(String, String)| (name.clone(), text.clone().into_bytes());
    notes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(first.iter().map(known));
    loop {
        let accepted = accept_with(&listener, SocketFlags::CLOEXEC)?;
        let notes = Arc::clone(&notes);
        thread::spawn(move || {
            if let Err(e) = converse(accepted, &notes) {
                eprintln!("host: a connection ended: {e}");
            }
        });
    }
}

fn converse(accepted: OwnedFd, notes: &Notes) -> Result<(), tidegate_service::Error> {
    let mut connection = Connection::of(accepted)?;
    // which note each descriptor of this connection stands for; none is used twice
    let mut opened = Vec::new();
    while let Some(request) = connection.receive()? {
        let reply = answer(&request, notes, &mut opened);
        connection.reply(&reply)?;
    }
    Ok(())
}

fn answer(request: &Request, notes: &Notes, opened: &mut Vec<String>) -> Reply {
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reply = Reply::to(request);
    let name_of = |number: u64, opened: &[String]| {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        opened.get(at).cloned()
    };
    match (request.operation, &request.operands[..]) {
        (operation::OPEN, [Operand::Name(name), Operand::Number(mode)]) => {
            let name = String::from_utf8_lossy(name).into_owned();
            if *mode == Mode::Write as u64 {
                notes.entry(name.clone()).or_default();
            }
            if notes.contains_key(&name) {
                opened.push(name);
                reply.change = Some(Change::Bound(opened.len() as u64));
            } else {
                reply.status = status::NO_SUCH_NOTE;
            }
        }
        (operation::GET, [Operand::Descriptor(number)]) => {
            let note = name_of(*number, opened).and_then(|name| notes.get(&name).cloned());
            reply.status = note.as_ref().map_or(status::NO_SUCH_NOTE, |_| status::DONE);
            reply.payload = note.unwrap_or_default();
        }
        (operation::PUT, [Operand::Descriptor(number)]) => match name_of(*number, opened) {
            Some(name) => {
                notes.insert(name, request.payload.clone());
            }
            None => reply.status = status::NO_SUCH_NOTE,
        },
        (operation::LIST, [Operand::Name(beginning)]) => {
            let matches = |name: &&String| name.as_bytes().starts_with(beginning);
            let names: Vec<&str> = notes.keys().filter(matches).map(String::as_str).collect();
            reply.payload = names.join("\n").into();
        }
        _ => reply.status = status::NO_REQUEST,
    }
    reply
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::socketpair;
    use tidegate_service::Client;

    use super::*;

    fn connected() -> (Client, Notes) {
        let notes = Notes::default();
        let pair = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        let (here, there) = pair.unwrap();
        let kept = Arc::clone(&notes);
        thread::spawn(move || converse(there, &kept));
        (Client::of(here).unwrap(), notes)
    }

    #[test]
    fn notes_are_opened_written_read_and_listed() {
        let (mut client, _notes) = connected();
        let open = |mode: Mode| {
            vec![
                Operand::Name(b"pub:a".to_vec()),
                Operand::Number(mode as u64),
            ]
        };
        let none = client.call(operation::OPEN, open(Mode::Read), Vec::new());
        assert_eq!(none.unwrap().status, status::NO_SUCH_NOTE);
        let made = client.call(operation::OPEN, open(Mode::Write), Vec::new());
        assert_eq!(made.unwrap().change, Some(Change::Bound(1)));
        let descriptor = || vec![Operand::Descriptor(1)];
        let put = client.call(operation::PUT, descriptor(), b"text".to_vec());
        assert_eq!(put.unwrap().status, status::DONE);
        let got = client.call(operation::GET, descriptor(), Vec::new());
        assert_eq!(got.unwrap().payload, b"text");
        let all = vec![Operand::Name(b"pub:".to_vec())];
        let names = client.call(operation::LIST, all, Vec::new()).unwrap();
        assert_eq!(names.payload, b"pub:a");
    }

    #[test]
    fn what_is_no_request_is_answered() {
        let (mut client, _notes) = connected();
        for operands in [
            vec![],
            vec![Operand::Descriptor(0)],
            vec![Operand::Descriptor(9)],
        ] {
            let reply = client.call(operation::GET, operands, Vec::new()).unwrap();
            assert_ne!(reply.status, status::DONE);
        }
        let reply = client.call(99, Vec::new(), Vec::new()).unwrap();
        assert_eq!(reply.status, status::NO_REQUEST);
    }

    #[test]
    fn a_stream_is_taken_too() {
        let (here, there) = UnixStream::pair().unwrap();
        let notes = Notes::default();
        thread::spawn(move || converse(there.into(), &notes));
        let mut client = Client::of(here).unwrap();
        assert!(
            client
                .call(
                    operation::LIST,
                    vec![Operand::Name(b"x".to_vec())],
                    Vec::new()
                )
                .is_ok()
        );
    }
}
