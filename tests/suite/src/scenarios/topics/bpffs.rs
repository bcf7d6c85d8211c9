//! What the monitor stands on: its pins, its links, its programs.

use std::fs;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;

use super::system::{bpf_map, tmpfs};
use crate::scenarios::check::{Failed, Outcome, ensure, refused, same};
use crate::scenarios::place::{self, LOW};
use crate::scenarios::scenario::{Scenario, bypass, life};
use crate::scenarios::subject::{Level, at, own_namespaces};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "bpffs-pins",
        "the pins removed, moved, or reached through another mount",
        pins,
    ),
    bypass(
        "bpffs-unmount",
        "the BPF filesystem unmounted or covered",
        bpf_unmount,
    ),
    bypass(
        "bpf-detach",
        "links and programs found by id and detached",
        bpf_ids,
    ),
    life(
        "binder-attached",
        "what refuses descriptors by binder is attached, whether the kernel has binder or not",
        binder,
    ),
];

const PINS: &str = "/sys/fs/bpf/tidegate";

fn binder() -> Outcome {
    let link = format!("{PINS}/links/lomac_binder_transfer_file");
    same("whether it is attached", fs::exists(link)?, true)
}

fn pins() -> Outcome {
    let mut links: Vec<_> = fs::read_dir(format!("{PINS}/links"))?
        .flatten()
        .map(|e| e.path())
        .collect();
    let link = links.pop().ok_or_else(|| Failed::because("no links"))?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, fs::remove_file(&link))?;
            refused(
                Errno::EPERM,
                fs::rename(&link, format!("{PINS}/links/gone")),
            )?;
            refused(Errno::EPERM, fs::rename(PINS, "/sys/fs/bpf/gone"))?;
            refused(Errno::EPERM, fs::hard_link(&link, "/sys/fs/bpf/second"))?;
            refused(Errno::EPERM, fs::create_dir("/sys/fs/bpf/own"))?;
            refused(
                Errno::EPERM,
                fs::set_permissions(PINS, std::os::unix::fs::PermissionsExt::from_mode(0o777)),
            )?;
            refused(Errno::EPERM, fs::remove_file(format!("{PINS}/maps/bss")))?;
            let name = c(format!("{PINS}/maps/bss"));
            let mut attr = [0u64; 16];
            attr[0] = name.as_ptr() as u64;
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_bpf, 7, attr.as_mut_ptr(), 24),
            )
        })?;
    }
    ensure(fs::symlink_metadata(&link).is_ok(), "the pin is gone")
}

fn bpf_unmount() -> Outcome {
    let own = place::directory(LOW, "own")?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, umount2("/sys/fs/bpf", MntFlags::MNT_DETACH))?;
            refused(Errno::EPERM, umount2("/sys/fs/bpf", MntFlags::MNT_FORCE))?;
            refused(Errno::EPERM, umount2("/sys", MntFlags::MNT_DETACH))?;
            refused(Errno::EPERM, tmpfs("/sys/fs/bpf"))?;
            refused(
                Errno::EPERM,
                mount(
                    Some("/sys/fs/bpf"),
                    own.as_str(),
                    None::<&str>,
                    MsFlags::MS_MOVE,
                    None::<&str>,
                ),
            )?;
            // unmounted where only it looks, it is still mounted for all others
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            let _ = umount2("/sys/fs/bpf", MntFlags::MNT_DETACH);
            Ok(())
        })?;
    }
    ensure(
        fs::read_dir(format!("{PINS}/links"))?.count() > 10,
        "the links are gone",
    )?;
    at(Untrusted, || {
        refused(Errno::EPERM, sys::writes(place::PROBES[0].1))
    })
}

fn bpf_ids() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            // BPF_PROG_GET_NEXT_ID … BPF_LINK_DETACH, by every id there may be
            for command in [11, 12, 13, 14, 23, 30, 31, 34, 29] {
                for id in 0..20 {
                    let mut attr = [0u32; 32];
                    attr[0] = id;
                    refused(
                        Errno::EPERM,
                        syscall!(libc::SYS_bpf, command, attr.as_mut_ptr(), 128),
                    )?;
                }
            }
            own_namespaces(CloneFlags::empty())?;
            refused(Errno::EPERM, bpf_map())
        })?;
    }
    Ok(())
}
