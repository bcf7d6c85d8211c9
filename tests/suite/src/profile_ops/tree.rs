//! The files that operations are about.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// Where they are.
pub const TREE: &str = "/srv/ops/tree";

/// A mount that is there from the beginning, and a directory in it.
pub const MOUNTED: &str = "/srv/ops/mounted";

/// Mounts it, and what the tree is in: a filesystem that is quick to make files in.
pub fn mount() -> io::Result<()> {
    use nix::mount::{MsFlags, mount};
    let nothing = None::<&str>;
    for dir in ["/srv/ops", MOUNTED] {
        fs::create_dir_all(dir)?;
        mount(nothing, dir, Some("tmpfs"), MsFlags::empty(), nothing)?;
    }
    fs::create_dir(format!("{MOUNTED}/old"))
}

/// Directories of the tree.
const DIRECTORIES: [&str; 7] = [
    "",
    "/dir",
    "/dir/sub",
    "/dir/sub/deep",
    "/empty",
    "/ro",
    "/secret",
];

/// Files of the tree, and the owner of each.
const FILES: [(&str, u32); 11] = [
    ("a", 0),
    ("b", 0),
    ("own", 1000),
    ("x[1]*?", 0),
    ("dir/a", 0),
    ("dir/own", 1000),
    ("dir/sub/a", 0),
    ("dir/sub/deep/a.txt", 0),
    ("dir/sub/deep/a.log", 0),
    ("ro/a", 0),
    ("secret/a", 0),
];

/// The tree as it was made, until something in it changes: to make it takes longer than most operations.
pub struct Tree {
    changes: Inotify,
}

impl Tree {
    /// Makes the tree in place of the one that is there, if one is.
    pub fn make() -> io::Result<Tree> {
        let _ = fs::remove_dir_all(TREE);
        for dir in DIRECTORIES {
            fs::create_dir_all(format!("{TREE}{dir}"))?;
            fs::set_permissions(format!("{TREE}{dir}"), PermissionsExt::from_mode(0o777))?;
        }
        for (file, owner) in FILES {
            let path = format!("{TREE}/{file}");
            fs::write(&path, "content\n")?;
            fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
            chown(&path, Some(owner), Some(owner))?;
        }
        symlink("secret/a", format!("{TREE}/to-secret"))?;
        symlink("ro", format!("{TREE}/to-ro"))?;
        Ok(Tree {
            changes: watched()?,
        })
    }

    /// Makes it anew if something in it has changed since.
    pub fn restore(&mut self) -> io::Result<()> {
        match self.changes.read_events() {
            Err(Errno::EAGAIN) => Ok(()),
            Err(e) => Err(e.into()),
            Ok(_) => {
                *self = Tree::make()?;
                Ok(())
            }
        }
    }
}

/// What tells of each change of a name, of an attribute and of what a file has in it.
fn watched() -> io::Result<Inotify> {
    let changes = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    let what = AddWatchFlags::IN_ATTRIB
        | AddWatchFlags::IN_MODIFY
        | AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE
        | AddWatchFlags::IN_MOVE_SELF;
    for dir in DIRECTORIES {
        changes.add_watch(format!("{TREE}{dir}").as_str(), what)?;
    }
    Ok(changes)
}
