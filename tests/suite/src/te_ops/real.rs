//! Operations on what a Debian has, for the policy that Debian ships.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use crate::sys::c;
use crate::te_ops::capability;
use crate::te_ops::op::Ops;
use crate::te_ops::socket;
use crate::te_ops::sys::{open, past, sys};

/// Files and directories that services and users are about.
const PATHS: &[&str] = &[
    "/etc/passwd",
    "/etc/shadow",
    "/etc/hostname",
    "/etc/ssh",
    "/etc/apache2",
    "/etc/nginx",
    "/etc/selinux",
    "/etc/ld.so.cache",
    "/etc/crontab",
    "/etc/fstab",
    "/root",
    "/home",
    "/srv",
    "/tmp",
    "/var/tmp",
    "/var/log",
    "/var/www",
    "/var/www/html",
    "/var/lib",
    "/var/lib/dpkg",
    "/var/lib/dpkg/status",
    "/var/cache",
    "/var/spool",
    "/var/spool/cron",
    "/var/log/apache2",
    "/var/log/nginx",
    "/usr",
    "/usr/bin/true",
    "/usr/sbin/nginx",
    "/usr/sbin/apache2",
    "/usr/lib/os-release",
    "/usr/share",
    "/boot",
    "/dev",
    "/dev/null",
    "/dev/kmsg",
    "/dev/mem",
    "/dev/pmem0",
    "/dev/ttyS0",
    "/dev/urandom",
    "/dev/shm",
    "/run",
    "/run/lock",
    "/proc/cpuinfo",
    "/proc/kcore",
    "/proc/1/environ",
    "/proc/net/dev",
    "/proc/sys/kernel/hostname",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/overcommit_memory",
    "/sys/kernel/uevent_seqnum",
    "/sys/kernel/security",
    "/sys/fs/cgroup",
    "/sys/fs/bpf",
    "/lost+found",
];

/// Programs that start something, or that a domain leads on from.
const PROGRAMS: &[&str] = &[
    "/usr/bin/true",
    "/usr/bin/passwd",
    "/usr/bin/su",
    "/usr/bin/mount",
    "/usr/sbin/nginx",
    "/usr/bin/dmesg",
    "/usr/sbin/load_policy",
    "/usr/bin/chsh",
];

const PORTS: &[u16] = &[
    21, 22, 25, 53, 80, 111, 143, 443, 631, 953, 3128, 3306, 5432, 8080, 9000, 40000,
];

fn execute(path: &str) -> io::Result<()> {
    let path = c(path);
    let argv = [path.as_ptr(), c"--version".as_ptr(), std::ptr::null()];
    let env = [std::ptr::null::<libc::c_char>()];
    // what it says is for nobody
    let null = open("/dev/null", libc::O_WRONLY);
    for to in [1, 2] {
        match &null {
            Ok(null) => drop(sys!(libc::dup2(std::os::fd::AsRawFd::as_raw_fd(null), to))),
            Err(_) => drop(sys!(libc::close(to))),
        }
    }
    sys!(libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr())).map(drop)
}

pub fn add(ops: &mut Ops) {
    for path in PATHS {
        ops.plain(format!("ask about {path}"), move || {
            fs::metadata(path).map(drop)
        });
        ops.plain(format!("read {path}"), move || {
            past(open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY).map(|_| 0))
        });
        ops.plain(format!("write {path}"), move || {
            past(open(path, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY).map(|_| 0))
        });
        ops.plain(format!("make a file in {path}"), move || {
            let new = format!("{path}/te-ops");
            past(open(&new, libc::O_WRONLY | libc::O_CREAT).map(|_| 0))?;
            past(fs::remove_file(&new).map(|()| 0))
        });
        ops.plain(format!("make a directory in {path}"), move || {
            let new = format!("{path}/te-ops");
            past(fs::create_dir(&new).map(|()| 0))?;
            past(fs::remove_dir(&new).map(|()| 0))
        });
        ops.plain(format!("change the mode of {path}"), move || {
            let mode = fs::metadata(path)?.permissions().mode();
            past(fs::set_permissions(path, PermissionsExt::from_mode(mode)).map(|()| 0))
        });
    }
    for path in PROGRAMS {
        ops.plain(format!("execute {path}"), move || execute(path));
    }
    for &port in PORTS {
        for (name, kind) in [("tcp", libc::SOCK_STREAM), ("udp", libc::SOCK_DGRAM)] {
            ops.plain(format!("bind to {port}, {name}"), move || {
                past(capability::bind(libc::AF_INET, kind, port))
            });
        }
        ops.plain(format!("connect to {port}"), move || {
            past(socket::connected(port).map(|()| 0))
        });
    }
}
