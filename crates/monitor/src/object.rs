//! The object's programs and maps, brought into the kernel and pinned: first those of `lomac` and what all models share, and
//! a model's beside them once a policy has it, as a kernel takes as long to verify each as all others.
//!
//! Of a model that is not loaded there is nothing in the kernel: no program, no map, no globals. Names say what is whose
//! ([`Model::of`]). Code that all models run knows nothing of what one of them keeps; a program that may use a map that is not there
//! is not loaded.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};

use libbpf_rs::{MapCore, Object, ObjectBuilder, OpenObject, OpenProgram, PrintLevel};

use crate::abi::TG_ARENA_PAGES;
use crate::attach::{Model, Set};
use crate::error::{Error, Result, Trying, io_of};
use crate::image;
use crate::load::Options;
use crate::pins::{self, Pinned};
use crate::probe::KernelTypes;
use crate::sys;

/// What the build made of the kernel's part, where ELF's headers may lie.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tidegate.bpf.o")));

/// The object, opened: nothing of it is in the kernel yet.
pub(crate) fn open() -> libbpf_rs::Result<OpenObject> {
    ObjectBuilder::default()
        .name("tidegate_bpf")?
        .open_memory(&OBJECT.0)
}

/// Loads and pins what there is from the start: `lomac`, and what all models share.
pub(crate) fn load(options: Options) -> Result<()> {
    bring_in(None, options.given_entries)
}

/// Loads and pins a model beside that; nothing if it is there. `given_entries` is the room in its table of given labels.
///
/// # Errors
/// [`Error::Load`], [`Error::Pin`]; then nothing of the model stays but for an empty arena.
pub(crate) fn load_model(model: Model, given_entries: u32) -> Result<()> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    if model.is_loaded()? {
        return Ok(());
    }
    // of a load that was cut off
    unpin_model(model)?;
    let done = make_arena().and_then(|()| bring_in(Some(model), given_entries));
    if done.is_err() {
        let _ = unpin_model(model);
    }
    done
}

/// Takes away what is pinned of a model that is not loaded.
fn unpin_model(model: Model) -> Result<()> {
    for kind in [Pinned::Programs, Pinned::Maps] {
        let names = kind.names()?;
        let own = names.iter().filter(|name| Model::of(name) == Some(model));
        pins::unpin(own.map(|name| kind.path(name)))?;
    }
    Ok(())
}

/// What the models beside `lomac` lay out their images in. All of them share it, and it stays: a
/// process that has it open goes on with it.
pub(crate) const ARENA: &str = "arena";

/// Makes the arena and pins it, if it is not there. libbpf would map all of it, which in memory that is locked fills it.
fn make_arena() -> Result<()> {
    if Pinned::Maps.has(ARENA)? {
        return Ok(());
    }
    let arena = sys::create_arena(TG_ARENA_PAGES, image::ADDRESS as u64);
    Pinned::Maps.pin(arena.trying(|| "make the arena".into())?, ARENA)
}

/// A map's name, by which it is pinned: that of a section of globals is the section's with its model in front, as the BPF
/// filesystem takes no dots.
fn name_of(map: &str) -> String {
    let Some((_, section)) = map.split_once('.') else {
        return map.into();
    };
    match section.split_once('.') {
        Some((section, of)) => format!("{of}_{section}"),
        None => section.into(),
    }
}

/// Whether a map is one of constants: those are each load's own, and not pinned.
fn is_constant(name: &str) -> bool {
    name.ends_with("rodata")
}

/// Whether a map is in the kernel once a part of the object is: a model, or `None`, what there is from the start.
fn belongs(name: &str, part: Option<Model>) -> bool {
    match Model::of(name) {
        None => name != ARENA || part.is_some(),
        of => of == part,
    }
}

/// Has libbpf make those maps that a part needs, or take them where they are there already.
fn prepare(open: &mut OpenObject, part: Option<Model>, given_entries: u32) -> Result<()> {
    for mut map in open.maps_mut() {
        let name = name_of(&map.name().to_string_lossy());
        let belongs = belongs(&name, part);
        map.set_autocreate(belongs).map_err(failed)?;
        if !belongs || is_constant(&name) {
            continue;
        }
        if Model::of(&name) != part {
            let path = Pinned::Maps.path(&name);
            map.reuse_pinned_map(path).map_err(failed)?;
        } else if ["given", "te_given"].contains(&name.as_str()) {
            map.set_max_entries(given_entries).map_err(failed)?;
        }
    }
    Ok(())
}

/// Pins the maps that were made for a part.
fn pin_maps(object: &Object, part: Option<Model>) -> Result<()> {
    for map in object.maps().filter(|map| map.autocreate()) {
        let name = name_of(&map.name().to_string_lossy());
        if Model::of(&name) != part || is_constant(&name) {
            continue;
        }
        Pinned::Maps.pin(map.as_fd(), &name)?;
        if name == "bss" {
            Pinned::Maps.pin(map.as_fd(), &pins::build())?;
        }
    }
    Ok(())
}

/// What libbpf says while it loads, kept for the error.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn said() -> MutexGuard<'static, Vec<String>> {
    SAID.lock().unwrap_or_else(|e| e.into_inner())
}

/// Lines of it that an error shows.
const LOG_LINES: usize = 24;

fn keep(_level: PrintLevel, line: String) {
    said().push(line);
}

fn failed(e: libbpf_rs::Error) -> Error {
    let said = said().concat();
    let lines: Vec<&str> = said.lines().collect();
    let log = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    Error::Load {
        log,
        source: io_of(e),
    }
}

/// Loads a part of the object, and pins its maps and programs.
fn bring_in(part: Option<Model>, given_entries: u32) -> Result<()> {
    said().clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let loaded = (|| {
        let kernel = KernelTypes::read().trying(kernel_types)?;
        let mut open = open().map_err(failed)?;
        prepare(&mut open, part, given_entries)?;
        for mut program in open.progs_mut() {
            let wanted = Model::of(&program.name().to_string_lossy()) == part
                && is_possible(&program, &kernel);
            program.set_autoload(wanted);
        }
        let object = open.load().map_err(failed)?;
        pin_maps(&object, part)?;
        let mut programs: Vec<_> = object.progs().collect();
        let is_last = |name: &str| Model::ALL.iter().any(|model| name == model.executed());
        programs.sort_by_key(|program| is_last(&program.name().to_string_lossy()));
        for program in programs {
            let name = program.name().to_string_lossy();
            // what is in no set belongs to libbpf's own probing
            if program.autoload() && Set::of(&name).is_some() {
                Pinned::Programs.pin(program.as_fd(), &name)?;
            }
        }
        Ok(())
    })();
    libbpf_rs::set_print(before);
    loaded
}

/// What an error without BTF is about.
pub(crate) fn kernel_types() -> String {
    "read the kernel's BTF".into()
}

/// Whether this kernel has what the program is for.
pub(crate) fn is_possible(program: &OpenProgram<'_>, kernel: &KernelTypes) -> bool {
    match optional(program) {
        None => true,
        Some((kind, function)) if kind == "fentry" => kernel.try_function(&function),
        Some((_, hook)) => kernel.has_hook(&hook),
    }
}

/// What a program is for that is to be loaded only where that is there: a hook that only newer kernels have
/// (`SEC("?lsm/…")`), or a function that a kernel may not have of its own (`SEC("?fentry/…")`). libbpf takes the mark off
/// the section's name, and keeps the program from being loaded.
fn optional(program: &OpenProgram<'_>) -> Option<(String, String)> {
    let section = program.section().to_string_lossy().into_owned();
    let (kind, of) = section.split_once('/')?;
    (!program.autoload()).then(|| (kind.to_owned(), of.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maps that are made for a part, in their order.
    fn made(part: Option<Model>) -> Vec<String> {
        let open = open().unwrap();
        let names = open
            .maps()
            .map(|map| name_of(&map.name().to_string_lossy()));
        let mut made: Vec<_> = names
            .filter(|name| belongs(name, part) && Model::of(name) == part && !is_constant(name))
            .collect();
        made.sort();
        made
    }

    #[test]
    fn from_the_start_there_is_nothing_of_the_other_models() {
        let expected = [
            "bss",
            "channels",
            "edges",
            "edges_empty",
            "events",
            "fifos",
            "floors",
            "given",
            "history",
            "inodes",
            "kernel_objects",
            "nets",
            "nets_empty",
            "nodes",
            "nodes_empty",
            "paths",
            "roots",
            "scratches",
            "serves",
            "socks",
            "stats",
            "subjects",
        ];
        assert_eq!(made(None), expected);
        for model in Model::ALL {
            let globals = format!("{}bss", model.prefix());
            assert!(made(Some(model)).contains(&globals), "{globals}");
        }
    }

    #[test]
    fn a_section_of_globals_has_a_name_that_the_bpf_filesystem_takes() {
        let names = ["tidegate.bss", ".bss.te", ".rodata.str1.1", "te_given"].map(name_of);
        assert_eq!(names, ["bss", "te_bss", "str1.1_rodata", "te_given"]);
    }

    #[test]
    fn each_program_is_in_a_set() {
        for program in open().unwrap().progs() {
            let name = program.name().to_string_lossy();
            assert!(Set::of(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_not_every_kernel_has_is_asked_for() {
        let mut found: Vec<_> = open()
            .unwrap()
            .progs()
            .filter_map(|program| optional(&program))
            .collect();
        found.sort();
        let expected = [
            ("fentry", "__d_move"),
            ("lsm", "inode_file_getattr"),
            // each model asks of its own
            ("lsm", "inode_file_setattr"),
            ("lsm", "inode_file_setattr"),
            ("lsm", "inode_file_setattr"),
            ("lsm", "mmap_backing_file"),
            ("lsm", "uring_allowed"),
        ];
        assert_eq!(found, expected.map(|(kind, of)| (kind.into(), of.into())));
    }
}
