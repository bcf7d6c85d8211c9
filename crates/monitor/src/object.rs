//! The object's programs and maps, brought into the kernel and pinned: first all but those of the
//! `profile` and `te` models, and these beside them once a policy has such a model, as a kernel takes as long to
//! verify each as all others.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};

use libbpf_rs::{MapCore, Object, ObjectBuilder, OpenObject, OpenProgram, PrintLevel, ProgramType};

use crate::attach::{Model, is_late};
use crate::error::{Error, Result, Trying, io_of};
use crate::load::Options;
use crate::pins::{self, Pinned};
use crate::probe::KernelTypes;

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

/// Loads and pins all maps, and all programs but those of the models that a policy may be without.
pub(crate) fn load(options: Options) -> Result<()> {
    bring_in(
        |program| {
            !Model::ALL
                .iter()
                .any(|model| program.starts_with(model.prefix()))
        },
        |open| {
            for mut map in open.maps_mut() {
                if ["given", "te_given"].iter().any(|name| map.name() == *name) {
                    map.set_max_entries(options.given_entries)?;
                }
            }
            Ok(())
        },
        |object| {
            for map in object.maps() {
                let Some(name) = shared(&map.name().to_string_lossy()) else {
                    continue;
                };
                Pinned::Maps.pin(map.as_fd(), &name)?;
                if name == "bss" {
                    Pinned::Maps.pin(map.as_fd(), &pins::build())?;
                }
            }
            Ok(())
        },
    )
}

/// Loads and pins the programs of a model beside those, with the same maps; nothing if they are there,
/// as they are when [`Model::executed`] is, which is pinned last.
pub(crate) fn load_model(model: Model) -> Result<()> {
    let programs = Pinned::Programs.names()?;
    if programs.iter().any(|program| program == model.executed()) {
        return Ok(());
    }
    // of a load that was cut off
    let rest = programs.iter().filter(|p| p.starts_with(model.prefix()));
    pins::unpin(rest.map(|program| Pinned::Programs.path(program)))?;
    bring_in(
        |program| program.starts_with(model.prefix()),
        |open| {
            for mut map in open.maps_mut() {
                if let Some(name) = shared(&map.name().to_string_lossy()) {
                    map.reuse_pinned_map(Pinned::Maps.path(&name))?;
                }
            }
            Ok(())
        },
        |_| Ok(()),
    )
}

/// The name by which a map is pinned, unless it is a table of constants: those are each load's own.
fn shared(map: &str) -> Option<String> {
    if map.contains(".rodata") {
        return None;
    }
    let name = map.rsplit_once('.').map_or(map, |(_, section)| section);
    Some(name.to_string())
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

/// Loads the wanted programs with the maps as they are prepared, has the maps pinned, and pins the programs.
fn bring_in(
    wanted: impl Fn(&str) -> bool,
    prepare: impl FnOnce(&mut OpenObject) -> libbpf_rs::Result<()>,
    pin_maps: impl FnOnce(&Object) -> Result<()>,
) -> Result<()> {
    said().clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let loaded = (|| {
        let kernel = KernelTypes::read().trying(kernel_types)?;
        let mut open = open().map_err(failed)?;
        prepare(&mut open).map_err(failed)?;
        for mut program in open.progs_mut() {
            let wanted =
                wanted(&program.name().to_string_lossy()) && is_possible(&program, &kernel);
            program.set_autoload(wanted);
        }
        let object = open.load().map_err(failed)?;
        pin_maps(&object)?;
        let mut programs: Vec<_> = object.progs().collect();
        let is_last = |name: &str| Model::ALL.iter().any(|model| name == model.executed());
        programs.sort_by_key(|program| is_last(&program.name().to_string_lossy()));
        for program in programs {
            let name = program.name().to_string_lossy();
            // what else there is belongs to libbpf's own probing
            let ours = program.prog_type() == ProgramType::Lsm || is_late(&name);
            if program.autoload() && ours {
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
