//! The levels of processes and files.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::sys::wait::WaitStatus;
use serde_json::Value;

use crate::scenarios::check::{Failed, Outcome, same};
use crate::scenarios::place;
use crate::scenarios::subject::{Level, spawn};

/// The daemon's socket.
pub const SOCKET: &str = "/run/tidegate/tidegate.sock";

/// The socket of administrators.
pub const ADMIN: &str = "/run/tidegate/admin.sock";

/// Asks the daemon something that takes no descriptor.
pub fn ask(question: &Value) -> Outcome<Value> {
    let mut stream = connected()?;
    let mut line = question.to_string();
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    serde_json::from_str(&answer).map_err(|e| Failed::because(format_args!("{answer:?}: {e}")))
}

/// Connecting is played by scenarios of its own; here it only has to work.
fn connected() -> std::io::Result<UnixStream> {
    let mut tries = 0;
    loop {
        match UnixStream::connect(SOCKET) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock && tries < 6000 => tries += 1,
            done => return done,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The level that this process's label has.
pub fn by_label() -> Outcome<Level> {
    let answer = ask(&serde_json::json!({"ask": "whoami"}))?;
    let name = answer.pointer("/you/level").and_then(Value::as_str);
    name.and_then(Level::named)
        .ok_or_else(|| Failed::because(format_args!("the daemon said {answer}")))
}

/// The level that this process has as far as it may write: needs no daemon.
pub fn by_writing() -> Outcome<Level> {
    for (level, path) in place::PROBES {
        match open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
            Ok(_) => return Ok(level),
            Err(Errno::EPERM) => {}
            Err(e) => Err(e)?,
        }
    }
    Ok(Level::Untrusted)
}

/// This process must stand at a level, by its label and by what it may do.
#[track_caller]
pub fn is(level: Level) -> Outcome {
    same("the level by the label", by_label()?, level)?;
    same("the level by what may be written", by_writing()?, level)
}

/// Changes an object and nothing of what is in it.
pub fn touch(path: impl AsRef<Path>) -> Result<(), Errno> {
    let now = TimeSpec::new(0, libc::UTIME_NOW);
    utimensat(
        AT_FDCWD,
        path.as_ref(),
        &now,
        &now,
        UtimensatFlags::NoFollowSymlink,
    )
}

/// May a subject of this level change the object?
pub fn changes(level: Level, path: &str) -> Outcome<bool> {
    const REFUSED: i32 = 1;
    let child = spawn(level, || match touch(path) {
        Ok(()) => Ok(()),
        // SAFETY: ends this child; its status tells the parent.
        Err(Errno::EPERM) => unsafe { libc::_exit(REFUSED) },
        Err(e) => Err(e)?,
    })?;
    match child.status()? {
        WaitStatus::Exited(_, 0) => Ok(true),
        WaitStatus::Exited(_, REFUSED) => Ok(false),
        _ => Err(Failed::reported()),
    }
}

/// An object must stand at a level: subjects of that level may change it, and
/// none below.
#[track_caller]
pub fn object_is(path: &str, level: Level) -> Outcome {
    if level != Level::System && !changes(level, path)? {
        return Err(Failed::because(format_args!(
            "{path} is above {}",
            level.name()
        )));
    }
    let below = match level {
        Level::Untrusted => return Ok(()),
        Level::User => Level::Untrusted,
        Level::System => Level::User,
    };
    if changes(below, path)? {
        return Err(Failed::because(format_args!(
            "{path} is below {}",
            level.name()
        )));
    }
    Ok(())
}
