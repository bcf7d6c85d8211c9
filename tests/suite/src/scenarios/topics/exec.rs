//! Programs: what a subject becomes by executing one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::unistd::{execv, pipe2};

use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused_any, same, soon};
use crate::scenarios::helper::level_of_status;
use crate::scenarios::level;
use crate::scenarios::place::{self, AREA, BIN, LOW, SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, become_alice, busy, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::c;

use Level::{System, Untrusted, User};

const ROW: &str = "open for reading";
pub(super) const SHELL: &str = "/usr/bin/dash";

/// A shell script whose exit status tells the level it runs at.
pub const TELL: &str = "if true >> /scn/system/.probe; then exit 202; fi; \
                        if true >> /scn/user/.probe; then exit 201; fi; exit 200";

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "exec-own",
        "a program at one's level or above leaves the level",
        own,
    )
    .of(ROW),
    allow(
        "exec-leaves-mappings",
        "memory that an exec has left and still holds is mapped by nobody",
        leaves_mappings,
    ),
    allow(
        "exec-trusted",
        "a nodemote program reads low data and stays",
        trusted,
    ),
    allow(
        "exec-permissive",
        "what a permissive program is refused is let through",
        permissive,
    ),
    allow(
        "exec-own-memfd",
        "a program in memory of one's own",
        own_memfd,
    ),
    deny(
        "exec-low",
        "a lower program lowers who becomes it, and not who started it",
        low_program,
    )
    .of(ROW),
    bypass(
        "exec-low-script",
        "a low script run by a high interpreter",
        low_script,
    ),
    bypass(
        "exec-low-interpreter",
        "a high script that names a low interpreter",
        low_interpreter,
    ),
    bypass(
        "exec-low-loader",
        "a high program whose ELF interpreter is low",
        low_loader,
    ),
    bypass(
        "exec-low-loader-unread",
        "the same where nothing of the interpreter is mapped to be read: its header says where the program begins",
        low_loader_unread,
    ),
    bypass(
        "exec-low-binfmt",
        "a low interpreter registered with binfmt_misc",
        low_binfmt,
    ),
    bypass(
        "ld-preload",
        "a low library preloaded into a high program",
        ld_preload,
    ),
    bypass(
        "exec-memfd-of-low",
        "a program in a low subject's memory, executed through /proc",
        memfd_of_low,
    ),
    bypass(
        "exec-setuid",
        "a set-user-ID program started from below",
        setuid,
    ),
    bypass(
        "exec-inherited-descriptor",
        "a low program inherits a descriptor of a high file",
        inherited,
    ),
    bypass(
        "trusted-started-low",
        "a trusted program started from below the top",
        trusted_low,
    ),
    bypass(
        "trusted-ends-at-exec",
        "a trusted program's trust passed on to what it executes",
        trusted_ends,
    ),
    bypass(
        "trusted-leaves-open",
        "a low file that a trusted program leaves open in what it executes",
        trusted_leaves_open,
    ),
    bypass(
        "trusted-copy",
        "a copy of a trusted program, or another name for it",
        trusted_copy,
    ),
    allow(
        "exec-trusted-script",
        "a nodemote script that is started by its own name reads low data and stays",
        trusted_script,
    ),
    bypass(
        "trusted-script-link",
        "a trusted script is started by a link, in whose place its interpreter may find another script",
        trusted_script_link,
    ),
];

pub(super) fn run(program: &str, args: &[&str]) -> Outcome<i32> {
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    status
        .code()
        .ok_or_else(|| Failed::because(format_args!("{program} was killed")))
}

/// The level that a program which tells it ran at.
#[track_caller]
pub(super) fn ran_at(code: i32, level: Level) -> Outcome {
    same("the level it ran at", level_of_status(code), Some(level))
}

/// A copy of a program, executable by all.
pub(super) fn copy(from: &str, to: &str) -> Outcome {
    fs::copy(from, to)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

fn script(at: &str, interpreter: &str) -> Outcome {
    fs::write(at, format!("#!{interpreter}\n{TELL}\n"))?;
    Ok(fs::set_permissions(at, fs::Permissions::from_mode(0o755))?)
}

fn own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            ran_at(run(SHELL, &["-c", TELL])?, level)?;
            ran_at(
                run(&format!("{BIN}/scenarios"), &["--helper", "level"])?,
                level,
            )?;
            level::is(level)
        })?;
    }
    let own = path(USER, "own");
    copy(SHELL, &own)?;
    at(User, || ran_at(run(&own, &["-c", TELL])?, User))?;
    at(Untrusted, || ran_at(run(&own, &["-c", TELL])?, Untrusted))
}

/// The new program is a low one, so the exec waits for this process, which is awake and has its
/// pipe: before that, Linux 7.2 does not free the memory that was the old program's.
fn leaves_mappings() -> Outcome {
    let program = path(LOW, "leaves");
    copy("/usr/bin/true", &program)?;
    let _map = sys::Map::anonymous(libc::MAP_SHARED)?;
    let (_read, write) = pipe2(OFlag::O_CLOEXEC)?;
    let leaves = start(|| {
        sys::keep_as(&write, libc::STDOUT_FILENO)?;
        let program = c(&program);
        match execv(&program, &[&program])? {}
    })?;
    let comm = format!("/proc/{}/comm", leaves.pid);
    let falls = start(|| {
        // an exec names its task just after it has left the memory, by up to 15 bytes
        let name = program.rsplit('/').next().unwrap_or_default();
        let left = soon(|| Ok(name.starts_with(fs::read_to_string(&comm)?.trim_end())))?;
        ensure(left, "it does not execute the program")?;
        lower(Untrusted)
    })?;
    busy(Duration::from_millis(200));
    falls.join()?;
    leaves.join()
}

fn trusted() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    same(
        "its errno",
        run(
            &format!("{BIN}/trusted"),
            &["--helper", "read-write", &low, &high],
        )?,
        0,
    )?;
    same("the content", fs::read_to_string(&high)?.as_str(), "highx")?;
    level::is(System)
}

fn permissive() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    at(Untrusted, || {
        same(
            "its errno",
            run(&format!("{BIN}/lax"), &["--helper", "write", &high])?,
            0,
        )?;
        same(
            "another's errno",
            run(&format!("{BIN}/scenarios"), &["--helper", "write", &high])?,
            libc::EPERM,
        )
    })?;
    same("the content", fs::read_to_string(&high)?.as_str(), "highx")
}

fn own_memfd() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let program = sys::memfd(0)?;
            sys::put_all(&program, &fs::read(SHELL)?)?;
            sys::keep_as(&program, 100)?;
            ran_at(run("/proc/self/fd/100", &["-c", TELL])?, level)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn low_program() -> Outcome {
    for low in Level::LOWER {
        let program = path(home(low), "program");
        copy(SHELL, &program)?;
        ran_at(run(&program, &["-c", TELL])?, low)?;
        level::is(System)?;
    }
    let program = path(LOW, "program");
    at(User, || {
        ran_at(run(&program, &["-c", TELL])?, Untrusted)?;
        // vfork lent the child this process's memory: that must not have lowered it
        level::is(User)
    })
}

fn low_script() -> Outcome {
    let (low, area) = (path(LOW, "script"), path(AREA, "script"));
    script(&low, SHELL)?;
    at(Untrusted, || script(&area, SHELL))?;
    for script in [&low, &area] {
        ran_at(run(script, &[])?, Untrusted)?;
        ran_at(run(SHELL, &[script.as_str()])?, Untrusted)?;
    }
    level::is(System)
}

fn low_interpreter() -> Outcome {
    let (interpreter, high) = (path(LOW, "interpreter"), path(SYSTEM, "script"));
    copy(SHELL, &interpreter)?;
    script(&high, &interpreter)?;
    ran_at(run(&high, &[])?, Untrusted)?;
    // and one behind the other
    let (between, outer) = (path(SYSTEM, "between"), path(SYSTEM, "outer"));
    script(&between, &interpreter)?;
    script(&outer, &between)?;
    ran_at(run(&outer, &[])?, Untrusted)
}

fn low_loader() -> Outcome {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    // no longer than the name it replaces
    let (loader, program) = ("/scn/low/ld.so", path(SYSTEM, "program"));
    copy(LOADER, loader)?;
    let mut elf = fs::read(SHELL)?;
    let place = elf
        .windows(LOADER.len())
        .position(|w| w == LOADER.as_bytes());
    let place = place.ok_or_else(|| Failed::because("no interpreter in the program"))?;
    elf[place..place + LOADER.len()].fill(0);
    elf[place..place + loader.len()].copy_from_slice(loader.as_bytes());
    fs::write(&program, elf)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    ran_at(run(&program, &["-c", TELL])?, Untrusted)
}

/// A segment of an ELF file: its kind and what it is mapped for, where it lies, and how long it is.
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
}

const ELF_HEADER: usize = 64;
const ELF_SEGMENT: usize = 56;

/// An ELF file that is loaded where it says (ET_EXEC, of x86-64): its segments, and what is behind them.
fn elf(entry: u64, segments: &[Segment], tail: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for half in [2u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for word in [entry, ELF_HEADER as u64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    let sizes = [ELF_HEADER, ELF_SEGMENT, segments.len(), 0, 0, 0];
    for half in sizes {
        file.extend((half as u16).to_le_bytes());
    }
    for s in segments {
        file.extend(s.kind.to_le_bytes());
        file.extend(s.flags.to_le_bytes());
        for word in [s.offset, s.address, s.address, s.size, s.size, 0x1000] {
            file.extend(word.to_le_bytes());
        }
    }
    file.extend(tail);
    file
}

/// Opens `/scn/user/.probe` for writing; its exit status is 1 if that is allowed, else 0.
const PROBES: &[u8] = b"\xb8\x02\0\0\0\x48\x8d\x3d\x18\0\0\0\xbe\x01\0\0\0\x31\xd2\x0f\x05\
                        \x31\xff\x85\xc0\x40\x0f\x99\xc7\xb8\x3c\0\0\0\x0f\x05/scn/user/.probe\0";

fn low_loader_unread() -> Outcome {
    const LOAD: u32 = 1;
    const INTERPRETER: u32 = 3;
    const READ_AND_EXECUTE: u32 = 5;
    const PROGRAM: u64 = 0x40_0000;
    let code = (ELF_HEADER + 2 * ELF_SEGMENT) as u64;
    let file = |name: &str, content: Vec<u8>| -> Outcome {
        fs::write(name, content)?;
        Ok(fs::set_permissions(
            name,
            fs::Permissions::from_mode(0o755),
        )?)
    };
    for (dir, may_write) in [(USER, 1), (LOW, 0)] {
        let interpreter = path(dir, "interpreter");
        let unread = Segment {
            kind: LOAD,
            flags: 0,
            offset: 0,
            address: 0x60_0000,
            size: (ELF_HEADER + ELF_SEGMENT) as u64,
        };
        file(&interpreter, elf(PROGRAM + code, &[unread], &[]))?;
        let program = format!("{}-{may_write}", path(USER, "program"));
        let tail = [PROBES, interpreter.as_bytes(), &[0]].concat();
        let named = Segment {
            kind: INTERPRETER,
            flags: 4,
            offset: code + PROBES.len() as u64,
            address: PROGRAM + code + PROBES.len() as u64,
            size: interpreter.len() as u64 + 1,
        };
        let loaded = Segment {
            kind: LOAD,
            flags: READ_AND_EXECUTE,
            offset: 0,
            address: PROGRAM,
            size: code + tail.len() as u64,
        };
        file(&program, elf(PROGRAM + code, &[named, loaded], &tail))?;
        at(User, || {
            same("whether it may write", run(&program, &[])?, may_write)?;
            level::is(User)
        })?;
    }
    Ok(())
}

fn low_binfmt() -> Outcome {
    let mounted = "/proc/sys/fs/binfmt_misc";
    mount(
        Some("binfmt_misc"),
        mounted,
        Some("binfmt_misc"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    let interpreter = path(LOW, "interpreter");
    script(&interpreter, SHELL)?;
    let program = path(SYSTEM, "program.scenario");
    fs::write(&program, "SCN1\n")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    for flags in ["", "F"] {
        fs::write(
            format!("{mounted}/register"),
            format!(":scenario:M::SCN1::{interpreter}:{flags}"),
        )?;
        let ran = run(&program, &[]);
        fs::write(format!("{mounted}/scenario"), "-1")?;
        ran_at(ran?, Untrusted)?;
    }
    level::is(System)
}

/// A library that programs can do with.
pub(super) fn small_library() -> Outcome<String> {
    ["libutil.so.1", "libdl.so.2", "libacl.so.1"]
        .map(|l| format!("/usr/lib/x86_64-linux-gnu/{l}"))
        .into_iter()
        .find(|l| fs::metadata(l).is_ok())
        .ok_or_else(|| Failed::because("no small library"))
}

fn ld_preload() -> Outcome {
    let low = path(LOW, "lib.so");
    let library = small_library()?;
    copy(&library, &low)?;
    let status = Command::new(SHELL)
        .args(["-c", TELL])
        .env("LD_PRELOAD", &low)
        .status()?;
    ran_at(status.code().unwrap_or(-1), Untrusted)?;
    // one that is no lower changes nothing
    let status = Command::new(SHELL)
        .args(["-c", TELL])
        .env("LD_PRELOAD", &library)
        .status()?;
    ran_at(status.code().unwrap_or(-1), System)
}

fn memfd_of_low() -> Outcome {
    for writable in [true, false] {
        let low = spawn(Untrusted, || {
            let program = sys::memfd(0)?;
            sys::put_all(&program, &fs::read(SHELL)?)?;
            let kept = if writable {
                program
            } else {
                sys::again(&program, OFlag::O_RDONLY)?
            };
            sys::keep_as(&kept, 100)?;
            drop(kept);
            step()
        })?;
        low.stands()?;
        match run(&format!("/proc/{}/fd/100", low.pid), &["-c", TELL]) {
            // ETXTBSY while a writer has it open
            Err(_) if writable => {}
            ran => ran_at(ran?, Untrusted)?,
        }
        low.kill()?;
    }
    Ok(())
}

fn setuid() -> Outcome {
    let program = path(SYSTEM, "setuid-sh");
    copy(SHELL, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    for level in Level::LOWER {
        at(level, || {
            become_alice()?;
            ran_at(run(&program, &["-p", "-c", TELL])?, level)
        })?;
    }
    Ok(())
}

fn inherited() -> Outcome {
    let (high, program) = (place::file(SYSTEM, "high")?, path(LOW, "program"));
    copy(SHELL, &program)?;
    let child = crate::scenarios::subject::start(|| {
        sys::keep_as(&sys::open(&high, OFlag::O_WRONLY | OFlag::O_APPEND)?, 9)?;
        sys::keep_as(&sys::both(&high)?, 8)?;
        // it may be killed instead: then it has written nothing either
        let _ = run(&program, &["-c", "echo low >&9; echo low >&8"]);
        level::is(System)
    })?;
    child.join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn trusted_low() -> Outcome {
    let (low, user) = (place::file(LOW, "low")?, place::file(USER, "user")?);
    let high = place::file(SYSTEM, "high")?;
    let trusted = format!("{BIN}/trusted");
    at(User, || {
        // it keeps the level it was started at, and has none above it
        same(
            "its errno",
            run(&trusted, &["--helper", "read-write", &low, &user])?,
            0,
        )?;
        let code = run(&trusted, &["--helper", "read-write", &low, &high])?;
        same("its errno", code, libc::EPERM)
    })?;
    at(Untrusted, || {
        let code = run(&trusted, &["--helper", "read-write", &low, &user])?;
        same("its errno", code, libc::EPERM)
    })
}

fn trusted_ends() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    let code = run(
        &format!("{BIN}/trusted"),
        &["--helper", "read-exec-read-write", &low, &high],
    )?;
    same("its errno", code, libc::EPERM)
}

fn trusted_leaves_open() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    trusted_leaves(&low, &high)
}

/// A trusted program opens a low file and leaves it open to one that is not, which may not write then.
pub(super) fn trusted_leaves(low: &str, high: &str) -> Outcome {
    let code = run(
        &format!("{BIN}/trusted"),
        &["--helper", "open-exec-get-write", low, high],
    )?;
    same("its errno", code, libc::EPERM)
}

fn trusted_copy() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    let args = ["--helper", "read-write", &low, &high];
    let copied = path(SYSTEM, "copy");
    copy(&format!("{BIN}/trusted"), &copied)?;
    same("the copy's errno", run(&copied, &args)?, libc::EPERM)?;
    // a name that the rule does not know, of a file it does: the file's rule holds
    let linked = path(SYSTEM, "link");
    fs::hard_link(format!("{BIN}/trusted"), &linked)?;
    let code = run(&linked, &args)?;
    fs::remove_file(&linked)?;
    ensure(
        code == 0 || code == libc::EPERM,
        "neither trusted nor refused",
    )?;
    // nor does a lower subject make its own program a trusted one
    at(User, || {
        let own = path(AREA, "program");
        allowed(fs::copy(format!("{BIN}/scenarios"), &own))?;
        let over = fs::rename(&own, format!("{BIN}/trusted"));
        refused_any(&[Errno::EPERM, Errno::EXDEV], over)
    })
}

/// The script that the policy trusts: it reads a low file, and tells the level that it has then.
pub(super) fn make_trusted_script() -> Outcome<String> {
    let (script, low) = (format!("{BIN}/trusted-script"), place::file(LOW, "low")?);
    fs::write(&script, format!("#!{SHELL}\nread word <{low}\n{TELL}\n"))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

fn trusted_script() -> Outcome {
    ran_at(run(&make_trusted_script()?, &[])?, System)
}

fn trusted_script_link() -> Outcome {
    let script = make_trusted_script()?;
    for dir in [LOW, SYSTEM] {
        let link = path(dir, "link");
        std::os::unix::fs::symlink(&script, &link)?;
        ran_at(run(&link, &[])?, Untrusted)?;
    }
    // another way there, by the same name
    ran_at(
        run(&format!("{LOW}/../bin/trusted-script"), &[])?,
        Untrusted,
    )
}
