//! What statements that were added to a policy do to those that were there.

use std::collections::BTreeSet;

use tidegate_bundle::{Attrs, Policy, Rule, RuleSource};

/// What a change of a policy does besides what it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Statements that counted somewhere, and count nowhere any more.
    pub silenced: Vec<RuleSource>,
    /// `lownoopen` statements that keep less than they did from lower subjects.
    pub opened: Vec<RuleSource>,
}

/// Where a walk stands in one of the two tries.
#[derive(Clone, Copy)]
enum At {
    Node(u32),
    /// Below the last node that there was.
    Below(Rule),
}

impl At {
    fn own(self, policy: &Policy) -> Rule {
        match self {
            At::Node(node) => policy.nodes[node as usize].own,
            At::Below(rule) => rule,
        }
    }

    fn below(self, policy: &Policy) -> Rule {
        match self {
            At::Node(node) => policy.nodes[node as usize].below,
            At::Below(rule) => rule,
        }
    }

    /// One component further; `None` is one that no edge names.
    fn step(self, policy: &Policy, name: Option<&[u8]>) -> At {
        let At::Node(node) = self else { return self };
        let exact = name.and_then(|name| policy.exact(node, name));
        match exact.or(policy.nodes[node as usize].star) {
            Some(child) => At::Node(child),
            None => At::Below(policy.nodes[node as usize].below),
        }
    }

    fn names(self, policy: &Policy) -> impl Iterator<Item = &[u8]> {
        let edges = match self {
            At::Node(node) => {
                let from = policy.edges.partition_point(|edge| edge.parent < node);
                let to = policy.edges.partition_point(|edge| edge.parent <= node);
                &policy.edges[from..to]
            }
            At::Below(_) => &[],
        };
        edges.iter().map(|edge| edge.name.as_slice())
    }
}

impl Effects {
    /// Returns what a policy that was made of another one by adding statements does to the other's.
    pub fn of(before: &Policy, after: &Policy) -> Effects {
        let (counted, counts) = (counting(before), counting(after));
        let silenced = counted.difference(&counts).map(|s| (*s).clone());
        let mut opened = BTreeSet::new();
        let mut places = vec![(At::Node(0), At::Node(0))];
        while let Some((old, now)) = places.pop() {
            for (was, is) in [
                (old.own(before), now.own(after)),
                (old.below(before), now.below(after)),
            ] {
                if keeps_out(was) && !(keeps_out(is) && is.level >= was.level) {
                    opened.insert(was.source);
                }
            }
            if let (At::Below(_), At::Below(_)) = (old, now) {
                continue;
            }
            let names: BTreeSet<&[u8]> = old.names(before).chain(now.names(after)).collect();
            for name in names.into_iter().map(Some).chain([None]) {
                places.push((old.step(before, name), now.step(after, name)));
            }
        }
        Effects {
            silenced: silenced.collect(),
            opened: opened
                .into_iter()
                .map(|source| before.rules[source as usize].clone())
                .collect(),
        }
    }
}

/// The statements that decide for some path or network.
fn counting(policy: &Policy) -> BTreeSet<&RuleSource> {
    let nodes = policy.nodes.iter();
    nodes
        .flat_map(|node| [node.own.source, node.below.source])
        .chain(policy.networks.iter().map(|network| network.source))
        .map(|source| &policy.rules[source as usize])
        .collect()
}

/// Whether somebody is kept from opening what a rule covers.
fn keeps_out(rule: Rule) -> bool {
    rule.attrs.contains(Attrs::LOWNOOPEN) && rule.level > 0
}
