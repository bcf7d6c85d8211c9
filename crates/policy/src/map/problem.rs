//! Everything that a map can have wrong, each with its fix.

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::limits::{
    MAX_INCLUDE_DEPTH, MAX_LEVEL_NAME, MAX_LEVELS, MAX_LINE, MAX_NETWORKS, MAX_NODES,
    MAX_POLICY_NAME, MAX_RULES, MAX_TEXT,
};

use super::PathProblem;
use crate::network::NetworkProblem;

/// One thing wrong with a map. The diagnostic's code names it for machines.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum Problem {
    // Reading.
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    #[diagnostic(code(plm::unreadable))]
    Unreadable {
        /// The file.
        path: String,
        /// The system's word.
        why: String,
    },
    /// Too much text.
    #[error("the map and what it includes are over {} MiB", MAX_TEXT >> 20)]
    #[diagnostic(code(plm::text_size))]
    TextSize,
    /// A policy's name that cannot be kept.
    #[error("a policy's name has 1 to {MAX_POLICY_NAME} bytes and no control characters")]
    #[diagnostic(code(plm::policy_name))]
    PolicyName,

    // Words.
    /// A line too long to be shown in a record.
    #[error("a line of over {MAX_LINE} bytes")]
    #[diagnostic(code(plm::line_size))]
    LineSize,
    /// A character that begins no word.
    #[error("unexpected character {0:?}")]
    #[diagnostic(
        code(plm::character),
        help("words are parted by blanks and tabs; a path with others goes in quotes")
    )]
    Character(String),
    /// A quote without end.
    #[error("the quoted path does not end on its line")]
    #[diagnostic(code(plm::unclosed), help(r#"close it with `"`"#))]
    Unclosed,

    // Statements.
    /// A line that begins with no known word.
    #[error("unknown statement `{word}`")]
    #[diagnostic(code(plm::statement))]
    Statement {
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: String,
    },
    /// Something else was needed here.
    #[error("expected {0}")]
    #[diagnostic(code(plm::expected))]
    Expected(&'static str, #[help] Option<String>),
    /// A statement that goes on after its end.
    #[error("the statement ends before `{0}`")]
    #[diagnostic(code(plm::trailing), help("one statement a line"))]
    Trailing(String),
    /// `interface`, of some other MAC's language.
    #[error("networks are told by address, not by interface")]
    #[diagnostic(
        code(plm::interface),
        help("write `{0} network` and the interface's network, as 192.0.2.0/24")
    )]
    Interface(String),

    // Levels.
    /// No `levels` anywhere.
    #[error("the map names no levels")]
    #[diagnostic(
        code(plm::no_levels),
        help("add `levels system > user`, highest first, or `include` a preset")
    )]
    NoLevels,
    /// A second `levels` statement.
    #[error("the levels are named twice")]
    #[diagnostic(
        code(plm::levels_twice),
        help("one `levels` statement serves the map and all it includes")
    )]
    LevelsTwice,
    /// One level only.
    #[error("a policy needs at least two levels")]
    #[diagnostic(
        code(plm::levels_few),
        help("name two or more, as `levels high > low`")
    )]
    LevelsFew,
    /// Too many levels.
    #[error("over {MAX_LEVELS} levels")]
    #[diagnostic(code(plm::levels_many))]
    LevelsMany,
    /// A name no level can have.
    #[error("`{0}` cannot be a level's name")]
    #[diagnostic(
        code(plm::level_name),
        help(
            "a level's name is a lower-case letter, then letters, digits, `-` or `_`, \
             at most {MAX_LEVEL_NAME} in all, and no word of the map language"
        )
    )]
    LevelName(String),
    /// A level named twice in one statement.
    #[error("level `{0}` stands twice")]
    #[diagnostic(code(plm::level_twice))]
    LevelTwice(String),
    /// A level nobody named.
    #[error("unknown level `{word}`")]
    #[diagnostic(code(plm::level))]
    Level {
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: String,
    },

    // Mode and include.
    /// Neither mode.
    #[error("unknown mode `{0}`")]
    #[diagnostic(code(plm::mode), help("the modes are `enforcing` and `permissive`"))]
    Mode(String),
    /// Two modes in one file.
    #[error("the mode is given twice")]
    #[diagnostic(code(plm::mode_twice), help("keep one of them"))]
    ModeTwice,
    /// Not a preset.
    #[error("unknown preset `{word}`")]
    #[diagnostic(code(plm::preset))]
    Preset {
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: String,
    },
    /// An include that would override what stands above it.
    #[error("`include` stands after rules")]
    #[diagnostic(
        code(plm::include_late),
        help("move it above the file's first rule, so that the rules override what it brings")
    )]
    IncludeLate,
    /// Files that include each other.
    #[error("{0} includes itself")]
    #[diagnostic(code(plm::include_cycle))]
    IncludeCycle(String),
    /// Too many files between this one and the first.
    #[error("includes nested over {MAX_INCLUDE_DEPTH} deep")]
    #[diagnostic(code(plm::include_depth))]
    IncludeDepth,
    /// A relative path with nothing to be relative to.
    #[error("a map that is not a file can include presets only")]
    #[diagnostic(code(plm::include_file))]
    IncludeFile,

    // Rules.
    /// What is wrong with the path.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Path(#[from] PathProblem),
    /// What is wrong with the network.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Network(#[from] NetworkProblem),
    /// An attribute nobody knows.
    #[error("unknown attribute `{word}`")]
    #[diagnostic(code(plm::attribute))]
    Attribute {
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: String,
    },
    /// An attribute given twice.
    #[error("`{0}` stands twice")]
    #[diagnostic(code(plm::attribute_twice), help("keep one of them"))]
    AttributeTwice(String),
    /// `child-of` elsewhere than after the path.
    #[error("`child-of` stands before the attributes")]
    #[diagnostic(code(plm::child_of), help("write it right after the path"))]
    ChildOf,
    /// An attribute on what is neutral.
    #[error("a neutral path takes no attributes")]
    #[diagnostic(
        code(plm::neutral_attribute),
        help("it neither demotes nor refuses; give the path a level to say more")
    )]
    NeutralAttribute,
    /// A network cannot be neutral.
    #[error("a network cannot be neutral")]
    #[diagnostic(code(plm::neutral_network), help("give it a level"))]
    NeutralNetwork,
    /// Two rules for one path, in one file.
    #[error("a second rule for this path")]
    #[diagnostic(
        code(plm::rule_twice),
        help(
            "keep one of them; a path can have one rule with `child-of` and one without, \
             and a rule of an included file is overridden without being repeated there"
        )
    )]
    RuleTwice,
    /// Two levels for one network, in one file.
    #[error("a second level for this network")]
    #[diagnostic(code(plm::network_twice), help("keep one of them"))]
    NetworkTwice,
    /// A path that Tidegate keeps for itself.
    #[error("{0} and what is below it have built-in rules")]
    #[diagnostic(
        code(plm::reserved),
        help("Tidegate's own safety rests on them; remove this rule")
    )]
    Reserved(&'static str),
    /// No rule for the root.
    #[error("no rule covers `/`")]
    #[diagnostic(
        code(plm::no_root),
        help("add `{0} /`, so that every path has a level")
    )]
    NoRoot(String),
    /// More nodes than the kernel's table holds.
    #[error("the rules need over {MAX_NODES} trie nodes")]
    #[diagnostic(
        code(plm::nodes),
        help("many rules with `*` in several components multiply; write fewer of them")
    )]
    Nodes,
    /// More rules than the bundle's limit.
    #[error("over {MAX_RULES} rules")]
    #[diagnostic(code(plm::rules))]
    Rules,
    /// More networks than the kernel's table holds.
    #[error("over {MAX_NETWORKS} networks")]
    #[diagnostic(code(plm::networks))]
    Networks,

    // Warnings.
    /// An attribute that changes nothing.
    #[error("`{attribute}` has no effect here: {why}")]
    #[diagnostic(code(plm::ineffective), severity(Warning))]
    Ineffective {
        /// The attribute.
        attribute: &'static str,
        /// Why not.
        why: &'static str,
        /// The fix.
        #[help]
        help: &'static str,
    },
    /// A rule that no path reaches.
    #[error("no path reaches this rule")]
    #[diagnostic(
        code(plm::shadowed),
        severity(Warning),
        help("a home written out overrides `~`; remove this rule or those")
    )]
    Shadowed,
    /// A path that goes through a symbolic link of Debian's.
    #[error("`{alias}` is a symbolic link on a merged-/usr system")]
    #[diagnostic(
        code(plm::alias),
        severity(Warning),
        help("rules match canonical paths: write {canonical}")
    )]
    Alias {
        /// The path's beginning.
        alias: &'static str,
        /// What it resolves to.
        canonical: &'static str,
    },
}
