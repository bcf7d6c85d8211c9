//! Mounts: the view that all processes share.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::SockType::Stream;

use super::system::{ROW, bind, tmpfs};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::disk::Disk;
use crate::scenarios::level;
use crate::scenarios::place::{self, DISK, LOW, MOUNT, OPEN_MOUNT, SYSTEM, VAULT, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Child, Level, at, lower, own_namespaces, spawn, start, step};
use crate::scenarios::sys;
use crate::scenarios::unixsock::{accepted, connected, file_name, named};
use crate::sys::{c, syscall};

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "system-own-namespace",
        "a lower subject mounts in a user namespace of its own",
        own_namespace,
    )
    .of(ROW),
    deny("system-mount", "mounts, old and new calls", mounts).of(ROW),
    bypass(
        "mount-propagation",
        "a mount made in a namespace of one's own shows up in the host",
        propagation,
    ),
    bypass(
        "mount-by-setns",
        "root enters a lower user's mount namespace to change what all share",
        by_setns,
    ),
    bypass(
        "mount-setattr",
        "a read-only mount made writable by mount_setattr",
        setattr,
    ),
    bypass(
        "mount-flood",
        "so many mounts of one's own that the host's is not found among them",
        flood,
    ),
    bypass(
        "mount-flood-parts",
        "the same of a filesystem that the host has mounted in parts alone, as subvolumes of btrfs are",
        flood_parts,
    ),
    bypass(
        "mount-flood-secrets",
        "secrets are opened where there are so many mounts that no label is found",
        flood_secrets,
    ),
    bypass(
        "mount-flood-server",
        "a server's socket has no label at the moment at which its client falls",
        flood_server,
    ),
];

fn own_namespace() -> Outcome {
    let dir = place::directory(SYSTEM, "dir")?;
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(
                CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET,
            )?;
            allowed(tmpfs(MOUNT))?;
            allowed(bind(LOW, &dir))?;
            allowed(fs::read_dir(&dir))?;
            allowed(umount2(dir.as_str(), MntFlags::MNT_DETACH))?;
            allowed(umount2(MOUNT, MntFlags::empty()))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn mounts() -> Outcome {
    let (dir, own) = (
        place::directory(SYSTEM, "dir")?,
        place::directory(LOW, "own")?,
    );
    let before = fs::read_to_string("/proc/self/mountinfo")?;
    for level in Level::LOWER {
        at(level, || {
            for at in [&dir, &own] {
                refused(Errno::EPERM, tmpfs(at))?;
                refused(Errno::EPERM, bind(&own, at))?;
                refused(
                    Errno::EPERM,
                    mount(
                        Some("/scn/tmp"),
                        at.as_str(),
                        None::<&str>,
                        MsFlags::MS_MOVE,
                        None::<&str>,
                    ),
                )?;
            }
            let remount = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            for flags in [remount, remount | MsFlags::MS_BIND, MsFlags::MS_PRIVATE] {
                let none = None::<&str>;
                refused(Errno::EPERM, mount(none, "/scn/tmp", none, flags, none))?;
            }
            refused(Errno::EPERM, umount2("/scn/tmp", MntFlags::MNT_DETACH))?;
            refused(Errno::EPERM, move_mount_tmpfs(&own))?;
            let (new, old) = (c("/scn/tmp"), c("/scn/tmp/low"));
            refused_any(
                &[Errno::EPERM, Errno::EINVAL],
                syscall!(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()),
            )
        })?;
    }
    same(
        "the mounts",
        fs::read_to_string("/proc/self/mountinfo")?,
        before,
    )
}

fn propagation() -> Outcome {
    let dir = place::directory(SYSTEM, "shared")?;
    fs::write(format!("{dir}/file"), "high")?;
    bind(&dir, &dir)?;
    mount(
        None::<&str>,
        dir.as_str(),
        None::<&str>,
        MsFlags::MS_SHARED,
        None::<&str>,
    )?;
    let result = at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let made = tmpfs(&dir);
        if made.is_ok() {
            fs::write(format!("{dir}/file"), "low")?;
        }
        let _ = mount(
            None::<&str>,
            dir.as_str(),
            None::<&str>,
            MsFlags::MS_SHARED,
            None::<&str>,
        );
        Ok(())
    });
    let seen = fs::read_to_string(format!("{dir}/file"))?;
    umount2(dir.as_str(), MntFlags::MNT_DETACH)?;
    result?;
    same("what the host sees", seen.as_str(), "high")
}

fn by_setns() -> Outcome {
    let other = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        step()
    })?;
    other.stands()?;
    let before = fs::read_to_string("/proc/self/mountinfo")?;
    let there = || sys::reads(format!("/proc/{}/ns/mnt", other.pid));
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, setns(there()?, CloneFlags::CLONE_NEWNS))
        })?;
    }
    start(|| {
        // it entered before it fell
        allowed(setns(there()?, CloneFlags::CLONE_NEWNS))?;
        lower(Untrusted)?;
        // it has the host's credentials and the other's view: superblocks belong to all
        let none = None::<&str>;
        for flags in [
            MsFlags::MS_REMOUNT,
            MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY,
        ] {
            refused(
                Errno::EPERM,
                mount(none, "/scn/tmp", none, flags, Some("size=32m")),
            )?;
        }
        Ok(())
    })?
    .join()?;
    same(
        "the mounts",
        fs::read_to_string("/proc/self/mountinfo")?,
        before,
    )?;
    other.kill()
}

fn setattr() -> Outcome {
    let (dir, view) = (
        place::directory(LOW, "dir")?,
        place::directory(SYSTEM, "view")?,
    );
    bind(&dir, &view)?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(
        None::<&str>,
        view.as_str(),
        None::<&str>,
        read_only,
        None::<&str>,
    )?;
    let result = (|| {
        for level in Level::LOWER {
            at(level, || {
                // struct mount_attr: set, clear MOUNT_ATTR_RDONLY, propagation, user namespace
                let attributes = [0u64, 1, 0, 0];
                let at = c(&view);
                let set = syscall!(
                    libc::SYS_mount_setattr,
                    libc::AT_FDCWD,
                    at.as_ptr(),
                    0,
                    attributes.as_ptr(),
                    32
                );
                refused(Errno::EPERM, set)
            })?;
        }
        refused(
            Errno::EROFS,
            sys::open(format!("{view}/file"), OFlag::O_CREAT | OFlag::O_WRONLY),
        )
    })();
    umount2(view.as_str(), MntFlags::MNT_DETACH)?;
    result
}

/// A tmpfs by the calls that came with 5.2.
pub(super) fn move_mount_tmpfs(at: &str) -> Result<(), Errno> {
    attach(&detached_tmpfs(0)?, at)
}

/// A tmpfs that is mounted nowhere yet, with attributes of a mount.
pub(super) fn detached_tmpfs(attributes: u32) -> Result<OwnedFd, Errno> {
    const CREATE: u32 = 6;
    let context = sys::owned(syscall!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)?)?;
    syscall!(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, 0, 0, 0)?;
    let fd = context.as_raw_fd();
    sys::owned(syscall!(libc::SYS_fsmount, fd, 0, attributes)?)
}

/// Mounts what is mounted nowhere yet. As mount(2) does, it follows a link at the end, as /proc/self/fd has them.
pub(super) fn attach(made: &OwnedFd, at: &str) -> Result<(), Errno> {
    const EMPTY_FROM: u32 = 4;
    const FOLLOWED_TO: u32 = 0x10;
    let at = c(at);
    let empty = c("");
    syscall!(
        libc::SYS_move_mount,
        made.as_raw_fd(),
        empty.as_ptr(),
        libc::AT_FDCWD,
        at.as_ptr(),
        EMPTY_FROM | FOLLOWED_TO
    )
    .map(drop)
}

/// A directory whose filesystem is to have many mounts.
fn flooded(dir: &str) -> Outcome<String> {
    let dir = format!("{dir}/flood");
    for k in 0..16 {
        fs::create_dir_all(format!("{dir}/{k}"))?;
    }
    Ok(dir)
}

/// Mounts of a low subject's own, some 130,000 of them, until its processes are killed.
fn many_mounts(dir: &str) -> Outcome<Vec<Child>> {
    let mut children = Vec::new();
    // a namespace has room for 100,000 mounts
    for doublings in [16, 16, 10] {
        let child = spawn(Untrusted, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            for k in 0..doublings {
                mount(
                    Some(dir),
                    format!("{dir}/{k}").as_str(),
                    None::<&str>,
                    MsFlags::MS_BIND | MsFlags::MS_REC,
                    None::<&str>,
                )?;
            }
            step()
        })?;
        child.stands()?;
        children.push(child);
    }
    Ok(children)
}

/// The kernel forgets its inodes, and with them labels: each is to be looked for anew.
fn forget_labels() -> Outcome {
    nix::unistd::sync();
    Ok(fs::write("/proc/sys/vm/drop_caches", "2")?)
}

fn flood() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let high_stays = || {
        forget_labels()?;
        at(System, || {
            allowed(fs::read(&high))?;
            level::is(System)
        })
    };
    let floods = many_mounts(&flooded(&path(SYSTEM, "dir"))?)?;
    high_stays()?;
    for child in floods {
        child.kill()?;
        high_stays()?;
    }
    Ok(())
}

fn flood_parts() -> Outcome {
    let _disk = Disk::mount(&[])?;
    let mut parts = Vec::new();
    for name in ["one", "two"] {
        let part = place::directory(SYSTEM, name)?;
        let on_disk = format!("{DISK}/{name}");
        fs::create_dir(&on_disk)?;
        fs::write(format!("{on_disk}/high"), "high")?;
        bind(&on_disk, &part)?;
        parts.push(part);
    }
    umount2(DISK, MntFlags::MNT_DETACH)?;
    let high_stays = || {
        forget_labels()?;
        at(System, || {
            for part in &parts {
                allowed(fs::read(format!("{part}/high")))?;
            }
            level::is(System)
        })
    };
    high_stays()?;
    let floods = many_mounts(&flooded(&parts[1])?)?;
    let outcome = high_stays();
    for child in floods {
        child.kill()?;
    }
    for part in &parts {
        umount2(part.as_str(), MntFlags::MNT_DETACH)?;
    }
    outcome
}

/// A filesystem that came to a place by a mount of which nobody has looked at anything since.
fn moved(to: &str) -> Outcome<String> {
    let first = place::directory(SYSTEM, "first")?;
    fs::create_dir_all(to)?;
    tmpfs(&first)?;
    bind(&first, to)?;
    flooded(&first)?;
    Ok(first)
}

fn flood_secrets() -> Outcome {
    let vault = path(VAULT, "dir");
    let first = moved(&vault)?;
    fs::write(format!("{first}/secret"), "secret")?;
    umount2(first.as_str(), MntFlags::MNT_DETACH)?;
    let floods = many_mounts(&format!("{vault}/flood"))?;
    let outcome = at(Untrusted, || {
        let secret = sys::reads(format!("{vault}/secret"));
        refused_any(&[Errno::EPERM, Errno::EAGAIN], secret)
    });
    for child in floods {
        child.kill()?;
    }
    umount2(vault.as_str(), MntFlags::MNT_DETACH)?;
    outcome
}

/// The socket takes from everybody, so whoever has the other end falls with its client.
fn flood_server() -> Outcome {
    let low = place::file(LOW, "low")?;
    let first = moved(OPEN_MOUNT)?;
    let name = file_name(&format!("{first}/socket"))?;
    let server = start(|| {
        let listener = named(Stream, &name)?;
        step()?;
        let end = accepted(&listener)?;
        step()?;
        let got = sys::get(&end)?;
        ensure(
            got != b"l" || level::by_writing()? == Untrusted,
            "a low client's data was read, and its reader still writes at the top",
        )
    })?;
    server.stands()?;
    let client = start(|| {
        let end = connected(Stream, &name)?;
        step()?;
        let fell = match sys::reads(&low) {
            Ok(_) => true,
            Err(e) => {
                refused(Errno::EAGAIN, Err::<(), _>(e))?;
                false
            }
        };
        step()?;
        // a user that is kept from it says nothing, but that may be for the mounts that still go
        for _ in 0..50 {
            if sys::put_all(&end, if fell { b"l" } else { b"h" }).is_ok() {
                break;
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    })?;
    client.stands()?;
    server.go()?;
    server.stands()?;
    umount2(first.as_str(), MntFlags::MNT_DETACH)?;
    let floods = many_mounts(&format!("{OPEN_MOUNT}/flood"))?;
    client.go()?;
    client.stands()?;
    for child in floods {
        child.kill()?;
    }
    client.join_after_step()?;
    let outcome = server.join_after_step();
    umount2(OPEN_MOUNT, MntFlags::MNT_DETACH)?;
    outcome
}
