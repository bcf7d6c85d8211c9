//! Directories: what is made, removed, moved and linked in them.

use std::fs;
use std::os::unix::fs::symlink;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, renameat2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;

use crate::scenarios::check::{Outcome, allowed, refused, refused_any, same};
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{
    self, AREA, LOW, SYSTEM, TMPFS, TMPFS_LOW, TMPFS_SYSTEM, USER, home, path,
};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at};
use crate::scenarios::sys;
use crate::sys::c;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "dir-create-own",
        "each level makes, moves, links and removes its own",
        create_own,
    ),
    allow(
        "dir-create-down",
        "what a higher subject makes in a lower place has that place's level",
        create_down,
    ),
    allow(
        "dir-creator",
        "in a creator area each object has its creator's level",
        creator,
    ),
    allow(
        "dir-device-by-system",
        "the top level makes device nodes",
        device_by_system,
    ),
    deny(
        "dir-create-up",
        "nothing is made in a higher directory",
        create_up,
    ),
    deny("dir-remove-up", "nothing higher is removed", remove_up),
    deny(
        "dir-rename-up",
        "nothing higher is moved or replaced",
        rename_up,
    ),
    deny(
        "dir-launder",
        "no lower object gets a name at a higher place, whoever moves it",
        launder,
    ),
    deny(
        "dir-rename-down",
        "what moves to a lower place falls to it",
        rename_down,
    ),
    deny(
        "dir-rename-tree-down",
        "a directory moves only where one rule holds, else mv copies",
        tree_down,
    ),
    deny(
        "dir-rename-busy",
        "nothing falls while somebody has it open",
        rename_busy,
    ),
    allow(
        "dir-creator-below",
        "a directory in a creator area is one too",
        creator_of_higher,
    ),
    bypass(
        "dir-link-down",
        "what has two names does not fall by one of them, which may be gone when the power is",
        link_down,
    ),
    deny(
        "dir-devices",
        "device nodes are the top level's to make",
        devices,
    ),
    bypass(
        "rename-exchange",
        "two names exchanged, so that the low one stands at the high place",
        exchange,
    ),
    bypass(
        "rename-replace-in-area",
        "a low file moved over a higher one in a shared directory",
        replace,
    ),
    bypass(
        "hard-link-up",
        "a further name for a higher file, in a place of one's own",
        hard_link,
    ),
    bypass(
        "symlink-planted",
        "a link in a shared directory sends a higher writer elsewhere",
        planted,
    ),
    bypass(
        "tmpfile-linkat",
        "an unnamed file gets its name at a higher place",
        tmpfile,
    ),
    bypass(
        "whiteout-device",
        "a device node by way of RENAME_WHITEOUT or in a user namespace",
        whiteout,
    ),
];

fn create_own() -> Outcome {
    for level in Level::ALL {
        let dir = path(home(level), level.name());
        at(level, || {
            fs::create_dir(&dir)?;
            fs::write(format!("{dir}/file"), "x")?;
            symlink("file", format!("{dir}/link"))?;
            mkfifo(format!("{dir}/fifo").as_str(), Mode::S_IRWXU)?;
            fs::hard_link(format!("{dir}/file"), format!("{dir}/second"))?;
            fs::rename(format!("{dir}/file"), format!("{dir}/first"))?;
            fs::create_dir(format!("{dir}/sub"))?;
            fs::rename(format!("{dir}/sub"), format!("{dir}/moved"))?;
            fs::remove_dir_all(&dir)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn create_down() -> Outcome {
    for (high, low) in [(System, Untrusted), (System, User), (User, Untrusted)] {
        let at_place = format!("{}-from-{}", path(home(low), "file"), high.name());
        let dir = format!("{}-from-{}", path(home(low), "dir"), high.name());
        at(high, || {
            fs::write(&at_place, "x")?;
            fs::create_dir(&dir)?;
            level::is(high)
        })?;
        object_is(&at_place, low)?;
        object_is(&dir, low)?;
    }
    Ok(())
}

fn creator() -> Outcome {
    for (n, area) in [AREA, TMPFS, "/tmp", "/dev/shm"].into_iter().enumerate() {
        for level in Level::ALL {
            let base = format!("{}-{n}", path(area, level.name()));
            at(level, || {
                fs::write(&base, "x")?;
                fs::create_dir(format!("{base}.d"))?;
                fs::write(format!("{base}.d/file"), "x")?;
                symlink("x", format!("{base}.l"))?;
                mkfifo(format!("{base}.f").as_str(), Mode::S_IRWXU)?;
                fs::rename(&base, format!("{base}.moved"))?;
                sys::put(&sys::both(format!("{base}.moved"))?)?;
                level::is(level)
            })?;
            for suffix in [".moved", ".d", ".d/file", ".l", ".f"] {
                object_is(&format!("{base}{suffix}"), level)?;
            }
            at(level, || {
                fs::remove_file(format!("{base}.moved"))?;
                Ok(fs::remove_dir_all(format!("{base}.d"))?)
            })?;
        }
    }
    level::is(System)
}

fn make_node(path: &str, kind: SFlag) -> Result<(), Errno> {
    mknod(path, kind, Mode::S_IRWXU, makedev(1, 3))
}

fn device_by_system() -> Outcome {
    allowed(make_node(&path(SYSTEM, "null"), SFlag::S_IFCHR))?;
    allowed(make_node(&path(LOW, "null"), SFlag::S_IFCHR))
}

fn create_up() -> Outcome {
    let own = [
        (Untrusted, place::file(LOW, "own")?),
        (User, place::file(USER, "own")?),
    ];
    for (low, dir) in [
        (Untrusted, SYSTEM),
        (Untrusted, USER),
        (User, SYSTEM),
        (Untrusted, TMPFS_SYSTEM),
    ] {
        let new = path(dir, &format!("by-{}", low.name()));
        let file = own
            .iter()
            .find(|(l, _)| *l == low)
            .map(|(_, f)| f.clone())
            .unwrap_or_default();
        at(low, || {
            refused(
                Errno::EPERM,
                sys::open(&new, OFlag::O_CREAT | OFlag::O_WRONLY),
            )?;
            refused(
                Errno::EPERM,
                sys::open(&new, OFlag::O_CREAT | OFlag::O_RDONLY),
            )?;
            refused(Errno::EPERM, fs::create_dir(&new))?;
            refused(Errno::EPERM, symlink("x", &new))?;
            refused(Errno::EPERM, mkfifo(new.as_str(), Mode::S_IRWXU))?;
            refused(Errno::EPERM, std::os::unix::net::UnixListener::bind(&new))?;
            if dir != TMPFS_SYSTEM {
                refused(Errno::EPERM, fs::hard_link(&file, &new))?;
                refused(Errno::EPERM, fs::rename(&file, &new))?;
            }
            refused(
                Errno::EPERM,
                sys::open(dir, OFlag::O_TMPFILE | OFlag::O_RDWR),
            )
        })?;
        same(
            "whether it exists",
            fs::symlink_metadata(&new).is_ok(),
            false,
        )?;
    }
    Ok(())
}

fn remove_up() -> Outcome {
    let (file, dir) = (
        place::file(SYSTEM, "file")?,
        place::directory(SYSTEM, "dir")?,
    );
    let (file_there, dir_there) = (place::file(AREA, "file")?, place::directory(AREA, "dir")?);
    for level in Level::LOWER {
        at(level, || {
            for file in [&file, &file_there] {
                refused(Errno::EPERM, fs::remove_file(file))?;
            }
            for dir in [&dir, &dir_there] {
                refused(Errno::EPERM, fs::remove_dir(dir))?;
            }
            Ok(())
        })?;
    }
    fs::remove_file(&file)?;
    Ok(fs::remove_dir(&dir)?)
}

fn rename_up() -> Outcome {
    let (file, dir) = (
        place::file(SYSTEM, "file")?,
        place::directory(SYSTEM, "dir")?,
    );
    let there = place::file(AREA, "there")?;
    for level in Level::LOWER {
        let own = path(AREA, level.name());
        at(level, || {
            fs::write(&own, "x")?;
            refused(Errno::EPERM, fs::rename(&file, path(SYSTEM, "elsewhere")))?;
            refused(Errno::EPERM, fs::rename(&file, path(AREA, "taken")))?;
            refused(Errno::EPERM, fs::rename(&dir, path(AREA, "taken-dir")))?;
            refused(Errno::EPERM, fs::rename(&there, path(AREA, "taken-there")))?;
            refused(Errno::EPERM, fs::rename(&own, &file))?;
            refused(Errno::EPERM, fs::rename(&own, &there))
        })?;
    }
    same("the content", fs::read_to_string(&there)?.as_str(), "there")
}

fn launder() -> Outcome {
    let low = place::file(LOW, "low")?;
    let in_area = path(AREA, "low");
    at(Untrusted, || Ok(fs::write(&in_area, "low")?))?;
    // this process is at the top level: it may write both, and may not launder
    for from in [&low, &in_area] {
        for to in [path(SYSTEM, "clean"), path(USER, "clean")] {
            refused(Errno::EPERM, fs::rename(from, &to))?;
            refused(Errno::EPERM, fs::hard_link(from, &to))?;
        }
    }
    let user = place::file(USER, "user")?;
    refused(Errno::EPERM, fs::rename(&user, path(SYSTEM, "clean")))?;
    // into a creator area it may go, and stays what it is
    fs::rename(&low, path(AREA, "moved"))?;
    object_is(&path(AREA, "moved"), Untrusted)?;
    level::is(System)
}

fn rename_down() -> Outcome {
    for (from, to) in [(SYSTEM, LOW), (TMPFS_SYSTEM, TMPFS_LOW)] {
        let (file, moved) = (place::file(from, "file")?, path(to, "moved"));
        object_is(&file, System)?;
        fs::rename(&file, &moved)?;
        object_is(&moved, Untrusted)?;
        // and there is no way back
        refused(Errno::EPERM, fs::rename(&moved, &file))?;
    }
    level::is(System)
}

fn tree_down() -> Outcome {
    let dir = place::directory(SYSTEM, "dir")?;
    fs::write(format!("{dir}/file"), "x")?;
    let moved = path(LOW, "moved");
    // mv(1) copies then, and each copy has its place's level
    refused(Errno::EXDEV, fs::rename(&dir, &moved))?;
    let status = std::process::Command::new("mv")
        .args([&dir, &moved])
        .status()?;
    same("what mv says", status.code(), Some(0))?;
    object_is(&moved, Untrusted)?;
    object_is(&format!("{moved}/file"), Untrusted)?;
    // where one rule holds for both places, a directory moves as it is
    let dir = place::directory(SYSTEM, "other")?;
    fs::write(format!("{dir}/file"), "x")?;
    allowed(fs::rename(&dir, path(SYSTEM, "moved")))?;
    object_is(&format!("{}/file", path(SYSTEM, "moved")), System)
}

fn rename_busy() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    let open = sys::reads(&file)?;
    refused(Errno::EBUSY, fs::rename(&file, path(LOW, "moved")))?;
    refused(Errno::EBUSY, fs::hard_link(&file, path(LOW, "linked")))?;
    object_is(&file, System)?;
    drop(open);
    allowed(fs::rename(&file, path(LOW, "moved")))?;
    level::is(System)
}

fn creator_of_higher() -> Outcome {
    // a creator area stays one in the directories that are made there
    let dir = place::directory(AREA, "dir")?;
    at(Untrusted, || {
        let file = format!("{dir}/low");
        allowed(fs::write(&file, "low"))?;
        allowed(fs::rename(&file, format!("{dir}/moved")))?;
        allowed(fs::remove_file(format!("{dir}/moved")))?;
        allowed(fs::write(&file, "low"))?;
        level::is(Untrusted)
    })?;
    object_is(&format!("{dir}/low"), Untrusted)?;
    object_is(&dir, System)
}

fn link_down() -> Outcome {
    let (file, lower) = (place::file(SYSTEM, "file")?, path(LOW, "second"));
    refused(Errno::EXDEV, fs::hard_link(&file, &lower))?;
    // nor does it get there having a second name
    let second = path(SYSTEM, "second");
    allowed(fs::hard_link(&file, &second))?;
    refused(Errno::EXDEV, fs::rename(&second, &lower))?;
    object_is(&file, System)?;
    object_is(&second, System)?;
    // a copy does, and with one name the file itself
    allowed(fs::copy(&second, &lower))?;
    object_is(&lower, Untrusted)?;
    fs::remove_file(&second)?;
    allowed(fs::rename(&file, &lower))?;
    object_is(&lower, Untrusted)
}

fn devices() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let own = path(home(level), "device");
            refused(Errno::EPERM, make_node(&own, SFlag::S_IFCHR))?;
            refused(Errno::EPERM, make_node(&own, SFlag::S_IFBLK))?;
            refused(
                Errno::EPERM,
                make_node(&path(AREA, "device"), SFlag::S_IFBLK),
            )?;
            allowed(mknod(own.as_str(), SFlag::S_IFREG, Mode::S_IRWXU, 0)).map(drop)
        })?;
    }
    Ok(())
}

fn renameat2_between(from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, flags)
}

fn exchange() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let swap = RenameFlags::RENAME_EXCHANGE;
    refused(Errno::EPERM, renameat2_between(&high, &low, swap))?;
    refused(Errno::EPERM, renameat2_between(&low, &high, swap))?;
    at(Untrusted, || {
        refused(Errno::EPERM, renameat2_between(&high, &low, swap))?;
        refused(Errno::EPERM, renameat2_between(&low, &high, swap))
    })?;
    let (high, user) = (place::file(AREA, "high")?, path(AREA, "user"));
    at(User, || {
        fs::write(&user, "x")?;
        refused(Errno::EPERM, renameat2_between(&user, &high, swap))
    })?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

fn replace() -> Outcome {
    for area in [AREA, TMPFS] {
        let user = path(area, "user");
        at(User, || Ok(fs::write(&user, "user's")?))?;
        at(Untrusted, || {
            let low = path(area, "low");
            fs::write(&low, "low")?;
            refused(Errno::EPERM, fs::rename(&low, &user))?;
            refused(
                Errno::EPERM,
                renameat2_between(&low, &user, RenameFlags::RENAME_EXCHANGE),
            )?;
            refused(Errno::EPERM, fs::remove_file(&user))
        })?;
        at(User, || {
            same("the content", fs::read_to_string(&user)?.as_str(), "user's")
        })?;
    }
    Ok(())
}

fn hard_link() -> Outcome {
    let file = place::file(SYSTEM, "file")?;
    let fd = sys::reads(&file)?;
    for level in Level::LOWER {
        at(level, || {
            for dir in [AREA, home(level)] {
                refused(Errno::EPERM, fs::hard_link(&file, path(dir, "mine")))?;
                refused(Errno::EPERM, link_descriptor(&fd, &path(dir, "mine")))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Gives an open file a name.
fn link_descriptor(fd: &impl std::os::fd::AsRawFd, to: &str) -> Result<(), Errno> {
    let (from, to) = (c(format!("/proc/self/fd/{}", fd.as_raw_fd())), c(to));
    let cwd = libc::AT_FDCWD;
    crate::sys::syscall!(
        libc::SYS_linkat,
        cwd,
        from.as_ptr(),
        cwd,
        to.as_ptr(),
        libc::AT_SYMLINK_FOLLOW
    )
    .map(drop)
}

fn planted() -> Outcome {
    // a higher subject that writes through the link writes where its own level may
    let (link, target) = (path(AREA, "link"), path(SYSTEM, "target"));
    at(Untrusted, || Ok(symlink(&target, &link)?))?;
    at(User, || {
        refused(
            Errno::EPERM,
            sys::open(&link, OFlag::O_CREAT | OFlag::O_WRONLY),
        )?;
        level::is(User)
    })?;
    // and what it makes through it has the place's level, not the link's
    fs::write(&link, "x")?;
    object_is(&target, System)
}

fn tmpfile() -> Outcome {
    let unnamed = OFlag::O_TMPFILE | OFlag::O_RDWR;
    for (area, high) in [(AREA, SYSTEM), (TMPFS, TMPFS_SYSTEM)] {
        let named = path(area, "named");
        at(Untrusted, || {
            let fd = sys::open(area, unnamed)?;
            sys::put(&fd)?;
            refused(Errno::EPERM, link_descriptor(&fd, &path(high, "named")))?;
            allowed(link_descriptor(&fd, &named))?;
            sys::put(&fd)?;
            level::is(Untrusted)
        })?;
        object_is(&named, Untrusted)?;
        refused(Errno::EPERM, fs::rename(&named, path(high, "named")))?;
        // one made where the low level is the rule
        let fd = sys::open(
            if area == AREA { LOW } else { TMPFS_LOW },
            OFlag::O_TMPFILE | OFlag::O_WRONLY,
        )?;
        refused(Errno::EPERM, link_descriptor(&fd, &path(high, "named")))?;
        for level in Level::LOWER {
            at(level, || refused(Errno::EPERM, sys::open(high, unnamed)))?;
        }
    }
    // opened by another, unnamed as it is
    let child = crate::scenarios::subject::spawn(Untrusted, || {
        let fd = sys::open(AREA, unnamed)?;
        sys::put(&fd)?;
        sys::keep_as(&fd, 100)?;
        crate::scenarios::subject::step()
    })?;
    child.stands()?;
    at(User, || {
        allowed(fs::read(format!("/proc/{}/fd/100", child.pid)))?;
        level::is(Untrusted)
    })?;
    child.kill()
}

fn whiteout() -> Outcome {
    at(Untrusted, || {
        let file = path(AREA, "file");
        fs::write(&file, "x")?;
        // a whiteout is a device that leads nowhere; it must not become another
        let gone = renameat2_between(&file, &path(AREA, "moved"), RenameFlags::RENAME_WHITEOUT);
        if gone.is_ok() {
            use std::os::unix::fs::MetadataExt;
            same("the device", fs::symlink_metadata(&file)?.rdev(), 0)?;
        }
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)?;
        refused_any(
            &[Errno::EPERM, Errno::EACCES],
            make_node(&path(AREA, "device"), SFlag::S_IFBLK),
        )
    })
}
