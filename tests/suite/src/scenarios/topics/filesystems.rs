//! FUSE and overlays: content that somebody else says, files that change behind others.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::sys::socket::SockType;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

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
use crate::scenarios::unixsock::{connected, file_name, named};
use crate::sys::syscall;
use crate::wait;

use super::{exec, unix};

use Level::{System, Untrusted, User};

/// What `tidegate promote` says where a lower process has the file mapped, or may have.
const NO: i32 = 1;

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "fuse-named",
        "a FUSE filesystem where a rule names its mount point",
        fuse_named,
    ),
    allow(
        "overlay-own",
        "an overlay of what is all one level",
        overlay_own,
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
    bypass(
        "overlay-low-layer",
        "a low file seen through an overlay",
        overlay_low,
    ),
    bypass(
        "overlay-write-up",
        "a high file written through an overlay",
        overlay_up,
    ),
    bypass(
        "overlay-copy-up",
        "a low file copied up into a high layer by a write",
        copy_up,
    ),
    bypass(
        "overlay-own-namespace",
        "an overlay over high files in a namespace of the attacker's",
        overlay_namespace,
    ),
    bypass(
        "overlay-created",
        "what a low subject makes in an overlay",
        overlay_created,
    ),
    bypass(
        "overlay-left-open",
        "a trusted program leaves a low file open that it opened through an overlay",
        overlay_left_open,
    ),
    bypass(
        "overlay-passed-up",
        "a trusted program sends such a file",
        overlay_passed_up,
    ),
    bypass(
        "overlay-passed-down",
        "a high file opened through an overlay, to be written, handed to a lower subject",
        overlay_passed_down,
    ),
    bypass(
        "overlay-revoked",
        "such a file opened before the fall, and kept until the guard would go",
        overlay_revoked,
    ),
    bypass(
        "overlay-socket",
        "a lower client connects to a higher server's socket by its name in an overlay",
        overlay_socket,
    ),
    bypass(
        "overlay-device",
        "a device is opened by its name in an overlay",
        overlay_device,
    ),
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
    let meanwhile = (|| {
        let begun = Instant::now();
        let code = daemon::quietly(&["promote", &free])?;
        same("what nobody can write to", code, 0)?;
        // a kernel whose look takes no lock sees that nobody has it mapped
        let code = daemon::quietly(&["promote", &held])?;
        ensure(code == NO || code == 0, "the promotion ended otherwise")?;
        object_is(&held, if code == NO { Untrusted } else { System })?;
        ensure(begun.elapsed() < PATIENCE / 2, "that took too long")?;
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

/// An overlay of a lower and an upper directory, unmounted when dropped.
pub(super) struct Overlay {
    at: String,
    upper: String,
}

impl Overlay {
    pub(super) fn mount(lower: &str, upper_in: &str, at: &str) -> Outcome<Overlay> {
        let (upper, work) = (
            place::directory(upper_in, "upper")?,
            place::directory(upper_in, "work")?,
        );
        let options =
            format!("lowerdir={lower},upperdir={upper},workdir={work},index=off,metacopy=off");
        mount(
            Some("scenario"),
            at,
            Some("overlay"),
            MsFlags::empty(),
            Some(options.as_str()),
        )?;
        Ok(Overlay {
            at: at.to_owned(),
            upper,
        })
    }

    pub(super) fn file(&self) -> String {
        format!("{}/file", self.at)
    }

    fn upper(&self) -> String {
        format!("{}/file", self.upper)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = umount2(self.at.as_str(), MntFlags::MNT_DETACH);
    }
}

/// A directory with a file in it.
fn layer(dir: &str) -> Outcome<String> {
    let layer = place::directory(dir, "layer")?;
    fs::write(format!("{layer}/file"), "layer")?;
    fs::set_permissions(
        format!("{layer}/file"),
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    )?;
    Ok(layer)
}

fn overlay_own() -> Outcome {
    let (layer, at) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &at)?;
    same(
        "the content",
        fs::read_to_string(overlay.file())?.as_str(),
        "layer",
    )?;
    fs::write(overlay.file(), "changed")?;
    fs::write(format!("{at}/new"), "x")?;
    fs::rename(format!("{at}/new"), format!("{at}/moved"))?;
    fs::remove_file(format!("{at}/moved"))?;
    self::at(Untrusted, || {
        allowed(fs::read(overlay.file()))?;
        level::is(Untrusted)
    })?;
    object_is(&overlay.upper(), System)?;
    level::is(System)
}

fn overlay_low() -> Outcome {
    let (layer, dir) = (layer(LOW)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    at(User, || {
        allowed(fs::read(overlay.file()))?;
        level::is(Untrusted)
    })?;
    at(User, || {
        let fd = allowed(sys::reads(overlay.file()))?;
        let map = sys::Map::of(&fd, libc::PROT_READ, libc::MAP_PRIVATE)?;
        same("the memory", map.peek(), b'l')?;
        level::is(Untrusted)
    })
}

fn overlay_up() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    for round in 0..2 {
        for level in Level::LOWER {
            at(level, || {
                refused(Errno::EPERM, sys::writes(overlay.file()))?;
                refused(Errno::EPERM, sys::both(overlay.file()))?;
                refused(
                    Errno::EPERM,
                    nix::unistd::truncate(overlay.file().as_str(), 0),
                )?;
                refused(Errno::EPERM, fs::remove_file(overlay.file()))?;
                refused(
                    Errno::EPERM,
                    fs::rename(overlay.file(), format!("{dir}/moved")),
                )?;
                refused(Errno::EPERM, fs::write(format!("{dir}/new"), "x"))?;
                refused(
                    Errno::EPERM,
                    sys::setxattr(&overlay.file(), "user.low", b"1"),
                )?;
                refused(
                    Errno::EPERM,
                    fs::set_permissions(
                        overlay.file(),
                        std::os::unix::fs::PermissionsExt::from_mode(0o777),
                    ),
                )
            })?;
        }
        // once more on the copy in the upper layer
        if round == 0 {
            fs::write(overlay.file(), "layer")?;
        }
    }
    same(
        "the content",
        fs::read_to_string(overlay.file())?.as_str(),
        "layer",
    )
}

fn copy_up() -> Outcome {
    let (layer, dir) = (layer(LOW)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    start(|| {
        // the write itself is one downwards; what it copies is low
        let opened = sys::open(overlay.file(), OFlag::O_WRONLY | OFlag::O_APPEND);
        if let Ok(fd) = opened {
            let _ = sys::put(&fd);
        }
        Ok(())
    })?
    .join()?;
    if fs::exists(overlay.upper())? {
        object_is(&overlay.upper(), Untrusted)?;
    }
    at(User, || match fs::read(overlay.file()) {
        Ok(content) if content.starts_with(b"layer") => level::is(Untrusted),
        _ => Ok(()),
    })
}

fn overlay_namespace() -> Outcome {
    let layer = layer(SYSTEM)?;
    let seen = path(AREA, "upper");
    at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let Ok(overlay) = Overlay::mount(&layer, AREA, MOUNT) else {
            return Ok(());
        };
        // a copy of its own it may change
        let _ = fs::write(overlay.file(), "low");
        let _ = fs::write(format!("{MOUNT}/new"), "low");
        level::is(Untrusted)
    })?;
    same(
        "the content",
        fs::read_to_string(format!("{layer}/file"))?.as_str(),
        "layer",
    )?;
    for name in ["file", "new"] {
        let file = format!("{seen}/{name}");
        if fs::exists(&file)? && fs::read(&file).is_ok_and(|c| c == b"low") {
            object_is(&file, Untrusted)?;
        }
    }
    Ok(())
}

fn overlay_created() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(AREA, "merged")?);
    let overlay = Overlay::mount(&layer, AREA, &dir)?;
    at(Untrusted, || {
        let made = fs::write(format!("{dir}/new"), "low");
        let renamed = fs::rename(format!("{dir}/new"), format!("{dir}/renamed"));
        ensure(made.is_ok() || renamed.is_err(), "moved what was not made")?;
        refused(Errno::EPERM, sys::writes(overlay.file()))?;
        level::is(Untrusted)
    })?;
    sys::drop_caches()?;
    for file in [
        format!("{}/renamed", overlay.upper),
        format!("{}/new", overlay.upper),
    ] {
        if fs::exists(&file)? {
            object_is(&file, Untrusted)?;
        }
    }
    Ok(())
}

fn overlay_left_open() -> Outcome {
    let (layer, dir) = (layer(LOW)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    let high = place::file(SYSTEM, "high")?;
    exec::trusted_leaves(&overlay.file(), &high)
}

fn overlay_passed_up() -> Outcome {
    let (layer, dir) = (layer(LOW)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    unix::passed_up(&overlay.file())
}

fn overlay_passed_down() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    unix::passed_down(&overlay.file())
}

fn overlay_revoked() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    start(|| {
        let fd = sys::writes(overlay.file())?;
        lower(Untrusted)?;
        daemon::past_guard(|| refused(Errno::EIO, sys::put(&fd)))
    })?
    .join()?;
    same(
        "the content",
        fs::read_to_string(overlay.file())?.as_str(),
        "layer",
    )
}

fn overlay_socket() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let _overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    let name = file_name(&format!("{dir}/socket"))?;
    let _server = named(SockType::Stream, &name)?;
    allowed(connected(SockType::Stream, &name))?;
    at(Untrusted, || {
        refused(Errno::EPERM, connected(SockType::Stream, &name))
    })
}

fn overlay_device() -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    // /dev/kmsg, and /dev/null, which is nobody's
    for (node, minor) in [("log", 11), ("null", 3)] {
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let node = format!("{layer}/{node}");
        mknod(node.as_str(), SFlag::S_IFCHR, mode, makedev(1, minor))?;
    }
    let _overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    at(Untrusted, || {
        allowed(sys::writes(format!("{dir}/null")))?;
        refused(Errno::EPERM, sys::writes(format!("{dir}/log")))
    })
}
