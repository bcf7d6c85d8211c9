//! What processes ask for themselves, and the labels of files.

use std::fs;

use nix::mount::{MsFlags, mount, umount};

use super::{AGAIN, Checks, INVALID, OTHER_DEVICE, REFUSED};
use crate::te_live::domain::{Holder, soon, tidegate};
use crate::te_live::holder::relabel;
use crate::te_live::place;

/// The context of a file, by `ls -Z`.
pub fn context(name: &str) -> String {
    let json = tidegate(&["--json", "ls", "-dZ", &place(name)]).unwrap_or_else(|e| e);
    let context = json
        .split_once("\"context\":\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    context.map_or(json.clone(), |(context, _)| context.to_owned())
}

/// What a process asks for by /proc/self/attr.
pub fn asked(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    c.same("setexec", holder.does("attr exec u:r:live_t"), "ok".into());
    c.same(
        "the next program stays in the domain",
        holder.does("exec-read /payload/other-live"),
        "ok".into(),
    );
    // the child that executed it had it from this one, which has it still
    c.same("nothing", holder.does("attr exec \u{0}"), "ok".into());
    c.same(
        "the one after that does not",
        holder.does("exec-read /payload/other-live"),
        REFUSED.into(),
    );
    for none in ["u:r:nobody_t", "u:r", "x"] {
        c.same(
            &format!("a context that may not be: {none}"),
            holder.does(&format!("attr exec {none}")),
            INVALID.into(),
        );
    }
    c.same(
        "setfscreate",
        holder.does("attr fscreate u:object_r:secret_t"),
        "ok".into(),
    );
    let _ = fs::remove_file(place("made"));
    c.same("what is made", holder.does("create made"), "ok".into());
    c.same(
        "is labelled so",
        context("made"),
        "u:object_r:secret_t".into(),
    );
}

/// A process that comes to another domain by itself does not keep what that may not use.
pub fn setcon(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    let mut came = String::new();
    soon(|| {
        came = holder.does("attr current u:r:reader_t");
        came != AGAIN
    });
    c.same("setcon, once the guard is there", came, "ok".into());
    c.same(
        "read by a descriptor of before",
        holder.does("read"),
        REFUSED.into(),
    );
}

/// Files that are given another label.
pub fn relabelled(c: &mut Checks) {
    fs::write(place("plain"), "plain").expect("a file");
    c.same("by its path", context("plain"), "u:object_r:other_t".into());
    let mut holder = Holder::new();
    c.set(&["may_relabel=off"]);
    let to_secret = "relabel plain u:object_r:secret_t";
    c.same(
        "relabelled without permission",
        holder.does(to_secret),
        REFUSED.into(),
    );
    c.same(
        "it has its label still",
        context("plain"),
        "u:object_r:other_t".into(),
    );
    c.set(&["may_relabel=on"]);
    c.same(
        "to what is no context",
        holder.does("relabel plain u:object_r"),
        INVALID.into(),
    );
    c.same("relabelled", holder.does(to_secret), "ok".into());
    c.same(
        "it has the label",
        context("plain"),
        "u:object_r:secret_t".into(),
    );
    c.same(
        "and not back",
        holder.does("relabel plain u:object_r:other_t"),
        REFUSED.into(),
    );
    let by_root = relabel(&place("plain"), "u:object_r:other_t\0");
    c.same("by who is not governed", by_root.is_ok(), true);
    c.same("it has that", context("plain"), "u:object_r:other_t".into());
}

/// A file could not be made, and another one is linked: it keeps its label.
pub fn noted(c: &mut Checks) {
    let at = place("small");
    fs::create_dir_all(&at).expect("a directory");
    mount(
        Some("tmpfs"),
        at.as_str(),
        Some("tmpfs"),
        MsFlags::empty(),
        Some("nr_inodes=40"),
    )
    .expect("a filesystem");
    let mut holder = Holder::new();
    c.same("links", holder.does("noted small"), "ok".into());
    let low = context("small/low");
    c.same("it has its label still", low, "u:object_r:other_t".into());
    c.set(&["may_write=on"]);
    // what can be made by that name has the label that was noted
    c.same("made", holder.does("create small/noted"), "ok".into());
    let noted = context("small/noted");
    c.same("is secret", noted, "u:object_r:secret_t".into());
    drop(holder);
    umount(at.as_str()).expect("it is mounted");
}

/// An object keeps its label by whatever name it goes.
pub fn names(c: &mut Checks) {
    let mut holder = Holder::new();
    let _ = fs::remove_dir_all(place("labelled"));
    let (plain, secret) = ("u:object_r:other_t", "u:object_r:secret_t");
    for name in ["plain", "labelled"] {
        let _ = fs::remove_file(place(name));
    }
    fs::write(place("plain"), "plain").expect("a file");
    c.same("by its path", context("plain"), plain.into());
    c.same(
        "renamed to where others are secret",
        holder.does("rename plain labelled"),
        "ok".into(),
    );
    c.set(&["may_read=on"]);
    c.same("it is what it was", context("labelled"), plain.into());
    let _ = fs::remove_file(place("labelled"));
    c.same(
        "made without a name",
        holder.does("unnamed labelled"),
        "ok".into(),
    );
    c.set(&["may_read=on"]);
    c.same("and named later", context("labelled"), plain.into());
    let _ = fs::remove_file(place("labelled"));
    fs::write(place("labelled"), "secret").expect("a file");
    c.same("made by its path", context("labelled"), secret.into());
    let _ = fs::remove_file(place("labelled"));
    fs::create_dir_all(place("dir/below")).expect("a directory");
    let _ = fs::remove_dir_all(place("dir2"));
    c.same(
        "a directory, to where it makes a difference",
        holder.does("rename dir labelled"),
        OTHER_DEVICE.into(),
    );
    c.same(
        "and to where it makes none",
        holder.does("rename dir dir2"),
        "ok".into(),
    );
}
