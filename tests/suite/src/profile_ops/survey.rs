//! Opens and executions under profiles that somebody ships, of paths that a list names (shipped.py).
//! A process becomes what it is to be by itself, so that nothing has to be allowed to it for that.

use std::ffi::CString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use crate::profile_ops::calls::as_user;
use crate::profile_ops::change::current;
use crate::profile_ops::itself;
use crate::profile_ops::ops::{Ended, in_child};

/// The users that ask: `root`, which owns the files, also appends and executes; `user` does not own
/// them.
const ASKERS: [&str; 2] = ["root", "user"];

/// For what is not tried.
const NOTHING: char = '-';

/// What is done with a path: it is opened, or executed, too, as the list says, or left alone.
const LOOK: &str = "look";
const RUN: &str = "run";
const LEAVE: &str = "leave";

/// Reads the list, and prints for each profile and asker a line, with a letter for each act of each path.
pub fn play(list: &str) -> io::Result<()> {
    let list = format!("\n{}", fs::read_to_string(list)?);
    for line in list.lines() {
        if let Some((_, path)) = asked(line) {
            make(Path::new(path));
        }
    }
    for section in list.split("\nprofile ").skip(1) {
        let (profile, paths) = section.split_once('\n').unwrap_or((section, ""));
        let paths: String = paths
            .lines()
            .filter_map(asked)
            .map(|(word, path)| format!("{} {path}\n", possible(word, Path::new(path))))
            .collect();
        for asker in ASKERS {
            println!(
                "survey: {asker} {} {profile}",
                answers(asker, profile, &paths)?
            );
        }
    }
    Ok(())
}

fn asked(line: &str) -> Option<(&str, &str)> {
    line.split_once(' ').filter(|(word, _)| *word != "profile")
}

/// What a process of its own answers.
fn answers(asker: &str, profile: &str, paths: &str) -> io::Result<String> {
    let mut child = itself()
        .args(["surveyed", asker, profile])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(paths.as_bytes())?;
    let output = child.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes an empty file that everybody may use, or a directory; where there is something already it stays,
/// and where nothing can be made (in /proc) there is nothing to try.
fn make(path: &Path) {
    if fs::symlink_metadata(path).is_ok() {
        return;
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let _ = fs::create_dir_all(path);
    } else if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent)
            .and_then(|()| fs::write(path, ""))
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o777)));
    }
}

/// What is done with a path: only empty files are run, and what waits when it is opened, or does something
/// by that, is left alone.
fn possible<'a>(word: &'a str, path: &Path) -> &'a str {
    const DEVICES: [&str; 5] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];
    match fs::metadata(path) {
        Ok(m)
            if m.is_file()
                && m.len() == 0
                && !path.starts_with("/proc")
                && !path.starts_with("/sys") =>
        {
            word
        }
        Ok(m) if m.is_file() || m.is_dir() => LOOK,
        _ if DEVICES.iter().any(|device| Path::new(device) == path) => LOOK,
        _ => LEAVE,
    }
}

/// Becomes an asker under a profile, and tries the paths of the standard input.
pub fn surveyed(asker: &str, profile: &str) -> io::Result<()> {
    let mut paths = String::new();
    io::stdin().read_to_string(&mut paths)?;
    let try_all = || {
        current(&format!("changeprofile {profile}"))?;
        let answers: String = paths
            .lines()
            .filter_map(asked)
            .map(|(word, path)| tried(asker, word, path))
            .collect();
        io::stdout().write_all(answers.as_bytes())
    };
    match asker {
        "root" => try_all(),
        _ => as_user(try_all),
    }
}

/// A letter for each act.
fn tried(asker: &str, word: &str, path: &str) -> String {
    let acts: &[char] = match asker {
        "root" => &['r', 'w', 'a', 'x'],
        _ => &['r', 'w'],
    };
    let is_dir = path.ends_with('/');
    acts.iter()
        .map(|act| match (word, act) {
            (RUN, 'x') => letter(execute(path)),
            (RUN | LOOK, 'r') => letter(open(path, libc::O_RDONLY)),
            (RUN | LOOK, 'w') if !is_dir => letter(open(path, libc::O_WRONLY)),
            (RUN | LOOK, 'a') if !is_dir => letter(open(path, libc::O_WRONLY | libc::O_APPEND)),
            _ => NOTHING,
        })
        .collect()
}

fn open(path: &str, flags: i32) -> Result<(), i32> {
    OpenOptions::new()
        .read(flags & libc::O_ACCMODE == libc::O_RDONLY)
        .write(flags & libc::O_ACCMODE == libc::O_WRONLY)
        .custom_flags(flags & !libc::O_ACCMODE | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map(drop)
        .map_err(|e| e.raw_os_error().unwrap_or(0))
}

/// Executes an empty file, which ends where it is found to be no program.
fn execute(path: &str) -> Result<(), i32> {
    let code = in_child(|| {
        let path = CString::new(path)?;
        match nix::unistd::execv(&path, &[&path])? {}
    });
    match code {
        Ended::Exited(libc::ENOEXEC) => Ok(()),
        Ended::Exited(code) => Err(code),
        Ended::Killed(_) => Err(0),
    }
}

/// What became of it: a dot, if it was allowed.
fn letter(what: Result<(), i32>) -> char {
    match what {
        Ok(()) => '.',
        Err(libc::EACCES) => 'a',
        Err(libc::EPERM) => 'p',
        Err(_) => 'e',
    }
}
