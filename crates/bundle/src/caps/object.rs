//! Objects, and what a capability says of which it is for.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Class;
use super::pattern::Pattern;
use crate::bounded::list;
use crate::limits::MAX_LINE;
use crate::network::{Cidr, masked};

/// An object, by the name under which it is bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// A file, a directory, a program or a library, by its canonical path.
    Path(Class, Vec<u8>),
    /// A Unix socket: its canonical path, or `@` and its abstract name.
    Unix(Vec<u8>),
    /// An address and a port, of TCP or UDP. An IPv4 address is never written as IPv6.
    Inet(Class, IpAddr, u16),
    /// A service's object: the service's number, and the object's name.
    Of(u16, Vec<u8>),
}

impl Object {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Object::Path(class, _) | Object::Inet(class, ..) => *class,
            Object::Unix(_) => Class::Unix,
            Object::Of(service, _) => Class::Service(*service),
        }
    }

    /// The bytes that an automaton reads: the name, or an address and a port as the network has them.
    pub fn key(&self) -> Cow<'_, [u8]> {
        match self {
            Object::Path(_, name) | Object::Unix(name) | Object::Of(_, name) => Cow::Borrowed(name),
            Object::Inet(_, addr, port) => {
                let mut key = address_key(*addr);
                key.extend(port.to_be_bytes());
                Cow::Owned(key)
            }
        }
    }
}

/// The objects that a capability is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Objects {
    /// Those whose name the pattern matches.
    Named(Pattern),
    /// Those in one of the networks, by an address and a prefix length, whose port is in the range.
    Network {
        /// The networks: a line has no more of them than bytes.
        #[serde(deserialize_with = "list::<MAX_LINE, _, _>")]
        networks: Vec<(IpAddr, u8)>,
        /// The first and the last port.
        ports: (u16, u16),
    },
}

impl Objects {
    /// Whether an object of the capability's class is one of them: slowly, and by another way than automata do.
    pub fn contains(&self, object: &Object) -> bool {
        match (self, object) {
            (Objects::Network { networks, ports }, &Object::Inet(_, addr, port)) => {
                let is_in = |&(network, prefix): &Cidr| {
                    network.is_ipv4() == addr.is_ipv4() && masked(addr, prefix) == network
                };
                networks.iter().any(is_in) && (ports.0..=ports.1).contains(&port)
            }
            (
                Objects::Named(pattern),
                Object::Path(_, name) | Object::Unix(name) | Object::Of(_, name),
            ) => pattern.matches(name),
            _ => false,
        }
    }
}

/// Returns the bytes that an automaton reads of an address: first the number of its version.
pub fn address_key(addr: IpAddr) -> Vec<u8> {
    match addr {
        IpAddr::V4(v4) => [&[4][..], &v4.octets()].concat(),
        IpAddr::V6(v6) => [&[6][..], &v6.octets()].concat(),
    }
}
