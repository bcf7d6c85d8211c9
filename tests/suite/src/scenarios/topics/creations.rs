//! The note of a creation: what a creation that failed has left must give no other object its level.

use std::fs;
use std::os::unix::fs::symlink;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkdir, mkfifo};

use crate::scenarios::check::{Attempt, Outcome, ensure, same};
use crate::scenarios::level::object_is;
use crate::scenarios::place::{self, AREA};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, lower};
use crate::scenarios::sys;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "creation-note-file",
        "a file could not be made; its maker falls, and gives a low file further names",
        file,
    ),
    bypass(
        "creation-note-directory",
        "the same after a directory that could not be made",
        directory,
    ),
    bypass(
        "creation-note-fifo",
        "the same after a FIFO that could not be made",
        fifo,
    ),
    bypass(
        "creation-note-symlink",
        "the same after a symbolic link that could not be made",
        link,
    ),
    bypass(
        "creation-note-same-level",
        "a file could not be made, and its maker, which does not fall, gives a low file further names",
        same_level,
    ),
];

/// How often a name may come to lie where the one that failed lay.
const TRIES: u32 = 2000;

type Makes = fn(&str) -> Result<(), Errno>;

/// On one processor, so that memory is used again.
fn on_one_processor() -> Result<(), Errno> {
    let mut first = CpuSet::new();
    first.set(0)?;
    sched_setaffinity(Pid::this(), &first)
}

/// In a filesystem with room for few inodes: makes until one cannot be made, falls or not, and links.
fn links_after(makes: Makes, falls: bool) -> Outcome {
    on_one_processor()?;
    let small = place::directory(AREA, "small")?;
    mount(
        Some("scenario"),
        small.as_str(),
        Some("tmpfs"),
        MsFlags::empty(),
        Some("nr_inodes=40,mode=777"),
    )?;
    let low = format!("{small}/low");
    let played = at(Untrusted, || Ok(fs::write(&low, "low")?))
        .and_then(|()| at(User, || fills_and_links(&small, &low, makes, falls)))
        .and_then(|()| object_is(&low, Untrusted));
    umount2(small.as_str(), MntFlags::MNT_DETACH)?;
    played
}

fn fills_and_links(small: &str, low: &str, makes: Makes, falls: bool) -> Outcome {
    let filler = |n| format!("{small}/filler-{n}");
    let mut made = 0;
    // the last of these is refused by the filesystem, when nobody else has refused it
    let full = loop {
        match makes(&filler(made)) {
            Ok(()) => made += 1,
            Err(e) => break e,
        }
    };
    same("what stops it", full, Errno::ENOSPC)?;
    // room for links
    for n in 0..6 {
        fs::remove_file(filler(n)).or_else(|_| fs::remove_dir(filler(n)))?;
    }
    if falls {
        lower(Untrusted)?;
    }
    let mut linked = 0;
    for n in 0..TRIES {
        let link = |k| format!("{small}/link-{n}-{k}");
        linked += (0..5)
            .filter(|k| fs::hard_link(low, link(*k)).is_ok())
            .count();
        for k in 0..5 {
            let _ = fs::remove_file(link(k));
        }
    }
    ensure(linked > 0, "nothing was linked")
}

fn makes_file(path: &str) -> Result<(), Errno> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY;
    sys::open(path, flags).map(drop)
}

fn file() -> Outcome {
    links_after(makes_file, true)
}

fn same_level() -> Outcome {
    links_after(makes_file, false)
}

fn directory() -> Outcome {
    links_after(|path| mkdir(path, Mode::S_IRWXU), true)
}

fn fifo() -> Outcome {
    links_after(|path| mkfifo(path, Mode::S_IRWXU), true)
}

fn link() -> Outcome {
    links_after(|path| symlink("x", path).made(), true)
}
