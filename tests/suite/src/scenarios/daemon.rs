//! Tidegate itself, as its users meet it: the program and its daemon.

use std::io;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scenarios::check::{Failed, Outcome};
use crate::scenarios::level::ask;
use crate::scenarios::setup;

/// Where a daemon says who it is.
const PID: &str = "/run/tidegate/pid";

/// How long nobody must have needed the guard before it goes.
pub const GUARD_QUIET: Duration = Duration::from_millis(200);

/// How long that may take: some looks that find nobody, as far apart, on a processor that is slow.
const LOOKS: Duration = Duration::from_secs(12);

/// A `tidegate` command.
pub fn tidegate(args: &[&str]) -> Command {
    let mut command = Command::new(setup::tidegate());
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs a command of Tidegate's to its end. What it says goes to files: a pipe
/// would be a channel.
pub fn run(args: &[&str]) -> io::Result<Output> {
    tidegate(args).output()
}

/// Runs one without hearing what it says; its exit status.
pub fn quietly(args: &[&str]) -> Outcome<i32> {
    let status = tidegate(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    status
        .code()
        .ok_or_else(|| Failed::because("tidegate was killed"))
}

/// Whether the guard of revoked descriptors is armed.
pub fn guard_armed() -> Outcome<bool> {
    Ok(status("/guard_armed")? == Value::Bool(true))
}

/// Holds something to be so until the guard would have gone, if nobody had needed it.
pub fn past_guard(mut so: impl FnMut() -> Outcome) -> Outcome {
    let until = Instant::now() + GUARD_QUIET + LOOKS;
    while Instant::now() < until {
        so()?;
        std::thread::sleep(Duration::from_millis(500));
    }
    so()
}

/// The daemon's process id, if it runs.
pub fn pid() -> Option<i32> {
    std::fs::read_to_string(PID).ok()?.trim().parse().ok()
}

/// A value of `tidegate status --json`, by its JSON pointer.
pub fn status(pointer: &str) -> Outcome<Value> {
    let answer = ask(&serde_json::json!({"ask": "status"}))?;
    let value = answer.pointer(&format!("/status{pointer}"));
    value
        .cloned()
        .ok_or_else(|| Failed::because(format_args!("no {pointer} in {answer}")))
}
