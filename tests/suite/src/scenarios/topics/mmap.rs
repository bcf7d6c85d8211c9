//! Mappings: bound once, never seen again.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
use nix::errno::Errno;

use crate::scenarios::check::{Failed, Outcome, allowed, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW, SYSTEM, TMPFS_SYSTEM, USER, home, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, lower, start, step};
use crate::scenarios::sys::{self, Map};

use Level::{Untrusted, User};

const READ: &str = "open for reading";
const WRITE: &str = "open for writing";
const HELD: &str = "a demotion while holding";

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "mmap-own",
        "each level maps its own files, shared and private",
        own,
    )
    .of(WRITE),
    allow(
        "mmap-private-up",
        "a private mapping of a higher file",
        private_up,
    )
    .of(READ),
    allow(
        "mmap-gone-before-demotion",
        "a mapping that is gone does not stand in the way",
        gone,
    )
    .of(HELD),
    allow(
        "mmap-read-only-kept",
        "a mapping that cannot become writable does not either",
        read_only,
    )
    .of(HELD),
    allow(
        "mmap-anonymous-kept",
        "nor does memory of one's own",
        anonymous,
    )
    .of(HELD),
    deny(
        "mmap-shared-up",
        "no shared mapping of a higher file that could be written",
        shared_up,
    )
    .of(WRITE),
    deny(
        "mmap-held",
        "a demotion with a shared writable mapping is refused",
        held,
    )
    .of(HELD),
    bypass(
        "mmap-before-demotion",
        "written through a mapping made before the demotion",
        before,
    ),
    bypass(
        "mmap-mprotect-later",
        "a read-only mapping made writable after the demotion",
        protect_later,
    ),
    bypass(
        "mmap-after-demotion",
        "mapped after the demotion, from a descriptor opened before",
        after,
    ),
    bypass(
        "mmap-by-another-thread",
        "mapped by one thread while another demotes",
        by_thread,
    ),
    bypass(
        "mmap-by-child",
        "memory shared with a child that falls",
        by_child,
    ),
    bypass("mmap-remap", "a mapping grown or doubled by mremap", remap),
    bypass(
        "vmsplice-lent",
        "a page lent to a pipe, changed after its owner fell",
        lent,
    )
    .gap("vmsplice"),
];

fn own() -> Outcome {
    for level in Level::ALL {
        let file = path(home(level), level.name());
        at(level, || {
            fs::write(&file, [b'a'; 4096])?;
            let fd = sys::both(&file)?;
            let shared = Map::of(&fd, PROT_READ | PROT_WRITE, MAP_SHARED)?;
            shared.poke(b'b');
            same("the content", fs::read(&file)?[0], b'b')?;
            Map::of(&fd, PROT_READ | PROT_WRITE, MAP_PRIVATE)?.poke(b'c');
            Map::of(&fd, PROT_READ | PROT_EXEC, MAP_PRIVATE)?;
            let later = Map::of(&fd, PROT_READ, MAP_SHARED)?;
            later.protect(PROT_READ | PROT_WRITE)?;
            later.poke(b'd');
            level::is(level)
        })?;
    }
    Ok(())
}

fn private_up() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    at(Untrusted, || {
        let fd = sys::reads(&high)?;
        Map::of(&fd, PROT_READ | PROT_WRITE, MAP_PRIVATE)?.poke(b'x');
        Map::of(&fd, PROT_READ, MAP_SHARED)?;
        Map::of(&fd, PROT_READ | PROT_EXEC, MAP_PRIVATE)?;
        level::is(Untrusted)
    })?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn gone() -> Outcome {
    let (user, low) = (place::file(USER, "user")?, place::file(LOW, "low")?);
    at(User, || {
        drop(Map::of(
            &sys::both(&user)?,
            PROT_READ | PROT_WRITE,
            MAP_SHARED,
        )?);
        allowed(fs::read(&low))?;
        level::is(Untrusted)
    })
}

fn read_only() -> Outcome {
    let (user, low) = (place::file(USER, "user")?, place::file(LOW, "low")?);
    at(User, || {
        let map = Map::of(&sys::reads(&user)?, PROT_READ, MAP_SHARED)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        refused(Errno::EACCES, map.protect(PROT_READ | PROT_WRITE))
    })
}

fn anonymous() -> Outcome {
    let low = place::file(LOW, "low")?;
    at(User, || {
        let private = Map::anonymous(MAP_PRIVATE)?;
        let shared = Map::anonymous(MAP_SHARED)?;
        private.poke(1);
        shared.poke(1);
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        shared.poke(2);
        same("the memory", shared.peek(), 2)
    })
}

fn shared_up() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, sys::both(&high))?;
            let fd = sys::reads(&high)?;
            refused(
                Errno::EACCES,
                Map::of(&fd, PROT_READ | PROT_WRITE, MAP_SHARED),
            )?;
            let map = Map::of(&fd, PROT_READ, MAP_SHARED)?;
            refused(Errno::EACCES, map.protect(PROT_WRITE))
        })?;
    }
    Ok(())
}

fn held() -> Outcome {
    let low = place::file(LOW, "low")?;
    for file in [
        place::file(USER, "user")?,
        place::file(SYSTEM, "high")?,
        place::file(TMPFS_SYSTEM, "high")?,
    ] {
        let level = if file.starts_with(USER) {
            User
        } else {
            Level::System
        };
        at(level, || {
            let map = Map::of(&sys::both(&file)?, PROT_READ | PROT_WRITE, MAP_SHARED)?;
            refused(Errno::EACCES, sys::reads(&low))?;
            refused(Errno::EACCES, sys::both(&low))?;
            level::is(level)?;
            map.poke(b'm');
            drop(map);
            allowed(sys::reads(&low))?;
            level::is(Untrusted)
        })?;
    }
    Ok(())
}

/// Falls, or not, with a mapping of a system file; the file must not change after.
fn with_mapping(prot: i32, then: impl FnOnce(&Map) -> Outcome) -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let child = start(|| {
        let fd = sys::both(&high)?;
        let map = Map::of(&fd, prot, MAP_SHARED)?;
        refused(Errno::EACCES, fs::read(&low))?;
        level::is(Level::System)?;
        then(&map)
    })?;
    child.join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn before() -> Outcome {
    with_mapping(PROT_READ | PROT_WRITE, |_| Ok(()))
}

fn protect_later() -> Outcome {
    with_mapping(PROT_READ, |_| Ok(()))?;
    with_mapping(libc::PROT_NONE, |_| Ok(()))
}

fn after() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let child = start(|| {
        let fd = sys::both(&high)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        for prot in [
            PROT_READ | PROT_WRITE,
            PROT_WRITE,
            PROT_READ,
            libc::PROT_NONE,
        ] {
            refused_any(&[Errno::EPERM, Errno::EIO], Map::of(&fd, prot, MAP_SHARED))?;
            refused_any(
                &[Errno::EPERM, Errno::EIO],
                Map::of(&fd, prot, libc::MAP_SHARED_VALIDATE),
            )?;
        }
        Map::of(&fd, PROT_READ | PROT_WRITE, MAP_PRIVATE)?.poke(b'x');
        Ok(())
    })?;
    child.join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn by_thread() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    for _ in 0..4 {
        let child = start(|| {
            let fd = sys::both(&high)?;
            let fallen = AtomicBool::new(false);
            std::thread::scope(|threads| {
                let mapper = threads.spawn(|| {
                    let mut kept = None;
                    while !fallen.load(Ordering::SeqCst) {
                        kept = Map::of(&fd, PROT_READ | PROT_WRITE, MAP_SHARED).ok();
                    }
                    kept.is_some()
                });
                let mut demoted = false;
                for _ in 0..200 {
                    demoted = sys::reads(&low).is_ok();
                    if demoted {
                        break;
                    }
                }
                fallen.store(true, Ordering::SeqCst);
                let kept = mapper.join().unwrap_or(true);
                if demoted && kept && level::by_writing()? == Untrusted {
                    return Err(Failed::because("fell with a shared writable mapping"));
                }
                Ok(())
            })
        })?;
        child.join()?;
    }
    Ok(())
}

fn by_child() -> Outcome {
    let low = place::file(LOW, "low")?;
    let child = start(|| {
        let shared = Map::anonymous(MAP_SHARED)?;
        let child = start(|| {
            if fs::read(&low).is_ok() {
                shared.poke(7);
            }
            step()
        })?;
        child.stands()?;
        // either the child did not fall, or it fell together with this one
        if shared.peek() == 7 {
            level::is(Untrusted)?;
        } else {
            level::is(Level::System)?;
        }
        child.kill()
    })?;
    child.join()
}

fn remap() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let child = start(|| {
        let fd = sys::both(&high)?;
        let map = Map::of(&fd, PROT_READ | PROT_WRITE, MAP_SHARED)?;
        // an old size of 0 makes a second mapping of the same pages
        let second = crate::sys::syscall!(
            libc::SYS_mremap,
            map.0,
            0,
            sys::PAGE,
            libc::MREMAP_MAYMOVE,
            0
        )?;
        drop(map);
        refused(Errno::EACCES, fs::read(&low))?;
        crate::sys::syscall!(libc::SYS_munmap, second, sys::PAGE)?;
        allowed(fs::read(&low)).map(drop)
    })?;
    child.join()
}

fn lent() -> Outcome {
    let (read, write) = nix::unistd::pipe()?;
    let owner = start(|| {
        let page = Map::anonymous(MAP_PRIVATE)?;
        page.poke(b'h');
        let part = libc::iovec {
            iov_base: page.address(),
            iov_len: 1,
        };
        crate::sys::syscall!(
            libc::SYS_vmsplice,
            std::os::fd::AsRawFd::as_raw_fd(&write),
            &raw const part,
            1,
            0
        )?;
        drop(write);
        step()?;
        lower(Untrusted)?;
        page.poke(b'l');
        step()
    })?;
    owner.stands()?;
    owner.go()?;
    owner.stands()?;
    // high data at the top level, or low data below it
    if sys::get(&read)? == b"h" {
        level::is(Level::System)?;
    } else {
        level::is(Untrusted)?;
    }
    owner.kill()
}
