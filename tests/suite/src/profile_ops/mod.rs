//! Plays the same operations under one profile after the other, and prints what became of each:
//! on a kernel with AppArmor and on one with Tidegate, to compare.
//!
//! ```text
//! profile-ops features                 what the parser is to compile for
//! profile-ops v9 FROM TO               rules of unix, written by the parser, for the kernel's AppArmor
//! profile-ops play apparmor PROFILE…   root, in a machine of its own, the profiles loaded
//! profile-ops play tidegate PROFILE…   the same, enforced by Tidegate
//! profile-ops play either PROFILE…     under profiles that somebody ships, enforced by one of them
//! profile-ops survey LIST              opens and executions under the profiles of a list (shipped.py)
//! profile-ops storm ROUNDS             what is remembered, while names change; by Tidegate alone
//! ```

mod calls;
mod change;
mod limit;
mod ops;
mod storm;
mod survey;
mod tree;
mod unix;
mod v9;

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use change::CHANGES;
use limit::LIMITS;
use ops::{OPS, OTHERWISE, Op};
use tree::Tree;
use unix::UNIX;

/// How a process comes to be confined from its next execution on.
#[derive(Debug, Clone, Copy)]
enum System {
    AppArmor,
    Tidegate,
    /// By itself, under a profile that need not let it execute anything, so that it is no other's program.
    Either,
}

/// Whether it is a copy that is executed by its path.
pub fn is_copy(path: &str) -> bool {
    path.starts_with(COPIES)
}

/// This program, once more.
fn itself() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("profile-ops");
    command
}

/// Plays what the words say.
pub fn main(words: &[&str]) -> ExitCode {
    let done = match *words {
        ["features"] => io::stdout().write_all(tidegate_policy::profile::FEATURES.as_bytes()),
        ["play", "apparmor", ref profiles @ ..] => play(System::AppArmor, profiles),
        ["play", "tidegate", ref profiles @ ..] => play(System::Tidegate, profiles),
        ["play", "either", ref profiles @ ..] => play(System::Either, profiles),
        ["v9", from, to] => v9::rewrite(from, to),
        ["enter", profile, ref words @ ..] => enter(profile, words),
        ["serve", who] => unix::serve(who),
        ["become", profile, "confined"] => {
            change::current(&format!("changeprofile {profile}")).and_then(|()| confined())
        }
        ["confined"] => confined(),
        ["survey", list] => survey::play(list),
        ["surveyed", asker, profile] => survey::surveyed(asker, profile),
        ["storm", rounds] => match rounds.parse() {
            Ok(rounds) => storm::play(rounds),
            Err(e) => Err(io::Error::other(format!("{rounds}: {e}"))),
        },
        ["noise", what] => storm::noise(what),
        ["elsewhere", from, to] => storm::elsewhere(from, to),
        ["act", op] => return calls::act(op),
        _ => {
            eprintln!(
                "usage: profile-ops features | v9 FROM TO | play apparmor|tidegate|either PROFILE…"
            );
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

/// Where copies of the program are.
const COPIES: &str = "/srv/ops/bin/";
/// The one for processes that are confined.
const PROGRAM: &str = "/srv/ops/bin/ops";

fn play(system: System, profiles: &[&str]) -> io::Result<()> {
    // what is made is made with the mode that is asked for
    // SAFETY: no memory is touched.
    unsafe { libc::umask(0) };
    tree::mount()?;
    fs::create_dir(COPIES)?;
    for name in ["ops", "px", "cx", "ix", "ux", "other"] {
        fs::copy("/proc/self/exe", format!("{COPIES}{name}"))?;
    }
    fs::write("/srv/ops/player", std::process::id().to_string())?;
    let mut servers = None;
    for profile in profiles {
        if profile.starts_with("unix-") {
            if servers.is_none() {
                servers = Some(serve(system)?);
            }
            each(system, profile, UNIX, "verdict")?;
            continue;
        }
        each(system, profile, OPS, "verdict")?;
        if profile.starts_with("change") {
            each(system, profile, CHANGES, "verdict")?;
        }
        if profile.starts_with("limits") {
            each(system, profile, LIMITS, "verdict")?;
        }
    }
    if let System::Tidegate = system {
        for (profile, ops) in OTHERWISE {
            each(system, profile, ops, "otherwise")?;
        }
    }
    for mut server in servers.into_iter().flatten() {
        server.kill()?;
        server.wait()?;
    }
    Ok(())
}

/// The two processes that others' sockets belong to; they have them when this returns.
fn serve(system: System) -> io::Result<[Child; 2]> {
    unix::directory()?;
    let mut free = itself();
    free.args(["serve", "free"]);
    let server = entering(system, "unix-server", &["serve", "server"]);
    let begin = |mut command: Command| {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut said)?;
        match said.as_str() {
            "ready\n" => Ok(child),
            _ => Err(io::Error::other("a process with sockets has not begun")),
        }
    };
    Ok([begin(free)?, begin(server)?])
}

/// Has operations played under a profile; a line for each begins with `word`.
fn each(system: System, profile: &str, ops: &[Op], word: &str) -> io::Result<()> {
    let mut child = start(system, profile)?;
    let mut to = child.stdin.take().expect("a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut tree = Tree::make()?;
    for op in ops {
        // a process that was killed reads nothing any more
        let told = writeln!(to, "{}", op.name).is_ok();
        let heard = if told { from.next().transpose()? } else { None };
        let verdict = heard.unwrap_or_else(|| "ended".into());
        println!("{word}: {profile}: {}={verdict}", op.name);
        match verdict.as_str() {
            "ended" => break,
            // what was refused has changed nothing
            "EACCES" | "EPERM" => {}
            _ => tree.restore()?,
        }
    }
    drop(to);
    child.wait().map(drop)
}

/// A process that is confined, and waits for the names of operations.
fn start(system: System, profile: &str) -> io::Result<Child> {
    let mut command = entering(system, profile, &["confined"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn()
}

/// This program with these words, confined from its first instant.
fn entering(system: System, profile: &str, words: &[&str]) -> Command {
    let mut command = match system {
        System::AppArmor => {
            let mut command = itself();
            command.args(["enter", profile]);
            command
        }
        System::Either => {
            let mut command = itself();
            command.args(["become", profile]);
            command
        }
        System::Tidegate => {
            let mut command = Command::new("/payload/tidegate");
            command.args(["run", "--profile", profile, "--", PROGRAM]);
            command
        }
    };
    command.args(words).current_dir("/srv/ops");
    command
}

/// As aa-exec(1) does it.
fn enter(profile: &str, words: &[&str]) -> io::Result<()> {
    fs::write("/proc/self/attr/apparmor/exec", format!("exec {profile}"))?;
    let words = [PROGRAM]
        .iter()
        .chain(words)
        .map(|word| CString::new(*word).expect("no NUL"));
    let words: Vec<CString> = words.collect();
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
