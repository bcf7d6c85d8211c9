//! Where Tidegate keeps its files. `/run/tidegate` is at the top level by the
//! policy compiler's built-in rules, whatever the map says.

pub use tidegate_protocol::{ADMIN, LEVELS, SOCKET};

/// What lives as long as the machine runs; 0755.
pub const RUN: &str = "/run/tidegate";
/// Locked by the one daemon. Nobody below the top opens it, and so nobody below locks it.
pub const LOCK: &str = "/run/tidegate/lock";
/// What another daemon locks where one was killed and cannot end; 0700, and as [`LOCK`] otherwise.
pub const LOCKS: &str = "/run/tidegate/locks";
/// The daemon's process id.
pub const PID: &str = "/run/tidegate/pid";
/// The bundles put in force since boot, by sequence number: 0711, and each bundle is 0644, as the
/// asker's own program reads it to propose fixes for `why`.
pub const BUNDLES: &str = "/run/tidegate/policy";
/// The names of the contexts that SIDs stand for since the monitor was loaded; 0600.
pub const CONTEXTS: &str = "/run/tidegate/policy/contexts";
/// The names of the capability files whose images are in the kernel, by their places; 0700.
pub const CAPS: &str = "/run/tidegate/policy/caps";
/// The audit log.
pub const LOG: &str = "/var/log/tidegate/audit.jsonl";
/// What outlives a reboot; 0700.
pub const STATE: &str = "/var/lib/tidegate";
/// The levels that no path rule gives back.
pub const GIVEN: &str = "/var/lib/tidegate/given";
/// There while nothing is enforced and the levels given are all in [`GIVEN`].
pub const CLEAN: &str = "/var/lib/tidegate/clean";
/// There unless the clock has been behind the time of [`GIVEN`]: what changed meanwhile seems older.
pub const STEADY: &str = "/var/lib/tidegate/steady";
/// The command line of the version whose monitor is in the kernel: it goes on with it when another
/// version is installed.
pub const PROGRAM: &str = "/var/lib/tidegate/program";
/// The daemon of that version, beside it.
pub const DAEMON: &str = "/var/lib/tidegate/tidegated";
/// The policy that was last put in force, for a start when the machine's own map is wrong.
pub const LAST: &str = "/var/lib/tidegate/last.bundle";
/// The policy that `start` takes when none is named.
pub const POLICY: &str = "/etc/tidegate/policy.plm";
