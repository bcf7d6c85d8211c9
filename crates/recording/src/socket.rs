//! Sockets: networks have levels; a named Unix socket is a file, and then a channel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::channel::ChannelId;
use crate::event::Reason;
use crate::line::{Act, Flags, Line};
use crate::rules::{self, Object};
use crate::side::Side;

const UNIX: u32 = 1;
const STREAM: u32 = 1;

/// Where an address leads; a socket that names none reaches this machine.
fn destination(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(a) if a.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(a) if a.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn known(address: Option<IpAddr>) -> Option<IpAddr> {
    address
        .map(|a| a.to_canonical())
        .filter(|a| !a.is_unspecified())
}

/// An address as records have it.
fn text(address: Option<IpAddr>, port: u32) -> String {
    match (address, u16::try_from(port)) {
        (None, _) => "any network".into(),
        (Some(a), Ok(0) | Err(_)) => a.to_string(),
        (Some(a), Ok(port)) => SocketAddr::new(a, port).to_string(),
    }
}

impl Side<'_> {
    /// The level of a network; the lowest if no line names it.
    fn network(&self, address: Option<IpAddr>) -> (u8, Option<u32>) {
        let network = address.and_then(|a| self.policy.network(a));
        network.map_or((0, None), |n| (n.level, Some(n.source)))
    }

    /// Observes a network.
    fn hear(&mut self, line: &Line<'_>, address: Option<IpAddr>, port: u32) {
        let (level, _) = self.network(address);
        let who = self.who(line.pid);
        let to = rules::observe_net(who, level);
        if to < who.level {
            self.fall(line, to, line.act, &text(address, port));
        }
    }

    /// Sending to a network above the lowest level modifies it.
    fn speak(&mut self, line: &Line<'_>, address: IpAddr) {
        let (level, source) = self.network(Some(address));
        if level > self.who(line.pid).level {
            let network = Object::of(level, 0);
            let to = text(Some(address), line.port);
            self.refuse(line, Act::Send, Reason::Rule, &to, network, source);
        }
    }

    /// The socket's own address, where that is a network of this machine alone.
    fn own_network(line: &Line<'_>) -> Option<IpAddr> {
        line.bound.filter(|_| line.flags.contains(Flags::SERVER))
    }

    /// An operation on a socket, connect of Unix's among them.
    pub(crate) fn socket(&mut self, line: &Line<'_>) {
        if line.family == UNIX {
            return self.connect_unix(line);
        }
        match line.act {
            Act::Connect => {
                let to = destination(line.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
                self.speak(line, to);
                self.hear(line, Some(to), line.port);
            }
            Act::Accept => self.hear(line, Self::own_network(line), 0),
            Act::Receive if line.socket == STREAM => self.hear(line, known(line.address), 0),
            Act::Receive => self.hear(line, Self::own_network(line), 0),
            Act::Send => {
                if let Some(to) = known(line.address) {
                    self.speak(line, to);
                }
                if let Some(own) = Self::own_network(line) {
                    self.speak(line, own);
                }
            }
            _ => self.hear(line, None, 0),
        }
    }

    /// What was connected when recording began.
    pub(crate) fn connected(&mut self, line: &Line<'_>) {
        if let Some(peer) = known(line.address) {
            self.hear(line, Some(peer), line.port);
        }
    }

    fn connect_unix(&mut self, line: &Line<'_>) {
        if !line.inode.is_none() {
            let (label, source) = self.label(line);
            if !rules::modify(self.who(line.pid), label, self.top) {
                let reason = crate::names::reason_of(label);
                self.refuse(line, Act::Connect, reason, &line.path, label, source);
            }
        }
        if line.refused != 0 || line.peer == 0 || !self.processes.contains_key(&line.peer) {
            return;
        }
        if line.socket == STREAM {
            let link = ChannelId::Link(line.channel);
            self.join(line, link, line.peer, true, true);
            self.join(line, link, line.pid, true, true);
        } else {
            // a datagram: its receiver hears it, and nothing stays
            let once = ChannelId::Link(0);
            self.join(line, once, line.peer, true, false);
            self.join(line, once, line.pid, false, true);
            self.forget_channel(once);
        }
    }
}
