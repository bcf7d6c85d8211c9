//! What a process holds, and keeps or loses when a boolean of a SELinux policy is set: tests/te-live/check.sh plays it in a
//! virtual machine, where Tidegate enforces live.cil.

mod cost;
mod domain;
mod holder;
mod scenes;

use std::process::ExitCode;

use crate::trials;

/// Where its files are.
fn place(name: &str) -> String {
    format!("/root/live/{name}")
}

/// Whether it is the copy whose file leads to another domain (run.sh).
pub fn is_copy(path: &str) -> bool {
    path.ends_with("/other-live")
}

/// Plays what the words say.
pub fn main(words: &[&str]) -> ExitCode {
    match *words {
        ["hold"] => holder::run(),
        ["inherited", fd] => {
            let read = fd
                .parse()
                .map_err(std::io::Error::other)
                .and_then(holder::inherited);
            println!(
                "{}",
                read.map_or_else(
                    |e| e.raw_os_error().unwrap_or(0).to_string(),
                    |()| "ok".into()
                )
            );
        }
        ["play", ref words @ ..] => return scenes::play(&trials::arguments("te-live", words)),
        ["cost"] => {
            scenes::make();
            cost::measure();
        }
        _ => {
            eprintln!("te-live play | cost");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
