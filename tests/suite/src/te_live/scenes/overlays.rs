//! Files of an overlay, whose label is not that of what is behind them, by which they are mapped.

use std::fs;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::{Checks, REFUSED};
use crate::te_live::domain::Holder;
use crate::te_live::place;

/// `merged/file`, which is secret, over `upper/file`, which is not; unmounted when it is dropped.
struct Overlay;

impl Overlay {
    fn mount() -> Overlay {
        for dir in ["layer", "upper", "work", "merged"] {
            fs::create_dir_all(place(dir)).expect("a directory");
        }
        fs::write(place("upper/file"), "secret").expect("a file");
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            place("layer"),
            place("upper"),
            place("work")
        );
        mount(
            Some("none"),
            place("merged").as_str(),
            Some("overlay"),
            MsFlags::empty(),
            Some(layers.as_str()),
        )
        .expect("an overlay");
        Overlay
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = umount2(place("merged").as_str(), MntFlags::MNT_DETACH);
    }
}

/// What may be read, and not executed, is made executable once it is mapped.
pub fn executed(c: &mut Checks) {
    let _overlay = Overlay::mount();
    let mut holder = Holder::new();
    c.same("mapped", holder.does("map-merged"), "ok".into());
    c.same("made executable", holder.does("protect 5"), REFUSED.into());
    c.same("made nothing", holder.does("protect 0"), "ok".into());
    c.same("and readable again", holder.does("protect 1"), "ok".into());
}

/// What was mapped to be read by a process that could write it is made writable once it may not be
/// written.
pub fn written(c: &mut Checks) {
    let _overlay = Overlay::mount();
    let mut holder = Holder::new();
    c.same("mapped", holder.does("map-merged"), "ok".into());
    c.same("made writable", holder.does("protect 3"), "ok".into());
    c.same("and no more", holder.does("protect 1"), "ok".into());
    c.set(&["may_write=off"]);
    c.same("made writable", holder.does("protect 3"), REFUSED.into());
    c.set(&["may_write=on"]);
}

/// It stays mapped.
pub fn mapped(c: &mut Checks) {
    let _overlay = Overlay::mount();
    let mut holder = Holder::new();
    c.same("mapped", holder.does("map-merged"), "ok".into());
    c.set(&["may_map=off"]);
    let came = holder.does("protect 0");
    c.same("who has it mapped is killed", came, "gone".into());
    c.set(&["may_map=on"]);
}
