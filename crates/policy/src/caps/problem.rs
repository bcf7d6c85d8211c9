//! Everything that a capability file can have wrong, each with its fix.

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::caps::PatternProblem;
use tidegate_bundle::limits::{
    MAX_CAPABILITIES, MAX_CAPS_BYTES, MAX_CAPS_NAME, MAX_INCLUDE_DEPTH, MAX_LINE, MAX_OPERANDS,
    MAX_OPERATIONS, MAX_SERVICE_PERMISSIONS, MAX_SERVICES, MAX_SUBJECTS, MAX_TEXT, MAX_VECTOR,
};

use crate::finding::Labelled;
use crate::network::NetworkProblem;
use crate::words::Wrong;

/// One thing wrong with a capability file. The diagnostic's code names it for machines.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum CapsProblem {
    // Reading.
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    #[diagnostic(code(caps::unreadable))]
    Unreadable {
        /// The file.
        path: String,
        /// The system's word.
        why: String,
    },
    /// Too much text.
    #[error("the file and what it includes are over {} MiB", MAX_TEXT >> 20)]
    #[diagnostic(code(caps::text_size))]
    TextSize,
    /// A file includes itself, by itself or by others.
    #[error("{0} includes itself")]
    #[diagnostic(code(caps::include_cycle), help("leave this include out"))]
    IncludeCycle(String),
    /// Too many files between this one and the first.
    #[error("includes nested over {MAX_INCLUDE_DEPTH} deep")]
    #[diagnostic(code(caps::include_depth), help("include the files from fewer files"))]
    IncludeDepth,
    /// A relative path with nothing to be relative to.
    #[error("what is not a file cannot include files")]
    #[diagnostic(code(caps::include_file), help("write the text to a file"))]
    IncludeFile,

    // Words.
    /// A line too long to be shown in a record.
    #[error("a line of over {MAX_LINE} bytes")]
    #[diagnostic(code(caps::line_size), help("write several statements"))]
    LineSize,
    /// A character that begins no word.
    #[error("unexpected character {0:?}")]
    #[diagnostic(
        code(caps::character),
        help("words are parted by blanks and tabs; a pattern with others goes in quotes")
    )]
    Character(String),
    /// A quote without end.
    #[error("the quoted pattern does not end on its line")]
    #[diagnostic(code(caps::unclosed), help(r#"close it with `"`"#))]
    Unclosed,
    /// A word that is none of those that can stand here.
    #[error("unknown {what} `{word}`")]
    #[diagnostic(code(caps::unknown))]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: String,
    },
    /// Something else was needed here.
    #[error("expected {0}")]
    #[diagnostic(code(caps::expected))]
    Expected(&'static str, #[help] String),
    /// A statement that goes on after its end.
    #[error("the statement ends before `{0}`")]
    #[diagnostic(
        code(caps::trailing),
        help("one statement a line; blocks open and close on lines of their own")
    )]
    Trailing(String),
    /// A name that cannot be one.
    #[error("`{0}` cannot be a name")]
    #[diagnostic(
        code(caps::name),
        help(
            "a name is a lower-case letter, then letters, digits, `-` and `_`, at most {MAX_CAPS_NAME} in all, and no word that can follow it"
        )
    )]
    Name(String),
    /// A word that was said before.
    #[error("{what} `{word}` stands twice")]
    #[diagnostic(
        code(caps::twice),
        help("leave one of them out, or give it another name")
    )]
    Twice {
        /// What it is.
        what: &'static str,
        /// The word.
        word: String,
    },
    /// A number that is none, or out of range.
    #[error("`{word}` is not a valid {what}")]
    #[diagnostic(code(caps::number))]
    Number {
        /// What was needed.
        what: &'static str,
        /// The word.
        word: String,
        /// The fix.
        #[help]
        help: &'static str,
    },

    // Blocks.
    /// A statement that has to stand in a block.
    #[error("`{0}` stands outside of the block that it belongs to")]
    #[diagnostic(
        code(caps::outside),
        help("a line `subject NAME {{` or `service NAME on PATTERN {{` before it opens one")
    )]
    Outside(String),
    /// A block or an include in a block.
    #[error("`{0}` stands in a block")]
    #[diagnostic(code(caps::nested), help("close the block before with a line `}}`"))]
    Nested(String),
    /// A block that is not closed.
    #[error("the block is not closed")]
    #[diagnostic(code(caps::open_block), help("close it with a line `}}`"))]
    OpenBlock,
    /// `}` that closes nothing.
    #[error("there is no block to close")]
    #[diagnostic(code(caps::no_block), help("leave it out"))]
    NoBlock,
    /// Nobody to give anything to.
    #[error("the file has no subject")]
    #[diagnostic(
        code(caps::no_subject),
        help("begin one with a line `subject NAME {{`")
    )]
    NoSubject,

    // Capabilities.
    /// What is wrong with the pattern.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pattern(#[from] PatternProblem),
    /// What is wrong with the network.
    #[error("{0}")]
    #[diagnostic(code(caps::network))]
    Network(String, #[help] Option<String>),
    /// A permission that a `control` cannot name, as its object is named, or it is checked, each time.
    #[error("`{0}` is checked at each use already")]
    #[diagnostic(
        code(caps::controlled),
        help(
            "leave it out; what can be controlled is `read`, `write` and `append` of files, `read` of directories, `read` and `write` of sockets"
        )
    )]
    Controlled(String),
    /// `expires` or `uses` of what is over at once.
    #[error("`{0}` of what binds nothing")]
    #[diagnostic(
        code(caps::unbound),
        help("executing and loading leave nothing bound that could end; leave it out")
    )]
    Unbound(&'static str),
    /// `uses` that nobody counts.
    #[error("nothing counts these uses")]
    #[diagnostic(code(caps::uncounted))]
    Uncounted(#[help] String),

    // Services.
    /// An operation that names a service's permission before there is one, and such.
    #[error("the service has no permissions")]
    #[diagnostic(
        code(caps::no_permissions),
        help("name them first: `permission read write`")
    )]
    NoPermissions,
    /// Two services at one socket.
    #[error("two services, `{first}` and `{second}`, are at one socket")]
    #[diagnostic(
        code(caps::service_overlap),
        help("let their patterns have no name in common")
    )]
    ServiceOverlap {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A socket that the subject cannot connect to.
    #[error("`{subject}` has no `connect unix` for the socket of `{service}`")]
    #[diagnostic(
        code(caps::unconnected),
        severity(Warning),
        help(
            "add `connect unix {socket}`; without it this is of use on a connection that another hands over alone"
        )
    )]
    Unconnected {
        /// The subject.
        subject: String,
        /// Which.
        service: String,
        /// Where it is.
        socket: String,
    },
    /// A path through one of Debian's symbolic links.
    #[error("`{alias}` is a symbolic link, and no object's path goes through it")]
    #[diagnostic(code(caps::alias), severity(Warning), help("write `{canonical}`"))]
    Alias {
        /// The link.
        alias: &'static str,
        /// Where it leads.
        canonical: &'static str,
    },

    // Limits.
    /// More of something than there may be.
    #[error("over {max} {what}")]
    #[diagnostic(
        code(caps::limit),
        help("part the file into several, for different subjects")
    )]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// A pattern of too many states.
    #[error("the pattern is too large")]
    #[diagnostic(code(caps::large), help("write several capabilities"))]
    Large,
    /// All patterns together have too many states.
    #[error("the patterns of this subject up to this one take too many states to be told apart")]
    #[diagnostic(
        code(caps::states),
        help(
            "patterns with `**` in the middle multiply with each other; write fewer of them, or longer beginnings"
        )
    )]
    States,
}

impl CapsProblem {
    pub(super) const SUBJECTS: Self = limit("subjects", MAX_SUBJECTS);
    pub(super) const SERVICES: Self = limit("services", MAX_SERVICES);
    pub(super) const CAPABILITIES: Self = limit("capabilities", MAX_CAPABILITIES);
    pub(super) const PERMISSIONS: Self = limit("permissions of a service", MAX_SERVICE_PERMISSIONS);
    pub(super) const OPERATIONS: Self = limit("operations of a service", MAX_OPERATIONS);
    pub(super) const OPERANDS: Self = limit("operands that are authorised", MAX_OPERANDS);
    pub(super) const VECTOR: Self = limit("values of an operation vector", MAX_VECTOR);
    pub(super) const BYTES: Self = limit("bytes of automata", MAX_CAPS_BYTES);
}

const fn limit(what: &'static str, max: usize) -> CapsProblem {
    CapsProblem::Limit { what, max }
}

impl From<NetworkProblem> for CapsProblem {
    fn from(problem: NetworkProblem) -> Self {
        CapsProblem::Network(
            problem.to_string(),
            problem.help().map(|help| help.to_string()),
        )
    }
}

impl Wrong for CapsProblem {
    fn character(character: &str) -> Self {
        CapsProblem::Character(character.to_owned())
    }

    fn unclosed() -> Self {
        CapsProblem::Unclosed
    }

    fn expected(what: &'static str, help: &str) -> Self {
        CapsProblem::Expected(what, help.to_owned())
    }

    fn trailing(word: &str) -> Self {
        CapsProblem::Trailing(word.to_owned())
    }
}

impl Labelled for CapsProblem {
    fn label(&self) -> &'static str {
        match self {
            CapsProblem::Twice { .. } => "again here",
            CapsProblem::Expected(..) => "expected here",
            CapsProblem::OpenBlock => "opened here",
            _ => "here",
        }
    }
}
