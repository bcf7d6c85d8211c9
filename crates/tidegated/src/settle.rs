//! Falling: by reading a level's file.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{DaemonError, Outcome};
use crate::paths;

/// Falls to the level whose file this is. It tries again where others that must fall too were not at rest in time.
///
/// # Errors
/// If the file cannot be read.
pub fn fall(level: &Path) -> io::Result<()> {
    const ATTEMPTS: u32 = 3;
    let mut result = fs::read(level);
    for _ in 1..ATTEMPTS {
        match &result {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => result = fs::read(level),
            _ => break,
        }
    }
    result.map(drop)
}

/// Falls with a pipe in hand, so that the kernel looks at every channel.
pub fn settle(level: &str) -> Outcome {
    // a subject that shares nothing would fall alone
    let pipe = rustix::pipe::pipe().map_err(|e| DaemonError::io("make a pipe", e))?;
    let path = Path::new(paths::LEVELS).join(level);
    let result = fall(&path);
    drop(pipe);
    result.map_err(|e| DaemonError::io(format!("read {}", path.display()), e))
}
