//! The system itself: what belongs to the top level alone.

use std::fs;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns};

use crate::check::{Failed, Outcome, allowed, ensure, refused, refused_any, same};
use crate::level;
use crate::place::{self, AREA, LOW, MOUNT, SYSTEM, path};
use crate::scenario::{Scenario, allow, bypass, deny};
use crate::subject::{Level, at, own_namespaces, spawn, step};
use crate::{sys, syscall};

use Level::{System, Untrusted, User};

const ROW: &str = "mount, umount";

/// Refused by a hook, or for want of the capability that a hook took away.
const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "system-by-system",
        "the top level mounts, sets sysctls and clocks, and uses BPF",
        by_system,
    )
    .of(ROW),
    allow(
        "system-read-from-below",
        "lower subjects read /proc and /sys as ever",
        read_below,
    ),
    allow(
        "system-own-namespace",
        "a lower subject mounts in a user namespace of its own",
        own_namespace,
    )
    .of(ROW),
    deny("system-mount", "mounts, old and new calls", mounts).of(ROW),
    deny("system-modules", "modules, kexec and reboot", modules).of(ROW),
    deny(
        "system-bpf",
        "bpf(2), and the tracing that goes with it",
        bpf,
    )
    .of(ROW),
    deny(
        "system-raw",
        "ports, memory, swap, quota and accounting",
        raw,
    )
    .of(ROW),
    deny("system-clock", "clocks", clock).of(ROW),
    bypass(
        "sysctl-write",
        "sysctls that run programs or end enforcement",
        sysctls,
    ),
    bypass(
        "sysctl-other-proc",
        "the same through another mount of procfs",
        other_proc,
    ),
    bypass(
        "sysfs-write",
        "files of sysfs, tracefs, debugfs, cgroups",
        sysfs,
    ),
    bypass(
        "core-pattern",
        "a core dump handler of the attacker's",
        core_pattern,
    ),
    bypass(
        "binfmt-register",
        "an interpreter of the attacker's for every program",
        binfmt,
    ),
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
    bypass(
        "mount-propagation",
        "a mount made in a namespace of one's own shows up in the host",
        propagation,
    ),
    bypass(
        "mount-by-setns",
        "root enters a lower user's mount namespace to change what all share",
        by_setns,
    ),
    bypass(
        "mount-setattr",
        "a read-only mount made writable by mount_setattr",
        setattr,
    ),
    bypass("swap-file", "a file of the attacker's as swap", swap),
    bypass(
        "loop-device",
        "a device that the attacker's file is behind",
        loop_device,
    ),
    bypass(
        "module-by-descriptor",
        "a module loaded from a descriptor, from memory, or asked for by name",
        module_ways,
    ),
];

fn bind(from: &str, to: &str) -> Result<(), Errno> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}

fn tmpfs(at: &str) -> Result<(), Errno> {
    mount(
        Some("scenario"),
        at,
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
}

fn by_system() -> Outcome {
    let dir = place::directory(SYSTEM, "mount")?;
    allowed(tmpfs(&dir))?;
    allowed(umount2(dir.as_str(), MntFlags::empty()))?;
    let value = fs::read_to_string("/proc/sys/vm/swappiness")?;
    allowed(fs::write("/proc/sys/vm/swappiness", value.trim()))?;
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME)?;
    allowed(nix::time::clock_settime(
        nix::time::ClockId::CLOCK_REALTIME,
        now,
    ))?;
    allowed(bpf_map())?;
    level::is(System)
}

fn read_below() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for path in [
                "/proc/meminfo",
                "/proc/self/maps",
                "/proc/mounts",
                "/proc/1/status",
                "/proc/sys/kernel/ostype",
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "/sys/fs/cgroup/cgroup.controllers",
            ] {
                allowed(fs::read(path))?;
            }
            level::is(level)
        })?;
    }
    Ok(())
}

fn own_namespace() -> Outcome {
    let dir = place::directory(SYSTEM, "dir")?;
    for level in Level::LOWER {
        at(level, || {
            own_namespaces(
                CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET,
            )?;
            allowed(tmpfs(MOUNT))?;
            allowed(bind(LOW, &dir))?;
            allowed(fs::read_dir(&dir))?;
            allowed(umount2(dir.as_str(), MntFlags::MNT_DETACH))?;
            allowed(umount2(MOUNT, MntFlags::empty()))?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn mounts() -> Outcome {
    let (dir, own) = (
        place::directory(SYSTEM, "dir")?,
        place::directory(LOW, "own")?,
    );
    let before = fs::read_to_string("/proc/self/mountinfo")?;
    for level in Level::LOWER {
        at(level, || {
            for at in [&dir, &own] {
                refused(Errno::EPERM, tmpfs(at))?;
                refused(Errno::EPERM, bind(&own, at))?;
                refused(
                    Errno::EPERM,
                    mount(
                        Some("/scn/tmp"),
                        at.as_str(),
                        None::<&str>,
                        MsFlags::MS_MOVE,
                        None::<&str>,
                    ),
                )?;
            }
            let remount = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            refused(
                Errno::EPERM,
                mount(
                    None::<&str>,
                    "/scn/tmp",
                    None::<&str>,
                    remount,
                    None::<&str>,
                ),
            )?;
            let bind_remount = remount | MsFlags::MS_BIND;
            refused(
                Errno::EPERM,
                mount(
                    None::<&str>,
                    "/scn/tmp",
                    None::<&str>,
                    bind_remount,
                    None::<&str>,
                ),
            )?;
            refused(
                Errno::EPERM,
                mount(
                    None::<&str>,
                    "/scn/tmp",
                    None::<&str>,
                    MsFlags::MS_PRIVATE,
                    None::<&str>,
                ),
            )?;
            refused(Errno::EPERM, umount2("/scn/tmp", MntFlags::MNT_DETACH))?;
            refused(Errno::EPERM, move_mount_tmpfs(&own))?;
            let (new, old) = (sys::c("/scn/tmp"), sys::c("/scn/tmp/low"));
            refused_any(
                &[Errno::EPERM, Errno::EINVAL],
                syscall!(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()),
            )
        })?;
    }
    same(
        "the mounts",
        fs::read_to_string("/proc/self/mountinfo")?,
        before,
    )
}

/// A tmpfs by the calls that came with 5.2.
fn move_mount_tmpfs(at: &str) -> Result<(), Errno> {
    const CREATE: u32 = 6;
    const EMPTY_FROM: u32 = 4;
    let context = sys::owned(syscall!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)?)?;
    syscall!(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, 0, 0, 0)?;
    let made = sys::owned(syscall!(libc::SYS_fsmount, context.as_raw_fd(), 0, 0)?)?;
    let at = sys::c(at);
    let empty = sys::c("");
    syscall!(
        libc::SYS_move_mount,
        made.as_raw_fd(),
        empty.as_ptr(),
        libc::AT_FDCWD,
        at.as_ptr(),
        EMPTY_FROM
    )
    .map(drop)
}

fn modules() -> Outcome {
    const CAD_OFF: u32 = 0;
    for level in Level::LOWER {
        at(level, || {
            let image = sys::reads("/usr/bin/dash")?;
            refused_any(
                NO,
                syscall!(libc::SYS_finit_module, image.as_raw_fd(), c"".as_ptr(), 0),
            )?;
            refused_any(
                NO,
                syscall!(libc::SYS_init_module, c"".as_ptr(), 1, c"".as_ptr()),
            )?;
            refused_any(NO, syscall!(libc::SYS_delete_module, c"loop".as_ptr(), 0))?;
            refused_any(NO, syscall!(libc::SYS_kexec_load, 0, 0, 0, 0))?;
            refused_any(
                NO,
                syscall!(libc::SYS_kexec_file_load, image.as_raw_fd(), -1, 0, 0, 4),
            )?;
            refused_any(
                NO,
                syscall!(libc::SYS_reboot, 0xfee1_deadu32, 672_274_793, CAD_OFF, 0),
            )
        })?;
    }
    Ok(())
}

/// BPF_MAP_CREATE of an array of one element.
fn bpf_map() -> Result<std::os::fd::OwnedFd, Errno> {
    let mut attr = [0u32; 32];
    attr[..4].copy_from_slice(&[2, 4, 4, 1]);
    sys::owned(syscall!(libc::SYS_bpf, 0, attr.as_mut_ptr(), 128)?)
}

fn bpf() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for command in 0..=36 {
                let mut attr = [0u32; 32];
                refused(
                    Errno::EPERM,
                    syscall!(libc::SYS_bpf, command, attr.as_mut_ptr(), 128),
                )?;
            }
            for kind in ["kprobe", "uprobe"] {
                let file = format!("/sys/bus/event_source/devices/{kind}/type");
                let kind: u64 = fs::read_to_string(file)?.trim().parse().unwrap_or(0);
                let name = sys::c("do_exit");
                let mut attr = [0u64; 16];
                (attr[0], attr[7]) = (kind | 128 << 32, name.as_ptr() as u64);
                refused_any(
                    NO,
                    syscall!(libc::SYS_perf_event_open, attr.as_ptr(), -1, 0, -1, 0),
                )?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn raw() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            refused_any(NO, syscall!(libc::SYS_iopl, 3))?;
            refused_any(NO, syscall!(libc::SYS_ioperm, 0x70, 2, 1))?;
            for device in ["/dev/mem", "/dev/kmsg"] {
                refused_any(NO, sys::writes(device))?;
            }
            refused_any(NO, syscall!(libc::SYS_acct, c"/scn/area/acct".as_ptr()))?;
            refused_any(NO, syscall!(libc::SYS_acct, 0))?;
            // Q_QUOTAOFF of user quota on the root
            refused_any(
                NO,
                syscall!(
                    libc::SYS_quotactl,
                    0x8000_0300u32,
                    c"/dev/pmem0".as_ptr(),
                    0,
                    0
                ),
            )?;
            refused_any(NO, syscall!(libc::SYS_swapoff, c"/scn/area/none".as_ptr()))
        })?;
    }
    Ok(())
}

fn clock() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let time = [1u64, 0];
            refused_any(NO, syscall!(libc::SYS_settimeofday, time.as_ptr(), 0))?;
            refused_any(
                NO,
                syscall!(libc::SYS_clock_settime, libc::CLOCK_REALTIME, time.as_ptr()),
            )?;
            let mut change = [0u64; 32];
            change[0] = 0x0002; // ADJ_FREQUENCY
            refused_any(NO, syscall!(libc::SYS_adjtimex, change.as_mut_ptr()))?;
            refused_any(
                NO,
                syscall!(
                    libc::SYS_clock_adjtime,
                    libc::CLOCK_REALTIME,
                    change.as_mut_ptr()
                ),
            )?;
            refused_any(NO, sys::writes("/dev/rtc0"))
        })?;
    }
    Ok(())
}

/// Sysctls whose write would undo enforcement, or run a program as root.
const SYSCTLS: [&str; 8] = [
    "kernel/ftrace_enabled",
    "kernel/core_pattern",
    "kernel/modprobe",
    "kernel/poweroff_cmd",
    "kernel/modules_disabled",
    "vm/drop_caches",
    "kernel/unprivileged_bpf_disabled",
    "fs/protected_symlinks",
];

fn sysctls() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for name in SYSCTLS.iter().chain(&["../sysrq-trigger"]) {
                let path = format!("/proc/sys/{name}");
                if fs::metadata(&path).is_ok() {
                    refused_any(NO, sys::writes(&path))?;
                    refused_any(NO, sys::both(&path))?;
                }
            }
            level::is(level)
        })?;
    }
    ensure(
        fs::read("/proc/sys/kernel/ftrace_enabled")? == b"1\n",
        "ftrace was switched off",
    )
}

fn other_proc() -> Outcome {
    // one that the host does not see
    for level in Level::LOWER {
        at(level, || {
            nix::sched::unshare(
                CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID,
            )?;
            crate::subject::start(|| {
                mount(
                    Some("proc"),
                    MOUNT,
                    Some("proc"),
                    MsFlags::empty(),
                    None::<&str>,
                )?;
                for name in SYSCTLS {
                    let path = format!("{MOUNT}/sys/{name}");
                    if fs::metadata(&path).is_ok() {
                        refused_any(NO, sys::writes(&path))?;
                    }
                }
                Ok(())
            })?
            .join()
        })?;
    }
    // one that the system made elsewhere, and one bound
    let dir = place::directory(SYSTEM, "proc")?;
    mount(
        Some("proc"),
        dir.as_str(),
        Some("proc"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    let result = at(Untrusted, || {
        refused_any(NO, sys::writes(format!("{dir}/sys/kernel/ftrace_enabled")))?;
        refused_any(NO, sys::writes(format!("{dir}/sys/kernel/core_pattern")))
    });
    umount2(dir.as_str(), MntFlags::MNT_DETACH)?;
    result
}

fn sysfs() -> Outcome {
    let files = [
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/kernel/tracing/kprobe_events",
        "/sys/kernel/tracing/set_ftrace_filter",
        "/sys/kernel/tracing/tracing_on",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/module/loop/parameters/max_part",
        "/sys/kernel/security/lockdown",
        "/sys/devices/system/cpu/cpu1/online",
    ];
    for level in Level::LOWER {
        at(level, || {
            let mut tried = 0;
            for file in files {
                if fs::metadata(file).is_ok() {
                    refused_any(NO, sys::writes(file))?;
                    tried += 1;
                }
            }
            refused_any(NO, fs::create_dir("/sys/fs/cgroup/scenario"))?;
            refused_any(NO, fs::create_dir("/sys/kernel/tracing/instances/scenario"))?;
            ensure(tried >= 4, "hardly any file was there")
        })?;
    }
    Ok(())
}

fn core_pattern() -> Outcome {
    let before = fs::read("/proc/sys/kernel/core_pattern")?;
    at(Untrusted, || {
        refused(
            Errno::EPERM,
            fs::write("/proc/sys/kernel/core_pattern", "|/scn/low/handler"),
        )?;
        let old = sys::open("/proc/sys/kernel/core_pattern", OFlag::O_PATH)?;
        refused(Errno::EPERM, sys::again(&old, OFlag::O_WRONLY))
    })?;
    same(
        "the pattern",
        fs::read("/proc/sys/kernel/core_pattern")?,
        before,
    )
}

fn binfmt() -> Outcome {
    const REGISTER: &str = "/proc/sys/fs/binfmt_misc/register";
    if fs::metadata(REGISTER).is_err() {
        mount(
            Some("b"),
            "/proc/sys/fs/binfmt_misc",
            Some("binfmt_misc"),
            MsFlags::empty(),
            None::<&str>,
        )?;
    }
    for level in Level::LOWER {
        at(level, || {
            refused(
                Errno::EPERM,
                fs::write(REGISTER, ":evil:M::\\x7fELF::/scn/low/interpreter:F"),
            )?;
            refused(
                Errno::EPERM,
                fs::write("/proc/sys/fs/binfmt_misc/status", "0"),
            )?;
            own_namespaces(CloneFlags::CLONE_NEWNS)?;
            // since 6.7 a user namespace has handlers of its own, for itself
            refused(
                Errno::EPERM,
                fs::write(REGISTER, ":evil:M::SCN9::/scn/low/interpreter:"),
            )
        })?;
    }
    Ok(())
}

const PINS: &str = "/sys/fs/bpf/tidegate";

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
            let name = sys::c(format!("{PINS}/maps/bss"));
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

fn propagation() -> Outcome {
    let dir = place::directory(SYSTEM, "shared")?;
    fs::write(format!("{dir}/file"), "high")?;
    bind(&dir, &dir)?;
    mount(
        None::<&str>,
        dir.as_str(),
        None::<&str>,
        MsFlags::MS_SHARED,
        None::<&str>,
    )?;
    let result = at(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let made = tmpfs(&dir);
        if made.is_ok() {
            fs::write(format!("{dir}/file"), "low")?;
        }
        let _ = mount(
            None::<&str>,
            dir.as_str(),
            None::<&str>,
            MsFlags::MS_SHARED,
            None::<&str>,
        );
        Ok(())
    });
    let seen = fs::read_to_string(format!("{dir}/file"))?;
    umount2(dir.as_str(), MntFlags::MNT_DETACH)?;
    result?;
    same("what the host sees", seen.as_str(), "high")
}

fn by_setns() -> Outcome {
    let other = spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        step()
    })?;
    other.stands()?;
    let before = fs::read_to_string("/proc/self/mountinfo")?;
    at(Untrusted, || {
        let there = sys::reads(format!("/proc/{}/ns/mnt", other.pid))?;
        allowed(setns(&there, CloneFlags::CLONE_NEWNS))?;
        // it has the host's capabilities and the other's view: superblocks belong to all
        let none = None::<&str>;
        for flags in [
            MsFlags::MS_REMOUNT,
            MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY,
        ] {
            refused(
                Errno::EPERM,
                mount(none, "/scn/tmp", none, flags, Some("size=32m")),
            )?;
        }
        Ok(())
    })?;
    same(
        "the mounts",
        fs::read_to_string("/proc/self/mountinfo")?,
        before,
    )?;
    other.kill()
}

fn setattr() -> Outcome {
    let (dir, view) = (
        place::directory(LOW, "dir")?,
        place::directory(SYSTEM, "view")?,
    );
    bind(&dir, &view)?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(
        None::<&str>,
        view.as_str(),
        None::<&str>,
        read_only,
        None::<&str>,
    )?;
    let result = (|| {
        for level in Level::LOWER {
            at(level, || {
                // struct mount_attr: set, clear MOUNT_ATTR_RDONLY, propagation, user namespace
                let attributes = [0u64, 1, 0, 0];
                let at = sys::c(&view);
                let set = syscall!(
                    libc::SYS_mount_setattr,
                    libc::AT_FDCWD,
                    at.as_ptr(),
                    0,
                    attributes.as_ptr(),
                    32
                );
                refused(Errno::EPERM, set)
            })?;
        }
        refused(
            Errno::EROFS,
            sys::open(format!("{view}/file"), OFlag::O_CREAT | OFlag::O_WRONLY),
        )
    })();
    umount2(view.as_str(), MntFlags::MNT_DETACH)?;
    result
}

fn swap() -> Outcome {
    let file = path(AREA, "swap");
    at(Untrusted, || {
        // a swap area of 16 pages, written by hand: see mkswap(8)
        let mut area = vec![0u8; 16 * 4096];
        area[1024..1028].copy_from_slice(&1u32.to_le_bytes());
        area[1028..1032].copy_from_slice(&15u32.to_le_bytes());
        area[4086..4096].copy_from_slice(b"SWAPSPACE2");
        fs::write(&file, &area)?;
        let name = sys::c(&file);
        let on = syscall!(libc::SYS_swapon, name.as_ptr(), 0);
        if on.is_ok() {
            let _ = syscall!(libc::SYS_swapoff, name.as_ptr());
        }
        refused_any(NO, on)
    })
}

fn loop_device() -> Outcome {
    const LOOP_SET_FD: u64 = 0x4c00;
    const LOOP_CTL_GET_FREE: u64 = 0x4c82;
    let _ = std::process::Command::new("modprobe").arg("loop").status();
    let control = sys::both("/dev/loop-control")?;
    let number = sys::ioctl(&control, LOOP_CTL_GET_FREE, 0)?;
    let device = format!("/dev/loop{number}");
    drop(control);
    at(Untrusted, || {
        let file = path(AREA, "disk");
        fs::write(&file, vec![0u8; 65536])?;
        let Ok(device) = sys::reads(&device) else {
            return Ok(());
        };
        let set = sys::ioctl(&device, LOOP_SET_FD, sys::both(&file)?.as_raw_fd() as usize);
        refused_any(NO, set)
    })?;
    ensure(
        fs::metadata(format!("/sys/block/loop{number}/loop/backing_file")).is_err(),
        "the device was set up",
    )
}

fn module_ways() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let memory = sys::memfd(0)?;
            sys::put_all(&memory, &fs::read("/usr/bin/dash")?)?;
            for flags in [0, 1, 2, 4] {
                refused_any(
                    NO,
                    syscall!(
                        libc::SYS_finit_module,
                        memory.as_raw_fd(),
                        c"".as_ptr(),
                        flags
                    ),
                )?;
            }
            refused_any(
                NO,
                fs::write("/proc/sys/kernel/modprobe", "/scn/low/modprobe"),
            )
        })?;
    }
    // a firmware or module directory of the attacker's
    at(User, || {
        refused_any(
            NO,
            fs::write("/sys/module/firmware_class/parameters/path", "/scn/low"),
        )
    })
}
