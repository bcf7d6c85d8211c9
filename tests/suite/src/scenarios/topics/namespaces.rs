//! Namespaces that a higher process has for itself: a lower one of the same user enters them, and would change what the
//! higher one sees there.

use std::fs;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{gethostname, sethostname};

use super::mounts::move_mount_tmpfs;
use super::offered::chooses_pid;
use super::system::{bind, tmpfs};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, LOW, MOUNT, USER};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{
    Child, Level, at, become_alice, own_namespaces, spawn, start, step,
};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "namespace-nested",
        "who has fallen beside a higher process makes namespaces of its own in theirs, and mounts there",
        nested,
    ),
    bypass(
        "namespace-mount-fallen",
        "who has fallen in the namespaces that it has with a higher process mounts and unmounts there",
        fallen,
    ),
    bypass(
        "namespace-mount",
        "a lower process of the same user mounts a file over the one that a higher one is about to write",
        mounts,
    ),
    bypass(
        "namespace-mount-new-calls",
        "the same of a directory, by the new calls",
        moves_mount,
    ),
    bypass(
        "namespace-unmount",
        "it takes a mount away, having entered by a pidfd",
        unmounts,
    ),
    bypass(
        "namespace-mount-setattr",
        "it makes a mount read-only by mount_setattr",
        sets_attributes,
    ),
    bypass(
        "namespace-host-name",
        "it changes the name that the machine has there",
        names,
    ),
    bypass(
        "namespace-host-name-nested",
        "the same where the higher process is in a further user namespace of its own",
        names_outside,
    ),
    bypass(
        "namespace-entered",
        "it changes the name of the host in a namespace of its own, which a higher process has entered from outside",
        entered,
    ),
    bypass(
        "namespace-entered-mounts",
        "it makes a mount of its own read-only, in whose namespace a higher process is that has entered only that",
        entered_mounts,
    ),
    bypass(
        "namespace-reboot",
        "who has fallen ends a PID namespace, and so its higher first process (reboot)",
        reboots,
    ),
    bypass(
        "namespace-network",
        "who has fallen in a network that it has with a higher process configures that",
        configures,
    ),
    bypass(
        "namespace-process-number",
        "who has fallen in a PID namespace gives a child the number that a process had which a higher one will signal",
        numbers,
    ),
];

const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

/// The user that has the namespaces, or that enters them.
#[derive(Clone, Copy)]
enum Who {
    Root,
    Alice,
}

impl Who {
    fn become_it(self) -> Outcome {
        if let Who::Alice = self {
            become_alice()?;
            // others of this user may look at it, as at any program that the user started
            syscall!(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0)?;
        }
        Ok(())
    }
}

/// A process at `user` in namespaces of its own, which prepares them and stands still until it is let go on.
fn victim(
    who: Who,
    others: CloneFlags,
    prepare: impl FnOnce() -> Outcome,
    then: impl FnOnce() -> Outcome,
) -> Outcome<Child> {
    let child = spawn(User, || {
        who.become_it()?;
        own_namespaces(others)?;
        prepare()?;
        step()?;
        then()
    })?;
    child.stands()?;
    Ok(child)
}

/// A lower process enters the victim's namespaces, if it may, and does something there, if it may.
fn enters(
    who: Who,
    victim: &Child,
    what: &str,
    act: impl FnOnce() -> Result<(), Errno>,
) -> Outcome {
    at(Untrusted, || {
        who.become_it()?;
        let namespace = |name: &str| sys::reads(format!("/proc/{}/ns/{name}", victim.pid));
        let entered = namespace("user").and_then(|user| {
            let other = namespace(what)?;
            setns(&user, CloneFlags::CLONE_NEWUSER)?;
            setns(&other, CloneFlags::empty())
        });
        match entered.and_then(|()| act()) {
            // what became of it the victim tells
            Ok(()) => Ok(()),
            Err(e) => refused_any(NO, Err::<(), _>(e)),
        }
    })
}

/// It must be so, unless this process has fallen.
fn unless_fallen(so: bool, otherwise: &str) -> Outcome {
    ensure(so || level::by_writing()? == Untrusted, otherwise)
}

fn mounts() -> Outcome {
    let (file, other) = (place::file(USER, "file")?, place::file(USER, "other")?);
    let victim = victim(
        Who::Alice,
        CloneFlags::CLONE_NEWNS,
        || Ok(()),
        || {
            // if it has fallen it may not
            let _ = fs::write(&file, "new");
            Ok(())
        },
    )?;
    enters(Who::Alice, &victim, "mnt", || bind(&other, &file))?;
    victim.join_after_step()?;
    at(User, || {
        same(
            "the other file",
            fs::read_to_string(&other)?.as_str(),
            "other",
        )
    })
}

fn moves_mount() -> Outcome {
    let dir = place::directory(USER, "dir")?;
    let own = format!("{dir}/own");
    let victim = victim(
        Who::Alice,
        CloneFlags::CLONE_NEWNS,
        || Ok(fs::write(&own, "own")?),
        || unless_fallen(fs::exists(&own)?, "its directory is covered"),
    )?;
    enters(Who::Alice, &victim, "mnt", || move_mount_tmpfs(&dir))?;
    victim.join_after_step()
}

/// A tmpfs of its own with a file in it.
fn own_tmpfs() -> Outcome {
    tmpfs(MOUNT)?;
    Ok(fs::write(format!("{MOUNT}/own"), "own")?)
}

fn nested() -> Outcome {
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        at(Untrusted, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            allowed(tmpfs(MOUNT))?;
            allowed(fs::write(format!("{MOUNT}/own"), "own"))?;
            allowed(umount2(MOUNT, MntFlags::MNT_DETACH))?;
            level::is(Untrusted)
        })?;
        // the higher one goes on
        allowed(tmpfs(MOUNT))?;
        allowed(umount2(MOUNT, MntFlags::MNT_DETACH))?;
        level::is(User)
    })
}

fn fallen() -> Outcome {
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
        own_tmpfs()?;
        let name = gethostname()?;
        at(Untrusted, || {
            refused(Errno::EPERM, tmpfs(MOUNT))?;
            refused(Errno::EPERM, bind(LOW, MOUNT))?;
            refused(Errno::EPERM, move_mount_tmpfs(MOUNT))?;
            refused(Errno::EPERM, umount2(MOUNT, MntFlags::MNT_DETACH))?;
            refused(Errno::EPERM, sethostname("low"))
        })?;
        ensure(
            fs::exists(format!("{MOUNT}/own"))? && gethostname()? == name,
            "what it sees is another's",
        )
    })
}

fn unmounts() -> Outcome {
    let victim = victim(Who::Root, CloneFlags::CLONE_NEWNS, own_tmpfs, || {
        let is = fs::exists(format!("{MOUNT}/own"))?;
        unless_fallen(is, "what it has mounted is gone")
    })?;
    at(Untrusted, || {
        let process = sys::pidfd_open(victim.pid.as_raw())?;
        let both = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
        match setns(&process, both).and_then(|()| umount2(MOUNT, MntFlags::MNT_DETACH)) {
            Ok(()) => Ok(()),
            Err(e) => refused_any(NO, Err::<(), _>(e)),
        }
    })?;
    victim.join_after_step()
}

/// Has what is mounted at [`MOUNT`] be read-only, or not, by mount_setattr(2).
fn read_only(is: bool) -> Result<(), Errno> {
    let (path, set) = (c(MOUNT), u64::from(is)); // MOUNT_ATTR_RDONLY
    let attributes = [set, 1 - set, 0, 0];
    syscall!(
        libc::SYS_mount_setattr,
        libc::AT_FDCWD,
        path.as_ptr(),
        0,
        attributes.as_ptr(),
        32
    )
    .map(drop)
}

fn sets_attributes() -> Outcome {
    let victim = victim(Who::Root, CloneFlags::CLONE_NEWNS, own_tmpfs, || {
        let is = sys::writes(format!("{MOUNT}/own")).is_ok();
        unless_fallen(is, "what it has mounted cannot be written")
    })?;
    enters(Who::Root, &victim, "mnt", || read_only(true))?;
    victim.join_after_step()
}

fn names() -> Outcome {
    let before = gethostname()?;
    let victim = victim(
        Who::Root,
        CloneFlags::CLONE_NEWUTS,
        || Ok(()),
        || unless_fallen(gethostname()? == before, "its host has another name"),
    )?;
    enters(Who::Root, &victim, "uts", || sethostname("low"))?;
    victim.join_after_step()
}

fn names_outside() -> Outcome {
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWUTS)?;
        let before = gethostname()?;
        let low = spawn(Untrusted, || {
            step()?;
            refused(Errno::EPERM, sethostname("low"))
        })?;
        low.stands()?;
        unshare(CloneFlags::CLONE_NEWUSER)?;
        low.join_after_step()?;
        ensure(gethostname()? == before, "its host has another name")
    })
}

fn entered() -> Outcome {
    let low = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWUTS)?;
        step()?;
        refused(Errno::EPERM, sethostname("low"))?;
        step()?;
        // as long as the other was there
        allowed(sethostname("low"))
    })?;
    low.stands()?;
    let high = start(|| {
        let host = sys::reads(format!("/proc/{}/ns/uts", low.pid))?;
        setns(&host, CloneFlags::empty())?;
        step()
    })?;
    high.stands()?;
    low.go()?;
    low.stands()?;
    high.kill()?;
    low.join_after_step()
}

fn entered_mounts() -> Outcome {
    let low = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        allowed(tmpfs(MOUNT))?;
        allowed(read_only(true))?;
        allowed(read_only(false))?;
        step()?;
        refused(Errno::EPERM, read_only(true))?;
        step()?;
        // as long as the other was there
        allowed(read_only(true))
    })?;
    low.stands()?;
    let high = start(|| {
        let mounts = sys::reads(format!("/proc/{}/ns/mnt", low.pid))?;
        setns(&mounts, CloneFlags::empty())?;
        step()
    })?;
    high.stands()?;
    low.go()?;
    low.stands()?;
    high.kill()?;
    low.join_after_step()
}

fn reboots() -> Outcome {
    const MAGIC: [u32; 2] = [0xfee1_dead, 0x2812_1969];
    const POWER_OFF: u32 = 0x4321_fedc;
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWPID)?;
        // the first process there, which the end of the namespace would end
        start(|| {
            at(Untrusted, || {
                let [one, two] = MAGIC;
                refused(
                    Errno::EPERM,
                    syscall!(libc::SYS_reboot, one, two, POWER_OFF, 0),
                )
            })?;
            same("its level", level::by_writing()?, User)
        })?
        .join()
    })
}

fn numbers() -> Outcome {
    // the first process in the namespace, by whose end the others would end
    let first = |part: fn() -> Outcome| {
        own_namespaces(CloneFlags::CLONE_NEWPID)?;
        start(part)?.join()
    };
    at(User, || {
        first(|| at(Untrusted, || refused(Errno::EPERM, chooses_pid(""))))?;
        same("its level", level::by_writing()?, User)
    })?;
    // nobody higher is there
    at(Untrusted, || first(|| allowed(chooses_pid(""))))
}

/// Brings up the loopback device: SIOCSIFFLAGS with a struct ifreq, the name and the flags (IFF_UP).
fn brings_up() -> Result<(), Errno> {
    const SET_FLAGS: u64 = 0x8914;
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
    let mut question = [0u8; 40];
    question[..2].copy_from_slice(b"lo");
    question[16] = 1;
    sys::ioctl(&socket, SET_FLAGS, question.as_ptr() as usize).map(drop)
}

fn socket(family: i32, kind: i32) -> Result<OwnedFd, Errno> {
    sys::owned(syscall!(
        libc::SYS_socket,
        family,
        kind | libc::SOCK_CLOEXEC,
        0
    )?)
}

fn configures() -> Outcome {
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNET)?;
        at(Untrusted, || {
            refused(Errno::EPERM, brings_up())?;
            // nor does it speak from any address
            refused(Errno::EPERM, socket(libc::AF_PACKET, libc::SOCK_RAW))
        })?;
        // the higher one may
        allowed(brings_up())?;
        same("its level", level::by_writing()?, User)
    })
}
