//! The compiled policy of the `lomac` model.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::attrs::Attrs;
use crate::profile::ProfileSet;
use crate::te::Te;

/// A compiled path-level map.
///
/// The fields are public for the monitor, which copies them into kernel maps. A
/// policy that comes from the map's compiler or from [`from_bundle`](Policy::from_bundle)
/// keeps these invariants, on which [`lookup`](Policy::lookup) and the kernel's walk rely:
///
/// - `nodes` and `edges` are a tree: each node but the root has one way to it;
/// - `edges` is sorted by `(parent, name)`, without duplicates;
/// - where a node has both exact edges and a `star`, each exact child already
///   holds what the star would have given it, so a walk never goes back;
/// - every index and level is in range, and [`limits`](crate::limits) hold;
/// - `profiles` are as [`ProfileSet`] says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's name: its preset, or its file's name without extension.
    pub name: String,
    /// Whether refusals are enforced or only recorded.
    pub mode: Mode,
    /// Level names, lowest first: the index is the level.
    pub levels: Vec<String>,
    /// The trie's nodes. Node 0 is the root, `/`.
    pub nodes: Vec<Node>,
    /// The trie's exact edges, sorted by parent, then name.
    pub edges: Vec<Edge>,
    /// Network levels, sorted by address, then prefix length.
    pub networks: Vec<Network>,
    /// Where each rule was written, for audit records and `why`.
    pub rules: Vec<RuleSource>,
    /// The `profile` model's policy; empty where there is none. No map has any: the loader of the
    /// policy puts them here, and policies that more statements were compiled into, by which fixes
    /// are tried, are without them. Serde leaves them out, too, as what is kept of a policy (a
    /// recording's head, the daemon's files) is its bundle, which has them in a section of their
    /// own.
    #[serde(skip)]
    pub profiles: ProfileSet,
    /// The `te` model's policy, if there is one. It is put here, left out and kept as `profiles` are.
    #[serde(skip)]
    pub te: Option<Te>,
    /// The options by which a command line named it: a reload that names no policy reads them again. A policy that was only
    /// compiled has none. They are put here, left out and kept as `profiles` are.
    #[serde(skip)]
    pub options: Vec<String>,
}

/// Whether refusals are enforced or only recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// What the policy forbids is refused.
    Enforcing,
    /// What the policy forbids is recorded and let through.
    Permissive,
}

/// One place in the trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The rule for the path that ends here.
    pub own: Rule,
    /// The rule for a path that goes on below without a node of its own.
    pub below: Rule,
    /// The child for a component that no exact edge names.
    pub star: Option<u32>,
    /// How many exact edges leave this node.
    pub edges: u32,
}

/// What the policy says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// The integrity level: an index into [`Policy::levels`].
    pub level: u8,
    /// The attributes.
    pub attrs: Attrs,
    /// The statement it comes from: an index into [`Policy::rules`].
    pub source: u32,
}

/// A step from one node to another by an exact component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The node it leaves.
    pub parent: u32,
    /// The component, 1 to 255 bytes, not necessarily UTF-8.
    pub name: Vec<u8>,
    /// The node it leads to.
    pub child: u32,
}

/// The level of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Network {
    /// The network's address, its host bits zero.
    pub addr: IpAddr,
    /// The prefix length, in bits.
    pub prefix: u8,
    /// The integrity level: an index into [`Policy::levels`].
    pub level: u8,
    /// The statement it comes from: an index into [`Policy::rules`].
    pub source: u32,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuleSource {
    /// The map's file name, a preset's (`server.plm`), or `built-in`.
    pub file: String,
    /// The line, from 1; 0 for a built-in rule.
    pub line: u32,
    /// The statement, without its comment.
    pub text: String,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}
