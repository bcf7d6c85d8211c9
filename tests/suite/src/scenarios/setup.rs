//! The places and the policy that scenarios are played under.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use crate::scenarios::place::*;

/// The policy.
pub const POLICY: &str = include_str!("scenarios.plm");

/// Where it is put.
pub const POLICY_FILE: &str = "/scn/scenarios.plm";

/// Room in the table of given levels: small, so that a scenario can fill it.
pub const GIVEN: u32 = 2048;

/// The copies of this program that the policy gives attributes.
const PROGRAMS: [&str; 6] = [
    "scenarios",
    "trusted",
    "netd",
    "lax",
    "reporter",
    "script-reader",
];

/// Where every user may write, as far as ordinary permission goes.
const OPEN: [&str; 8] = [SYSTEM, USER, LOW, AREA, HANDLES, VAULT, RUN_AREA, TMPFS];

/// The same below the tmpfs, once it is mounted.
const OPEN_IN_TMPFS: [&str; 3] = [TMPFS_SYSTEM, TMPFS_LOW, REPORTS];

/// Makes the places, before anything is enforced.
pub fn prepare() -> io::Result<()> {
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    fs::create_dir_all(ROOT)?;
    for dir in [BIN, NAMED_MOUNT, MOUNT, DISK].iter().chain(&OPEN) {
        fs::create_dir_all(dir)?;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("scn"),
        TMPFS,
        Some("tmpfs"),
        flags,
        Some("mode=777,size=64m"),
    )?;
    for dir in OPEN_IN_TMPFS {
        fs::create_dir_all(dir)?;
    }
    for dir in OPEN.iter().chain(&OPEN_IN_TMPFS) {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777))?;
    }
    let me = std::env::current_exe()?;
    for name in PROGRAMS {
        fs::copy(&me, Path::new(BIN).join(name))?;
    }
    fs::write(LOG, "log\n")?;
    fs::write(SECRET, "secret\n")?;
    fs::write(OPEN_LOG, "log\n")?;
    for path in [LOG, SECRET, OPEN_LOG] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    }
    for (_, path) in PROBES {
        fs::write(path, "")?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    }
    let _ = symlink(SYSTEM, format!("{ROOT}/link-to-system"));
    fs::write(POLICY_FILE, POLICY)
}

/// The `tidegate` program that is tested: the one beside this.
pub fn tidegate() -> PathBuf {
    let me = std::env::var_os("TIDEGATE_SCENARIOS_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            std::env::current_exe()
                .ok()
                .and_then(|p| p.parent().map(Path::to_path_buf))
        });
    me.unwrap_or_else(|| "/payload".into()).join("tidegate")
}
