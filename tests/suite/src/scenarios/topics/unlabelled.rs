//! What has no label at the moment at which it is looked for, by whichever way that is: it could be a secret
//! (`lownoopen`), so nobody below the top opens it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::unistd::chdir;

use super::system::{NO, bind};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any};
use crate::scenarios::disk::Disk;
use crate::scenarios::level;
use crate::scenarios::place::{self, DISK, LOW, SECRET, SYSTEM, VAULT, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, own_namespaces, start};
use crate::scenarios::sys::{self, Handle};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "secret-by-inode",
        "a secret is opened by its inode's number, through its filesystem and through a bind mount",
        by_inode,
    ),
    bypass(
        "secret-attribute-by-inode",
        "an attribute of a secret is read by its inode's number",
        attribute,
    ),
    bypass(
        "secret-link-by-inode",
        "a symbolic link among secrets is read by its inode's number",
        link,
    ),
    bypass(
        "secret-by-inherited-handle",
        "a secret that its parent found by its inode's number is opened by a child that fell",
        by_inherited,
    ),
    bypass(
        "secret-given-by-handle",
        "the same of a file that is a secret by its place, and has a level of its own",
        given,
    ),
    bypass(
        "secret-attribute-inherited",
        "the same of an attribute of it",
        attribute_inherited,
    ),
    bypass(
        "secret-by-handle-own-namespace",
        "a secret is opened by its handle in a mount namespace of one's own, where that takes no privilege",
        by_handle_in_namespace,
    ),
    deny(
        "secret-attribute",
        "nor are the attributes of a secret told, which hold what is in it as well",
        attribute_by_name,
    ),
    bypass(
        "secret-too-deep",
        "a secret lies deeper than the monitor looks",
        too_deep,
    ),
    bypass(
        "secret-casefolded",
        "a secret is opened by its name in capital letters, which its directory takes for the same",
        casefolded,
    ),
    bypass(
        "secret-casefolded-letters",
        "a secret is opened by other letters that its directory takes for the same",
        casefolded_letters,
    ),
    bypass(
        "secret-casefolded-memory",
        "a secret is made with a capital letter on a tmpfs that takes it for a small one",
        casefolded_memory,
    ),
    allow(
        "kernel-interface-own-namespace",
        "what the kernel says in a filesystem that is mounted in a namespace of one's own alone is read, and not written",
        kernel_interface,
    ),
];

/// What an inode's number stands for, once nobody has it in memory; `mount` is any directory of its filesystem.
fn found(mount: &str, inode: u64, flags: OFlag) -> Result<OwnedFd, Errno> {
    let mount = sys::open(mount, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
    sys::open_handle(&mount, &Handle::guessed(inode), flags)
}

fn by_inode() -> Outcome {
    let bound = place::directory(LOW, "bound")?;
    bind(SYSTEM, &bound)?;
    let inode = fs::metadata(SECRET)?.ino();
    at(Untrusted, || refused(Errno::EPERM, sys::reads(SECRET)))?;
    let played = ["/", bound.as_str()].into_iter().try_for_each(|mount| {
        sys::drop_caches()?;
        at(Untrusted, || {
            refused_any(NO, found(mount, inode, OFlag::O_RDONLY))
        })?;
        // and by what stands for it, of which no hook tells
        sys::drop_caches()?;
        at(Untrusted, || {
            let found = found(mount, inode, OFlag::O_PATH);
            refused_any(NO, found.and_then(|f| sys::again(&f, OFlag::O_RDONLY)))
        })
    });
    umount2(bound.as_str(), MntFlags::MNT_DETACH)?;
    played
}

fn attribute() -> Outcome {
    let secret = place::file(VAULT, "secret")?;
    sys::setxattr(&secret, "user.word", b"s")?;
    let inode = fs::metadata(&secret)?.ino();
    sys::drop_caches()?;
    at(Untrusted, || {
        let read = found("/", inode, OFlag::O_PATH).and_then(|f| {
            let name = format!("/proc/self/fd/{}", f.as_raw_fd());
            sys::getxattr(&name, "user.word")
        });
        refused_any(NO, read)
    })
}

fn link() -> Outcome {
    let secret = path(VAULT, "link");
    symlink("secret", &secret)?;
    let inode = fs::symlink_metadata(&secret)?.ino();
    sys::drop_caches()?;
    at(Untrusted, || {
        let read = found("/", inode, OFlag::O_PATH).and_then(|f| {
            let mut target = [0u8; 64];
            syscall!(
                libc::SYS_readlinkat,
                f.as_raw_fd(),
                c"".as_ptr(),
                target.as_mut_ptr(),
                target.len()
            )
        });
        refused_any(NO, read)
    })
}

/// A process at the top finds something by its number, once nobody has it in memory; a child that falls has that, too.
/// Below the top nobody finds it so himself.
fn inherited(inode: u64, uses: impl FnOnce(&OwnedFd) -> Outcome) -> Outcome {
    sys::drop_caches()?;
    start(|| {
        let found = found("/", inode, OFlag::O_PATH)?;
        at(Untrusted, || uses(&found))
    })?
    .join()
}

fn by_inherited() -> Outcome {
    inherited(fs::metadata(SECRET)?.ino(), |secret| {
        refused(Errno::EPERM, sys::again(secret, OFlag::O_RDONLY))
    })
}

fn given() -> Outcome {
    let file = path(VAULT, "given");
    at(User, || Ok(fs::write(&file, "secret")?))?;
    at(Untrusted, || refused(Errno::EPERM, sys::reads(&file)))?;
    inherited(fs::metadata(&file)?.ino(), |secret| {
        refused(Errno::EPERM, sys::again(secret, OFlag::O_RDONLY))
    })
}

fn attribute_inherited() -> Outcome {
    let secret = place::file(VAULT, "secret")?;
    sys::setxattr(&secret, "user.word", b"s")?;
    inherited(fs::metadata(&secret)?.ino(), |secret| {
        let name = format!("/proc/self/fd/{}", secret.as_raw_fd());
        refused(Errno::EPERM, sys::getxattr(&name, "user.word"))
    })
}

/// Since 6.11 a process that may mount opens by handle what is below a directory, if it is
/// connected to that.
fn by_handle_in_namespace() -> Outcome {
    let _disk = Disk::mount(&[])?;
    let dir = format!("{DISK}/folded");
    fs::create_dir(&dir)?;
    let secret = format!("{dir}/secret");
    fs::write(&secret, "secret")?;
    let handle = sys::handle_of(&secret)?;
    for in_sight in [true, false] {
        sys::drop_caches()?;
        let kept = in_sight
            .then(|| sys::open(&secret, OFlag::O_PATH))
            .transpose()?;
        at(Untrusted, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            let mount = sys::open(DISK, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            refused_any(
                &[Errno::EPERM, Errno::EACCES, Errno::ESTALE],
                sys::open_handle(&mount, &handle, OFlag::O_RDONLY),
            )
        })?;
        drop(kept);
    }
    Ok(())
}

fn attribute_by_name() -> Outcome {
    sys::setxattr(SECRET, "user.word", b"s")?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, sys::getxattr(SECRET, "user.word"))?;
            allowed(fs::metadata(SECRET))?;
            level::is(level)
        })?;
    }
    allowed(sys::getxattr(SECRET, "user.word"))?;
    level::is(System)
}

fn too_deep() -> Outcome {
    let top = place::directory(VAULT, "deep")?;
    at(System, || {
        chdir(top.as_str())?;
        for _ in 0..150 {
            fs::create_dir("d")?;
            chdir("d")?;
        }
        fs::write("secret", "secret")?;
        at(Untrusted, || refused_any(NO, sys::reads("secret")))?;
        // the top may have it, and has read then what nothing is known of
        fs::read("secret")?;
        level::is(Untrusted)
    })
}

/// Has an empty directory take capital letters for small ones.
fn fold(dir: &str) -> Outcome {
    const GET_FLAGS: u64 = 0x8008_6601;
    const SET_FLAGS: u64 = 0x4008_6602;
    const CASEFOLD: u64 = 0x4000_0000;
    let dir = sys::reads(dir)?;
    let mut flags = 0u64;
    sys::ioctl(&dir, GET_FLAGS, &raw mut flags as usize)?;
    flags |= CASEFOLD;
    sys::ioctl(&dir, SET_FLAGS, &raw const flags as usize)?;
    Ok(())
}

fn casefolded() -> Outcome {
    let _disk = Disk::mount(&["-O", "casefold"])?;
    let dir = format!("{DISK}/folded");
    fs::create_dir(&dir)?;
    fold(&dir)?;
    fs::write(format!("{dir}/secret"), "secret")?;
    for name in ["secret", "SECRET", "Secret"] {
        // its name is the one that it is looked for by first
        sys::drop_caches()?;
        at(Untrusted, || {
            refused_any(NO, sys::reads(format!("{dir}/{name}")))
        })?;
    }
    Ok(())
}

/// Of an s: a long one, which is folded to the same.
fn casefolded_letters() -> Outcome {
    let _disk = Disk::mount(&["-O", "casefold"])?;
    let dir = format!("{DISK}/folded");
    fs::create_dir(&dir)?;
    fold(&dir)?;
    fs::write(format!("{dir}/secret"), "secret")?;
    sys::drop_caches()?;
    at(Untrusted, || {
        refused_any(NO, sys::reads(format!("{dir}/\u{17f}ecret")))
    })
}

/// A tmpfs, whose names stay as they were made: since Linux 6.13 it can fold them.
fn casefolded_memory() -> Outcome {
    let (from, kind, options) = (Some("scenario"), Some("tmpfs"), Some("casefold"));
    match mount(from, DISK, kind, MsFlags::empty(), options) {
        Err(Errno::EINVAL) => return Ok(()),
        mounted => mounted?,
    }
    let played = memory_folded(&format!("{DISK}/folded"));
    umount2(DISK, MntFlags::MNT_DETACH)?;
    played
}

fn memory_folded(dir: &str) -> Outcome {
    fs::create_dir(dir)?;
    fold(dir)?;
    fs::write(format!("{dir}/Secret"), "secret")?;
    for name in ["secret", "Secret", "SECRET"] {
        at(Untrusted, || {
            refused_any(NO, sys::reads(format!("{dir}/{name}")))
        })?;
    }
    Ok(())
}

fn kernel_interface() -> Outcome {
    let loaded = Command::new("modprobe").arg("binfmt_misc").status()?;
    ensure(loaded.success(), "there is no binfmt_misc")?;
    let dir = place::directory(LOW, "interface")?;
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let (from, kind) = (Some("scenario"), Some("binfmt_misc"));
        mount(from, dir.as_str(), kind, MsFlags::empty(), None::<&str>)?;
        allowed(fs::read(format!("{dir}/status")))?;
        refused(Errno::EPERM, sys::writes(format!("{dir}/register")))?;
        level::is(User)
    })
}
