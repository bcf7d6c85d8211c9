//! Bounds that the compiler and the bundle loader share.
//!
//! They keep the loader's memory bounded and the kernel's tables and walks of a
//! size that can be preallocated and verified.

/// Integrity levels in a policy, at least.
pub const MIN_LEVELS: usize = 2;
/// Integrity levels in a policy, at most.
pub const MAX_LEVELS: usize = 16;
/// Bytes in a level's name, at most.
pub const MAX_LEVEL_NAME: usize = 31;
/// Nodes in the trie, at most.
pub const MAX_NODES: usize = 1_000_000;
/// Rule sources (path and network statements) in a policy, at most.
pub const MAX_RULES: usize = 1_000_000;
/// Network lines in a policy, at most.
pub const MAX_NETWORKS: usize = 65_536;
/// Components in a rule's path, at most.
pub const MAX_DEPTH: usize = 64;
/// Bytes in one path component, at most: Linux's `NAME_MAX`.
pub const MAX_NAME: usize = 255;
/// Bytes in a policy's name, at most.
pub const MAX_POLICY_NAME: usize = 255;
/// Bytes in one line of a map and in a map's file name, at most.
pub const MAX_LINE: usize = 4_096;
/// Bytes of map text in a policy, all its includes together, at most.
pub const MAX_TEXT: usize = 16 << 20;
/// Files that include one another, at most, the first one counted.
pub const MAX_INCLUDE_DEPTH: usize = 16;
/// Bytes in a bundle, header included, at most.
pub const MAX_BUNDLE: usize = 256 << 20;
/// Profiles in a policy, at most: the largest collections of them have two thousand.
pub const MAX_PROFILES: usize = 16_384;
/// Bytes in a profile's name and in its prefix of disconnected paths, at most: Linux's `PATH_MAX`,
/// as a program's path is the name of its profile.
pub const MAX_PROFILE_NAME: usize = 4_096;
/// Automata in a policy, at most: three for each profile, none of them shared, and some.
pub const MAX_AUTOMATA: usize = 65_536;
/// States of an automaton and sets of permissions in it, at most: what 16 bits number.
pub const MAX_STATES: usize = 65_536;
/// Bytes that all automata of a policy take, at most: a bundle has room for them and the rest,
/// and so has the kernel, where they are never paged out.
pub const MAX_AUTOMATA_BYTES: usize = 192 << 20;
/// Names that a profile's executions lead to, at most: more than its automaton has permissions for
/// are never reached.
pub const MAX_TARGETS: usize = 2 * MAX_STATES;
/// Rules that nothing mediates which a policy tells of, at most.
pub const MAX_UNMEDIATED: usize = 1 << 18;
