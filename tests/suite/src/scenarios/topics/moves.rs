//! What a new name, or none, does to an object's level: found by the replay of
//! random operations against the reference model (crates/model).

use std::fs;

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{Outcome, allowed, refused, same};
use crate::scenarios::level;
use crate::scenarios::place::{
    self, AREA, BIN, LOW, OPEN_LOG, SYSTEM, TMPFS_LOW, USER, VAULT, path,
};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, spawn, start, step};
use crate::scenarios::sys::{self, Map};
use crate::sys::c;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "fall-with-private-mapping",
        "memory that is mapped privately or for reading does not stop its writers' fall",
        private_mapping,
    ),
    allow(
        "fifo-made-low",
        "a FIFO lowers nobody before somebody writes to it",
        fifo_made_low,
    ),
    allow(
        "exec-with-memory",
        "a low program executed by who has shared memory mapped",
        exec_with_memory,
    ),
    bypass(
        "tmpfile-in-memory",
        "a file made with O_TMPFILE on tmpfs, in a low place, taken for memory",
        tmpfile_in_memory,
    ),
    bypass(
        "tmpfile-directory",
        "O_TMPFILE in a directory where the subject may make no names",
        tmpfile_directory,
    ),
    bypass(
        "rename-lowwrite-open",
        "a file that lower subjects may write, moved while one has it mapped",
        lowwrite_open,
    ),
    bypass(
        "rename-attributes",
        "a file that only higher subjects may open, by its place, moved out and in",
        attributes,
    ),
    bypass(
        "fall-refused",
        "a fall that is refused leaves nothing behind that lowers part of a subject later",
        fall_refused,
    ),
];

fn private_mapping() -> Outcome {
    for (prot, flags) in [(PROT_READ, MAP_PRIVATE), (PROT_READ, MAP_SHARED)] {
        start(|| {
            let memory = sys::memfd(0)?;
            sys::put(&memory)?;
            let shown = if flags == MAP_SHARED {
                sys::again(&memory, OFlag::O_RDONLY)?
            } else {
                memory.try_clone()?
            };
            let map = Map::of(&shown, prot, flags)?;
            allowed(lower(Untrusted).map_err(|_| Errno::EACCES))?;
            same("the memory", map.peek(), b'x')
        })?
        .join()?;
    }
    Ok(())
}

fn fifo_made_low() -> Outcome {
    at(Untrusted, || place::fifo(AREA, "fifo").map(drop))?;
    let fifo = path(AREA, "fifo");
    let reads = OFlag::O_RDONLY | OFlag::O_NONBLOCK;
    drop(allowed(sys::open(&fifo, reads))?);
    level::is(System)
}

fn tmpfile_in_memory() -> Outcome {
    start(|| {
        let unnamed = sys::open(TMPFS_LOW, OFlag::O_TMPFILE | OFlag::O_RDWR)?;
        level::is(Untrusted)?;
        drop(unnamed);
        Ok(())
    })?
    .join()?;
    // one that can never get a name stays memory, which is its maker's
    at(User, || {
        let flags = OFlag::O_TMPFILE | OFlag::O_EXCL | OFlag::O_RDWR;
        let unnamed = allowed(sys::open(place::TMPFS, flags))?;
        sys::put(&unnamed)?;
        level::is(User)
    })
}

fn tmpfile_directory() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let flags = OFlag::O_TMPFILE | OFlag::O_RDWR;
            refused(Errno::EPERM, sys::open(SYSTEM, flags))
        })?;
    }
    Ok(())
}

fn lowwrite_open() -> Outcome {
    fs::write(OPEN_LOG, "log")?;
    let writer = spawn(Untrusted, || {
        let log = sys::both(OPEN_LOG)?;
        let _map = Map::of(&log, PROT_READ | PROT_WRITE, MAP_SHARED)?;
        drop(log);
        step()
    })?;
    writer.stands()?;
    let moved = path(USER, "moved");
    refused(Errno::EBUSY, fs::rename(OPEN_LOG, &moved))?;
    refused(Errno::EBUSY, fs::hard_link(OPEN_LOG, &moved))?;
    writer.kill()?;
    allowed(fs::rename(OPEN_LOG, &moved))?;
    fs::rename(moved, OPEN_LOG).map_err(Into::into)
}

fn attributes() -> Outcome {
    let (inside, outside) = (path(VAULT, "file"), path(AREA, "file"));
    let looks = |file: &str, may: bool| {
        at(Untrusted, || {
            if may {
                allowed(fs::read(file)).map(drop)
            } else {
                refused(Errno::EPERM, fs::read(file))
            }
        })
    };
    at(User, || Ok(fs::write(&inside, "x")?))?;
    looks(&inside, false)?;
    at(User, || allowed(fs::rename(&inside, &outside)))?;
    looks(&outside, true)?;
    at(User, || allowed(fs::rename(&outside, &inside)))?;
    looks(&inside, false)
}

fn fall_refused() -> Outcome {
    let low = place::file(LOW, "low")?;
    start(|| {
        let shared = Map::anonymous(MAP_SHARED)?;
        let other = start(step)?;
        other.stands()?;
        let ends = nix::unistd::pipe()?;
        // the other maps what this one could go on writing
        refused(Errno::EACCES, fs::read(&low))?;
        drop(ends);
        other.kill()?;
        level::is(System)?;
        let (read, write) = nix::unistd::pipe()?;
        sys::put(&write)?;
        same("what was read", sys::get(&read)?, b"x".to_vec())?;
        level::is(System)?;
        shared.poke(1);
        Ok(())
    })?
    .join()
}

fn exec_with_memory() -> Outcome {
    let program = path(LOW, "program");
    fs::copy(format!("{BIN}/scenarios"), &program)?;
    let child = start(|| {
        let memory = sys::memfd(0)?;
        sys::put(&memory)?;
        let _map = Map::of(&memory, PROT_READ | PROT_WRITE, MAP_SHARED)?;
        sys::keep_as(&memory, 100)?;
        let program = c(&program);
        let args = [
            c"low".to_owned(),
            c"--helper".to_owned(),
            c"level".to_owned(),
        ];
        nix::unistd::execv(&program, &args)?;
        Ok(())
    })?;
    match child.status()? {
        nix::sys::wait::WaitStatus::Exited(_, code) => same(
            "its level",
            crate::scenarios::helper::level_of_status(code),
            Some(Untrusted),
        ),
        other => Err(crate::scenarios::check::Failed::because(format_args!(
            "it ended: {other:?}"
        ))),
    }
}
