//! Objects, and what a capability says of which it is for.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use regex_syntax::hir::{Dot, Hir};
use serde::{Deserialize, Serialize};

use super::Class;
use super::pattern::{Pattern, class, repeated};
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
                let mut key = octets(*addr);
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
        /// The networks.
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

    /// Their keys, as a regular expression over bytes.
    pub(super) fn hir(&self) -> Hir {
        match self {
            Objects::Named(pattern) => pattern.hir(),
            Objects::Network { networks, ports } => {
                let networks = networks.iter().map(|&network| network_hir(network));
                Hir::concat(vec![
                    Hir::alternation(networks.collect()),
                    ports_hir(*ports),
                ])
            }
        }
    }
}

fn octets(addr: IpAddr) -> Vec<u8> {
    match addr {
        IpAddr::V4(v4) => [&[4][..], &v4.octets()].concat(),
        IpAddr::V6(v6) => [&[6][..], &v6.octets()].concat(),
    }
}

/// The keys of a network's addresses.
fn network_hir((addr, prefix): Cidr) -> Hir {
    let key = octets(addr);
    let (whole, bits) = (1 + usize::from(prefix / 8), prefix % 8);
    let mut parts = vec![Hir::literal(&key[..whole])];
    let mut rest = key.len() - whole;
    if bits > 0 {
        let low = key[whole];
        parts.push(class([(low, low | 0xff >> bits)]));
        rest -= 1;
    }
    if rest > 0 {
        let rest = rest as u32;
        parts.push(repeated(Hir::dot(Dot::AnyByte), rest, Some(rest)));
    }
    Hir::concat(parts)
}

/// The keys of a range of ports: of those with its first upper byte, of those between, of those with its last.
fn ports_hir((first, last): (u16, u16)) -> Hir {
    let [a, b] = first.to_be_bytes();
    let [c, d] = last.to_be_bytes();
    let run = |upper: (u8, u8), lower: (u8, u8)| Hir::concat(vec![class([upper]), class([lower])]);
    if a == c {
        return run((a, a), (b, d));
    }
    let mut runs = vec![run((a, a), (b, 255)), run((c, c), (0, d))];
    if c - a > 1 {
        runs.push(run((a + 1, c - 1), (0, 255)));
    }
    Hir::alternation(runs)
}

/// All addresses of both families.
pub(super) const ANY: [Cidr; 2] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    (IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), 0),
];
