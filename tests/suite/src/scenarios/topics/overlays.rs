//! Overlays: what is reached by a name in an overlay is what lies in its layers.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::sys::sendfile::sendfile;
use nix::sys::socket::SockType;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::pipe2;

use super::{exec, unix};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, same};
use crate::scenarios::daemon;
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, LOW, MOUNT, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, lower, own_namespaces, start};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{connected, file_name, named};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "overlay-own",
        "an overlay of what is all one level",
        overlay_own,
    ),
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
        "overlay-revoked-splice",
        "such a file, by splice(2) out of a pipe, which asks about the overlay's file alone",
        overlay_revoked_splice,
    ),
    bypass(
        "overlay-revoked-sendfile",
        "such a file, by sendfile(2)",
        overlay_revoked_sendfile,
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

/// A process has a higher file open through an overlay, falls, and brings bytes to it; into a file of its own it may.
fn brings_behind(brings: impl Fn(&OwnedFd) -> Result<(), Errno>) -> Outcome {
    let (layer, dir) = (layer(SYSTEM)?, place::directory(SYSTEM, "merged")?);
    let overlay = Overlay::mount(&layer, SYSTEM, &dir)?;
    let (lower_layer, lower_dir) = (self::layer(LOW)?, place::directory(LOW, "merged")?);
    let own = Overlay::mount(&lower_layer, LOW, &lower_dir)?;
    start(|| {
        let (high, low) = (sys::writes(overlay.file())?, sys::writes(own.file())?);
        lower(Untrusted)?;
        refused(Errno::EIO, brings(&high))?;
        allowed(brings(&low))?;
        level::is(Untrusted)
    })?
    .join()?;
    same(
        "the content",
        fs::read_to_string(overlay.file())?.as_str(),
        "layer",
    )?;
    same("its own", fs::read_to_string(own.file())?.as_str(), "lower")
}

fn overlay_revoked_splice() -> Outcome {
    brings_behind(|to| {
        let (reads, writes) = pipe2(OFlag::O_CLOEXEC)?;
        sys::put_all(&writes, b"low")?;
        let (reads, to) = (reads.as_raw_fd(), to.as_raw_fd());
        syscall!(libc::SYS_splice, reads, 0, to, 0, 3, 0).map(drop)
    })
}

fn overlay_revoked_sendfile() -> Outcome {
    let from = place::file(LOW, "low")?;
    brings_behind(|to| {
        let from = sys::reads(&from)?;
        sendfile(to, &from, None, 3).map(drop)
    })
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
