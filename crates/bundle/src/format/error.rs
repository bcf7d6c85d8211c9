//! What can be wrong with a bundle.

use miette::Diagnostic;
use thiserror::Error;

use crate::te::policydb::PolicyDbError;

/// Why a bundle was not accepted. The loader stops at the first fault and builds
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum BundleError {
    // The file.
    /// Larger than any bundle.
    #[error("{0} bytes are more than a bundle may have")]
    #[diagnostic(code(bundle::too_large))]
    TooLarge(usize),
    /// Another kind of file.
    #[error("this is not a Tidegate bundle")]
    #[diagnostic(code(bundle::foreign), help("`tidegate compile` makes one from a map"))]
    Foreign,
    /// Cut off.
    #[error("the bundle is cut off: {have} of {need} bytes")]
    #[diagnostic(code(bundle::truncated), help("compile or copy it anew"))]
    Truncated {
        /// Bytes there are.
        have: u64,
        /// Bytes there should be, at least.
        need: u64,
    },
    /// More than its header says.
    #[error("{0} bytes follow the bundle's end")]
    #[diagnostic(code(bundle::trailing), help("compile or copy it anew"))]
    Trailing(u64),
    /// Another format version.
    #[error("the bundle has format {found}; this version reads format {known}")]
    #[diagnostic(
        code(bundle::version),
        help("compile the map with the Tidegate that will load it")
    )]
    Version {
        /// The bundle's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Changed after it was made.
    #[error("the bundle's checksum does not match its content")]
    #[diagnostic(code(bundle::checksum), help("compile or copy it anew"))]
    Checksum,

    // Sections.
    /// For a model that this version does not know.
    #[error("unknown section `{0}`")]
    #[diagnostic(
        code(bundle::unknown_section),
        help("a newer Tidegate made it; leaving a section out would enforce less than it says")
    )]
    UnknownSection(String),
    /// Twice the same.
    #[error("section `{0}` stands twice")]
    #[diagnostic(code(bundle::section_twice))]
    SectionTwice(String),
    /// Nothing to enforce.
    #[error("section `{0}` is missing")]
    #[diagnostic(code(bundle::missing_section))]
    MissingSection(&'static str),
    /// Not in the section's form.
    #[error("section `{section}` is malformed at its {what}")]
    #[diagnostic(code(bundle::malformed))]
    Malformed {
        /// The section.
        section: &'static str,
        /// What was being read.
        what: &'static str,
    },
    /// Bytes after a section's last field.
    #[error("section `{section}` goes on for {bytes} bytes after its end")]
    #[diagnostic(code(bundle::section_trailing))]
    SectionTrailing {
        /// The section.
        section: &'static str,
        /// How many.
        bytes: usize,
    },
    /// More of something than a policy may have.
    #[error("{count} {what}, where at most {max} are allowed")]
    #[diagnostic(code(bundle::limit))]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },

    // The policy's own form.
    /// A name no policy can have.
    #[error("a policy cannot be named {0:?}")]
    #[diagnostic(code(bundle::policy_name))]
    PolicyName(String),
    /// Fewer levels than two.
    #[error("{0} levels, where two are needed")]
    #[diagnostic(code(bundle::few_levels))]
    FewLevels(usize),
    /// A name no level can have, or one that is taken.
    #[error("a level cannot be named {0:?} here")]
    #[diagnostic(code(bundle::level_name))]
    LevelName(String),
    /// No node at all.
    #[error("the trie has no root")]
    #[diagnostic(code(bundle::no_root))]
    NoRoot,
    /// A level that is not named.
    #[error("{what} {index} has level {level}, which no name belongs to")]
    #[diagnostic(code(bundle::level_range))]
    LevelRange {
        /// `node` or `network`.
        what: &'static str,
        /// Which.
        index: usize,
        /// Its level.
        level: u8,
    },
    /// A source that is not there.
    #[error("{what} {index} has source {rule}, which is not there")]
    #[diagnostic(code(bundle::source_range))]
    SourceRange {
        /// `node` or `network`.
        what: &'static str,
        /// Which.
        index: usize,
        /// Its source.
        rule: u32,
    },
    /// Attribute bits this version does not know, or in a place they cannot be.
    #[error("node {node} has attributes {bits:#x}, which it cannot have")]
    #[diagnostic(code(bundle::attributes))]
    Attributes {
        /// Which.
        node: usize,
        /// Its attributes.
        bits: u16,
    },
    /// An edge from or to a node that is not there.
    #[error("edge {edge} goes to or from node {node}, which is not there")]
    #[diagnostic(code(bundle::edge_range))]
    EdgeRange {
        /// Which.
        edge: usize,
        /// The node.
        node: u32,
    },
    /// A star to a node that is not there.
    #[error("the star of node {node} goes to node {star}, which is not there")]
    #[diagnostic(code(bundle::star_range))]
    StarRange {
        /// Which.
        node: usize,
        /// Where its star goes.
        star: u32,
    },
    /// A name no path component can have.
    #[error("edge {0} has a name that no file can have")]
    #[diagnostic(code(bundle::edge_name))]
    EdgeName(usize),
    /// Two edges of one name.
    #[error("edge {0} repeats the one before it")]
    #[diagnostic(code(bundle::edge_twice))]
    EdgeTwice(usize),
    /// Not sorted.
    #[error("edge {0} is out of order")]
    #[diagnostic(code(bundle::edge_order))]
    EdgeOrder(usize),
    /// A wrong count.
    #[error("node {node} tells of {told} edges and has {found}")]
    #[diagnostic(code(bundle::edge_count))]
    EdgeCount {
        /// Which.
        node: usize,
        /// What it says.
        told: u32,
        /// What it has.
        found: u32,
    },
    /// Two ways to a node, or one to the root.
    #[error("node {0} is reached twice")]
    #[diagnostic(code(bundle::node_shared))]
    NodeShared(usize),
    /// No way to a node.
    #[error("node {0} is never reached")]
    #[diagnostic(code(bundle::node_lost))]
    NodeLost(usize),
    /// Nodes that lead to each other and not from the root.
    #[error("node {0} is on a cycle")]
    #[diagnostic(code(bundle::cycle))]
    Cycle(usize),
    /// Deeper than a walk goes.
    #[error("node {node} is {depth} components deep")]
    #[diagnostic(code(bundle::depth))]
    Depth {
        /// Which.
        node: usize,
        /// How deep.
        depth: usize,
    },
    /// An impossible prefix, or host bits beyond it.
    #[error("network {0} is not a network")]
    #[diagnostic(code(bundle::network))]
    Network(usize),
    /// Not sorted, or twice.
    #[error("network {0} is out of order or repeated")]
    #[diagnostic(code(bundle::network_order))]
    NetworkOrder(usize),
    /// A rule's text or file that no compiler writes.
    #[error("rule {0} has an overlong text or file name")]
    #[diagnostic(code(bundle::rule_text))]
    RuleText(usize),
    /// Without what Tidegate's own safety rests on.
    #[error("the policy changes the built-in rule of {0}")]
    #[diagnostic(
        code(bundle::unprotected),
        help("no map can do so; the bundle was made by something else")
    )]
    Unprotected(String),

    // Profiles.
    /// A section that has no reason to be there.
    #[error("the section of profiles has none")]
    #[diagnostic(code(bundle::no_profiles))]
    NoProfiles,
    /// A profile that no compiler makes.
    #[error("profile {profile} has {what}")]
    #[diagnostic(code(bundle::profile))]
    Profile {
        /// Which.
        profile: usize,
        /// What of it cannot be.
        what: &'static str,
    },
    /// An automaton that no compiler makes.
    #[error("automaton {automaton} has {what}")]
    #[diagnostic(code(bundle::automaton))]
    Automaton {
        /// Which.
        automaton: usize,
        /// What of it cannot be.
        what: &'static str,
    },
    /// An overlong text of a rule that nothing mediates.
    #[error("rule {0} of those that nothing mediates has an overlong text")]
    #[diagnostic(code(bundle::unmediated))]
    Unmediated(usize),
    /// An overlong text of profiles that were left out.
    #[error("number {0} of the profiles that were left out has an overlong text")]
    #[diagnostic(code(bundle::left_out))]
    LeftOut(usize),
    /// A profile that is disabled, and not among those that were left out.
    #[error("number {0} of the profiles that were left out is disabled, and is not there")]
    #[diagnostic(code(bundle::disabled))]
    Disabled(u32),

    // The SELinux policy.
    /// A binary policy that cannot be read.
    #[error("the SELinux policy in it cannot be read")]
    #[diagnostic(code(bundle::te))]
    Te(#[diagnostic_source] PolicyDbError),
    /// A boolean that the policy does not have, or that is set twice.
    #[error("the boolean `{0}` is set and not there, or set twice")]
    #[diagnostic(code(bundle::te_boolean))]
    TeBoolean(String),
    // File contexts.
    /// File contexts that no compiler makes.
    #[error("the file contexts have {0}")]
    #[diagnostic(code(bundle::file_contexts))]
    FileContexts(&'static str),

    // Capability files.
    /// Capability files that no compiler makes.
    #[error("the capability files have {0}")]
    #[diagnostic(code(bundle::capabilities))]
    Capabilities(&'static str),
}
