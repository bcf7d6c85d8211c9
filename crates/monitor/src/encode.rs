//! A compiled policy as the kernel's tables hold it.

use std::collections::HashMap;
use std::net::IpAddr;

use tidegate_bundle::{Network, Node, Policy, Rule};

use crate::abi::TG_CHUNK;
use crate::skel::types::{tg_edge, tg_net, tg_node, tg_rule};

const CHUNK: usize = TG_CHUNK as usize;

fn rule(r: Rule) -> tg_rule {
    tg_rule {
        level: r.level,
        pad: 0,
        attrs: r.attrs.bits(),
        source: r.source,
    }
}

/// A node of the trie.
pub(crate) fn node(n: &Node) -> tg_node {
    tg_node {
        own: rule(n.own),
        below: rule(n.below),
        star: n.star.unwrap_or(0),
        edges: n.edges,
    }
}

/// Every edge. A component longer than [`TG_CHUNK`] is a chain of edges through
/// nodes of its own, numbered after the policy's: the kernel follows their
/// numbers and never reads them. Components with the same beginning share it.
pub(crate) fn edges(policy: &Policy) -> (Vec<tg_edge>, Vec<u32>) {
    let mut fresh = policy.nodes.len() as u32;
    let mut chains: HashMap<(u32, &[u8]), u32> = HashMap::new();
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for edge in &policy.edges {
        let (mut parent, mut rest) = (edge.parent, edge.name.as_slice());
        while rest.len() > CHUNK {
            let (head, tail) = rest.split_at(CHUNK);
            let next = *chains.entry((parent, head)).or_insert_with(|| {
                keys.push(edge_key(parent, head, true));
                values.push(fresh);
                fresh += 1;
                fresh - 1
            });
            (parent, rest) = (next, tail);
        }
        keys.push(edge_key(parent, rest, false));
        values.push(edge.child);
    }
    (keys, values)
}

fn edge_key(parent: u32, part: &[u8], more: bool) -> tg_edge {
    let mut name = [0; CHUNK];
    for (to, &from) in name.iter_mut().zip(part) {
        *to = from as _;
    }
    tg_edge {
        parent,
        len: part.len() as u16,
        more: more.into(),
        name,
    }
}

/// A network's key; IPv4 is mapped into ::ffff:0:0/96.
pub(crate) fn net(n: &Network) -> tg_net {
    let (addr, prefix) = match n.addr {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped(), u32::from(n.prefix) + 96),
        IpAddr::V6(v6) => (v6, n.prefix.into()),
    };
    tg_net {
        prefixlen: prefix,
        addr: addr.octets(),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::map;

    use super::*;

    fn policy(names: &[&[u8]]) -> Policy {
        let mut p = map::compile_str("t", "levels a > b\na /\n").unwrap().policy;
        for name in names {
            let child = p.nodes.len() as u32;
            p.nodes.push(p.nodes[0]);
            p.edges.push(tidegate_bundle::Edge {
                parent: 0,
                name: name.to_vec(),
                child,
            });
        }
        p
    }

    /// The kernel's walk (plm_step in kernel/lomac/map_walk.h).
    fn step(table: &(Vec<tg_edge>, Vec<u32>), mut node: u32, name: &[u8]) -> Option<u32> {
        let mut done = 0;
        loop {
            let part = (name.len() - done).min(CHUNK);
            let key = edge_key(node, &name[done..done + part], name.len() - done > CHUNK);
            let at = table.0.iter().position(|k| {
                (k.parent, k.len, k.more, k.name) == (key.parent, key.len, key.more, key.name)
            })?;
            node = table.1[at];
            done += part;
            if done >= name.len() {
                return Some(node);
            }
        }
    }

    #[test]
    fn every_name_is_found_whatever_its_length() {
        let names: Vec<Vec<u8>> = [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 255]
            .iter()
            .map(|&n| vec![b'x'; n])
            .collect();
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let p = policy(&names);
        let table = edges(&p);
        let first = (p.nodes.len() - names.len()) as u32;
        for (child, name) in (first..).zip(&names) {
            assert_eq!(step(&table, 0, name), Some(child));
        }
        assert_eq!(step(&table, 0, &[b'x'; 100]), None);
        assert_eq!(step(&table, 0, &[b'y'; CHUNK]), None);
    }

    #[test]
    fn long_names_share_their_beginning_and_no_node() {
        let (a, b) = (vec![b'x'; 60], [vec![b'x'; CHUNK], vec![b'y'; 3]].concat());
        let before = edges(&policy(&[])).0.len();
        let (keys, values) = edges(&policy(&[&a, &b]));
        assert_eq!(keys.len(), before + 3);
        let mut ids = values.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), values.len());
    }

    #[test]
    fn networks_are_keyed_in_ipv6() {
        let v4 = Network {
            addr: "10.0.0.0".parse().unwrap(),
            prefix: 8,
            level: 1,
            source: 0,
        };
        let key = net(&v4);
        assert_eq!(key.prefixlen, 104);
        assert_eq!(key.addr[10..13], [0xff, 0xff, 10]);
        let v6 = Network {
            addr: "fd00::".parse().unwrap(),
            prefix: 8,
            level: 1,
            source: 0,
        };
        assert_eq!((net(&v6).prefixlen, net(&v6).addr[0]), (8, 0xfd));
    }
}
