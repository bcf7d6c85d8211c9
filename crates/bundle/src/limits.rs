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
/// Options that a bundle keeps of the command line that named its policy, at most.
pub const MAX_OPTIONS: usize = 4_096;
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
/// Bytes in a binary SELinux policy, at most: the largest distributions have less than a tenth.
pub const MAX_TE_POLICY: usize = 32 << 20;
/// Symbols of a kind (types, classes, categories) in such a policy, at most: what 16 bits number, as its rules do.
pub const MAX_TE_SYMBOLS: usize = 65_535;
/// Bytes in a name or a path of it, at most: Linux's `PATH_MAX`.
pub const MAX_TE_NAME: usize = 4_096;
/// Bytes that its sets of symbols take in memory, at most. There they are as long as their last symbol's number
/// says, and in the file as they have symbols.
pub const MAX_TE_BITMAPS: usize = 128 << 20;
/// Booleans that a policy is loaded with other values of, at most.
pub const MAX_TE_BOOLEANS: usize = MAX_TE_SYMBOLS;
/// Bytes of one file of SELinux's file contexts, at most.
pub const MAX_FILE_CONTEXTS_TEXT: usize = 16 << 20;
/// Lines of file contexts, at most: what 16 bits number, with a number left for none.
pub const MAX_FILE_CONTEXTS_LINES: usize = 65_535;
/// Automata of file contexts, at most: a path is walked through each.
pub const MAX_FILE_AUTOMATA: usize = 8;
/// Files that file contexts are read from, at most: the policy's, those of home directories, and the administrator's.
pub const MAX_FILES_OF_CONTEXTS: usize = 3;
/// Bytes in a security context, at most: Linux's limit for an attribute's value is far above; SELinux's own is a page.
pub const MAX_CONTEXT: usize = 4_096;
/// Braces within braces in a pattern of a capability file, at most.
pub const MAX_NESTING: usize = 16;
/// Bytes in the name of a subject, a service, an operation or a service's permission, at most.
pub const MAX_CAPS_NAME: usize = 31;
/// Subjects that capability files define, at most.
pub const MAX_SUBJECTS: usize = 1_024;
/// Authorization capabilities of all subjects, at most.
pub const MAX_CAPABILITIES: usize = 65_535;
/// Services that capability files describe, at most.
pub const MAX_SERVICES: usize = 256;
/// Permissions of a service, at most: what 32 bits number.
pub const MAX_SERVICE_PERMISSIONS: usize = 32;
/// Operations of a service, at most.
pub const MAX_OPERATIONS: usize = 256;
/// Operands of an operation, at most, and so those of it that are authorised.
pub const MAX_OPERANDS: usize = 8;
/// Values in an operation vector, at most.
pub const MAX_VECTOR: usize = 64;
/// Bytes that the automata of capability files take, at most.
pub const MAX_CAPS_BYTES: usize = 64 << 20;
/// Bytes that all the rest of them takes in memory, at most: the lines' texts, patterns and files' names, and services.
pub const MAX_CAPS_REST: usize = 4 * MAX_TEXT;
/// Bytes in a bundle of capability files, header included, at most: their automata, and the lines' texts and names.
pub const MAX_CAPS_BUNDLE: usize = MAX_CAPS_BYTES + 2 * MAX_TEXT;
/// Bytes in memory that a byte of such a bundle comes to, at most: two bytes are an answer of an automaton that gives nothing, in a
/// list that has as much room again.
pub const MAX_CAPS_GROWTH: usize = 32;
/// Subjects that a process can be limited by at once: as many layers as Landlock has.
pub const MAX_LAYERS: usize = 16;
/// Seconds that something bound can be good for, at most, where it does not last.
pub const MAX_EXPIRY: u32 = 366 * 86_400;
