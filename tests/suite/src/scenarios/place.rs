//! Where scenarios work, and what they find there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::scenarios::check::Outcome;
use crate::scenarios::subject::Level;

/// Above everything that scenarios touch; on ext4, at the top level.
pub const ROOT: &str = "/scn";
/// Programs: copies of this one under names that the policy gives attributes.
pub const BIN: &str = "/scn/bin";
/// At the level `system`.
pub const SYSTEM: &str = "/scn/system";
/// At the level `user`.
pub const USER: &str = "/scn/user";
/// At the level `untrusted`.
pub const LOW: &str = "/scn/low";
/// `system`, where every level may create.
pub const AREA: &str = "/scn/area";
/// The same beside Tidegate's own files, on their filesystem.
pub const RUN_AREA: &str = "/run/scn";
/// A name in [`AREA`] that a rule calls neutral.
pub const HANDLE: &str = "/scn/area/handle";
/// A directory that a rule calls neutral, for the devices in it.
pub const HANDLES: &str = "/scn/handles";
/// A tmpfs, `system`, where every level may create.
pub const TMPFS: &str = "/scn/tmp";
/// In it, `system` and nothing else.
pub const TMPFS_SYSTEM: &str = "/scn/tmp/system";
/// In it, `untrusted`.
pub const TMPFS_LOW: &str = "/scn/tmp/low";
/// `system`, and no lower subject may even read it.
pub const SECRET: &str = "/scn/secret";
/// `system`, where every level may create and no lower subject may open.
pub const VAULT: &str = "/scn/vault";
/// A `user` file that every level may write.
pub const OPEN_LOG: &str = "/scn/open-log";
/// A `system` file that every level may write.
pub const LOG: &str = "/scn/log";
/// Where a socket at `system` admits every level.
pub const OPEN_SOCKET: &str = "/scn/system/open.sock";
/// The same where every level may make names.
pub const OPEN_IN_AREA: &str = "/scn/area/open.sock";
/// A mount point that a rule names: what is mounted there is `system`.
pub const NAMED_MOUNT: &str = "/scn/named-mount";
/// A mount point: every level may write to `socket` in what is mounted there.
pub const OPEN_MOUNT: &str = "/scn/open-mount";
/// A mount point that no rule names.
pub const MOUNT: &str = "/scn/mount";
/// A mount point for a disk of a scenario's own: `system`, but for `low` in it; `folded/secret` is a secret.
pub const DISK: &str = "/scn/disk";
/// Where processes that fail say why.
pub const REPORTS: &str = "/scn/tmp/report";
/// Files at each level, to find out one's own by writing.
pub const PROBES: [(Level, &str); 2] = [
    (Level::System, "/scn/system/.probe"),
    (Level::User, "/scn/user/.probe"),
];

static SCENARIO: OnceLock<String> = OnceLock::new();

/// Says which scenario this process plays.
pub fn set_scenario(name: &str) {
    let _ = SCENARIO.set(name.to_owned());
}

/// Which scenario this process plays.
pub fn scenario() -> &'static str {
    SCENARIO.get().map_or("none", String::as_str)
}

/// A path that no other scenario uses.
pub fn path(dir: &str, what: &str) -> String {
    format!("{dir}/{}-{what}", scenario())
}

/// Such a file, made by this process, with `what` in it.
pub fn file(dir: &str, what: &str) -> Outcome<String> {
    let path = path(dir, what);
    fs::write(&path, what)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    Ok(path)
}

/// Such a FIFO, instead of the one that an earlier play may have left there.
pub fn fifo(dir: &str, what: &str) -> Outcome<String> {
    let path = path(dir, what);
    let _ = fs::remove_file(&path);
    mkfifo(path.as_str(), Mode::from_bits_truncate(0o666))?;
    Ok(path)
}

/// Such a directory.
pub fn directory(dir: &str, what: &str) -> Outcome<String> {
    let path = path(dir, what);
    fs::create_dir(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
    Ok(path)
}

/// The directory of a level's own files.
pub fn home(level: Level) -> &'static str {
    match level {
        Level::System => SYSTEM,
        Level::User => USER,
        Level::Untrusted => LOW,
    }
}

/// The file of Tidegate that lowers its reader.
pub fn level_file(level: Level) -> String {
    format!("/run/tidegate/level/{}", level.name())
}
