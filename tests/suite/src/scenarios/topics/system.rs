//! The system itself: what belongs to the top level alone.

use std::fs;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::CloneFlags;

use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same, soon};
use crate::scenarios::level;
use crate::scenarios::place::{self, AREA, BIN, MOUNT, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, own_namespaces, spawn};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub(super) const ROW: &str = "mount, umount";

/// Refused by a hook, or for want of the capability that a hook took away.
pub(super) const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

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
        "core-handler",
        "what a low process leaves in its core dump, read by a handler",
        core_handler,
    ),
    bypass(
        "binfmt-register",
        "an interpreter of the attacker's for every program",
        binfmt,
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

pub(super) fn bind(from: &str, to: &str) -> Result<(), Errno> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}

pub(super) fn tmpfs(at: &str) -> Result<(), Errno> {
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
pub(super) fn bpf_map() -> Result<std::os::fd::OwnedFd, Errno> {
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
                let name = c("do_exit");
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
            crate::scenarios::subject::start(|| {
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

fn core_handler() -> Outcome {
    const PATTERN: &str = "/proc/sys/kernel/core_pattern";
    let high = place::file(SYSTEM, "high")?;
    let said = place::path(AREA, "said");
    let before = fs::read(PATTERN)?;
    fs::write(
        PATTERN,
        format!("|{BIN}/scenarios --helper core {high} {said}"),
    )?;
    let crashed = spawn(Untrusted, || {
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 1 << 20, 1 << 20)?;
        std::process::abort()
    })?;
    let ended = crashed.status();
    fs::write(PATTERN, before)?;
    ended?;
    soon(|| Ok(fs::read_to_string(&said).is_ok_and(|s| s.ends_with('\n'))))?;
    let said = fs::read_to_string(&said)?;
    let (bytes, errno) = said.trim().split_once(' ').unwrap_or_default();
    ensure(
        bytes.parse::<u64>().is_ok_and(|n| n > 0),
        "the handler read nothing",
    )?;
    same("its errno", errno, libc::EPERM.to_string().as_str())
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

fn swap() -> Outcome {
    let file = path(AREA, "swap");
    at(Untrusted, || {
        // a swap area of 16 pages, written by hand: see mkswap(8)
        let mut area = vec![0u8; 16 * 4096];
        area[1024..1028].copy_from_slice(&1u32.to_le_bytes());
        area[1028..1032].copy_from_slice(&15u32.to_le_bytes());
        area[4086..4096].copy_from_slice(b"SWAPSPACE2");
        fs::write(&file, &area)?;
        let name = c(&file);
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
