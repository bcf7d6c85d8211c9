//! Labels that hold: whatever name, mount, namespace or handle an object is reached by.

use std::fs;
use std::os::unix::fs::symlink;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};

use crate::scenarios::check::{Outcome, allowed, ensure, refused, same};
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, LOW, SYSTEM, TMPFS, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, own_namespaces, spawn, step};
use crate::scenarios::sys;
use crate::sys::c;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "label-own-namespace",
        "a private tmpfs holds each level's objects at its creator's level",
        own_namespace,
    ),
    bypass(
        "evicted-inode",
        "a given level after its inode was thrown out of memory",
        evicted,
    ),
    bypass(
        "renamed-tree",
        "a low file after its directories were moved",
        renamed_tree,
    ),
    bypass(
        "second-name",
        "a low file by another of its names",
        second_name,
    ),
    bypass(
        "bind-mount",
        "a low file bound over a high one, a high one bound into a low place",
        bind_mount,
    ),
    bypass(
        "chroot-forged-path",
        "a low tree that looks like / to who is confined to it",
        chroot_forged,
    ),
    bypass(
        "detached-mount",
        "a path forged by a mount that hangs nowhere",
        detached,
    ),
    bypass(
        "mount-namespace",
        "a file of a filesystem that only another namespace has mounted",
        other_namespace,
    ),
    bypass(
        "open-by-handle",
        "a file opened by its handle, its path unknown",
        by_handle,
    ),
    bypass(
        "unlinked-file",
        "a low file without a name, read through its holder",
        unlinked,
    ),
    bypass(
        "unlinked-memory-file",
        "the same on tmpfs, whose last writer has closed it",
        unlinked_memory,
    ),
    bypass(
        "deep-path",
        "a path longer than the monitor looks at",
        deep_path,
    ),
    bypass("long-names", "names as long as they can be", long_names),
    bypass(
        "rename-race",
        "a low directory moved to and fro under who opens files in it",
        rename_race,
    ),
    bypass(
        "create-race",
        "names made and looked up at once: no object gets another's level",
        create_race,
    ),
    bypass(
        "generation-reuse",
        "an inode number used again",
        generation_reuse,
    ),
];

/// A file in the creator area, made by a low subject.
fn low_file(what: &str) -> Outcome<String> {
    let file = path(AREA, what);
    at(Untrusted, || Ok(fs::write(&file, "low")?))?;
    Ok(file)
}

/// A reader of this falls.
#[track_caller]
fn lowers(file: &str) -> Outcome {
    at(User, || {
        allowed(fs::read(file))?;
        level::is(Untrusted)
    })
}

fn own_namespace() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            mount(
                Some("mine"),
                place::MOUNT,
                Some("tmpfs"),
                MsFlags::empty(),
                None::<&str>,
            )?;
            let file = format!("{}/file", place::MOUNT);
            fs::write(&file, "x")?;
            fs::create_dir(format!("{}/dir", place::MOUNT))?;
            fs::read(&file)?;
            sys::put(&sys::both(&file)?)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn evicted() -> Outcome {
    let file = low_file("low")?;
    let (dir, link) = (path(AREA, "dir"), path(AREA, "link"));
    at(Untrusted, || {
        fs::create_dir(&dir)?;
        Ok(symlink("x", &link)?)
    })?;
    for _ in 0..2 {
        sys::drop_caches()?;
        for object in [&file, &dir, &link] {
            object_is(object, Untrusted)?;
        }
    }
    refused(Errno::EPERM, fs::rename(&file, path(SYSTEM, "clean")))?;
    lowers(&file)
}

fn renamed_tree() -> Outcome {
    let dir = path(AREA, "dir");
    fs::create_dir(&dir)?;
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    at(Untrusted, || Ok(fs::write(format!("{dir}/low"), "x")?))?;
    let high = format!("{dir}/high");
    fs::write(&high, "x")?;
    let moved = path(AREA, "moved");
    fs::rename(&dir, &moved)?;
    for _ in 0..2 {
        object_is(&format!("{moved}/low"), Untrusted)?;
        object_is(&format!("{moved}/high"), System)?;
        sys::drop_caches()?;
    }
    lowers(&format!("{moved}/low"))
}

fn second_name() -> Outcome {
    let file = low_file("low")?;
    let second = path(AREA, "second");
    at(Untrusted, || Ok(fs::hard_link(&file, &second)?))?;
    sys::drop_caches()?;
    lowers(&second)?;
    at(Untrusted, || Ok(fs::remove_file(&file)?))?;
    sys::drop_caches()?;
    lowers(&second)?;
    // by rule, and linked into an area that says nothing of the kind
    let ruled = place::file(LOW, "ruled")?;
    let outside = path(AREA, "outside");
    fs::hard_link(&ruled, &outside)?;
    sys::drop_caches()?;
    lowers(&outside)?;
    fs::remove_file(&ruled)?;
    sys::drop_caches()?;
    lowers(&outside)
}

fn bind_mount() -> Outcome {
    let (low, high) = (
        place::directory(LOW, "dir")?,
        place::directory(SYSTEM, "dir")?,
    );
    fs::write(format!("{low}/file"), "low")?;
    fs::write(format!("{high}/file"), "high")?;
    let (over_high, over_low) = (
        place::directory(SYSTEM, "over")?,
        place::directory(LOW, "over")?,
    );
    let bind =
        |from: &str, to: &str| mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    bind(&low, &over_high)?;
    bind(&high, &over_low)?;
    sys::drop_caches()?;
    let result = (|| {
        lowers(&format!("{over_high}/file"))?;
        at(Untrusted, || {
            refused(Errno::EPERM, sys::writes(format!("{over_low}/file")))?;
            refused(Errno::EPERM, fs::write(format!("{over_low}/new"), "x"))?;
            allowed(fs::write(format!("{over_high}/new"), "x"))
        })?;
        object_is(&format!("{over_low}/file"), System)
    })();
    umount2(over_high.as_str(), MntFlags::MNT_DETACH)?;
    umount2(over_low.as_str(), MntFlags::MNT_DETACH)?;
    result
}

fn chroot_forged() -> Outcome {
    let jail = place::directory(LOW, "jail")?;
    let inside = format!("{jail}/scn/system");
    fs::create_dir_all(&inside)?;
    fs::write(format!("{inside}/file"), "low")?;
    let high = place::file(SYSTEM, "real")?;
    at(User, || {
        let probe = sys::open("/scn/system/.probe", OFlag::O_PATH)?;
        nix::unistd::chroot(jail.as_str())?;
        nix::unistd::chdir("/")?;
        allowed(fs::read("/scn/system/file"))?;
        // no daemon to be found in there: what it may write tells
        let fd = std::os::fd::AsRawFd::as_raw_fd(&probe);
        same("descriptor", fd >= 0, true)?;
        allowed(sys::writes("/scn/system/file"))?;
        Ok(())
    })?;
    // a low subject outside, a high file inside a low-looking path
    at(Untrusted, || {
        nix::unistd::chroot("/scn")?;
        refused(
            Errno::EPERM,
            sys::writes(high.strip_prefix("/scn").unwrap_or(&high)),
        )
    })?;
    at(User, || {
        let root = sys::open("/", OFlag::O_PATH | OFlag::O_DIRECTORY)?;
        nix::unistd::chroot(jail.as_str())?;
        allowed(fs::read("/scn/system/file"))?;
        nix::unistd::fchdir(&root)?;
        nix::unistd::chroot(".")?;
        level::is(Untrusted)
    })
}

fn open_tree(path: &str) -> Result<std::os::fd::OwnedFd, Errno> {
    const OPEN_TREE_CLONE: u32 = 1;
    let path = c(path);
    sys::owned(crate::sys::syscall!(
        libc::SYS_open_tree,
        libc::AT_FDCWD,
        path.as_ptr(),
        OPEN_TREE_CLONE
    )?)
}

fn open_in(
    dir: &std::os::fd::OwnedFd,
    name: &str,
    flags: OFlag,
) -> Result<std::os::fd::OwnedFd, Errno> {
    nix::fcntl::openat(
        dir,
        name,
        flags | OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::from_bits_truncate(0o666),
    )
}

fn detached() -> Outcome {
    let dir = place::directory(LOW, "dir")?;
    fs::create_dir_all(format!("{dir}/scn/system"))?;
    fs::write(format!("{dir}/scn/system/file"), "low")?;
    let high = place::directory(SYSTEM, "dir")?;
    fs::write(format!("{high}/low"), "high")?;
    // in the machine's own namespace such a tree is the top's to make
    for level in Level::LOWER {
        at(level, || refused(Errno::EPERM, open_tree(&dir)))?;
    }
    at(System, || {
        let tree = open_tree(&dir)?;
        sys::get(&open_in(&tree, "scn/system/file", OFlag::O_RDONLY)?)?;
        level::is(Untrusted)
    })?;
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let tree = open_tree(&dir)?;
        sys::get(&open_in(&tree, "scn/system/file", OFlag::O_RDONLY)?)?;
        level::is(Untrusted)
    })?;
    let stays_high = |tree: &std::os::fd::OwnedFd| -> Outcome {
        refused(Errno::EPERM, open_in(tree, "low", OFlag::O_WRONLY))?;
        refused(
            Errno::EPERM,
            open_in(tree, "new", OFlag::O_WRONLY | OFlag::O_CREAT),
        )
    };
    at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        stays_high(&open_tree(&high)?)
    })?;
    // or its parent has made it
    let tree = open_tree(&high)?;
    at(Untrusted, || stays_high(&tree))
}

fn other_namespace() -> Outcome {
    let child = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        mount(
            Some("mine"),
            place::MOUNT,
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )?;
        fs::write(format!("{}/file", place::MOUNT), "low")?;
        step()
    })?;
    child.stands()?;
    let seen = format!("/proc/{}/root{}", child.pid, place::MOUNT);
    lowers(&format!("{seen}/file"))?;
    // and a higher subject's objects in it are that subject's
    let high = format!("{seen}/high");
    fs::write(&high, "high")?;
    at(Untrusted, || refused(Errno::EPERM, sys::writes(&high)))?;
    refused(
        Errno::EXDEV,
        fs::rename(format!("{seen}/file"), path(SYSTEM, "clean")),
    )?;
    child.kill()
}

fn by_handle() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    let given = low_file("given")?;
    let handles = [sys::handle_of(&low)?, sys::handle_of(&given)?];
    let high_handle = sys::handle_of(&high)?;
    for handle in &handles {
        sys::drop_caches()?;
        at(System, || {
            let root = sys::open("/", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            sys::get(&sys::open_handle(&root, handle, OFlag::O_RDONLY)?)?;
            level::is(Untrusted)
        })?;
    }
    for flags in [OFlag::O_RDONLY, OFlag::O_WRONLY] {
        sys::drop_caches()?;
        at(User, || {
            let root = sys::open("/", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            refused(Errno::EPERM, sys::open_handle(&root, &high_handle, flags))
        })?;
    }
    // what was found without a path must not be remembered
    lowers(&low)?;
    object_is(&high, System)
}

/// A low process that holds a file open without a name, as descriptor 100.
fn holder(dir: &'static str, flags: OFlag) -> Outcome<crate::scenarios::subject::Child> {
    let child = spawn(Untrusted, move || {
        let file = path(dir, "nameless");
        fs::write(&file, "low")?;
        let fd = sys::open(&file, flags)?;
        fs::remove_file(&file)?;
        sys::keep_as(&fd, 100)?;
        step()
    })?;
    child.stands()?;
    Ok(child)
}

fn unlinked() -> Outcome {
    for dir in [LOW, AREA] {
        let child = holder(dir, OFlag::O_RDONLY)?;
        lowers(&format!("/proc/{}/fd/100", child.pid))?;
        child.kill()?;
    }
    Ok(())
}

fn unlinked_memory() -> Outcome {
    for flags in [OFlag::O_RDONLY, OFlag::O_RDWR] {
        let child = holder(TMPFS, flags)?;
        lowers(&format!("/proc/{}/fd/100", child.pid))?;
        child.kill()?;
    }
    Ok(())
}

fn deep_path() -> Outcome {
    // by a low subject in its own place, and in a creator area
    for dir in [LOW, AREA] {
        let top = path(dir, "deep");
        at(Untrusted, || {
            fs::create_dir(&top)?;
            nix::unistd::chdir(top.as_str())?;
            for _ in 0..150 {
                // where it is too deep to be known, nothing may be made
                if fs::create_dir("d").is_err() || nix::unistd::chdir("d").is_err() {
                    return Ok(());
                }
            }
            let _ = fs::write("file", "low");
            Ok(())
        })?;
        at(User, || {
            nix::unistd::chdir(top.as_str())?;
            while nix::unistd::chdir("d").is_ok() {}
            match fs::read("file") {
                Ok(_) => level::is(Untrusted),
                Err(_) => Ok(()),
            }
        })?;
    }
    // a system file that deep is nobody else's to write
    let top = place::directory(SYSTEM, "deep")?;
    at(System, || {
        nix::unistd::chdir(top.as_str())?;
        for _ in 0..150 {
            fs::create_dir("d")?;
            nix::unistd::chdir("d")?;
        }
        fs::write("file", "high")?;
        at(Untrusted, || {
            refused(Errno::EPERM, sys::writes("file"))?;
            refused(Errno::EPERM, fs::write("new", "x"))?;
            refused(Errno::EPERM, fs::remove_file("file"))
        })
    })
}

fn long_names() -> Outcome {
    let name = "n".repeat(255);
    let (low, high) = (
        place::directory(LOW, "dir")?,
        place::directory(SYSTEM, "dir")?,
    );
    for dir in [&low, &high] {
        fs::create_dir_all(format!("{dir}/{name}/{name}"))?;
        fs::write(format!("{dir}/{name}/{name}/{name}"), "x")?;
    }
    sys::drop_caches()?;
    lowers(&format!("{low}/{name}/{name}/{name}"))?;
    at(Untrusted, || {
        refused(
            Errno::EPERM,
            sys::writes(format!("{high}/{name}/{name}/{name}")),
        )
    })?;
    // a path as long as the kernel takes
    let mut long = high.clone();
    while long.len() + 200 < 4000 {
        long.push('/');
        long.push_str(&"p".repeat(190));
    }
    fs::create_dir_all(&long)?;
    fs::write(format!("{long}/file"), "x")?;
    sys::drop_caches()?;
    at(Untrusted, || {
        refused(Errno::EPERM, sys::writes(format!("{long}/file")))
    })?;
    at(System, || {
        fs::read(format!("{long}/file"))?;
        level::is(System)
    })
}

fn rename_race() -> Outcome {
    let (a, b) = (place::directory(LOW, "a")?, path(LOW, "b"));
    fs::write(format!("{a}/file"), "low")?;
    let mover = spawn(Untrusted, || {
        loop {
            let _ = fs::rename(&a, &b);
            let _ = fs::rename(&b, &a);
        }
    })?;
    let mut seen = 0;
    for round in 0..25 {
        if round % 8 == 0 {
            sys::drop_caches()?;
        }
        let reader = spawn(User, || {
            let read = (0..50).any(|_| fs::read(format!("{a}/file")).is_ok());
            step()?;
            level::is(if read { Untrusted } else { level::by_label()? })
        })?;
        reader.stands()?;
        // the question is asked in peace
        kill(mover.pid, Signal::SIGSTOP)?;
        mover.stands()?;
        reader.go()?;
        reader.join()?;
        kill(mover.pid, Signal::SIGCONT)?;
        seen += 1;
    }
    mover.kill()?;
    ensure(seen > 0, "nothing was tried")
}

fn create_race() -> Outcome {
    // low and user make files in one directory at once; each keeps its own level
    let makers = Level::LOWER.map(|level| {
        spawn(level, move || {
            for n in 0..30 {
                fs::write(path(AREA, &format!("{}-{n}", level.name())), "x")?;
            }
            Ok(())
        })
    });
    for maker in makers {
        maker?.join()?;
    }
    for n in (0..30).step_by(6) {
        for level in Level::LOWER {
            object_is(&path(AREA, &format!("{}-{n}", level.name())), level)?;
        }
    }
    for n in 0..30 {
        for level in Level::LOWER {
            fs::remove_file(path(AREA, &format!("{}-{n}", level.name())))?;
        }
    }
    Ok(())
}

fn generation_reuse() -> Outcome {
    // ext4 gives a freed inode number to the next file
    for round in 0..4 {
        let low = path(AREA, &format!("low-{round}"));
        at(Untrusted, || Ok(fs::write(&low, "x")?))?;
        fs::remove_file(&low)?;
        let new = path(SYSTEM, &format!("new-{round}"));
        fs::write(&new, "x")?;
        object_is(&new, System)?;
        fs::remove_file(&new)?;
        at(Untrusted, || Ok(fs::write(&low, "x")?))?;
        object_is(&low, Untrusted)?;
        fs::remove_file(&low)?;
    }
    Ok(())
}
