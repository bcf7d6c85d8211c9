//! Trusted programs that are started below the top, by a subject that would have a process that
//! never falls: code of its own in one, or itself in its place.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::CloneFlags;
use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};

use super::evasions::answers;
use super::exec::{SHELL, TELL, copy, make_trusted_script, ran_at, run, small_library};
use super::one_level::ends;
use super::threads::clone_here;
use super::tracing::is_closed;
use crate::scenarios::check::{Failed, Outcome, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, BIN, LOW, USER, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, own_namespaces, spawn, start};
use crate::scenarios::sys;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "trusted-makes-code",
        "a trusted program makes code as it runs, and executes it",
        makes_code,
    ),
    bypass(
        "trusted-preload",
        "the environment of a trusted program names libraries of who starts it",
        preload,
    ),
    bypass(
        "trusted-own-loader",
        "a trusted program is started where another file has the place of its ELF interpreter",
        own_loader,
    ),
    bypass(
        "trusted-traced",
        "a tracer's child executes a trusted program",
        traced,
    ),
    bypass(
        "trusted-held",
        "an equal attaches to a trusted program, writes its memory, or takes a descriptor of it",
        held,
    ),
    bypass(
        "trusted-shared-directory",
        "a trusted program is executed by who shares its directory with another process",
        shared_directory,
    ),
    bypass(
        "trusted-answered",
        "a trusted program is started with a listener that answers its system calls",
        is_answered,
    ),
    bypass(
        "trusted-script-below",
        "a trusted script is started below the top, whose interpreter takes code from its environment",
        script_below,
    ),
];

/// A shell that the policy trusts, which the dynamic loader loads.
fn trusted_shell() -> Outcome<String> {
    let shell = format!("{BIN}/trusted-shell");
    copy(SHELL, &shell)?;
    Ok(shell)
}

/// A word that no program looks for.
const NOTHING: (&str, &str) = ("TRUSTED", "");

/// What came of a shell's words, with a word in its environment.
fn says(shell: &str, words: &str, (name, value): (&str, &str)) -> Outcome<i32> {
    let mut command = Command::new(shell);
    command.args(["-c", words]).env(name, value);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    status
        .code()
        .ok_or_else(|| Failed::because(format_args!("{shell} was killed")))
}

/// A shell's words: its exit status is 1 if something of this name is mapped, else 0.
fn is_mapped(name: &str) -> String {
    format!(
        "while read -r line; do case $line in *{name}*) exit 1;; esac; done </proc/self/maps; exit 0"
    )
}

/// An ELF file none of whose segments is to be executed.
fn without_code(mut elf: Vec<u8>) -> Vec<u8> {
    const EXECUTE: u8 = 1;
    const SEGMENT: usize = 56;
    let at = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| elf[32 + n])) as usize;
    let number = usize::from(u16::from_le_bytes([elf[56], elf[57]]));
    for n in 0..number {
        elf[at + n * SEGMENT + 4] &= !EXECUTE;
    }
    elf
}

fn makes_code() -> Outcome {
    let trusted = format!("{BIN}/trusted");
    at(User, || {
        let status = Command::new(&trusted)
            .args(["--helper", "make-code"])
            .status()?;
        same("its status", status.code(), Some(0))
    })
}

fn preload() -> Outcome {
    let (shell, library) = (trusted_shell()?, small_library()?);
    let (own, bare) = (path(USER, "own.so"), path(USER, "bare.so"));
    copy(&library, &own)?;
    fs::write(&bare, without_code(fs::read(&library)?))?;
    let libraries = place::directory(USER, "libraries")?;
    copy(
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        &format!("{libraries}/libc.so.6"),
    )?;
    at(User, || {
        let memory = sys::memfd(0)?;
        sys::put_all(&memory, &fs::read(&library)?)?;
        sys::keep_as(&memory, 100)?;
        let (in_memory, memfd) = ("/proc/self/fd/100", "memfd:scenario");
        for variable in ["LD_PRELOAD", "LD_AUDIT"] {
            for (library, name) in [(&*own, "own.so"), (&*bare, "bare.so"), (in_memory, memfd)] {
                let code = says(&shell, &is_mapped(name), (variable, library))?;
                same(&format!("whether {library} is loaded"), code, 0)?;
            }
        }
        // one of the system's is, and what is not trusted has its own
        let name = library.rsplit('/').next().unwrap_or_default();
        let code = says(&shell, &is_mapped(name), ("LD_PRELOAD", &*library))?;
        same("whether the system's is loaded", code, 1)?;
        let code = says(SHELL, &is_mapped("own.so"), ("LD_PRELOAD", &*own))?;
        same("whether another program loads it", code, 1)?;
        let instead = ("LD_LIBRARY_PATH", &*libraries);
        same(
            "with a libc of its own",
            says(&shell, "exit 0", instead)?,
            127,
        )?;
        ran_at(says(SHELL, TELL, instead)?, User)
    })
}

/// A shell's words: it reads this file, and tells the level that it has then.
fn reads_and_tells(low: &str) -> String {
    format!("read word <{low}; {TELL}")
}

fn own_loader() -> Outcome {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    let (shell, low) = (trusted_shell()?, place::file(LOW, "low")?);
    let own = path(USER, "ld.so");
    copy(LOADER, &own)?;
    let words = reads_and_tells(&low);
    at(User, || ran_at(says(&shell, &words, NOTHING)?, User))?;
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        mount(
            Some(own.as_str()),
            LOADER,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )?;
        ran_at(says(&shell, &words, NOTHING)?, Untrusted)
    })
}

/// Becomes the trusted program, which reads a low file and writes to one at `user`.
fn become_trusted(low: &str, user: &str) -> Outcome {
    let mut program = Command::new(format!("{BIN}/trusted"));
    Err(program
        .args(["--helper", "read-write", low, user])
        .exec()
        .into())
}

const MAY_NOT: i32 = Errno::EPERM as i32;

fn traced() -> Outcome {
    let (low, user) = (place::file(LOW, "low")?, place::file(USER, "user")?);
    at(User, || {
        let tracee = start(|| {
            ptrace::traceme()?;
            become_trusted(&low, &user)
        })?;
        waitpid(tracee.pid, None)?;
        same("its errno", ends(tracee.pid)?, MAY_NOT)
    })
}

fn held() -> Outcome {
    let target = spawn(User, || {
        let mut program = Command::new(format!("{BIN}/trusted"));
        Err(program.args(["--helper", "stand"]).exec().into())
    })?;
    target.stands()?;
    at(User, || {
        is_closed(target.pid)?;
        level::is(User)
    })?;
    target.join_after_step()
}

fn shared_directory() -> Outcome {
    let (low, user) = (place::file(LOW, "low")?, place::file(USER, "user")?);
    at(User, || {
        let child = clone_here(libc::CLONE_FS, || become_trusted(&low, &user))?;
        match waitpid(child, None)? {
            WaitStatus::Exited(_, code) => same("its errno", code, MAY_NOT),
            other => Err(Failed::because(format_args!("{other:?}"))),
        }
    })
}

fn is_answered() -> Outcome {
    let (low, user) = (place::file(LOW, "low")?, place::file(USER, "user")?);
    at(User, || {
        let child = start(|| {
            let _listener = answers(libc::SYS_getpriority)?;
            become_trusted(&low, &user)
        })?;
        match child.status()? {
            WaitStatus::Exited(_, code) => same("its errno", code, MAY_NOT),
            other => Err(Failed::because(format_args!("{other:?}"))),
        }
    })
}

fn script_below() -> Outcome {
    let script = make_trusted_script()?;
    at(User, || ran_at(run(&script, &[])?, Untrusted))
}
