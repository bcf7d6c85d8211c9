//! Plays the same operations under one profile after the other, and prints what became of each:
//! on a kernel with AppArmor and on one with Tidegate, to compare.
//!
//! ```text
//! profile-ops features                 what the parser is to compile for
//! profile-ops play apparmor PROFILE…   root, in a machine of its own, the profiles loaded
//! profile-ops play tidegate PROFILE…   the same, enforced by Tidegate
//! profile-ops storm                    what is remembered, while names change; by Tidegate alone
//! ```
#![warn(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod change;
mod ops;
mod storm;
mod tree;

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use change::CHANGES;
use ops::{OPS, OTHERWISE, Op};

/// How a process comes to be confined from its next execution on.
#[derive(Debug, Clone, Copy)]
enum System {
    AppArmor,
    Tidegate,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["features"] => io::stdout().write_all(tidegate_policy::profile::FEATURES.as_bytes()),
        ["play", "apparmor", ref profiles @ ..] => play(System::AppArmor, profiles),
        ["play", "tidegate", ref profiles @ ..] => play(System::Tidegate, profiles),
        ["enter", profile] => enter(profile),
        ["confined"] => confined(),
        ["storm"] => storm::play(),
        ["noise", what] => storm::noise(what),
        ["act", op] => return ops::act(op),
        _ => {
            eprintln!("usage: profile-ops features | play apparmor|tidegate PROFILE…");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("profile-ops: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Where the program is for who is confined.
const PROGRAM: &str = "/srv/ops/bin/ops";

fn play(system: System, profiles: &[&str]) -> io::Result<()> {
    // what is made is made with the mode that is asked for
    // SAFETY: no memory is touched.
    unsafe { libc::umask(0) };
    tree::mount()?;
    fs::create_dir("/srv/ops/bin")?;
    for name in ["ops", "px", "cx", "ix", "ux", "other"] {
        fs::copy("/proc/self/exe", format!("/srv/ops/bin/{name}"))?;
    }
    fs::write("/srv/ops/player", std::process::id().to_string())?;
    for profile in profiles {
        each(system, profile, OPS, "verdict")?;
        if profile.starts_with("change") {
            each(system, profile, CHANGES, "verdict")?;
        }
    }
    if let System::Tidegate = system {
        for (profile, ops) in OTHERWISE {
            each(system, profile, ops, "otherwise")?;
        }
    }
    Ok(())
}

/// Has operations played under a profile; a line for each begins with `word`.
fn each(system: System, profile: &str, ops: &[Op], word: &str) -> io::Result<()> {
    let mut child = start(system, profile)?;
    let mut to = child.stdin.take().expect("a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    tree::make()?;
    for op in ops {
        // who was killed reads nothing any more
        let told = writeln!(to, "{}", op.name).is_ok();
        let heard = if told { from.next().transpose()? } else { None };
        let verdict = heard.unwrap_or_else(|| "ended".into());
        println!("{word}: {profile}: {}={verdict}", op.name);
        match verdict.as_str() {
            "ended" => break,
            // what was refused has changed nothing
            "EACCES" | "EPERM" => {}
            _ => tree::make()?,
        }
    }
    drop(to);
    child.wait().map(drop)
}

/// A process that is confined, and waits for the names of operations.
fn start(system: System, profile: &str) -> io::Result<Child> {
    let mut command = match system {
        System::AppArmor => {
            let mut command = Command::new("/proc/self/exe");
            command.args(["enter", profile]);
            command
        }
        System::Tidegate => {
            let mut command = Command::new("/payload/tidegate");
            command.args(["run", "--profile", profile, "--", PROGRAM, "confined"]);
            command
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.current_dir("/srv/ops").spawn()
}

/// As aa-exec(1) does it.
fn enter(profile: &str) -> io::Result<()> {
    fs::write("/proc/self/attr/apparmor/exec", format!("exec {profile}"))?;
    let words = [PROGRAM, "confined"].map(|word| CString::new(word).expect("no NUL"));
    match nix::unistd::execv(&words[0], &words)? {}
}

/// Does what it is told, in a child each time, so that nothing is left of it.
fn confined() -> io::Result<()> {
    for op in io::stdin().lock().lines() {
        let op = op?;
        let verdict = match op.strip_prefix("look ") {
            Some(path) => storm::look(path),
            None => ops::play(&op),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{verdict}")?;
        out.flush()?;
    }
    Ok(())
}
