//! Rules to the trie that the kernel walks.
//!
//! The patterns first go into a plain trie in which an exact child and a star
//! may both lead on, so that a walk would have to try both. A subset
//! construction then makes one node of each set of places that a path can be
//! at: an exact child gets what the star beside it would have given it too.
//!
//! The places of a set all lie at one depth, so their patterns are equally
//! long; they are kept in order of specificity: at the first component where
//! two patterns differ, the exact one before the star. The set's rule is the
//! first place's that has one. That is longest match first, and among equally
//! long matches the one that is written out further.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidegate_bundle::builtin::RESERVED;
use tidegate_bundle::limits::MAX_NODES;
use tidegate_bundle::{Attrs, Edge, Node, Rule};

use super::builtin::pattern;
use super::pattern::Component;
use super::rules::{Kind, PathRule};

/// Places in all nodes' sets together, at most: what building may cost.
const MAX_PLACES: usize = 16 * MAX_NODES;

/// More nodes than [`MAX_NODES`] would be needed, or too much work.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyNodes;

/// A place in the plain trie.
#[derive(Default)]
struct Place {
    exact: BTreeMap<Vec<u8>, u32>,
    star: Option<u32>,
    own: Option<Rule>,
    below: Option<Rule>,
    /// A reserved path: no star reaches it or what is below.
    reserved: bool,
}

/// Builds the trie: nodes, the root first, and edges sorted by parent and name.
pub(super) fn build(rules: &[PathRule]) -> Result<(Vec<Node>, Vec<Edge>), TooManyNodes> {
    Determiniser::new(plant(rules)?).run()
}

/// The plain trie of `rules`.
fn plant(rules: &[PathRule]) -> Result<Vec<Place>, TooManyNodes> {
    let mut places = vec![Place::default()];
    for rule in rules {
        let mut at = 0usize;
        for component in &rule.pattern {
            let new = u32::try_from(places.len()).map_err(|_| TooManyNodes)?;
            let next = match component {
                Component::Name(name) => *places[at].exact.entry(name.clone()).or_insert(new),
                Component::Star => *places[at].star.get_or_insert(new),
            };
            if next == new {
                if places.len() >= MAX_NODES {
                    return Err(TooManyNodes);
                }
                places.push(Place::default());
            }
            at = next as usize;
        }
        let place = &mut places[at];
        let bare = Rule {
            level: rule.level,
            attrs: rule.attrs,
            source: rule.source,
        };
        match rule.kind {
            Kind::ChildOf => place.below = Some(bare),
            Kind::Here => {
                let named = rule.pattern.last() != Some(&Component::Star);
                let explicit = if named {
                    Attrs::EXPLICIT
                } else {
                    Attrs::empty()
                };
                place.own = Some(Rule {
                    attrs: rule.attrs | explicit,
                    ..bare
                });
                let inherited = Rule {
                    attrs: rule.attrs & Attrs::INHERITED,
                    ..bare
                };
                place.below.get_or_insert(inherited);
            }
        }
    }
    for reserved in RESERVED {
        let mut at = Some(0u32);
        for component in pattern(reserved) {
            let Component::Name(name) = component else {
                continue;
            };
            at = at.and_then(|at| places[at as usize].exact.get(&name).copied());
        }
        if let Some(at) = at {
            places[at as usize].reserved = true;
        }
    }
    Ok(places)
}

/// A node whose children are still to be made.
struct Pending {
    node: u32,
    places: Vec<u32>,
}

struct Determiniser {
    plain: Vec<Place>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    pending: VecDeque<Pending>,
    /// How many places were in the sets so far.
    seen: usize,
}

impl Determiniser {
    fn new(plain: Vec<Place>) -> Self {
        Self {
            plain,
            nodes: Vec::new(),
            edges: Vec::new(),
            pending: VecDeque::new(),
            seen: 0,
        }
    }

    fn run(mut self) -> Result<(Vec<Node>, Vec<Edge>), TooManyNodes> {
        // The map has a rule for the root, so what the root would inherit is
        // never seen.
        let nothing = Rule {
            level: 0,
            attrs: Attrs::empty(),
            source: 0,
        };
        self.node(vec![0], nothing)?;
        while let Some(Pending { node, places }) = self.pending.pop_front() {
            self.children(node, &places)?;
        }
        Ok((self.nodes, self.edges))
    }

    /// Makes the node for `places`, which inherits `inherited` from above.
    fn node(&mut self, places: Vec<u32>, inherited: Rule) -> Result<u32, TooManyNodes> {
        self.seen += places.len();
        if self.nodes.len() >= MAX_NODES || self.seen > MAX_PLACES {
            return Err(TooManyNodes);
        }
        let first = |rule: fn(&Place) -> Option<Rule>| {
            let mut places = places.iter();
            places
                .find_map(|at| rule(&self.plain[*at as usize]))
                .unwrap_or(inherited)
        };
        let node = Node {
            own: first(|p| p.own),
            below: first(|p| p.below),
            star: None,
            edges: 0,
        };
        let index = self.nodes.len() as u32; // below MAX_NODES
        self.nodes.push(node);
        self.pending.push_back(Pending {
            node: index,
            places,
        });
        Ok(index)
    }

    fn children(&mut self, node: u32, places: &[u32]) -> Result<(), TooManyNodes> {
        let inherited = self.nodes[node as usize].below;
        let plain = |at: &u32| &self.plain[*at as usize];
        let names: BTreeSet<Vec<u8>> = places
            .iter()
            .flat_map(|at| plain(at).exact.keys().cloned())
            .collect();
        let stars: Vec<u32> = places.iter().filter_map(|at| plain(at).star).collect();
        self.nodes[node as usize].edges = names.len() as u32; // below MAX_NODES
        for name in names {
            let reached = self.reached(places, &name);
            let child = self.node(reached, inherited)?;
            self.edges.push(Edge {
                parent: node,
                name,
                child,
            });
        }
        if !stars.is_empty() {
            self.nodes[node as usize].star = Some(self.node(stars, inherited)?);
        }
        Ok(())
    }

    /// Where `name` leads to from `places`, the most specific first.
    fn reached(&self, places: &[u32], name: &[u8]) -> Vec<u32> {
        let mut reached = Vec::new();
        for at in places {
            let place = &self.plain[*at as usize];
            reached.extend(place.exact.get(name));
            reached.extend(place.star);
        }
        // A reserved path is written out in full, so it is the first of all.
        if self.plain[reached[0] as usize].reserved {
            reached.truncate(1);
        }
        reached
    }
}
