//! The files that operations are about.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

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

/// Makes them anew.
pub fn make() -> io::Result<()> {
    let _ = fs::remove_dir_all(TREE);
    for dir in [
        "",
        "/dir",
        "/dir/sub",
        "/dir/sub/deep",
        "/empty",
        "/ro",
        "/secret",
    ] {
        fs::create_dir_all(format!("{TREE}{dir}"))?;
        fs::set_permissions(format!("{TREE}{dir}"), PermissionsExt::from_mode(0o777))?;
    }
    for (file, owner) in [
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
    ] {
        let path = format!("{TREE}/{file}");
        fs::write(&path, "content\n")?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
        chown(&path, Some(owner), Some(owner))?;
    }
    symlink("secret/a", format!("{TREE}/to-secret"))?;
    symlink("ro", format!("{TREE}/to-ro"))?;
    Ok(())
}
