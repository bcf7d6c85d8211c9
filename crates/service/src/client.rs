//! The client's end.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::connection::Stream;
use crate::error::Error;
use crate::socket::Socket;
use crate::wire::{Operand, REPLY_HEAD, Reply, Request};

/// A connection to a service.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    stream: Stream,
    /// The newest request's.
    id: u32,
}

impl Client {
    /// Connects to the service at a path: by packets, or by a stream, as it has it.
    ///
    /// # Errors
    ///
    /// If there is none, or it may not be connected to.
    pub fn connect(path: impl AsRef<Path>) -> Result<Client, Error> {
        let address = SocketAddrUnix::new(path.as_ref())?;
        let try_one = |of: SocketType| -> Result<OwnedFd, Errno> {
            let socket = socket_with(AddressFamily::UNIX, of, SocketFlags::CLOEXEC, None)?;
            connect(&socket, &address)?;
            Ok(socket)
        };
        let socket = match try_one(SocketType::SEQPACKET) {
            Err(Errno::PROTOTYPE) => try_one(SocketType::STREAM)?,
            socket => socket?,
        };
        Client::of(socket)
    }

    /// A connected socket, of packets or a stream.
    ///
    /// # Errors
    ///
    /// If it is of another type.
    pub fn of(socket: impl Into<OwnedFd>) -> Result<Client, Error> {
        Ok(Client {
            socket: Socket::of(socket.into())?,
            stream: Stream::new(REPLY_HEAD),
            id: 0,
        })
    }

    /// Accepts replies of so many bytes at most; else a mebibyte.
    pub fn accept_up_to(&mut self, bytes: usize) {
        self.stream.most = bytes.max(REPLY_HEAD);
    }

    /// Makes a request, and waits for its reply.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is not authorised: then others can be made. After other errors the connection is of no use.
    pub fn call(
        &mut self,
        operation: u32,
        operands: Vec<Operand>,
        payload: Vec<u8>,
    ) -> Result<Reply, Error> {
        let expected = self.send(operation, operands, payload)?;
        let reply = self.receive()?;
        match reply.id == expected {
            true => Ok(reply),
            false => Err(Error::OtherReply {
                expected,
                got: reply.id,
            }),
        }
    }

    /// Makes a request without waiting: its id.
    ///
    /// # Errors
    ///
    /// As of [`call`](Client::call).
    pub fn send(
        &mut self,
        operation: u32,
        operands: Vec<Operand>,
        payload: Vec<u8>,
    ) -> Result<u32, Error> {
        self.id = self.id.wrapping_add(1);
        let request = Request {
            operation,
            id: self.id,
            operands,
            payload,
        };
        self.socket.send(&request.encode()?)?;
        Ok(self.id)
    }

    /// The next reply, which is waited for.
    ///
    /// # Errors
    ///
    /// If none comes.
    pub fn receive(&mut self) -> Result<Reply, Error> {
        let message = match self.socket.is_stream {
            true => self.stream.receive(&self.socket)?,
            false => self.socket.packet(self.stream.most)?,
        };
        Ok(Reply::decode(&message.ok_or(Error::Truncated)?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rustix::net::socketpair;

    use super::*;
    use crate::{Change, Connection};

    fn pair(of: SocketType) -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, of, SocketFlags::CLOEXEC, None).unwrap()
    }

    /// Gives descriptors for names, and for payloads the same back.
    fn serve(socket: OwnedFd) -> u32 {
        let mut connection = Connection::of(socket).unwrap();
        let mut served = 0;
        while let Some(request) = connection.receive().unwrap() {
            let mut reply = Reply::to(&request);
            if let Some(Operand::Name(name)) = request.operands.first() {
                reply.change = Some(Change::Bound(name.len() as u64));
            }
            reply.payload = request.payload;
            connection.reply(&reply).unwrap();
            served += 1;
        }
        served
    }

    #[test]
    fn requests_of_any_length_are_answered() {
        for of in [SocketType::STREAM, SocketType::SEQPACKET] {
            let (here, there) = pair(of);
            let service = thread::spawn(|| serve(there));
            let mut client = Client::of(here).unwrap();
            for len in [0, 1, 15, 16, 17, 5000, 5000, 3, 100_000, 0] {
                let payload: Vec<u8> = (0..len).map(|byte: u32| byte as u8).collect();
                let name = Operand::Name(b"abc".to_vec());
                let reply = client.call(1, vec![name], payload.clone()).unwrap();
                assert_eq!(reply.change, Some(Change::Bound(3)));
                assert_eq!(reply.payload, payload);
            }
            drop(client);
            assert_eq!(service.join().unwrap(), 10);
        }
    }

    #[test]
    fn several_may_be_under_way() {
        for of in [SocketType::STREAM, SocketType::SEQPACKET] {
            let (here, there) = pair(of);
            let service = thread::spawn(|| serve(there));
            let mut client = Client::of(here).unwrap();
            let ids: Vec<u32> = (0..5)
                .map(|len| client.send(1, Vec::new(), vec![0; len * 7]).unwrap())
                .collect();
            for (len, id) in ids.into_iter().enumerate() {
                let reply = client.receive().unwrap();
                assert_eq!((reply.id, reply.payload.len()), (id, len * 7));
            }
            drop(client);
            assert_eq!(service.join().unwrap(), 5);
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_told() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let message = Request::default().encode().unwrap();
        here.write_all(&message).unwrap();
        here.write_all(&message[..9]).unwrap();
        drop(here);
        let mut connection = Connection::of(there).unwrap();
        assert!(connection.receive().unwrap().is_some());
        assert!(matches!(connection.receive(), Err(Error::Truncated)));
    }

    #[test]
    fn what_is_too_long_is_not_waited_for() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(&u32::MAX.to_le_bytes()).unwrap();
        here.write_all(&[0; 12]).unwrap();
        let mut connection = Connection::of(there).unwrap();
        assert!(matches!(connection.receive(), Err(Error::TooLong(_))));
        let (here, there) = pair(SocketType::SEQPACKET);
        let mut connection = Connection::of(there).unwrap();
        connection.accept_up_to(100);
        let mut client = Client::of(here).unwrap();
        client.send(1, Vec::new(), vec![0; 200]).unwrap();
        client.send(2, Vec::new(), Vec::new()).unwrap();
        assert!(matches!(connection.receive(), Err(Error::TooLong(216))));
        assert_eq!(connection.receive().unwrap().unwrap().operation, 2);
    }

    #[test]
    fn another_socket_is_none() {
        let (here, _there) = pair(SocketType::DGRAM);
        assert!(matches!(Client::of(here), Err(Error::Socket)));
    }
}
