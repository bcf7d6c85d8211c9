//! Tidegate itself, as its users meet it: the program and its daemon.

use std::io;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::scenarios::check::{Failed, Outcome};
use crate::scenarios::level::ask;
use crate::scenarios::setup;

/// Where a daemon says who it is.
const PID: &str = "/run/tidegate/pid";

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
