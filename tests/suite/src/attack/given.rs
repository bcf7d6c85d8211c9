//! What the attacker is told of the guarded world, so that its arguments are plausible.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde::{Deserialize, Serialize};

/// Where everything of the attack is, on a disk and in memory.
pub const ROOTS: [&str; 2] = ["/srv/attack", "/dev/shm/attack"];
/// Programs: copies of this one.
pub const ATTACKER: &str = "/srv/attack-bin/attacker";
/// A higher process that is attacked.
pub const VICTIM: &str = "/srv/attack-bin/victim";
/// Where the attacker writes down what it does; at its own level.
pub const LOG: &str = "/srv/attack/log/calls";
/// Descriptors that the judge has, too: of a log, for appending, and of a file, for reading.
pub const SHARED: [i32; 2] = [60, 61];

/// Every byte of it is inverted, so that nobody has the secret without having read it.
const INVERTED: [u8; 16] = [
    0x8b, 0x97, 0x9a, 0xd2, 0x98, 0x8a, 0x9e, 0x8d, 0x9b, 0x9a, 0x9b, 0xd2, 0x88, 0x90, 0x8d, 0x9b,
];

/// What a secret begins with.
pub fn secret() -> Vec<u8> {
    INVERTED
        .iter()
        .map(|byte| !std::hint::black_box(*byte))
        .collect()
}

/// Whether there is a secret in these bytes.
pub fn has_secret(mut bytes: &[u8]) -> bool {
    let (first, length) = (!INVERTED[0], INVERTED.len());
    // SAFETY: the pointer and the length are those of a slice.
    let find = |bytes: &[u8]| unsafe {
        let at = libc::memchr(bytes.as_ptr().cast(), first.into(), bytes.len());
        (!at.is_null()).then(|| at as usize - bytes.as_ptr() as usize)
    };
    while let Some(at) = find(bytes) {
        let Some(candidate) = bytes.get(at..at + length) else {
            return false;
        };
        if candidate
            .iter()
            .zip(&INVERTED)
            .all(|(byte, not)| *byte == !*not)
        {
            return true;
        }
        bytes = &bytes[at + 1..];
    }
    false
}

/// Numbers of higher objects.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Given {
    /// Higher processes: those that are attacked, the judge, the daemon.
    pub processes: Vec<i32>,
    /// Where the first of them has a secret.
    pub secret_at: u64,
    /// A segment, a set of semaphores, a message queue.
    pub ipc: [i32; 3],
    /// Their key.
    pub ipc_key: i32,
    /// A key of root's.
    pub key: i32,
    /// Inodes of higher files and of secrets.
    pub inodes: Vec<u64>,
}

/// The name of a POSIX message queue, and of a key's description.
pub const NAME: &str = "attack";

/// Files below each of the roots.
const FILES: [&str; 20] = [
    "top",
    "top/plain",
    "top/theirs",
    "top/log",
    "top/program",
    "top/link",
    "top/fifo",
    "top/socket",
    "top/dir",
    "top/dir/inner",
    "top/theirs-dir",
    "top/theirs-dir/inner",
    "top/new",
    "secret",
    "secret/file",
    "low",
    "low/file",
    "low/dir",
    "low/new",
    "low/link-to-top",
];

/// So many of [`paths`], which come first, are below the roots.
pub const BESIDE: usize = ROOTS.len() * FILES.len();

/// Paths that calls are tried on: guarded ones, the attacker's own, and the system's.
pub fn paths(given: &Given) -> Vec<String> {
    let mut paths = Vec::new();
    for root in ROOTS {
        for file in FILES {
            paths.push(format!("{root}/{file}"));
        }
    }
    for process in given.processes.iter().take(2) {
        for file in [
            "mem",
            "fd/0",
            "fd/1",
            "oom_score_adj",
            "coredump_filter",
            "timerslack_ns",
            "comm",
            "clear_refs",
            "root",
            "cwd",
            "environ",
            "maps",
            "setgroups",
            "uid_map",
            "ns/mnt",
            "ns/user",
            "autogroup",
            "loginuid",
        ] {
            paths.push(format!("/proc/{process}/{file}"));
        }
    }
    for path in [
        "/",
        "/etc",
        "/etc/passwd",
        "/etc/new",
        "/proc",
        "/proc/self/mem",
        "/proc/self/fd/60",
        "/proc/self/fd/4",
        "/proc/self/fd/12",
        "/proc/self/fd/20",
        "/proc/1/root",
        "/proc/kcore",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/sys/fs/cgroup/attack/cgroup.procs",
        "/sys/fs/cgroup/new",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/kernel/mm/ksm/run",
        "/sys/power/state",
        "/sys/class/net/lo/mtu",
        "/sys/fs/bpf",
        "/sys/fs/bpf/tidegate",
        "/sys/kernel/debug",
        "/sys/kernel/tracing",
        "/dev",
        "/dev/null",
        "/dev/random",
        "/dev/vda",
        "/dev/mem",
        "/dev/port",
        "/dev/kmsg",
        "/dev/tty0",
        "/dev/tty1",
        "/dev/ptmx",
        "/dev/loop-control",
        "/dev/loop0",
        "/dev/fuse",
        "/dev/net/tun",
        "/dev/mqueue/attack",
        "/dev/new",
        "/dev/hpet",
        "/dev/rtc0",
        "/dev/cpu_dma_latency",
        "/dev/uinput",
        "/dev/vsock",
        "/dev/snapshot",
        "/dev/userfaultfd",
        "/run/tidegate/tidegate.sock",
        "/run/tidegate/admin.sock",
        "/run/tidegate/pid",
        "/run/tidegate/level/untrusted",
        "/tmp",
        "/tmp/new",
        "/bin/true",
        // of directories that are open
        "file",
        "plain",
        "inner",
        "new",
        "..",
        "",
    ] {
        paths.push(path.to_owned());
    }
    paths
}

/// Puts the low part of the world there, which attacks may change: again before each batch.
pub fn make_low(root: &str) -> io::Result<()> {
    let low = format!("{root}/low");
    match fs::remove_dir_all(&low) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::create_dir_all(format!("{low}/dir"))?;
    fs::write(format!("{low}/file"), "low")?;
    symlink(format!("{root}/top"), format!("{low}/link-to-top"))?;
    for path in [low.clone(), format!("{low}/dir"), format!("{low}/file")] {
        fs::set_permissions(path, Permissions::from_mode(0o777))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_is() {
        let mut bytes = vec![b'x'; 40];
        assert!(!has_secret(&bytes));
        bytes[21..37].copy_from_slice(&secret());
        assert!(has_secret(&bytes));
        assert!(!has_secret(&bytes[..36]));
        assert!(!has_secret(&INVERTED));
    }
}
