//! The reference look-ups: what the kernel's walks must agree with.

use std::net::IpAddr;

use crate::attrs::Attrs;
use crate::policy::{Network, Policy, Rule};

/// Where a walk down a canonical path has come to: a step costs the same however long the
/// path is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    policy: &'p Policy,
    node: u32,
    /// The path goes on where the trie ends.
    past: bool,
}

impl Place<'_> {
    /// What is called `name` there.
    pub fn child(self, name: &[u8]) -> Self {
        if self.past {
            return self;
        }
        match self.policy.step(self.node, name) {
            Some(node) => Place { node, ..self },
            None => Place { past: true, ..self },
        }
    }

    /// The rule.
    pub fn rule(self) -> Rule {
        let node = &self.policy.nodes[self.node as usize];
        if self.past { node.below } else { node.own }
    }

    /// Whether anything below may have a rule with these attributes.
    pub fn any_below(self, attrs: Attrs) -> bool {
        if self.past {
            return self.rule().attrs.contains(attrs);
        }
        self.policy.any_under(self.node, attrs)
    }
}

impl Policy {
    /// The place of a canonical path.
    pub fn place(&self, path: &[u8]) -> Place<'_> {
        let root = Place {
            policy: self,
            node: 0,
            past: false,
        };
        components(path).fold(root, Place::child)
    }

    /// The level called `name`.
    pub fn level(&self, name: &str) -> Option<u8> {
        let index = self.levels.iter().position(|level| level == name)?;
        u8::try_from(index).ok()
    }

    /// The top level.
    pub fn top(&self) -> u8 {
        u8::try_from(self.levels.len().saturating_sub(1)).unwrap_or(u8::MAX)
    }

    /// The rule for a canonical path (`docs/reference/lomac.md`, Objects).
    ///
    /// Walks from the root: the exact edge, else the star, else stops. A path
    /// that ends on a node has the node's own rule, one that goes on has the
    /// deepest node's rule for what is below it. Empty components are skipped;
    /// `.` and `..` are names like any other, as a canonical path has none.
    ///
    /// # Panics
    ///
    /// If the policy breaks the invariants of [`Policy`], which one that was
    /// compiled or read from a bundle never does.
    pub fn lookup(&self, path: &[u8]) -> Rule {
        self.place(path).rule()
    }

    /// The rule for what is below a canonical path, and whether it holds for all that is:
    /// a directory moves as a whole only between such places.
    ///
    /// # Panics
    ///
    /// As [`lookup`](Policy::lookup).
    pub fn below(&self, path: &[u8]) -> (Rule, bool) {
        let mut at = 0u32;
        for name in components(path) {
            match self.step(at, name) {
                Some(child) => at = child,
                None => return (self.nodes[at as usize].below, true),
            }
        }
        let node = &self.nodes[at as usize];
        (node.below, node.edges == 0 && node.star.is_none())
    }

    /// Whether anything below a node may have a rule with these attributes.
    fn any_under(&self, at: u32, attrs: Attrs) -> bool {
        let node = &self.nodes[at as usize];
        let from = self.edges.partition_point(|edge| edge.parent < at);
        let exact = self.edges[from..].iter().take(node.edges as usize);
        let mut children = exact.map(|edge| edge.child).chain(node.star);
        node.below.attrs.contains(attrs)
            || children.any(|child| {
                self.nodes[child as usize].own.attrs.contains(attrs) || self.any_under(child, attrs)
            })
    }

    /// The node that `name` leads to from `at`.
    fn step(&self, at: u32, name: &[u8]) -> Option<u32> {
        self.exact(at, name).or(self.nodes[at as usize].star)
    }

    /// The node that an edge called `name` leads to from `at`.
    ///
    /// # Panics
    ///
    /// As [`lookup`](Policy::lookup), and if there is no node `at`.
    pub fn exact(&self, at: u32, name: &[u8]) -> Option<u32> {
        if self.nodes[at as usize].edges == 0 {
            return None;
        }
        let edge = self
            .edges
            .binary_search_by(|edge| (edge.parent, edge.name.as_slice()).cmp(&(at, name)))
            .ok()?;
        Some(self.edges[edge].child)
    }

    /// The node that exact edges lead to along `path`.
    pub(crate) fn node(&self, path: &[u8]) -> Option<u32> {
        components(path).try_fold(0, |at, name| self.exact(at, name))
    }

    /// The longest network line that covers `addr`; `None` means the lowest
    /// level. An IPv4-mapped IPv6 address is the IPv4 address it maps.
    pub fn network(&self, addr: IpAddr) -> Option<&Network> {
        let addr = addr.to_canonical();
        self.networks
            .iter()
            .filter(|network| network.contains(addr))
            .max_by_key(|network| network.prefix)
    }
}

/// The components of a path.
fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
}

impl Network {
    /// Whether `addr` is in this network.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match (self.addr, addr) {
            (IpAddr::V4(net), IpAddr::V4(addr)) => {
                mask(net.to_bits().into(), self.prefix, 32)
                    == mask(addr.to_bits().into(), self.prefix, 32)
            }
            (IpAddr::V6(net), IpAddr::V6(addr)) => {
                mask(net.to_bits(), self.prefix, 128) == mask(addr.to_bits(), self.prefix, 128)
            }
            _ => false,
        }
    }
}

/// `bits`, of which `width` count, with all but the first `prefix` cleared.
pub(crate) fn mask(bits: u128, prefix: u8, width: u32) -> u128 {
    let host = width.saturating_sub(prefix.into());
    match u128::MAX.checked_shl(host) {
        Some(mask) => bits & mask,
        None => 0,
    }
}
