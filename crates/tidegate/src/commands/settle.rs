//! `settle`: falls, so that the kernel looks at every channel. Hidden.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::exit::{Failure, Outcome};
use crate::places;

/// Attempts, as processes that are busy let a demotion fail.
const ATTEMPTS: u32 = 5;

pub fn run(level: &str) -> Outcome {
    // a subject that shares nothing would fall alone
    let pipe = rustix::pipe::pipe().map_err(|e| Failure::io("make a pipe", e))?;
    let path = Path::new(places::LEVELS).join(level);
    let mut result = fs::read(&path);
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        result = fs::read(&path);
    }
    drop(pipe);
    result
        .map(drop)
        .map_err(|e| Failure::io(format!("read {}", path.display()), e))
}
