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
