//! What the guarded world looks like: a line for each thing that an attack may not change.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Things by their names, each with what it is like.
pub type Look = BTreeMap<String, String>;

/// Kinds of things of which others may come: the kernel makes some by itself, or loads modules for whoever asks.
const MAY_COME: [&str; 5] = ["device ", "module ", "sysctl ", "process ", "network "];

/// What of the monitor is attached.
pub const LINKS: &str = "/sys/fs/bpf/tidegate/links";

/// What differs, in words. `None` of the two if a thing is not there.
pub fn changes(before: &Look, after: &Look) -> Vec<String> {
    let mut changes = Vec::new();
    for (name, was) in before {
        match after.get(name) {
            Some(is) if is == was => {}
            Some(is) => changes.push(format!("{name}: {was:?} → {is:?}")),
            None => changes.push(format!("{name}: gone")),
        }
    }
    let came = after.keys().filter(|name| !before.contains_key(*name));
    let came = came.filter(|name| !MAY_COME.iter().any(|kind| name.starts_with(kind)));
    changes.extend(came.map(|name| format!("{name}: new")));
    changes
}

/// The name of a thing that a change is about.
pub fn changed(change: &str) -> &str {
    change.split_once(": ").map_or(change, |(name, _)| name)
}

fn text(path: impl AsRef<Path>) -> String {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        Err(e) => e.to_string(),
    }
}

/// Names and attributes that a call gives: its first answer is how long they are.
fn attribute_bytes(call: impl Fn(*mut libc::c_char, usize) -> isize) -> Vec<u8> {
    let mut bytes = vec![0_u8; 4096];
    let length = call(bytes.as_mut_ptr().cast(), bytes.len());
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    bytes
}

/// A file's attributes, but those by which the monitor knows it.
fn attributes(path: &Path) -> String {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return String::new();
    };
    // SAFETY: the path ends with NUL, and the buffer is as long as is said.
    let names = attribute_bytes(|at, len| unsafe { libc::llistxattr(path.as_ptr(), at, len) });
    let mut all = String::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let shown = String::from_utf8_lossy(name);
        let name = CString::new(name).unwrap_or_default();
        let value = attribute_bytes(|at, len| {
            // SAFETY: as above, of both texts.
            unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), at.cast(), len) }
        });
        all += &format!(" {shown}={}", String::from_utf8_lossy(&value));
    }
    all
}

/// Flags of an inode, as chattr(1) has them.
fn flags(path: &Path) -> String {
    let file = fs::File::open(path).ok();
    let flags = file.and_then(|file| rustix::fs::ioctl_getflags(&file).ok());
    flags.map_or(String::new(), |flags| format!(" flags {:x}", flags.bits()))
}

/// A file as it is: of a FIFO no times, as whoever has it open may write to it.
fn file(path: &Path) -> String {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) => return e.to_string(),
    };
    let mut line = format!(
        "mode {:o} owner {}:{} links {} size {} inode {}",
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.nlink(),
        meta.size(),
        meta.ino()
    );
    if !meta.file_type().is_fifo() {
        let (modified, changed) = (
            (meta.mtime(), meta.mtime_nsec()),
            (meta.ctime(), meta.ctime_nsec()),
        );
        line += &format!(
            " modified {}.{:09} changed {}.{:09}",
            modified.0, modified.1, changed.0, changed.1
        );
    }
    line += &attributes(path);
    if meta.is_file() || meta.is_dir() {
        line += &flags(path);
    }
    if meta.is_file() && meta.size() <= 4096 {
        line += &format!(" holds {:?}", text(path));
    } else if meta.is_symlink() {
        line += &format!(" leads to {:?}", fs::read_link(path).unwrap_or_default());
    }
    line
}

/// A file or directory with all that is in it.
pub fn tree(look: &mut Look, path: &Path) {
    look.insert(format!("file {}", path.display()), file(path));
    // a link to a directory is not followed
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            tree(look, &entry.path());
        }
    }
}

/// What is in a directory, by mode and owner alone. Devices come with modules, also in directories of their own.
fn shallow(look: &mut Look, dir: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(meta) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        let line = format!(
            "mode {:o} owner {}:{} device {:x}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.rdev()
        );
        let kind = match meta.rdev() != 0 || (meta.is_dir() && dir == "/dev") {
            true => "device",
            false => "name",
        };
        look.insert(format!("{kind} {}", entry.path().display()), line);
    }
}

/// Lines of a file of /proc that begin with one of these.
fn lines(path: &str, begin: &[&str]) -> String {
    let all = text(path);
    let lines = all
        .lines()
        .filter(|line| begin.iter().any(|begin| line.starts_with(begin)));
    lines.collect::<Vec<_>>().join(", ")
}

/// A process: its privileges, limits, place and signals.
pub fn process(look: &mut Look, pid: i32) {
    let dir = format!("/proc/{pid}");
    let mut add = |what: &str, line: String| {
        look.insert(format!("victim {pid} {what}"), line);
    };
    let status = [
        "Name",
        "Umask",
        "Tgid",
        "PPid",
        "TracerPid",
        "Uid",
        "Gid",
        "Groups",
        "Threads",
        "SigPnd",
        "ShdPnd",
        "SigBlk",
        "SigIgn",
        "SigCgt",
        "Cap",
        "NoNewPrivs",
        "Seccomp",
        "Cpus_allowed:",
        "Mems_allowed:",
        "THP_enabled",
    ];
    add("status", lines(&format!("{dir}/status"), &status));
    // pgrp, session, tty; priority, nice; the time of its start; real-time priority and policy
    let stat = text(format!("{dir}/stat"));
    let words: Vec<&str> = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split(' ')
        .collect();
    let words: Vec<&str> = [2, 3, 4, 15, 16, 19, 37, 38]
        .iter()
        .filter_map(|at| words.get(*at).copied())
        .collect();
    add("stat", words.join(" "));
    for file in [
        "limits",
        "oom_score_adj",
        "timerslack_ns",
        "personality",
        "cgroup",
        "coredump_filter",
        "loginuid",
        "sessionid",
    ] {
        add(file, text(format!("{dir}/{file}")));
    }
    for link in [
        "cwd",
        "root",
        "exe",
        "ns/mnt",
        "ns/net",
        "ns/pid",
        "ns/user",
        "ns/uts",
        "ns/ipc",
        "ns/cgroup",
    ] {
        let to = fs::read_link(format!("{dir}/{link}")).map(|to| to.display().to_string());
        add(link, to.unwrap_or_else(|e| e.to_string()));
    }
}

/// All processes but those of a control group, by when they were started. The kernel's own threads come and go.
fn processes(look: &mut Look, but: &str) {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let dir = entry.path();
        let is_process = entry.file_name().as_bytes().iter().all(u8::is_ascii_digit);
        if !is_process
            || fs::read_link(dir.join("exe")).is_err()
            || text(dir.join("cgroup")).ends_with(but)
        {
            continue;
        }
        let stat = text(dir.join("stat"));
        let start = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(19));
        look.insert(
            format!("process {}", dir.display()),
            format!("started {}", start.unwrap_or("?")),
        );
    }
}

/// Settings of the kernel that are not an attack's: the kernel, or the look itself, changes them.
const MOVING: [&str; 4] = [
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/tainted",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
];

/// All settings that somebody may write and read.
fn settings(look: &mut Look, dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        if meta.is_dir() {
            settings(look, &path);
        } else if meta.mode() & 0o222 != 0
            && meta.mode() & 0o400 != 0
            && !MOVING.iter().any(|moving| Path::new(moving) == path)
        {
            look.insert(format!("sysctl {}", path.display()), text(&path));
        }
    }
}

/// How far the wall clock, and the clock in hardware, are from the one that nobody sets.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    wall: Duration,
    hardware: Option<Duration>,
}

/// What the wall clock may be off by, as both are not read at once.
const DRIFT: Duration = Duration::from_secs(2);
/// What an emulated machine's own clock may drift by.
const HARDWARE_DRIFT: Duration = Duration::from_secs(60);

impl Clocks {
    /// As they are.
    pub fn read() -> Self {
        let clock = |id| clock_gettime(id).map(Duration::from).unwrap_or_default();
        let now = clock(ClockId::CLOCK_MONOTONIC);
        let hardware = fs::read_to_string("/sys/class/rtc/rtc0/since_epoch").ok();
        let hardware = hardware
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_secs);
        Self {
            wall: clock(ClockId::CLOCK_REALTIME).saturating_sub(now),
            hardware: hardware.map(|at| at.saturating_sub(now)),
        }
    }

    fn look(self, look: &mut Look) {
        let now = Self::read();
        let word = |was: Duration, is: Duration, drift: Duration| match was.abs_diff(is) < drift {
            true => "as it was".to_owned(),
            false => format!("{:?} off", was.abs_diff(is)),
        };
        look.insert("clock wall".into(), word(self.wall, now.wall, DRIFT));
        if let (Some(was), Some(is)) = (self.hardware, now.hardware) {
            look.insert("clock hardware".into(), word(was, is, HARDWARE_DRIFT));
        }
        // SAFETY: integers, all of which may be 0; mode 0 changes nothing.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: it outlives the call.
        unsafe { libc::adjtimex(&raw mut timex) };
        look.insert(
            "clock rate".into(),
            format!("{} {} {}", timex.freq, timex.tick, timex.status),
        );
    }
}

/// The machine: mounts, settings, devices, networks, modules, processes, programs of the monitor.
pub fn machine(look: &mut Look, clocks: Clocks, but: &str) {
    for line in text("/proc/self/mountinfo").lines() {
        let (number, rest) = line.split_once(' ').unwrap_or((line, ""));
        look.insert(format!("mount {number}"), rest.to_owned());
    }
    for line in text("/proc/modules").lines() {
        look.insert(
            format!("module {}", line.split(' ').next().unwrap_or_default()),
            String::new(),
        );
    }
    look.insert("swap".into(), text("/proc/swaps"));
    settings(look, Path::new("/proc/sys"));
    clocks.look(look);
    for dir in ["/", "/dev", "/etc", "/root", "/payload"] {
        shallow(look, dir);
    }
    for entry in fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
    {
        let setting = |name: &str| text(entry.path().join(name));
        let line = format!(
            "flags {} mtu {} address {}",
            setting("flags"),
            setting("mtu"),
            setting("address")
        );
        look.insert(format!("network {}", entry.path().display()), line);
    }
    for file in [
        "/proc/net/fib_trie",
        "/proc/net/route",
        "/proc/net/if_inet6",
    ] {
        look.insert(format!("routes {file}"), text(file));
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let setting = |name: &str| text(entry.path().join(name));
        look.insert(
            format!("device {}", entry.path().display()),
            format!("{} {}", setting("size"), setting("ro")),
        );
    }
    for file in [
        "/sys/kernel/mm/ksm/run",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/defrag",
        "/sys/power/pm_async",
        "/sys/kernel/profiling",
        "/sys/kernel/uevent_helper",
    ] {
        look.insert(format!("setting {file}"), text(file));
    }
    for entry in fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.path().is_dir() {
            look.insert(format!("group {}", entry.path().display()), String::new());
        }
    }
    // the guard's programs come and go
    for entry in fs::read_dir(LINKS).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("lomac_guard_") {
            look.insert(format!("monitor {name}"), String::new());
        }
    }
    processes(look, but);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(things: &[(&str, &str)]) -> Look {
        things
            .iter()
            .map(|(name, line)| ((*name).to_owned(), (*line).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_gone_other_or_new_is_a_change_but_what_may_come() {
        let before = look(&[
            ("file /a", "x"),
            ("file /b", "x"),
            ("sysctl /c", "1"),
            ("module m", ""),
        ]);
        let after = look(&[
            ("file /a", "y"),
            ("file /d", ""),
            ("sysctl /c", "1"),
            ("module n", ""),
        ]);
        let changes = changes(&before, &after);
        let names: Vec<&str> = changes.iter().map(|change| changed(change)).collect();
        assert_eq!(names, ["file /a", "file /b", "module m", "file /d"]);
        assert!(super::changes(&before, &before).is_empty());
    }

    #[test]
    fn a_file_is_looked_at_with_its_content_and_mode() {
        let dir = std::env::temp_dir().join(format!("look-{}", std::process::id()));
        fs::create_dir_all(dir.join("inner")).unwrap();
        fs::write(dir.join("inner/file"), "one").unwrap();
        let seen = || {
            let mut look = Look::new();
            tree(&mut look, &dir);
            look
        };
        let before = seen();
        assert_eq!(changes(&before, &seen()), Vec::<String>::new());
        fs::write(dir.join("inner/file"), "two").unwrap();
        let changes = changes(&before, &seen());
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(
            changes[0].contains("inner/file") && changes[0].contains("two"),
            "{changes:?}"
        );
    }
}
