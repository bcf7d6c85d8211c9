//! Checks a policy that was read: what [`Policy`] promises of one.

use std::collections::BTreeSet;

use super::BundleError;
use crate::attrs::Attrs;
use crate::builtin::{self, Builtin, RESERVED};
use crate::limits::{MAX_DEPTH, MAX_LINE, MAX_NAME, MIN_LEVELS};
use crate::names::{is_level_name, is_policy_name};
use crate::network::masked;
use crate::policy::{Node, Policy, Rule};

/// Checks all that the reader did not.
pub(super) fn policy(policy: &Policy) -> Result<(), BundleError> {
    names(policy)?;
    sources(policy)?;
    nodes(policy)?;
    edges(policy)?;
    tree(policy)?;
    networks(policy)?;
    builtins(policy)
}

fn names(policy: &Policy) -> Result<(), BundleError> {
    if !is_policy_name(&policy.name) {
        return Err(BundleError::PolicyName(policy.name.clone()));
    }
    if policy.levels.len() < MIN_LEVELS {
        return Err(BundleError::FewLevels(policy.levels.len()));
    }
    for (index, level) in policy.levels.iter().enumerate() {
        if !is_level_name(level) || policy.levels[..index].contains(level) {
            return Err(BundleError::LevelName(level.clone()));
        }
    }
    Ok(())
}

fn sources(policy: &Policy) -> Result<(), BundleError> {
    let overlong = |text: &String| text.len() > MAX_LINE;
    match policy
        .rules
        .iter()
        .position(|rule| overlong(&rule.file) || overlong(&rule.text))
    {
        Some(index) => Err(BundleError::RuleText(index)),
        None => Ok(()),
    }
}

fn nodes(policy: &Policy) -> Result<(), BundleError> {
    if policy.nodes.is_empty() {
        return Err(BundleError::NoRoot);
    }
    for (index, node) in policy.nodes.iter().enumerate() {
        for rule in [node.own, node.below] {
            reference(policy, "node", index, rule.level, rule.source)?;
            if Attrs::from_bits(rule.attrs.bits()).is_none() {
                return Err(BundleError::Attributes {
                    node: index,
                    bits: rule.attrs.bits(),
                });
            }
        }
        if node.below.attrs.contains(Attrs::EXPLICIT) {
            let bits = node.below.attrs.bits();
            return Err(BundleError::Attributes { node: index, bits });
        }
    }
    Ok(())
}

fn reference(
    policy: &Policy,
    what: &'static str,
    index: usize,
    level: u8,
    rule: u32,
) -> Result<(), BundleError> {
    if usize::from(level) >= policy.levels.len() {
        return Err(BundleError::LevelRange { what, index, level });
    }
    if rule as usize >= policy.rules.len() {
        return Err(BundleError::SourceRange { what, index, rule });
    }
    Ok(())
}

fn edges(policy: &Policy) -> Result<(), BundleError> {
    let count = policy.nodes.len();
    let mut found = vec![0u32; count];
    for (index, edge) in policy.edges.iter().enumerate() {
        for node in [edge.parent, edge.child] {
            if node as usize >= count {
                return Err(BundleError::EdgeRange { edge: index, node });
            }
        }
        let name = edge.name.as_slice();
        if !(1..=MAX_NAME).contains(&name.len())
            || matches!(name, b"." | b"..")
            || name.iter().any(|byte| matches!(byte, 0 | b'/'))
        {
            return Err(BundleError::EdgeName(index));
        }
        if let Some(before) = index.checked_sub(1).map(|before| &policy.edges[before]) {
            match (before.parent, &before.name).cmp(&(edge.parent, &edge.name)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Err(BundleError::EdgeTwice(index)),
                std::cmp::Ordering::Greater => return Err(BundleError::EdgeOrder(index)),
            }
        }
        found[edge.parent as usize] += 1;
    }
    for (index, (Node { edges: told, .. }, found)) in policy.nodes.iter().zip(found).enumerate() {
        if *told != found {
            return Err(BundleError::EdgeCount {
                node: index,
                told: *told,
                found,
            });
        }
    }
    Ok(())
}

/// Checks that each node but the root is reached once, from the root.
fn tree(policy: &Policy) -> Result<(), BundleError> {
    let count = policy.nodes.len();
    let mut parents: Vec<Option<u32>> = vec![None; count];
    let mut reach = |parent: u32, child: u32| {
        let index = child as usize;
        // The root is reached without a parent.
        if index == 0 || parents[index].replace(parent).is_some() {
            return Err(BundleError::NodeShared(index));
        }
        Ok(())
    };
    for edge in &policy.edges {
        reach(edge.parent, edge.child)?;
    }
    for (index, node) in policy.nodes.iter().enumerate() {
        let Some(star) = node.star else { continue };
        if star as usize >= count {
            return Err(BundleError::StarRange { node: index, star });
        }
        reach(index as u32, star)?;
    }
    depths(&parents)
}

/// Follows each node's parents to the root, remembering depths on the way.
fn depths(parents: &[Option<u32>]) -> Result<(), BundleError> {
    const UNKNOWN: usize = usize::MAX;
    let mut depths = vec![UNKNOWN; parents.len()];
    depths[0] = 0;
    for start in 1..parents.len() {
        let mut path = Vec::new();
        let mut at = start;
        while depths[at] == UNKNOWN {
            // A longer way up without a known end is a cycle or too deep.
            if path.len() > MAX_DEPTH {
                let cyclic = path[1..].contains(&start) || cycles(parents, start);
                return Err(if cyclic {
                    BundleError::Cycle(start)
                } else {
                    BundleError::Depth {
                        node: start,
                        depth: path.len(),
                    }
                });
            }
            path.push(at);
            at = parents[at].ok_or(BundleError::NodeLost(at))? as usize;
        }
        for node in path.into_iter().rev() {
            let depth = depths[at] + 1;
            if depth > MAX_DEPTH {
                return Err(BundleError::Depth { node, depth });
            }
            depths[node] = depth;
            at = node;
        }
    }
    Ok(())
}

/// Whether the way up from `start` never ends.
fn cycles(parents: &[Option<u32>], start: usize) -> bool {
    let mut at = start;
    for _ in 0..parents.len() {
        match parents[at] {
            Some(parent) => at = parent as usize,
            None => return false,
        }
    }
    true
}

fn networks(policy: &Policy) -> Result<(), BundleError> {
    for (index, network) in policy.networks.iter().enumerate() {
        reference(policy, "network", index, network.level, network.source)?;
        let bits = if network.addr.is_ipv4() { 32 } else { 128 };
        if network.prefix > bits || masked(network.addr, network.prefix) != network.addr {
            return Err(BundleError::Network(index));
        }
        if let Some(before) = index.checked_sub(1).map(|before| &policy.networks[before])
            && (before.addr, before.prefix) >= (network.addr, network.prefix)
        {
            return Err(BundleError::NetworkOrder(index));
        }
    }
    Ok(())
}

/// Checks that the reserved paths hold the built-in rules, and nothing else.
fn builtins(policy: &Policy) -> Result<(), BundleError> {
    let rules = builtin::rules(&policy.levels);
    // Each reserved path has a rule of its own, and so inherits nothing.
    let above = (0, Attrs::empty());
    for path in RESERVED {
        let node = policy.node(path.as_bytes());
        if !node.is_some_and(|node| holds(policy, node, path, above, &rules)) {
            return Err(BundleError::Unprotected(path.to_owned()));
        }
    }
    Ok(())
}

/// Returns whether a node that stands for `path`, and all below it, say what the built-in rules do. A path between two of their
/// paths has what is `inherited` from above, and no `*` leads anywhere.
fn holds(
    policy: &Policy,
    node: u32,
    path: &str,
    inherited: (u8, Attrs),
    rules: &[Builtin],
) -> bool {
    let (own, below) = match rules.iter().find(|rule| rule.path == path) {
        Some(rule) => (
            (rule.level, rule.attrs | Attrs::EXPLICIT),
            (rule.level, rule.attrs & Attrs::INHERITED),
        ),
        None => (inherited, inherited),
    };
    let further = rules.iter().filter_map(|rule| {
        let rest = rule.path.strip_prefix(path)?.strip_prefix('/')?;
        rest.split('/').next()
    });
    let names: BTreeSet<&str> = further.collect();
    let found = &policy.nodes[node as usize];
    let says = |rule: Rule| (rule.level, rule.attrs);
    says(found.own) == own
        && says(found.below) == below
        && found.star.is_none()
        && found.edges as usize == names.len()
        && names.iter().all(|name| {
            let child = policy.exact(node, name.as_bytes());
            let path = format!("{path}/{name}");
            child.is_some_and(|child| holds(policy, child, &path, below, rules))
        })
}
