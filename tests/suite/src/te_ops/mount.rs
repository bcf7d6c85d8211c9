//! File systems.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::sys::c;
use crate::te_ops::op::Ops;
use crate::te_ops::sys::{open, past, sys};

const MOUNTED: &str = "/srv/ops/mounted";
const EMPTY: &str = "/srv/ops/obj/empty";

fn mount(source: &str, target: &str, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target, kind, data) = (c(source), c(target), c(kind), c(data));
    sys!(libc::mount(
        source.as_ptr(),
        target.as_ptr(),
        kind.as_ptr(),
        flags,
        data.as_ptr().cast()
    ))
    .map(drop)
}

pub fn tmpfs(on: &str) -> io::Result<()> {
    mount("none", on, "tmpfs", 0, "")
}

/// Apart from everybody's mounts, so that none is left.
fn alone(what: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    sys!(libc::unshare(libc::CLONE_NEWNS))?;
    what()
}

fn empty() -> io::Result<()> {
    std::fs::create_dir(EMPTY)
}

fn unmount(what: &str, flags: i32) -> io::Result<()> {
    let what = c(what);
    sys!(libc::umount2(what.as_ptr(), flags)).map(drop)
}

fn quota(command: i32) -> io::Result<()> {
    let disk = open("/", libc::O_RDONLY)?;
    let mut data = [0u64; 32];
    let command = command << 8;
    past(sys!(libc::syscall(
        libc::SYS_quotactl_fd,
        disk.as_raw_fd(),
        command,
        0,
        data.as_mut_ptr()
    )))
}

pub fn add(ops: &mut Ops) {
    ops.with("mount a tmpfs", empty, |()| alone(|| tmpfs(EMPTY)));
    ops.with("mount a tmpfs with a label", empty, |()| {
        alone(|| mount("none", EMPTY, "tmpfs", 0, "context=u:object_r:other_t:s0"))
    })
    .own();
    ops.with("mount a tmpfs with a root's label", empty, |()| {
        alone(|| {
            mount(
                "none",
                EMPTY,
                "tmpfs",
                0,
                "rootcontext=u:object_r:other_t:s0",
            )
        })
    })
    .own();
    ops.with("mount proc", empty, |()| {
        alone(|| mount("none", EMPTY, "proc", 0, ""))
    });
    ops.with("mount sysfs", empty, |()| {
        alone(|| mount("none", EMPTY, "sysfs", 0, ""))
    });
    ops.with("bind a directory", empty, |()| {
        alone(|| mount("/srv/ops/mounted", EMPTY, "", libc::MS_BIND, ""))
    });
    ops.with("move a mount", empty, |()| {
        alone(|| mount(MOUNTED, EMPTY, "", libc::MS_MOVE, ""))
    });
    ops.plain("remount", || {
        alone(|| mount("none", MOUNTED, "", libc::MS_REMOUNT, "size=2m"))
    });
    ops.plain("remount a bind", || {
        alone(|| {
            mount(
                "none",
                MOUNTED,
                "",
                libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY,
                "",
            )
        })
    });
    ops.plain("make a mount private", || {
        alone(|| mount("none", MOUNTED, "", libc::MS_PRIVATE, ""))
    });
    ops.plain("unmount", || alone(|| unmount(MOUNTED, 0)));
    ops.plain("unmount lazily", || {
        alone(|| unmount(MOUNTED, libc::MNT_DETACH))
    });
    ops.plain("pivot the root", || {
        alone(|| {
            mount("none", "/", "", libc::MS_PRIVATE | libc::MS_REC, "")?;
            let (new, old) = (c(MOUNTED), c("/srv/ops/mounted/old"));
            sys!(libc::syscall(
                libc::SYS_pivot_root,
                new.as_ptr(),
                old.as_ptr()
            ))
            .map(drop)
        })
    });
    ops.plain("a tree of mounts", || {
        alone(|| {
            let path = c(MOUNTED);
            sys!(libc::syscall(
                libc::SYS_open_tree,
                libc::AT_FDCWD,
                path.as_ptr(),
                1
            ))
            .map(drop)
        })
    });
    ops.with("mount by the new calls", empty, |()| {
        alone(|| {
            let on = sys!(libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0))?;
            let none = ptr::null::<u8>();
            // FSCONFIG_CMD_CREATE
            sys!(libc::syscall(libc::SYS_fsconfig, on, 6, none, none, 0))?;
            let mount = sys!(libc::syscall(libc::SYS_fsmount, on, 0, 0))?;
            let (from, to) = (c(""), c(EMPTY));
            // MOVE_MOUNT_F_EMPTY_PATH
            sys!(libc::syscall(
                libc::SYS_move_mount,
                mount,
                from.as_ptr(),
                libc::AT_FDCWD,
                to.as_ptr(),
                4
            ))
            .map(drop)
        })
    });
    for (name, path) in [
        ("a tmpfs", MOUNTED),
        ("the disk", "/"),
        ("proc", "/proc"),
        ("sysfs", "/sys"),
    ] {
        ops.plain(format!("ask about {name} as a whole"), move || {
            let path = c(path);
            // SAFETY: zeroes are a status.
            let mut status: libc::statfs = unsafe { std::mem::zeroed() };
            sys!(libc::statfs(path.as_ptr(), &raw mut status)).map(drop)
        });
    }
    for (name, command) in [
        ("sync", 0x0080_0001),
        ("format", 0x0080_0004),
        ("limits", 0x0080_0007),
        ("set limits", 0x0080_0008),
        ("off", 0x0080_0003),
    ] {
        ops.plain(format!("quota: {name}"), move || quota(command));
    }
    ops.plain("quota: on", || {
        let (disk, file) = (c("/dev/pmem0"), c("/srv/ops/obj"));
        past(sys!(libc::quotactl(
            0x0080_0002 << 8,
            disk.as_ptr(),
            1,
            file.as_ptr().cast_mut().cast()
        )))
    });
}
