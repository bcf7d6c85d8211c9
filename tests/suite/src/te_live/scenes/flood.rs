//! A domain that makes files without end: another that makes some keeps their labels, and no
//! process ends.

use std::fs;

use nix::mount::{MsFlags, mount, umount};

use super::labels::context;
use super::{Checks, logged};
use crate::te_live::domain::{Holder, soon, tidegate};
use crate::te_live::holder::relabel;
use crate::te_live::place;

/// ENOSPC
const NO_ROOM: &str = "28";
const SECRET: &str = "u:object_r:secret_t";
const OTHER: &str = "u:object_r:other_t";

/// How many labels were given, and how many can be.
fn room() -> (u64, u64) {
    let json = tidegate(&["--json", "status"]).unwrap_or_default();
    let number = |name: &str| {
        let (_, labels) = json.split_once("\"labels\":{")?;
        let (_, rest) = labels.split_once(&format!("\"{name}\":"))?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    };
    (number("used").unwrap_or(0), number("max").unwrap_or(0))
}

/// Fills the table.
pub fn labels(c: &mut Checks) {
    for name in ["kept", "moved", "plain", "made"] {
        let _ = fs::remove_file(place(name));
    }
    fs::create_dir_all(place("flood")).expect("a directory");
    let none: Option<&str> = None;
    let at = place("flood");
    mount(
        Some("tmpfs"),
        at.as_str(),
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )
    .expect("a filesystem");
    fs::write(place("plain"), "plain").expect("a file");
    let (mut holder, mut flooder) = (Holder::new(), Holder::new());
    holder.does(&format!("attr fscreate {SECRET}"));
    c.same("a file is made", holder.does("create kept"), "ok".into());
    let (before, max) = room();
    c.same("the table is as large as was said", max, 4096);

    c.same(
        "others come to an end of it",
        flooder.does("flood flood"),
        NO_ROOM.into(),
    );
    let (used, _) = room();
    c.same("an eighth is kept back", used, max - max / 8 + 1);
    c.same("who made them goes on", flooder.does("pipe"), "ok".into());
    c.same(
        "nor does another make a file",
        holder.does("create made"),
        NO_ROOM.into(),
    );
    c.same("or a socket", holder.does("socket"), NO_ROOM.into());
    c.same(
        "nor does root label one",
        relabel(&place("plain"), SECRET).map_err(|e| e.raw_os_error()),
        Err(Some(libc::ENOSPC)),
    );
    c.same("it has its label still", context("plain"), OTHER.into());
    c.same("a pipe", holder.does("pipe"), "ok".into());
    // a kernel that asks about it when it is made has it refused
    let memory = holder.does("memory");
    c.same("memory", memory == "ok" || memory == NO_ROOM, true);
    fs::write("/proc/sys/vm/drop_caches", "2").expect("root may");
    c.same(
        "a label that was given stays",
        context("kept"),
        SECRET.into(),
    );
    c.same(
        "and goes where its file does",
        holder.does("rename kept moved"),
        "ok".into(),
    );
    c.same("as it is", context("moved"), SECRET.into());
    c.same("the log says why", logged("or labels is full"), Ok(()));

    fs::remove_file(place("flood/0")).expect("a file");
    c.same(
        "one less, one more",
        flooder.does("create flood/0"),
        "ok".into(),
    );
    umount(at.as_str()).expect("nobody is there");
    // what is let go of is freed when nobody reads it any more
    let freed = soon(|| room().0 <= before);
    c.same("their labels go with their filesystem", freed, true);
    c.same(
        "there is room again",
        holder.does("create made"),
        "ok".into(),
    );
    c.same("for labels", context("made"), SECRET.into());
}
