//! FUSE: content that somebody else says, and memory and files that change behind others.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::CloneFlags;

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::daemon;
use crate::scenarios::devfuse::{CONTENT, Fuse};
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, LOW, MOUNT, NAMED_MOUNT, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{
    Child, Level, at, lower, own_namespaces, spawn, start, tell, told,
};
use crate::scenarios::sys::{self, PAGE};
use crate::sys::syscall;
use crate::wait;

use Level::{System, Untrusted, User};

/// What `tidegate promote` says where a lower process has the file mapped, or may have.
const NO: i32 = 1;

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "fuse-named",
        "a FUSE filesystem where a rule names its mount point",
        fuse_named,
    ),
    bypass(
        "fuse-content",
        "a FUSE filesystem mounted at a high place",
        fuse_content,
    ),
    bypass(
        "fuse-other-namespace",
        "one that a low user mounted in a namespace of its own",
        fuse_own,
    ),
    bypass(
        "fuse-stalled-buffer",
        "a write stalled in a buffer that FUSE backs while another thread demotes",
        fuse_stalled,
    ),
    bypass(
        "fuse-stalled-memory",
        "who falls keeps everybody's turn by a lock on its own memory",
        fuse_stalled_memory,
    ),
    bypass(
        "promote-memory-locked",
        "a low process keeps its memory locked while a file is promoted that it may have mapped",
        promoted_while_locked,
    ),
    bypass(
        "promote-mapping-moved",
        "it moves its mapping of the file from before a look to behind it",
        promoted_while_moved,
    )
    .slow(),
];

fn fuse_named() -> Outcome {
    // mounted by a child, which serves it and knows it by its mount alone
    let fuse = Fuse::mount(NAMED_MOUNT)?;
    same("the content", fs::read(fuse.file())?, CONTENT.to_vec())?;
    level::is(System)
}

fn fuse_content() -> Outcome {
    let dir = place::directory(SYSTEM, "fuse")?;
    let fuse = Fuse::mount(&dir)?;
    at_apart(User, || {
        same("the content", fs::read(fuse.file())?, CONTENT.to_vec())?;
        level::is(Untrusted)
    })
}

/// Like [`at`], while a thread of this process serves a filesystem.
fn at_apart(level: Level, part: impl FnOnce() -> Outcome) -> Outcome {
    at(level, part)
}

fn fuse_own() -> Outcome {
    let low = crate::scenarios::subject::spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let _fuse = Fuse::mount(MOUNT)?;
        tell("mounted")?;
        std::thread::sleep(2 * PATIENCE);
        Ok(())
    })?;
    told("mounted")?;
    let file = format!("/proc/{}/root{MOUNT}/file", low.pid);
    at(User, || match fs::read(&file) {
        Ok(content) => {
            same("the content", content, CONTENT.to_vec())?;
            level::is(Untrusted)
        }
        // the kernel itself keeps others out of a user's FUSE
        Err(e) => refused(Errno::EACCES, Err::<(), _>(e)),
    })?;
    low.kill()
}

fn fuse_stalled() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let fuse = Fuse::mount(NAMED_MOUNT)?;
    let served = fuse.file();
    fuse.held.store(true, Ordering::SeqCst);
    let child = start(|| {
        let fd = sys::both(&high)?;
        let buffer = sys::Map::of(&sys::reads(&served)?, libc::PROT_READ, libc::MAP_PRIVATE)?;
        let (address, raw) = (buffer.0 as usize, fd.as_raw_fd());
        let (send, wrote) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = send.send(syscall!(libc::SYS_pwrite64, raw, address, 4, 0));
        });
        told("stalled")?;
        let fell = fs::read(&low).is_ok();
        tell("tried")?;
        let wrote = wrote
            .recv_timeout(PATIENCE)
            .unwrap_or(Err(Errno::ETIMEDOUT));
        if fell {
            refused_any(&[Errno::EIO, Errno::EPERM], wrote)
        } else {
            allowed(wrote)?;
            level::is(System)
        }
    })?;
    fuse.is_asked()?;
    tell("stalled")?;
    told("tried")?;
    fuse.held.store(false, Ordering::SeqCst);
    child.join()
}

/// A process that keeps its memory locked until FUSE serves a page of it: one of its threads reads that page there, and another
/// waits to map something. It does `first` before, and `then` meanwhile.
fn locks_memory(
    fuse: &Fuse,
    first: impl FnOnce() -> Outcome,
    then: impl FnOnce() -> Outcome,
) -> Outcome<Child> {
    let served = fuse.file();
    fuse.held.store(true, Ordering::SeqCst);
    let child = start(|| {
        first()?;
        let page = sys::Map::of(&sys::reads(&served)?, libc::PROT_READ, libc::MAP_PRIVATE)?;
        let memory = sys::reads("/proc/self/mem")?;
        let (address, raw) = (page.0 as usize, memory.as_raw_fd());
        // once the lock is held nobody here can start a thread, or get more memory: all is made ready before
        let [locked, tried] = ["locked", "tried"].map(|sign| path(place::TMPFS_LOW, sign));
        let go = Arc::new(AtomicBool::new(false));
        let (send, waiter) = mpsc::channel();
        let may_go = Arc::clone(&go);
        std::thread::spawn(move || {
            let _ = send.send(nix::unistd::gettid());
            while !may_go.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // waits for the lock, and every reader from now on waits for this
            sys::Map::anonymous(libc::MAP_PRIVATE).map(drop)
        });
        let waiter = waiter
            .recv()
            .map_err(|_| Failed::because("a thread panicked"))?;
        let waiter = format!("/proc/self/task/{waiter}");
        let waits = || -> Outcome<bool> { Ok(wait::call(&waiter) == Some(libc::SYS_mmap)) };
        ensure(!waits()?, "the lock is waited for already")?;
        // holds the lock for reading until the page comes
        std::thread::spawn(move || {
            let mut word = [0u8; 4];
            let _ = syscall!(libc::SYS_pread64, raw, word.as_mut_ptr(), 4, address);
        });
        let is_locked = soon(|| Ok(fs::exists(&locked)?))?;
        ensure(is_locked, "the lock is not held")?;
        go.store(true, Ordering::SeqCst);
        ensure(soon(waits)?, "the lock is not waited for")?;
        fs::write(&tried, "")?;
        then()
    })?;
    fuse.is_asked()?;
    tell("locked")?;
    told("tried")?;
    Ok(child)
}

fn fuse_stalled_memory() -> Outcome {
    let low = place::file(LOW, "low")?;
    let fuse = Fuse::mount(NAMED_MOUNT)?;
    let attacker = locks_memory(
        &fuse,
        || Ok(()),
        || {
            let _ = sys::reads(&low);
            Ok(())
        },
    )?;
    // the first may come before the attacker has its turn
    let meanwhile = (0..3).try_for_each(|_| at(Untrusted, || level::is(Untrusted)));
    fuse.held.store(false, Ordering::SeqCst);
    attacker.join()?;
    meanwhile
}

fn promoted_while_locked() -> Outcome {
    let [free, held] = ["free", "held"].map(|name| path(AREA, name));
    for file in [&free, &held] {
        at(Untrusted, || Ok(fs::write(file, "x")?))?;
    }
    let fuse = Fuse::mount(NAMED_MOUNT)?;
    let attacker = locks_memory(
        &fuse,
        || {
            lower(Untrusted)?;
            // it may map it, for all that anybody can see
            std::mem::forget(sys::both(&held)?);
            Ok(())
        },
        || Ok(()),
    )?;
    // the lock is held until all this is over
    let meanwhile = (|| {
        let code = daemon::quietly(&["promote", &free])?;
        same("what nobody can write to", code, 0)?;
        // a kernel whose look takes no lock sees that nobody has it mapped
        let code = daemon::quietly(&["promote", &held])?;
        ensure(code == NO || code == 0, "the promotion ended otherwise")?;
        object_is(&held, if code == NO { Untrusted } else { System })?;
        at(Untrusted, || level::is(Untrusted))?;
        same("the daemon answers", daemon::quietly(&["status"])?, 0)
    })();
    fuse.held.store(false, Ordering::SeqCst);
    attacker.join()?;
    meanwhile?;
    let code = daemon::quietly(&["promote", &held])?;
    same("what nobody has any more", code, 0)
}

/// Mappings of a page that a look has to go through before it comes to the last.
const BETWEEN: usize = 20_000;

fn promoted_while_moved() -> Outcome {
    let file = path(AREA, "moved");
    at(Untrusted, || Ok(fs::write(&file, "low")?))?;
    let low = spawn(Untrusted, || {
        let fd = sys::both(&file)?;
        let size = (BETWEEN + 2) * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let first = syscall!(libc::SYS_mmap, 0, size, libc::PROT_NONE, flags, -1i32, 0)?;
        // neighbours that differ are not made one
        for page in (1..=BETWEEN).step_by(2) {
            let at = first as usize + page * PAGE;
            syscall!(libc::SYS_mprotect, at, PAGE, libc::PROT_READ)?;
        }
        let last = first as usize + (BETWEEN + 1) * PAGE;
        let (prot, shared) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
        );
        syscall!(libc::SYS_mmap, last, PAGE, prot, shared, fd.as_raw_fd(), 0)?;
        let probe = sys::Map::anonymous(libc::MAP_PRIVATE)?;
        let moves = |from: usize, to: usize| {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            syscall!(libc::SYS_mremap, from, PAGE, PAGE, flags, to)
        };
        tell("mapped")?;
        loop {
            let begun = Instant::now();
            probe.protect(libc::PROT_READ)?;
            probe.protect(prot)?;
            // somebody looks
            if begun.elapsed() > Duration::from_micros(20) {
                moves(last, first as usize)?;
                std::thread::sleep(Duration::from_millis(5));
                moves(first as usize, last)?;
            }
        }
    })?;
    told("mapped")?;
    let refused = (0..20).try_for_each(|_| {
        let code = daemon::quietly(&["promote", &file])?;
        same("the exit code", code, NO)
    });
    low.kill()?;
    refused
}
