//! One daemon at a time, and its files in `/run/tidegate`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use tidegate_protocol::Code;

use crate::error::{DaemonError, Outcome};
use crate::locks::{FILES, Ordered};
use crate::messages::complain;
use crate::{lock, paths};

/// The lock that makes this the one daemon; released when it ends.
#[derive(Debug)]
pub struct Instance {
    _lock: File,
}

impl Instance {
    /// Takes the lock and makes the directories.
    ///
    /// # Errors
    /// [`Code::Running`] if another daemon holds it.
    pub fn claim() -> Outcome<Instance> {
        directory(paths::RUN, 0o755)?;
        directory(paths::BUNDLES, 0o711)?;
        directory(paths::LOCKS, 0o700)?;
        let further = (1..8).map(|n| format!("{}/{n}", paths::LOCKS));
        let locks: Vec<String> = iter::once(paths::LOCK.into()).chain(further).collect();
        let lock = lock::claim(&locks)?.ok_or_else(|| {
            let pid = fs::read_to_string(paths::PID).unwrap_or_default();
            DaemonError::new(
                Code::Running,
                format!(
                    "the daemon is running, pid {}: `tidegate reload` puts another policy in force",
                    pid.trim()
                ),
            )
        })?;
        // whoever may fill the filesystem does not keep a daemon from coming back
        let pid = format!("{}\n", std::process::id());
        if let Err(failure) = write_whole(paths::PID, pid.as_bytes(), 0o644) {
            complain(&format!(
                "{failure}: `tidegate stop` will not wait for the daemon's end"
            ));
        }
        Ok(Instance { _lock: lock })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for path in [paths::PID, paths::SOCKET, paths::ADMIN] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes a directory with this mode, or gives it to the one that is there.
pub fn directory(path: &str, mode: u32) -> Outcome {
    let what = |e| DaemonError::io(format!("make {path}"), e);
    match fs::DirBuilder::new().mode(mode).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(what)?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(what)
}

/// Writes a file beside its place and moves it there; one at a time, as there is one such place.
pub fn write_whole(path: &str, content: &[u8], mode: u32) -> Outcome {
    static WRITING: Ordered<FILES, ()> = Ordered::new(());
    let _one = WRITING.lock();
    let new = format!("{path}.new");
    let written = || -> io::Result<()> {
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(mode)
            .open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(|e| {
        // where the disk is full it would keep room from others
        let _ = fs::remove_file(&new);
        DaemonError::io(format!("write {path}"), e)
    })?;
    sync_names(path)
}

/// Removes a file for good: it is not there again after a power cut.
pub fn remove_whole(path: &str) -> Outcome {
    fs::remove_file(path).map_err(|e| DaemonError::io(format!("remove {path}"), e))?;
    sync_names(path)
}

/// Forces the names in a file's directory to the disk.
fn sync_names(path: &str) -> Outcome {
    let dir = Path::new(path).parent().unwrap_or(Path::new("/"));
    fs::File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|e| DaemonError::io(format!("sync {}", dir.display()), e))
}

/// Makes the level files and takes away those of levels that are gone.
pub fn level_files(levels: &[String]) -> Outcome {
    directory(paths::LEVELS, 0o755)?;
    let stale = fs::read_dir(paths::LEVELS).map_err(|e| DaemonError::io("list the levels", e))?;
    for entry in stale.flatten() {
        if !levels.iter().any(|l| entry.file_name().to_str() == Some(l)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    for level in levels {
        // written in place: what is moved to a lower place may not be open
        let path = Path::new(paths::LEVELS).join(level);
        let mode = fs::Permissions::from_mode(0o444);
        fs::write(&path, format!("{level}\n"))
            .and_then(|()| fs::set_permissions(&path, mode))
            .map_err(|e| DaemonError::io(format!("write {}", path.display()), e))?;
    }
    Ok(())
}

/// Removes what a daemon keeps while it runs.
pub fn clean_up() {
    for path in [paths::SOCKET, paths::ADMIN, paths::PID] {
        let _ = fs::remove_file(path);
    }
    for path in [paths::LEVELS, paths::BUNDLES] {
        let _ = fs::remove_dir_all(path);
    }
}

/// Tells a service manager, if one started us (sd_notify(3)).
pub fn notify(state: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Ok(name) = std::env::var("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}

/// Lets go of what standard input was. A bundle's memory would stay for as long as the daemon runs, and could not be swapped.
pub fn leave_input() {
    if let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// Lets go of the terminal and of the process that waits for the report.
pub fn silence() {
    leave_input();
    if let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_let_go_of() {
        leave_input();
        let input = fs::read_link("/proc/self/fd/0").unwrap();
        assert_eq!(input, Path::new("/dev/null"));
    }
}
