//! Network sockets on this machine: 127.0.0.1 is untrusted by the policy,
//! 127.1.0.1 is `user`, 127.2.0.1 is `system`, ::1 is `user`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use crate::scenarios::check::{Outcome, PATIENCE};
use crate::scenarios::subject::Level;

/// An address whose network has a level.
pub fn address(level: Level) -> IpAddr {
    let second = match level {
        Level::Untrusted => 0,
        Level::User => 1,
        Level::System => 2,
    };
    Ipv4Addr::new(127, second, 0, 1).into()
}

/// A listener that a trusted-network program would be: it is only here to be connected to.
pub fn listener(at: IpAddr) -> Outcome<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((at, 0))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// A connection that does not wait for ever.
pub fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
